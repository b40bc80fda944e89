"""How old records are when they are answered: histograms that take a batch at once."""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from typing import NamedTuple

AGE_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0)


class AgeCounts(NamedTuple):
    """Records up to each age, none left out at the last, which is infinite; and the sum of their ages."""

    cumulative: list[tuple[str, float]]
    total: float


class Ages:
    """Counts records by their age in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(AGE_BUCKETS) + 1)
        self._total = 0.0

    def observe(self, age: float, records: int) -> None:
        """So many records were answered at an age; a clock that is behind makes none younger than 0."""
        age = max(0.0, age)
        self._counts[bisect.bisect_left(AGE_BUCKETS, age)] += records
        self._total += age * records

    def counts(self) -> AgeCounts:
        """What was observed so far."""
        bounds = [*(repr(bound) for bound in AGE_BUCKETS), "+Inf"]
        reached = itertools.accumulate(self._counts)
        return AgeCounts(list(zip(bounds, map(float, reached), strict=True)), self._total)


class Arrivals:
    """When the records that wait for their answers arrived: the n-th answer is set against the n-th arrival.

    That is exact where records are answered in the order of their arrival, and on average wherever.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()  # records up to and with a batch, and its arrival
        self._taken = self._answered = 0

    def take(self, records: int, arrival: float) -> None:
        """A batch came, its first record at ``arrival``."""
        self._taken += records
        self._waiting.append((self._taken, arrival))

    def answer(self, outstanding: int) -> list[tuple[float, int]]:
        """All but so many records are answered: arrivals of those that were not before, and how many."""
        answered = max(self._answered, self._taken - outstanding)
        found = []
        while self._waiting and self._answered < answered:
            through, arrival = self._waiting[0]
            found.append((arrival, min(through, answered) - self._answered))
            self._answered = min(through, answered)
            if through <= answered:
                self._waiting.popleft()
        return found
