"""Which record is in which slot, and which slots are in use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.clusters import add, clear, hold, remove
from streamdp.offline.kernels.store import FIRST_SLOT, Store

ACTIVE, FREE, HELD = range(3)
"""Slots in use and free; how many of the former hold frozen records: the first ones, and they stay in use."""

JOINT, FROZEN = range(2)


class Allocation(NamedTuple):
    """N records, C slots."""

    labels: np.ndarray  # int64[N] slot of a record, -1 while it is in none
    active: np.ndarray  # int64[C] slots in use, meta[ACTIVE] of them
    where: np.ndarray  # int64[C] place of a slot in active
    free: np.ndarray  # int64[C] slots not in use, meta[FREE] of them
    meta: np.ndarray  # int64[3]
    sums: np.ndarray  # float64[2] the log joint, and log H of the frozen records
    weights: np.ndarray  # float64[C + 1] scratch
    totals: np.ndarray  # float64[C + 1] scratch


def new_allocation(records: int, capacity: int) -> Allocation:
    """No record is in any slot."""
    return Allocation(
        np.full(records, -1, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.arange(capacity - 1, -1, -1, dtype=np.int64),
        np.array([0, capacity - FIRST_SLOT, 0]),
        np.zeros(2),
        np.zeros(capacity + 1),
        np.zeros(capacity + 1),
    )


def grown_allocation(allocation: Allocation, capacity: int) -> Allocation:
    """The same with room for ``capacity`` slots."""
    old = len(allocation.free)
    new = new_allocation(0, capacity)
    free, held = capacity - old, int(allocation.meta[FREE])
    new.free[held : held + free] = new.free[:free]
    new.free[:held] = allocation.free[:held]
    new.active[:old], new.where[:old] = allocation.active, allocation.where
    allocation.meta[FREE] += free
    return allocation._replace(
        active=new.active, where=new.where, free=new.free, weights=new.weights, totals=new.totals
    )


@kernel
def take_slot(allocation: Allocation) -> int:
    """Put a free slot into use; there must be one."""
    allocation.meta[FREE] -= 1
    slot = allocation.free[allocation.meta[FREE]]
    allocation.active[allocation.meta[ACTIVE]] = slot
    allocation.where[slot] = allocation.meta[ACTIVE]
    allocation.meta[ACTIVE] += 1
    return slot


@kernel
def release_slot(allocation: Allocation, slot: int) -> None:
    """Put an emptied slot out of use."""
    allocation.meta[ACTIVE] -= 1
    last = allocation.active[allocation.meta[ACTIVE]]
    place = allocation.where[slot]
    allocation.active[place] = last
    allocation.where[last] = place
    allocation.free[allocation.meta[FREE]] = slot
    allocation.meta[FREE] += 1


@kernel
def is_held(allocation: Allocation, slot: int) -> bool:
    """Whether a slot holds frozen records."""
    return slot < FIRST_SLOT + allocation.meta[HELD]


@kernel
def enter(store: Store, allocation: Allocation, i: int, slot: int) -> None:
    """Put a record that is nowhere into a slot."""
    add(store, slot, i)
    allocation.labels[i] = slot


@kernel
def leave(store: Store, allocation: Allocation, i: int) -> int:
    """Take a record out of its slot, and the slot out of use if it was the last; returns the slot."""
    slot = allocation.labels[i]
    remove(store, slot, i)
    allocation.labels[i] = -1
    if store.size[slot] == 0:
        release_slot(allocation, slot)
    return slot


@entry
def fill(store: Store, allocation: Allocation, labels: np.ndarray, frozen: np.ndarray) -> None:
    """Put record i into slot ``labels[i] + FIRST_SLOT``; all slots are clear, none is in use.

    Before that, frozen records into the first slots, ``frozen[k]`` of them into each.
    """
    top = frozen.shape[0]
    allocation.sums[FROZEN] = 0.0
    for k in range(top):
        hold(store, k + FIRST_SLOT, labels.shape[0] + k)
        store.size[k + FIRST_SLOT] = frozen[k]
        allocation.sums[FROZEN] += store.log_h[k + FIRST_SLOT]
    allocation.meta[HELD] = top
    for i in range(labels.shape[0]):
        slot = labels[i] + FIRST_SLOT
        add(store, slot, i)
        allocation.labels[i] = slot
        top = max(top, labels[i] + 1)
    capacity = allocation.free.shape[0]
    for k in range(top):
        allocation.active[k] = k + FIRST_SLOT
        allocation.where[k + FIRST_SLOT] = k
    allocation.meta[ACTIVE] = top
    allocation.meta[FREE] = capacity - FIRST_SLOT - top
    for k in range(allocation.meta[FREE]):
        allocation.free[k] = capacity - 1 - k


@entry
def clear_from(store: Store, first: int) -> None:
    """Clear all slots from a first one on."""
    for slot in range(first, store.size.shape[0]):
        clear(store, slot)


@entry
def enter_alone(store: Store, slots: np.ndarray) -> None:
    """Put every record into a slot of its own; all of them are clear."""
    for i in range(slots.shape[0]):
        add(store, slots[i], i)


@entry
def leave_all(store: Store, allocation: Allocation, first: int) -> None:
    """Take the records from a first one on out of their slots."""
    for i in range(first, allocation.labels.shape[0]):
        leave(store, allocation, i)
