"""Sums over the dimensions of a vector and a row of statistics, shared by the families.

A row is one cluster's block of statistics; ``at`` is where a part of it begins. Parts are taken as slices
before a loop: of an index that is a sum, a compiler cannot tell that it is not negative.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel, sum_kernel


@sum_kernel
def dot(row: np.ndarray, at: int, x: np.ndarray) -> float:
    """Sum of products."""
    part, total = row[at : at + x.shape[0]], 0.0
    for d in range(x.shape[0]):
        total += part[d] * x[d]
    return total


@sum_kernel
def squared_distance(row: np.ndarray, at: int, x: np.ndarray) -> float:
    """Sum of squared differences."""
    part, total = row[at : at + x.shape[0]], 0.0
    for d in range(x.shape[0]):
        gap = x[d] - part[d]
        total += gap * gap
    return total


@sum_kernel
def squared_length(x: np.ndarray) -> float:
    """Sum of squares, in double precision whatever the records are kept in."""
    total = 0.0
    for d in range(x.shape[0]):
        total += np.float64(x[d]) * x[d]
    return total


@kernel
def add_exactly(row: np.ndarray, at: int, rest: int, amount: float) -> None:
    """Add to a sum, and what rounding cuts off to its rest (Knuth 1997, section 4.2.2, theorem B).

    Without the rest, much that joined and left again would leave a trace.
    """
    before = row[at]
    after = before + amount
    moved = after - before
    row[rest] += (before - (after - moved)) + (amount - moved)
    row[at] = after


@kernel
def clear_row(row: np.ndarray) -> None:
    """Zeros."""
    for j in range(row.shape[0]):
        row[j] = 0.0
