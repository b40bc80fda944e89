"""When to do what is done now and then beside a stream, so that it costs little of its time."""

from __future__ import annotations

import time

EVERY = 1.0
"""Seconds between two looks, or two ticks of a page."""

SHARE = 33.0
"""The wait for the next one is this many times what one takes: they cost at most 3 %."""


class Pace:
    """Says when something is due that is done now and then: its share of the time is bounded."""

    def __init__(self, every: float = EVERY) -> None:
        self._every, self._due = every, 0.0

    def hurry(self) -> None:
        """It is due at once."""
        self._due = 0.0

    def __enter__(self) -> bool:
        self._began = time.monotonic()
        return self._began >= self._due

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        if self._began >= self._due:
            self._due = now + max(self._every, SHARE * (now - self._began))
