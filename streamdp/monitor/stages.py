"""How old records are when they are answered, and where the time of a run goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

STAGES = ("fetch", "decode", "encode", "kernel", "looks", "announce", "write", "snapshot", "other")
"""The way of a batch: asking and waiting for records, bytes to records, records to arrays, the search, looks
back at earlier records, answers, handing them over; and what is between the batches."""


class Arrivals:
    """Arrivals of the records that wait for answers: the n-th answer is matched with the n-th arrival.

    This is exact if records are answered in the order of their arrival, and otherwise on average.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()  # records up to and with a batch, and its arrival
        self._taken = self._answered = 0

    def take(self, records: int, arrival: float) -> None:
        """Add a batch, whose first record came at ``arrival``."""
        self._taken += records
        self._waiting.append((self._taken, arrival))

    def answer(self, outstanding: int) -> list[tuple[float, int]]:
        """Arrivals of what was answered since the last call, each with its number of records."""
        answered = max(self._answered, self._taken - outstanding)
        found = []
        while self._waiting and self._answered < answered:
            through, arrival = self._waiting[0]
            found.append((arrival, min(through, answered) - self._answered))
            self._answered = min(through, answered)
            if through <= answered:
                self._waiting.popleft()
        return found


class Stages:
    """Seconds by stage, each from its beginning to that of the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = "other"
        self._since = clock()
        self._seconds = dict.fromkeys(STAGES, 0.0)

    def enter(self, stage: str) -> None:
        """Begin a stage, and end the one before."""
        now = self._clock()
        self._seconds[self._stage] += now - self._since
        self._stage, self._since = stage, now

    def seconds(self) -> dict[str, float]:
        """Seconds by stage, up to the beginning of the current one."""
        return dict(self._seconds)
