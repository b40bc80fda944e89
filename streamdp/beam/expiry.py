"""An indexed binary min-heap over pool slots: which cluster closes, expires or retires next.

The key of a slot is its stored weight (exponential decay), the time of its oldest member (window)
or the number of its last record (retirement); ties go to the older slot number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.heap import before, sift, swap
from streamdp.kernels.jit import kernel


class Expiry(NamedTuple):
    """``length[0]`` slots in ``heap``; ``place[slot]`` is a slot's index in it, or -1."""

    length: np.ndarray  # int64[1]
    heap: np.ndarray  # int64[S]
    place: np.ndarray  # int64[S]
    key: np.ndarray  # float64[S]


def new_expiry(slots: int) -> Expiry:
    """An empty heap for ``slots`` slots."""
    return Expiry(
        np.zeros(1, np.int64), np.full(slots, -1, np.int64), np.full(slots, -1, np.int64), np.zeros(slots)
    )


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
        i = expiry.length[0]
        expiry.length[0] = i + 1
        expiry.heap[i] = slot
        expiry.place[slot] = i
    sift(expiry, i, expiry.length[0])


@kernel
def drop_expiry(expiry: Expiry, slot: int) -> None:
    """Take a slot out, if it is in."""
    i = expiry.place[slot]
    if i < 0:
        return
    expiry.place[slot] = -1
    last = expiry.length[0] - 1
    expiry.length[0] = last
    if i == last:
        return
    moved = expiry.heap[last]
    expiry.heap[i] = moved
    expiry.place[moved] = i
    sift(expiry, i, last)
