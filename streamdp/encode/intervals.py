"""Numbers as categories: the nested intervals that a number is in.

Every number of a field is asked the same few questions: is it below the median of the first records; then, is
it below the median of that half; and so on. A question is a field of two values, which a record has that got
so far. With a Dirichlet for each of them a cluster has a Pólya tree of the field's numbers (Lavine 1992),
split where the stream has as many records on one side as on the other.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

LEVELS = 4
"""Questions that a number is asked: 2^LEVELS intervals at most."""

INSIDE = "?"
"""What the name of an interval ends with where it stands for the question which half of it a number is in."""


class Intervals:
    """The intervals of one field.

    Parameters
    ----------
    field
        The word of the field; its intervals are ``field=low..high``, low included, high not.
    cuts
        Where intervals end and begin, by level and from left to right within a level (a heap), shape
        (2^LEVELS - 1,); None where an interval is not divided.

    ``ends`` are these in order.
    """

    def __init__(self, field: str, cuts: Sequence[float | None]) -> None:
        self.field, self.cuts = field, tuple(cuts)
        self.ends: list[float] = []
        self._answers: list[list[tuple[str, str]]] = []
        self._walk(0, (None, None), field, [])

    @classmethod
    def of(cls, field: str, values: Iterable[float]) -> Intervals:
        """Those that divide some numbers, finite ones, at their quantiles; none where all are the same."""
        found: list[float | None] = [None] * (2**LEVELS - 1)
        _divide(np.sort(np.fromiter(values, float)), 0, found)
        return cls(field, found)

    def answers(self, number: float) -> list[tuple[str, str]]:
        """The words of the questions that a number is asked and of its answers, the coarsest first."""
        return self._answers[bisect_right(self.ends, number)]

    def _walk(
        self,
        node: int,
        bounds: tuple[float | None, float | None],
        question: str,
        before: list[tuple[str, str]],
    ) -> None:
        cut = self.cuts[node] if node < len(self.cuts) else None
        if cut is None:
            self._answers.append(before)
            return
        below, above = (bounds[0], cut), (cut, bounds[1])
        for child, (low, high) in ((2 * node + 1, below), (2 * node + 2, above)):
            if low == cut:
                self.ends.append(cut)
            value = f"{self.field}={_written(low)}..{_written(high)}"
            self._walk(child, (low, high), value + INSIDE, [*before, (question, value)])


def sound_cuts(cuts: Sequence[Any]) -> bool:
    """Whether cuts, of wherever they come from, are those of intervals."""
    if len(cuts) != 2**LEVELS - 1 or not all(cut is None or type(cut) is float for cut in cuts):
        return False
    ends = Intervals("", cuts).ends
    return all(map(math.isfinite, ends)) and all(a < b for a, b in itertools.pairwise(ends))


def _divide(values: np.ndarray, node: int, found: list[float | None]) -> None:
    if node >= len(found) or len(values) < 2:
        return
    steps = np.flatnonzero(values[1:] > values[:-1]) + 1
    if len(steps) == 0:
        return
    middle = int(steps[np.argmin(np.abs(steps - len(values) / 2))])
    found[node] = _roundest(float(values[middle - 1]), float(values[middle]))
    _divide(values[:middle], 2 * node + 1, found)
    _divide(values[middle:], 2 * node + 2, found)


def _roundest(low: float, high: float) -> float:
    """The number above ``low`` and up to ``high`` that is written shortest, near their middle."""
    middle = low / 2.0 + high / 2.0
    for digits in range(17):
        found = float(f"{middle:.{digits}e}")
        if low < found <= high:
            return found
    return high


def _written(bound: float | None) -> str:
    return "" if bound is None else repr(bound).removesuffix(".0")
