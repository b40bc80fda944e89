"""``streamdp refine``: offline passes over the records that a snapshot holds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

import msgspec
import numpy as np
from streamdp_connectors.files import FileSink
from streamdp_connectors.protocol import SinkClosed

from streamdp.cli.errors import announce_compilation, say
from streamdp.cli.fit import problem_of, save, settled, tell
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.progress import Progress
from streamdp.cli.show import open_state
from streamdp.errors import Exit
from streamdp.offline.fit import Plan, check, fit
from streamdp.offline.handover import retained_of
from streamdp.settings import Settings
from streamdp.settings.load import ConfigError
from streamdp.state.snapshot import StateFolder


class Change(msgspec.Struct, frozen=True):
    """A record whose cluster is another one now."""

    seq: int
    cluster: int
    was: int


def run_refine(state: str, plan: Plan, into: str | None, seed: int | None) -> None:
    """Refine the clustering of a snapshot, print what changed, keep the result where that was asked for."""
    check(plan)
    header, engine = open_state(state)
    settings = msgspec.convert(header.settings, Settings)
    if seed is not None:
        settings = msgspec.structs.replace(settings, seed=seed)
    try:
        encoded, before = retained_of(engine)
    except ValueError as error:
        raise ConfigError(f"{state}: {error}", Exit.BAD_DATA) from None
    if settings.forget is None and encoded.moments is not None and settings.likelihood != "gaussian":
        say("old vectors of a cluster count in full here, while the stream forgot them (--forget)")
    problem = problem_of(msgspec.structs.replace(settings, prior=_prior(settings)), encoded, None)
    folder = None if into is None else StateFolder(into, settings.snapshot_keep)
    announce_compilation()
    began = time.monotonic()
    started = problem.chain(settings.seed, before).log_joint
    with Interrupt() as interrupt, Progress(plan) as progress:
        found = fit(problem, plan, progress, interrupt.event, before)
    if found.chain.log_joint <= started:
        say(f"nothing better was found: log joint {started:,.2f} nats")
        found.chain.set_labels(before)
        found.labels = found.chain.labels
    names, minted = inherit(before, found.labels)
    if folder is not None:
        save(folder, settled(problem.settings, found), encoded, found.labels, names, minted)
    lines = msgspec.json.Encoder().encode_lines(changes(before, names[found.labels]))
    sink = FileSink("-")
    with contextlib.suppress(SinkClosed):  # whoever read the changes may have seen enough
        sink.write(lines)
        sink.close()
    say(f"log joint {started:,.2f} nats before")
    tell(found, time.monotonic() - began)


def _prior(settings: Settings) -> str:
    """A stream's automatic prior, by its name: that of a finite set would be another."""
    return "distance-dependent" if settings.prior == "auto" else settings.prior


def inherit(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, int]:
    """The label of each new cluster: by largest overlap, one to one, the older label on ties.

    Returns labels by the number of the cluster, and the first label that is free.
    """
    pairs, overlap = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    minted = int(before.max(initial=-1)) + 1
    names = np.full(int(after.max(initial=-1)) + 1, -1)
    taken: set[int] = set()
    for p in np.lexsort((pairs[:, 1], pairs[:, 0], -overlap)):
        label, cluster = int(pairs[p, 0]), int(pairs[p, 1])
        if names[cluster] < 0 and label not in taken:
            names[cluster] = label
            taken.add(label)
    for cluster in np.flatnonzero(names < 0).tolist():
        names[cluster] = minted
        minted += 1
    return names, minted


def changes(before: np.ndarray, after: np.ndarray) -> Sequence[Change]:
    """Records whose label is another one, in order."""
    moved = np.flatnonzero(before != after)
    return [Change(int(i), int(after[i]), int(before[i])) for i in moved]
