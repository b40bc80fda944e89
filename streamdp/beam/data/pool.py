"""The clusters of all hypotheses: each stored once, shared by all that contain it.

A *slot* holds one cluster, that is one set of records. A slot that every hypothesis holds is
*agreed*; the others are *contested* and stand in a column each of a table of holders.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, of, one, reals, row_type, rows

VACANT, ALIVE, CLOSED = 0, 1, 2

SLOT = row_type("next lineage size last", "first_time last_time")
"""Next free slot, lineage, records, seq of the last, times of the first and the last."""


class Pool(NamedTuple):
    """One entry per slot, and the table of who holds the contested ones.

    ``counters``: the first free slot, one past the highest in use, slots in use, contested ones, open ones;
    the half of ``holds`` that is in use.
    """

    counters: Annotated[Counters, one("free high used contested open half")]
    slots: Annotated[np.ndarray, rows(SLOT, "slots", chain="next", lineage=-1, last=-1)]
    state: Annotated[np.ndarray, ints("slots")]  # VACANT, ALIVE or CLOSED
    founder: Annotated[np.ndarray, ints("slots", fill=-1)]
    weight: Annotated[np.ndarray, reals("slots")]  # stored prior weight (true weight / scale)
    pinned: Annotated[np.ndarray, of(np.uint8, "slots")]  # 1: never closes; corrections say so
    column: Annotated[np.ndarray, ints("slots", fill=-1)]  # among the contested, -1 when agreed
    slot_of: Annotated[np.ndarray, ints("columns", fill=-1)]  # of a contested column
    holds: Annotated[np.ndarray, of(np.uint8, 2, "beam", "columns")]  # the next step fills the other half


class Beam(NamedTuple):
    """The hypotheses, best first by selection score; scores are relative to the running offsets.

    Of ``counters``: ``greedy`` is the rank of the greedy hypothesis, ``leads`` whether it is announced,
    ``lead`` by how many nats it has predicted better; ``looks``, ``moved``, ``mergers`` and ``gained`` are
    of second looks: how many, records that moved, clusters that became part of others, nats gained. Sums
    that end in ``low`` hold what the sum before them has lost to rounding.
    """

    counters: Annotated[
        Counters,
        one(
            "seq width head next_label decided dropped copies retired switches closings greedy leads "
            "looks moved mergers",
            "evidence evidence_low joint joint_low scale now lead gained",
            width=1,
            decided=-1,
            scale=1.0,
        ),
    ]
    joint: Annotated[np.ndarray, reals("beam")]  # log joint
    founded: Annotated[np.ndarray, ints("beam")]  # clusters ever founded, K
    leaf: Annotated[np.ndarray, ints("beam")]  # trellis node of the last record


@kernel
def holds_slot(pool: Pool, h: int, slot: int) -> bool:
    """Whether hypothesis h holds a slot that is not free."""
    column = pool.column[slot]
    return column < 0 or pool.holds[pool.counters.half, h, column] == 1


@kernel
def take_slot(pool: Pool) -> int:
    """A free slot, agreed until it is given a column."""
    slot = pool.counters.free
    pool.counters.free = pool.slots[slot].next
    pool.counters.used += 1
    if slot >= pool.counters.high:
        pool.counters.high = slot + 1
    pool.column[slot] = -1
    pool.pinned[slot] = 0
    pool.state[slot] = ALIVE
    pool.counters.open += 1
    return slot


@kernel
def free_slot(pool: Pool, slot: int) -> None:
    """Give a slot back; its statistics are released already."""
    if pool.state[slot] == ALIVE:
        pool.counters.open -= 1
    pool.state[slot] = VACANT
    pool.column[slot] = -1
    pool.slots[slot].next = pool.counters.free
    pool.counters.free = slot
    pool.counters.used -= 1
    high = pool.counters.high
    while high > 0 and pool.state[high - 1] == VACANT:
        high -= 1
    pool.counters.high = high


@kernel
def _compensated(total: float, low: float, value: float) -> tuple[float, float]:
    """A sum with one value more, and what it has lost to rounding so far (Neumaier)."""
    new = total + value
    if abs(total) >= abs(value):
        return new, low + ((total - new) + value)
    return new, low + ((value - new) + total)


@kernel
def add_evidence(beam: Beam, nats: float) -> None:
    """Count the log evidence of a record."""
    counters = beam.counters
    counters.evidence, counters.evidence_low = _compensated(counters.evidence, counters.evidence_low, nats)


@kernel
def add_joint(beam: Beam, nats: float) -> None:
    """Raise the log joint of all hypotheses."""
    counters = beam.counters
    counters.joint, counters.joint_low = _compensated(counters.joint, counters.joint_low, nats)
