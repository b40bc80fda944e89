"""An indexed binary min-heap over pool slots: which cluster closes, expires or retires next.

The key of a slot is its stored weight (exponential decay), the time of its oldest member (window)
or the number of its last record (retirement); ties go to the older slot number.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.heap import before, sift, swap
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, one, reals


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
