"""A row of statistics: how it is laid out, sums over its dimensions and those of a vector, and factors in it.

A row is one cluster's block of statistics; ``at`` is where a part of it begins. Parts are taken as slices
before a loop: of an index that is a sum, a compiler cannot tell that it is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from streamdp.kernels.jit import kernel, sum_kernel


class Row:
    """The parts of a row of statistics in their order.

    A part is a number, such as ``"count"``, a vector, ``"mean[d]"``, or a matrix, ``"scatter[d,d]"``.
    Iterated, it gives the places of the numbers and of the first part that is longer: constants of kernels.

    Examples
    --------
    >>> row = Row("count", "mean[d]", "scatter[d,d]")
    >>> row.width(2), row.parts(2)["mean"]
    (7, slice(1, 3, None))
    >>> COUNT, MEAN = row
    """

    def __init__(self, *parts: str) -> None:
        self._axes = {name: axes.count("d") for name, _, axes in (part.partition("[") for part in parts)}

    def __iter__(self) -> Iterator[int]:
        axes = list(self._axes.values())
        first = next((n for n, each in enumerate(axes) if each), len(axes))
        return iter(range(min(first + 1, len(axes))))

    def width(self, dimension: int) -> int:
        """How many numbers a row has."""
        return sum(dimension**axes for axes in self._axes.values())

    def parts(self, dimension: int) -> dict[str, int | slice]:
        """The place of each part by its name."""
        found: dict[str, int | slice] = {}
        at = 0
        for name, axes in self._axes.items():
            found[name] = at if axes == 0 else slice(at, at + dimension**axes)
            at += dimension**axes
        return found


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


@kernel
def update_factor(row: np.ndarray, at: int, v: np.ndarray, sign: float) -> None:
    """Make L the factor of L L' + sign v v'; v is used up (Golub and Van Loan, section 6.5.4)."""
    size = v.shape[0]
    for c in range(size):
        pivot = row[at + c * size + c]
        r = math.sqrt(max(pivot * pivot + sign * v[c] * v[c], 1e-300))
        cosine, sine = r / pivot, v[c] / pivot
        row[at + c * size + c] = r
        for d in range(c + 1, size):
            row[at + d * size + c] = (row[at + d * size + c] + sign * sine * v[d]) / cosine
            v[d] = cosine * v[d] - sine * row[at + d * size + c]


@kernel
def solve(row: np.ndarray, at: int, v: np.ndarray, most: float) -> float:
    """Replace v by the solution p of L p = v; returns p'p, infinity as soon as that is above ``most``."""
    size, square = v.shape[0], 0.0
    for d in range(size):
        value = v[d]
        for c in range(d):
            value -= row[at + d * size + c] * v[c]
        v[d] = value / row[at + d * size + d]
        square += v[d] * v[d]
        if square > most:
            return math.inf
    return square
