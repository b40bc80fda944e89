"""An indexed binary min-heap over pool slots: which cluster closes, expires or retires next.

The key of a slot is its stored weight (exponential decay), the time of its oldest member (window)
or the number of its last record (retirement); ties go to the older slot number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel


class Due(NamedTuple):
    """``length[0]`` slots in ``heap``; ``place[slot]`` is a slot's index in it, or -1."""

    length: np.ndarray  # int64[1]
    heap: np.ndarray  # int64[S]
    place: np.ndarray  # int64[S]
    key: np.ndarray  # float64[S]


def new_due(slots: int) -> Due:
    """An empty heap for ``slots`` slots."""
    return Due(
        np.zeros(1, np.int64), np.full(slots, -1, np.int64), np.full(slots, -1, np.int64), np.zeros(slots)
    )


@kernel
def _before(due: Due, a: int, b: int) -> bool:
    return due.key[a] < due.key[b] or (due.key[a] == due.key[b] and a < b)


@kernel
def _up(due: Due, i: int) -> None:
    slot = due.heap[i]
    while i > 0:
        p = (i - 1) >> 1
        other = due.heap[p]
        if not _before(due, slot, other):
            break
        due.heap[i] = other
        due.place[other] = i
        i = p
    due.heap[i] = slot
    due.place[slot] = i


@kernel
def _down(due: Due, i: int) -> None:
    n = due.length[0]
    slot = due.heap[i]
    while True:
        c = 2 * i + 1
        if c >= n:
            break
        if c + 1 < n and _before(due, due.heap[c + 1], due.heap[c]):
            c += 1
        other = due.heap[c]
        if not _before(due, other, slot):
            break
        due.heap[i] = other
        due.place[other] = i
        i = c
    due.heap[i] = slot
    due.place[slot] = i


@kernel
def set_due(due: Due, slot: int, key: float) -> None:
    """Insert a slot, or move it to its new key."""
    due.key[slot] = key
    i = due.place[slot]
    if i < 0:
        i = due.length[0]
        due.length[0] = i + 1
        due.heap[i] = slot
        due.place[slot] = i
    _up(due, i)
    _down(due, due.place[slot])


@kernel
def drop_due(due: Due, slot: int) -> None:
    """Take a slot out, if it is in."""
    i = due.place[slot]
    if i < 0:
        return
    due.place[slot] = -1
    last = due.length[0] - 1
    due.length[0] = last
    if i == last:
        return
    moved = due.heap[last]
    due.heap[i] = moved
    due.place[moved] = i
    _up(due, i)
    _down(due, due.place[moved])
