"""The clusters of all hypotheses: each stored once, shared by all that contain it.

A *slot* holds one cluster, that is one set of records. A slot that every hypothesis holds is
*agreed*; the others are *contested* and stand in a column each of a table of holders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import free_chain, new_rows, row_type

SLOT_FREE, SLOT_HIGH, SLOT_USED, CONTESTED, OPEN, HALF = range(6)
VACANT, ALIVE, CLOSED = 0, 1, 2


class Pool(NamedTuple):
    """One entry per slot, and the table of who holds the contested ones."""

    meta: np.ndarray  # int64[6]
    slots: np.ndarray  # SLOT[S]
    state: np.ndarray  # int64[S] VACANT, ALIVE or CLOSED
    founder: np.ndarray  # int64[S]
    weight: np.ndarray  # float64[S] stored prior weight (true weight / sums[SCALE])
    column: np.ndarray  # int64[S] column among the contested, -1 when agreed
    slot_of: np.ndarray  # int64[M] slot of a contested column
    holds: (
        np.ndarray
    )  # uint8[2, B, M] hypothesis x column; one of the halves is in use, the next step fills the other


SLOT = row_type("next lineage size last", "first_time last_time")
"""Next free slot, lineage, records, seq of the last, times of the first and the last."""


class Beam(NamedTuple):
    """The hypotheses, best first by selection score; scores are relative to the running offsets."""

    meta: np.ndarray  # int64: see the indices below
    joint: np.ndarray  # float64[B] log joint
    select: np.ndarray  # float64[B] log joint under the tempered prior
    founded: np.ndarray  # int64[B] clusters ever founded, K
    leaf: np.ndarray  # int64[B] trellis node of the last record
    sums: np.ndarray  # float64: see the indices below


# of the greedy lane: its rank; whether it is announced; by how many nats it has predicted better (``sums``)
SEQ, WIDTH, HEAD, NEXT_LABEL, DECIDED, DROPPED, COPIES, RETIRED, SWITCHES, CLOSINGS, LANE, LEADS = range(12)
# of second looks: how many, records that moved, clusters that became part of others; nats won (``sums``)
LOOKS, MOVED, MERGERS = range(12, 15)
EVIDENCE, EVIDENCE_LOW, JOINT, JOINT_LOW, SCALE, NOW, LEAD, WON = range(8)


def new_pool(slots: int, width: int, columns: int) -> Pool:
    """No cluster yet."""
    rows = new_rows(slots, SLOT, lineage=-1, last=-1)
    rows["next"] = free_chain(0, slots)
    return Pool(
        np.zeros(6, np.int64),
        rows,
        np.zeros(slots, np.int64),
        np.full(slots, -1, np.int64),
        np.zeros(slots),
        np.full(slots, -1, np.int64),
        np.full(columns, -1, np.int64),
        np.zeros((2, width, columns), np.uint8),
    )


def new_beam(width: int) -> Beam:
    """One hypothesis: that nothing has been seen."""
    meta = np.zeros(15, np.int64)
    meta[WIDTH] = 1
    meta[DECIDED] = -1
    sums = np.zeros(8)
    sums[SCALE] = 1.0
    return Beam(
        meta, np.zeros(width), np.zeros(width), np.zeros(width, np.int64), np.zeros(width, np.int64), sums
    )


@kernel
def holds_slot(pool: Pool, h: int, slot: int) -> bool:
    """Whether hypothesis h holds a slot that is not free."""
    column = pool.column[slot]
    return column < 0 or pool.holds[pool.meta[HALF], h, column] == 1


@kernel
def take_slot(pool: Pool) -> int:
    """A free slot, agreed until it is given a column."""
    slot = pool.meta[SLOT_FREE]
    pool.meta[SLOT_FREE] = pool.slots[slot].next
    pool.meta[SLOT_USED] += 1
    if slot >= pool.meta[SLOT_HIGH]:
        pool.meta[SLOT_HIGH] = slot + 1
    pool.column[slot] = -1
    pool.state[slot] = ALIVE
    pool.meta[OPEN] += 1
    return slot


@kernel
def free_slot(pool: Pool, slot: int) -> None:
    """Give a slot back; its statistics are released already."""
    if pool.state[slot] == ALIVE:
        pool.meta[OPEN] -= 1
    pool.state[slot] = VACANT
    pool.column[slot] = -1
    pool.slots[slot].next = pool.meta[SLOT_FREE]
    pool.meta[SLOT_FREE] = slot
    pool.meta[SLOT_USED] -= 1
    high = pool.meta[SLOT_HIGH]
    while high > 0 and pool.state[high - 1] == VACANT:
        high -= 1
    pool.meta[SLOT_HIGH] = high


@kernel
def add_sum(sums: np.ndarray, index: int, value: float) -> None:
    """Add to one of the two running totals with Neumaier's compensation."""
    total = sums[index]
    new = total + value
    if abs(total) >= abs(value):
        sums[index + 1] += (total - new) + value
    else:
        sums[index + 1] += (value - new) + total
    sums[index] = new
