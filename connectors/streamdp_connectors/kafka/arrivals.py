"""When the records of a topic arrived, and which partitions are silent."""

from __future__ import annotations

import bisect
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_log = logging.getLogger(__name__)

ARRIVED = "arrived"
"""The key in positions for pairs, by partition: an offset, and when the records before it arrived."""

_AWAY = 1.0
"""Seconds between two reads after which nobody was waiting: the process was stopped, or busy."""


class Arrivals:
    """When a topic's records arrived, by the wall clock; kept for records that may be replayed.

    Decisions that depend on the clock (whether a record is too far ahead of it, the time of a record without
    one) must come out the same when records are read again after a crash.
    """

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[int, float]]] = {}  # by partition, in order: as in positions

    def of(self, partition: int, offsets: Sequence[int], now: float) -> list[float]:
        """When records arrived, in order: as is known, else now. It is known from then on."""
        known = self._known.setdefault(partition, [])
        end = known[-1][0] if known else 0
        again = bisect.bisect_left(offsets, end)
        found = [known[bisect.bisect_right(known, (offset, math.inf))][1] for offset in offsets[:again]]
        if again < len(offsets):
            if known and known[-1][1] == now:
                known.pop()
            known.append((offsets[-1] + 1, now))
        return found + [now] * (len(offsets) - again)

    def forget(self, reached: Mapping[int, int]) -> None:
        """Forget records before these offsets."""
        for partition, known in self._known.items():
            del known[: bisect.bisect_right(known, (reached.get(partition, 0), math.inf))]

    def plain(self, reached: Mapping[int, int] | None = None) -> dict[str, Any]:
        """What is known of records (after these offsets), as part of positions; {} for nothing."""
        found = {}
        for partition, known in sorted(self._known.items()):
            low = 0 if reached is None else reached.get(partition, 0)
            if known and known[-1][0] > low:
                found[str(partition)] = [[end, at] for end, at in known if end > low]
        return {ARRIVED: found} if found else {}

    def note(self, positions: Mapping[str, Any]) -> None:
        """Take over what an earlier run has known."""
        stored = positions.get(ARRIVED)
        for partition, pairs in (stored if isinstance(stored, dict) else {}).items():
            known = self._known.get(int(partition), ())
            self._known[int(partition)] = sorted({*known, *((int(end), float(at)) for end, at in pairs)})

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


class Idle:
    """Which partitions have been silent for ``timeout`` seconds of waiting; None or 0: none ever.

    The order of what is read without them is in the positions, as that of any other read.
    """

    def __init__(
        self, topic: str, timeout: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._topic, self._timeout, self._clock = topic, timeout, clock
        self._since: dict[int, float] = {}
        self._reported: set[int] = set()
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
        if partition in self._reported:
            self._reported.discard(partition)
            _log.warning("topic %s, partition %d is read again", self._topic, partition)

    def silent(self, partition: int) -> bool:
        """Whether the reader has waited long enough for a partition that it waits for now."""
        waited = self._clock() - self._since.setdefault(partition, self._clock())
        return bool(self._timeout) and waited >= (self._timeout or 0.0)

    def over(self, partition: int) -> bool:
        """The same of a partition that has records; then a line is logged."""
        if not self.silent(partition):
            return False
        if partition not in self._reported:
            self._reported.add(partition)
            what = "has records, and gave none for %g s: the others go on without it (--idle-timeout)"
            _log.warning("topic %s, partition %d " + what, self._topic, partition, self._timeout)
        return True
