"""The times of a cluster's members, for the decays that need them one by one (window, logistic)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.blocks import allocate, new_header, release
from streamdp.kernels.jit import kernel


class Members(NamedTuple):
    """A queue of times per slot, oldest first."""

    start: np.ndarray  # int64[S]
    head: np.ndarray  # int32[S] expired entries at the front
    length: np.ndarray  # int32[S] entries in use, expired ones too
    block: np.ndarray  # int32[S] size index, -1 for none
    header: np.ndarray
    time: np.ndarray  # float64[...]


def new_members(slots: int, room: int) -> Members:
    """Empty queues."""
    return Members(
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int32),
        np.full(slots, -1, np.int32),
        new_header(),
        np.zeros(room),
    )


@kernel
def push_member(members: Members, slot: int, time: float) -> None:
    """Append a time to a slot's queue."""
    j = members.block[slot]
    if j < 0:
        j = 0
        members.start[slot] = allocate(members.header, members.time, j)
        members.block[slot] = j
        members.head[slot] = 0
        members.length[slot] = 0
    n = members.length[slot]
    if n == (4 << j):
        head = members.head[slot]
        old = members.start[slot]
        new = old
        if 2 * head < n:
            new = allocate(members.header, members.time, j + 1)
        for i in range(n - head):
            members.time[new + i] = members.time[old + head + i]
        if new != old:
            release(members.header, members.time, old, j)
            members.start[slot] = new
            members.block[slot] = j + 1
        members.head[slot] = 0
        n -= head
    members.time[members.start[slot] + n] = time
    members.length[slot] = n + 1


@kernel
def copy_members(members: Members, source: int, target: int) -> None:
    """Give an empty slot the queue of another."""
    j = members.block[source]
    if j < 0:
        return
    begin = allocate(members.header, members.time, j)
    old = members.start[source]
    for i in range(members.head[source], members.length[source]):
        members.time[begin + i] = members.time[old + i]
    members.start[target] = begin
    members.block[target] = j
    members.head[target] = members.head[source]
    members.length[target] = members.length[source]


@kernel
def release_members(members: Members, slot: int) -> None:
    """Free a slot's queue."""
    j = members.block[slot]
    if j >= 0:
        release(members.header, members.time, members.start[slot], j)
        members.block[slot] = -1
        members.head[slot] = 0
        members.length[slot] = 0
