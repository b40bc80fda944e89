"""Where the seconds of a run go: a clock that is read when a stage begins, by the batch."""

from __future__ import annotations

import time
from collections.abc import Callable

STAGES = ("fetch", "decode", "encode", "kernel", "announce", "write", "snapshot", "other")
"""The way of a batch: asking and waiting for records, bytes to records, records to arrays, the search, its
answers, handing them over; and what is between the batches."""


class Stages:
    """Seconds by stage, each counted from its beginning to that of the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = "other"
        self._since = clock()
        self._seconds = dict.fromkeys(STAGES, 0.0)

    def enter(self, stage: str) -> None:
        """A stage begins, and the one before it ends."""
        now = self._clock()
        self._seconds[self._stage] += now - self._since
        self._stage, self._since = stage, now

    def seconds(self) -> dict[str, float]:
        """Seconds by stage so far, up to when the running one began."""
        return dict(self._seconds)
