"""An indexed binary min-heap over pool slots: which cluster closes, expires or retires next.

The key of a slot is its stored weight (exponential decay), the time of its oldest member (window)
or the number of its last record (retirement); ties go to the older slot number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.heap import before, rise, sink, swap
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


@before.of(Due)
def _sooner(due: Due, a: int, b: int) -> bool:
    x, y = due.heap[a], due.heap[b]
    return due.key[x] < due.key[y] or (due.key[x] == due.key[y] and x < y)


@swap.of(Due)
def _swap(due: Due, a: int, b: int) -> None:
    x, y = due.heap[a], due.heap[b]
    due.heap[a], due.heap[b] = y, x
    due.place[x], due.place[y] = b, a


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
    sink(due, rise(due, i), due.length[0])


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
    sink(due, rise(due, i), last)
