"""Binary heaps over any structure that can compare two places.

A heap is a named tuple of arrays for which :func:`before` and :func:`swap` are implemented; what stands
before all else is at place 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import generic, kernel


@generic
def before(heap: Any, a: int, b: int) -> bool:
    """Whether what is at place a stands before what is at place b."""
    raise NotImplementedError


@generic
def swap(heap: Any, a: int, b: int) -> None:
    """Let two places change what they hold."""
    raise NotImplementedError


@kernel
def rise(heap: Any, place: int) -> int:
    """Move what is at a place up to where it belongs; returns where that is."""
    while place > 0:
        above = (place - 1) >> 1
        if not before(heap, place, above):
            break
        swap(heap, place, above)
        place = above
    return place


@kernel
def sink(heap: Any, place: int, size: int) -> int:
    """Move what is at a place of a heap of that size down to where it belongs; returns where that is."""
    while True:
        below = 2 * place + 1
        if below >= size:
            return place
        if below + 1 < size and before(heap, below + 1, below):
            below += 1
        if not before(heap, below, place):
            return place
        swap(heap, below, place)
        place = below


@kernel
def sift(heap: Any, place: int, size: int) -> None:
    """Move what is at a place of a heap of that size to where it belongs, up or down."""
    sink(heap, rise(heap, place), size)


@kernel
def order_last_first(heap: Any, size: int) -> None:
    """Turn a heap into an order in which what stands before all else comes last."""
    for last in range(size - 1, 0, -1):
        swap(heap, 0, last)
        sink(heap, 0, last)


class Ascending(NamedTuple):
    """Numbers, the largest first: to be sorted in place."""

    values: np.ndarray


@before.of(Ascending)
def _larger(heap: Ascending, a: int, b: int) -> bool:
    return heap.values[a] > heap.values[b]


@swap.of(Ascending)
def _swap_values(heap: Ascending, a: int, b: int) -> None:
    heap.values[a], heap.values[b] = heap.values[b], heap.values[a]


@kernel
def sort_ascending(values: np.ndarray, size: int) -> None:
    """Sort the first numbers in place: kernels allocate nothing."""
    heap = Ascending(values)
    for place in range(size // 2 - 1, -1, -1):
        sink(heap, place, size)
    order_last_first(heap, size)
