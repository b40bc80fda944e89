"""Which record is in which slot, and which slots are in use."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, generic, kernel
from streamdp.kernels.rows import Counters, grown, ints, made, one, reals
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.store import FIRST_SLOT, Store, add, clear, hold, remove


class Allocation(NamedTuple):
    """Which slots are in use.

    ``counters``: slots in use and free; how many of the former hold frozen records (the first ones, which
    stay in use); the log joint, and log H of the frozen records.
    """

    counters: Annotated[Counters, one("active free held", "joint frozen")]
    labels: Annotated[np.ndarray, ints("records", fill=-1)]  # slot of a record, -1 while it is in none
    active: Annotated[np.ndarray, ints("slots")]  # slots in use
    where: Annotated[np.ndarray, ints("slots")]  # place of a slot in active
    free: Annotated[np.ndarray, ints("slots")]  # slots not in use
    weights: Annotated[np.ndarray, reals("one more")]  # scratch
    totals: Annotated[np.ndarray, reals("one more")]  # scratch


def new_allocation(records: int, capacity: int) -> Allocation:
    """No record is in any slot."""
    allocation = made(Allocation, {"records": records, "slots": capacity, "one more": capacity + 1})
    allocation.free[:] = np.arange(capacity - 1, -1, -1)
    allocation.counters.free = capacity - FIRST_SLOT
    return allocation


def grown_allocation(allocation: Allocation, capacity: int) -> Allocation:
    """The same with room for ``capacity`` slots."""
    more, held = capacity - len(allocation.free), int(allocation.counters.free)
    larger = grown(grown(allocation, "slots", capacity), "one more", capacity + 1)
    larger.free[held : held + more] = np.arange(capacity - 1, capacity - 1 - more, -1)
    larger.counters.free += more
    return larger


@kernel
def take_slot(allocation: Allocation) -> int:
    """Put a free slot into use; there must be one."""
    allocation.counters.free -= 1
    slot = allocation.free[allocation.counters.free]
    allocation.active[allocation.counters.active] = slot
    allocation.where[slot] = allocation.counters.active
    allocation.counters.active += 1
    return slot


@kernel
def release_slot(allocation: Allocation, slot: int) -> None:
    """Put an emptied slot out of use."""
    allocation.counters.active -= 1
    last = allocation.active[allocation.counters.active]
    place = allocation.where[slot]
    allocation.active[place] = last
    allocation.where[last] = place
    allocation.free[allocation.counters.free] = slot
    allocation.counters.free += 1


@kernel
def is_held(allocation: Allocation, slot: int) -> bool:
    """Whether a slot holds frozen records."""
    return slot < FIRST_SLOT + allocation.counters.held


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


@kernel
def choose(store: Store, allocation: Allocation, random: np.ndarray, i: int, old: int) -> int:
    """Draw an active slot or a new one by ``allocation.weights`` and let record i enter it.

    ``old`` is the slot that the record has left; the log joint follows. Returns the slot.
    """
    n, weights = allocation.counters.active, allocation.weights
    before = weights[allocation.where[old]] if store.size[old] > 0 else weights[n]
    j = draw_log(random, weights, n + 1, allocation.totals)
    allocation.counters.joint += weights[j] - before
    slot = allocation.active[j] if j < n else take_slot(allocation)
    enter(store, allocation, i, slot)
    return slot


@generic
def redraw(given: Any, store: Store, allocation: Allocation, random: np.ndarray, i: int) -> None:
    """Draw anew where a record belongs given all others; ``given`` is what a sampler reads of the prior."""
    raise NotImplementedError


@entry
def sweep(
    given: Any, store: Store, allocation: Allocation, random: np.ndarray, order: np.ndarray, first: int
) -> int:
    """Draw records ``order[first ..]`` anew; returns where it stopped for want of a free slot."""
    for p in range(first, order.shape[0]):
        if allocation.counters.free == 0:
            return p
        redraw(given, store, allocation, random, order[p])
    return order.shape[0]


@entry
def fill(store: Store, allocation: Allocation, labels: np.ndarray, frozen: np.ndarray) -> None:
    """Put record i into slot ``labels[i] + FIRST_SLOT``; all slots are clear, none is in use.

    Before that, frozen records into the first slots, ``frozen[k]`` of them into each.
    """
    top = frozen.shape[0]
    allocation.counters.frozen = 0.0
    for k in range(top):
        hold(store, k + FIRST_SLOT, labels.shape[0] + k)
        store.size[k + FIRST_SLOT] = frozen[k]
        allocation.counters.frozen += store.log_h[k + FIRST_SLOT]
    allocation.counters.held = top
    for i in range(labels.shape[0]):
        slot = labels[i] + FIRST_SLOT
        add(store, slot, i)
        allocation.labels[i] = slot
        top = max(top, labels[i] + 1)
    capacity = allocation.free.shape[0]
    for k in range(top):
        allocation.active[k] = k + FIRST_SLOT
        allocation.where[k + FIRST_SLOT] = k
    allocation.counters.active = top
    allocation.counters.free = capacity - FIRST_SLOT - top
    for k in range(allocation.counters.free):
        allocation.free[k] = capacity - 1 - k


@entry
def clear_from(store: Store, first: int) -> None:
    """Clear all slots from a first one on."""
    for slot in range(first, store.size.shape[0]):
        clear(store, slot)


@entry
def leave_all(store: Store, allocation: Allocation, first: int) -> None:
    """Take the records from a first one on out of their slots."""
    for i in range(first, allocation.labels.shape[0]):
        leave(store, allocation, i)
