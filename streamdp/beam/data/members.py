"""The times of a cluster's members, for the decays that need them one by one (window, logistic).

And an indexed binary min-heap over pool slots: which cluster closes, expires or retires next. The key of a
slot is its stored weight (exponential decay), the time of its oldest member (window) or the number of its
last record (retirement); ties go to the older slot number.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.blocks import HEADER, allocate, drop_list, release
from streamdp.kernels.heap import before, sift, swap
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, one, reals, row_type, rows


class Expiry(NamedTuple):
    """``counters.length`` slots in ``heap``; ``place[slot]`` is a slot's index in it, or -1."""

    counters: Annotated[Counters, one("length")]
    heap: Annotated[np.ndarray, ints("slots", fill=-1)]
    place: Annotated[np.ndarray, ints("slots", fill=-1)]
    key: Annotated[np.ndarray, reals("slots")]


@before.of(Expiry)
def _sooner(expiry: Expiry, a: int, b: int) -> bool:
    x, y = expiry.heap[a], expiry.heap[b]
    return expiry.key[x] < expiry.key[y] or (expiry.key[x] == expiry.key[y] and x < y)


@swap.of(Expiry)
def _swap(expiry: Expiry, a: int, b: int) -> None:
    x, y = expiry.heap[a], expiry.heap[b]
    expiry.heap[a], expiry.heap[b] = y, x
    expiry.place[x], expiry.place[y] = b, a


@kernel
def set_expiry(expiry: Expiry, slot: int, key: float) -> None:
    """Insert a slot, or move it to its new key."""
    expiry.key[slot] = key
    i = expiry.place[slot]
    if i < 0:
        i = expiry.counters.length
        expiry.counters.length = i + 1
        expiry.heap[i] = slot
        expiry.place[slot] = i
    sift(expiry, i, expiry.counters.length)


@kernel
def drop_expiry(expiry: Expiry, slot: int) -> None:
    """Take a slot out, if it is in."""
    i = expiry.place[slot]
    if i < 0:
        return
    expiry.place[slot] = -1
    last = expiry.counters.length - 1
    expiry.counters.length = last
    if i == last:
        return
    moved = expiry.heap[last]
    expiry.heap[i] = moved
    expiry.place[moved] = i
    sift(expiry, i, last)


QUEUE = row_type("start head length block")
"""Offset, expired entries at the front, entries in use with the expired ones, size index or -1 for none."""


class Members(NamedTuple):
    """A queue of times per slot, oldest first."""

    queues: Annotated[np.ndarray, rows(QUEUE, "slots", block=-1)]
    header: Annotated[np.ndarray, HEADER]
    time: Annotated[np.ndarray, reals("times")]


@kernel
def push_member(members: Members, slot: int, time: float) -> None:
    """Put a time into a slot's queue, which is in order: nearly always at its end."""
    j = members.queues[slot].block
    if j < 0:
        j = 0
        members.queues[slot].start = allocate(members.header, members.time, j)
        members.queues[slot].block = j
        members.queues[slot].head = 0
        members.queues[slot].length = 0
    n = members.queues[slot].length
    if n == (4 << j):
        head = members.queues[slot].head
        old = members.queues[slot].start
        new = old
        if 2 * head < n:
            new = allocate(members.header, members.time, j + 1)
        for i in range(n - head):
            members.time[new + i] = members.time[old + head + i]
        if new != old:
            release(members.header, members.time, old, j)
            members.queues[slot].start = new
            members.queues[slot].block = j + 1
        members.queues[slot].head = 0
        n -= head
    start, head = members.queues[slot].start, members.queues[slot].head
    at = n
    while at > head and members.time[start + at - 1] > time:
        members.time[start + at] = members.time[start + at - 1]
        at -= 1
    members.time[start + at] = time
    members.queues[slot].length = n + 1


@kernel
def drop_member(members: Members, slot: int, time: float) -> bool:
    """Take a time out of a slot's queue; False where it has expired."""
    start, n = members.queues[slot].start, members.queues[slot].length
    at = n - 1
    while at >= members.queues[slot].head and members.time[start + at] > time:
        at -= 1
    if at < members.queues[slot].head or members.time[start + at] != time:
        return False
    for i in range(start + at, start + n - 1):
        members.time[i] = members.time[i + 1]
    members.queues[slot].length = n - 1
    return True


@kernel
def copy_members(members: Members, source: int, target: int) -> None:
    """Give an empty slot the queue of another."""
    j = members.queues[source].block
    if j < 0:
        return
    begin = allocate(members.header, members.time, j)
    old = members.queues[source].start
    for i in range(members.queues[source].head, members.queues[source].length):
        members.time[begin + i] = members.time[old + i]
    members.queues[target].start = begin
    members.queues[target].block = j
    members.queues[target].head = members.queues[source].head
    members.queues[target].length = members.queues[source].length


@kernel
def release_members(members: Members, slot: int) -> None:
    """Free a slot's queue."""
    drop_list(members.header, members.time, members.queues, slot)
    members.queues[slot].head = 0
    members.queues[slot].length = 0
