"""For how long a partition that has more to give is waited for, while it gives nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)

_AWAY = 1.0
"""Seconds between two reads after which nobody was waiting: the process stood still, or had much to do."""


class Idle:
    """Which partitions have been silent for longer than ``timeout`` seconds of waiting; None or 0: none ever.

    What was read without them stands in the positions, as any order of partitions does.
    """

    def __init__(
        self, topic: str, timeout: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._topic, self._timeout, self._clock = topic, timeout, clock
        self._since: dict[int, float] = {}
        self._told: set[int] = set()
        self._ended = clock()

    def begin(self) -> None:
        """A read begins."""
        if self._clock() - self._ended > _AWAY:
            self._since.clear()

    def end(self) -> None:
        """A read has ended."""
        self._ended = self._clock()

    def heard(self, partition: int) -> None:
        """Records of a partition have come."""
        self._since.pop(partition, None)
        if partition in self._told:
            self._told.discard(partition)
            _log.warning("topic %s, partition %d is read again", self._topic, partition)

    def silent(self, partition: int) -> bool:
        """Whether a partition that is waited for now has been waited for long enough."""
        waited = self._clock() - self._since.setdefault(partition, self._clock())
        return bool(self._timeout) and waited >= (self._timeout or 0.0)

    def over(self, partition: int) -> bool:
        """The same of one that has records; a line says so."""
        if not self.silent(partition):
            return False
        if partition not in self._told:
            self._told.add(partition)
            what = "has records, and gave none for %g s: the others go on without it (--idle-timeout)"
            _log.warning("topic %s, partition %d " + what, self._topic, partition, self._timeout)
        return True
