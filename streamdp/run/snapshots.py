"""The state of a run: when snapshots are taken, who has it, and with which settings it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import msgspec
from streamdp_connectors.protocol import Source, Watched

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.run.messages import say
from streamdp.run.observers import RunObserver
from streamdp.run.writing import Sinks
from streamdp.settings import Settings
from streamdp.settings.io_options import NOWHERE, Outputs
from streamdp.settings.load import model_settings, resumed
from streamdp.state.claim import LOOK, Claim, Standby
from streamdp.state.kept_rows import kept_rows
from streamdp.state.snapshot import Header, SnapshotError, StateFolder


class Snapshots:
    """The snapshots of a run, one at a time. The stream waits while one becomes bytes, and no longer.

    The rest is a thread's: it waits until the outputs are durable up to there, writes the file, and then
    commits the source's positions. ``waiting`` is called while one is waited for, and may raise; ``watch``
    is called with each. ``saved`` is the number of records in the newest that is on the disk.
    """

    def __init__(
        self,
        folder: StateFolder,
        settings: Settings,
        modes: dict[str, bool],
        waiting: Callable[[], object],
        watch: RunObserver,
        saved: int,
    ) -> None:
        self.saved = saved
        self._folder, self._settings, self._modes = folder, settings, modes
        self._waiting, self._watch = waiting, watch
        self._saving: Future[int] | None = None
        self._kept = kept_rows(settings.embed, folder.folder)
        self._read = 0
        self._taken = time.monotonic()

    def read(self, records: int) -> None:
        """Count records that were read, refused ones too."""
        self._read += records

    @property
    def due(self) -> bool:
        """Whether a snapshot is due, by records or by time."""
        if self._saving is not None or not self._read:
            return False
        after = self._settings.snapshot_seconds
        late = bool(after) and time.monotonic() - self._taken >= after
        return late or self._read >= self._settings.snapshot_every

    def take(
        self,
        engine: Engine,
        source: Source,
        sinks: Sinks,
        *,
        marks: dict[str, Any],
        ended: bool,
        wait: bool,
    ) -> None:
        """Take a snapshot, with ``marks`` of the source's position; ``wait`` until it is on the disk.

        Raises errors of the last one, too.
        """
        self.look(wait=True)
        began = time.perf_counter()
        self._watch.stages.enter("snapshot")
        self._watch.saving(engine)
        sinks.flush(sync=False)
        positions = source.positions() | marks
        header = Header(
            settings=model_settings(self._settings),
            seq=engine.seq,
            positions=positions,
            outputs=sinks.kept(),
            modes=self._modes,
            written=time.time(),
            ended=ended,
        )
        body, lasting = engine.dumps(), sinks.lasting()
        if self._kept is not None:
            self._kept.begin()

        def save() -> None:
            try:
                lasting()
                path = self._folder.write(header, body)
                self._watch.snapshot(time.perf_counter() - began, path.stat().st_size)
                if isinstance(source, Watched):
                    source.commit(positions)
                saving.set_result(header.seq)
            except BaseException as error:
                saving.set_exception(error)

        saving = self._saving = Future[int]()
        threading.Thread(target=save, name="streamdp-snapshot", daemon=True).start()
        self._read, self._taken = 0, time.monotonic()
        self._watch.stages.enter("other")
        self.look(wait)

    def look(self, wait: bool = False) -> None:
        """Notice that a snapshot has been written. Raises its errors."""
        saving = self._saving
        if saving is None:
            return
        while not wait_for([saving], 0.2 if wait else 0.0).done:
            if not wait:
                return
            self._waiting()
        try:
            self.saved = saving.result()
        except SnapshotError:
            self._watch.snapshot_failed()
            raise
        self._saving = None
        if self._kept is not None:
            self._kept.drop()

    def end(self) -> None:
        """Wait for the thread, and ignore its errors."""
        if self._saving is not None:
            wait_for([self._saving], 10.0)


def continued(settings: Settings, written: Container[str], header: Header, made: str, help_: str) -> Settings:
    """The settings of a snapshot, and for what it does not say those given.

    SnapshotError (78) where the user has ``written`` others than the snapshot's: ``made`` begins the message,
    ``help_`` ends it.
    """
    try:
        settings, changed, differing = resumed(settings, written, header.settings)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{made} made under settings that cannot be: {error}", Exit.BAD_DATA) from None
    if changed:
        raise SnapshotError(f"{made} made under other settings ({'; '.join(changed)}); {help_}", Exit.CONFIG)
    if differing:
        say(f"settings of the state that differ from today's defaults: {', '.join(differing)}")
    return settings


def refuse_modes(outputs: Outputs, before: Header) -> None:
    """Raise SnapshotError (78) where a state needs other options, and say which."""
    if before.modes == outputs.modes:
        return
    paths = {name: before.outputs.get(name) for name in ("events", "store")}
    earlier = {name: left.get("path") for name, left in paths.items() if left is not None}
    if before.modes.get("final_only"):
        earlier["final-only"] = None
    chosen = {"final-only": outputs.final_only, "events": outputs.events, "store": outputs.store}
    lacking = [f"--{name} {path or ''}".rstrip() for name, path in earlier.items() if not chosen[name]]
    new = [f"--{name}" for name, given in chosen.items() if given and name not in earlier]
    found = [f"with {' and '.join(lacking)}: say so again"] if lacking else []
    found += [f"without {' and '.join(new)}: leave {'it' if len(new) == 1 else 'them'} out"] if new else []
    raise SnapshotError(
        f"{outputs.state}: was written {', and '.join(found)}, or name another --state", Exit.CONFIG
    )


def wait_for_turn(state: str, patience: float, waits: bool, watch: RunObserver) -> Claim:
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


def report_change(outputs: Outputs, resumed: Header) -> None:
    """Report where earlier answers are, if the new ones go elsewhere, and what gets nothing more."""
    for name in ("events", "finality", "store"):
        if name in resumed.outputs and getattr(outputs, name) is None:
            where = resumed.outputs[name].get("path", "its address")
            say(f"without --{name} {where} gets nothing of this run, and cannot be gone on with later")
    output, before, seq = outputs.output, resumed.outputs["output"].get("path"), resumed.seq
    if NOWHERE in (output, before):
        if output != before:
            whose = "from now on" if output == NOWHERE else f"to the first {seq:,} records"
            say(f"the answers {whose} are not written (--output names a file, or -)")
    elif output == "-" and before not in (None, "-"):
        say(f"the answers to the first {seq:,} records are in {before}; the others go to standard output")
    elif output != "-" and before == "-" and seq:
        say(f"the answers to the first {seq:,} records went to standard output; the others go to {output}")
