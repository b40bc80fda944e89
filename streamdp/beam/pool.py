"""The clusters of all hypotheses: each stored once, shared by all that contain it.

A *slot* holds one cluster, that is one set of records. A slot that every hypothesis holds is
*agreed*; the others are *contested* and stand in a column each of a table of holders.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.beam.trellis import free_chain
from streamdp.kernels.jit import kernel

SLOT_FREE, SLOT_HIGH, SLOT_USED, CONTESTED, OPEN, PLANE = range(6)
VACANT, ALIVE, CLOSED = 0, 1, 2


class Pool(NamedTuple):
    """One entry per slot, and the table of who holds the contested ones."""

    meta: np.ndarray  # int64[6]
    next: np.ndarray  # int32[S] free list
    state: np.ndarray  # int8[S] VACANT, ALIVE or CLOSED
    lineage: np.ndarray  # int32[S]
    founder: np.ndarray  # int64[S]
    size: np.ndarray  # int64[S] records
    tokens: np.ndarray  # int64[S] n_k of the sparse families
    types: np.ndarray  # int64[S] T_k of the sparse families
    weight: np.ndarray  # float64[S] stored prior weight (true weight / clock[SCALE])
    last: np.ndarray  # int64[S] seq of the last record
    first_time: np.ndarray  # float64[S]
    last_time: np.ndarray  # float64[S]
    column: np.ndarray  # int32[S] column among the contested, -1 when agreed
    slot_of: np.ndarray  # int32[M] slot of a contested column
    holds: (
        np.ndarray
    )  # uint8[2, B, M] hypothesis x column; one plane is in use, the next step fills the other


class Beam(NamedTuple):
    """The hypotheses, best first by selection score; scores are relative to the running offsets."""

    meta: np.ndarray  # int64: see the indices below
    joint: np.ndarray  # float64[B] log joint
    select: np.ndarray  # float64[B] log joint under the tempered prior
    founded: np.ndarray  # int64[B] clusters ever founded, K
    leaf: np.ndarray  # int32[B] trellis node of the last record
    sums: np.ndarray  # float64: see the indices below


SEQ, WIDTH, HEAD, NEXT_LABEL, DECIDED, DROPPED, COPIES, RETIRED, SWITCHES, CLOSINGS = range(10)
EVIDENCE, EVIDENCE_LOW, JOINT, JOINT_LOW, SCALE, NOW = range(6)


def new_pool(slots: int, width: int, columns: int) -> Pool:
    """No cluster yet."""
    minus = np.full(slots, -1, np.int32)
    return Pool(
        np.zeros(6, np.int64),
        free_chain(0, slots),
        np.zeros(slots, np.int8),
        minus.copy(),
        np.full(slots, -1, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots),
        np.full(slots, -1, np.int64),
        np.zeros(slots),
        np.zeros(slots),
        minus.copy(),
        np.full(columns, -1, np.int32),
        np.zeros((2, width, columns), np.uint8),
    )


def new_beam(width: int) -> Beam:
    """One hypothesis: that nothing has been seen."""
    meta = np.zeros(10, np.int64)
    meta[WIDTH] = 1
    meta[DECIDED] = -1
    sums = np.zeros(6)
    sums[SCALE] = 1.0
    return Beam(
        meta, np.zeros(width), np.zeros(width), np.zeros(width, np.int64), np.zeros(width, np.int32), sums
    )


@kernel
def take_slot(pool: Pool) -> int:
    """A free slot, agreed until it is given a column."""
    slot = pool.meta[SLOT_FREE]
    pool.meta[SLOT_FREE] = pool.next[slot]
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
    pool.next[slot] = pool.meta[SLOT_FREE]
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
