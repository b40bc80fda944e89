"""Which of several processes goes on with the state of a topic: one runs, the others stand by."""

from __future__ import annotations

import time
from pathlib import Path

from streamdp.cli.errors import say
from streamdp.cli.watch import Watch
from streamdp.state.claim import LOOK, Claim, Standby


def wait_for_turn(state: str, patience: float, waits: bool, watch: Watch) -> Claim:
    """The folder ``state``, as soon as no other process runs with it. Raises SnapshotError (73).

    Unless it ``waits`` it only finds out whether another one lives, and is refused if so. A signal ends the
    process meanwhile: nothing was begun.
    """
    standby = Standby(Path(state), patience, say, waits=waits)
    while (claim := standby.turn()) is None:
        watch.stand_by(True)
        time.sleep(LOOK)
    watch.stand_by(False)
    return claim
