"""Merge the partitions of a topic into one order, by event time: which comes next, and which to wait for."""

from __future__ import annotations

import bisect
import heapq
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from streamdp.records import Raw

_log = logging.getLogger(__name__)

REACHED = "reached"
"""The key in positions for the time that each partition has reached."""

ARRIVED = "arrived"
"""The key in positions for pairs, by partition: an offset, and when the records before it arrived."""

_AWAY = 1.0
"""Seconds between two reads after which nobody was waiting: the process was stopped, or busy."""

TimeOf = Callable[[Raw], float | None]


class Merge:
    """Queues of records, one for each partition; the earliest head is released first.

    Ties go by offset, then by partition: records that were written round robin in time order come back in
    that order, even if times are equal. A record without a time (``time_of`` returns None) goes at once, so
    that a record that cannot be decoded holds up nothing. Which record comes next depends only on the records
    not yet released, so the order can be resumed anywhere.

    Partitions may be kept ``in_step``: a record waits until the others have reached its time, unless it is
    more than so many seconds ahead of them, when its own time may be wrong.
    """

    def __init__(self, time_of: TimeOf | None = None, in_step: float | None = None) -> None:
        self._time_of = time_of or _broker_time
        self._in_step = in_step
        self._reached: dict[int, float] = {}  # the latest time that was released, if times were needed
        self._queues: dict[int, deque[Raw]] = {}
        self._heads: dict[int, float] = {}  # the key of the first record, if it was needed
        self._bytes: dict[int, int] = {}

    def open(self, partition: int) -> None:
        """Add a partition."""
        if partition not in self._queues:
            self._queues[partition] = deque()
            self._bytes[partition] = 0
            self._heads.clear()  # the only partition needs no keys, two do

    def clear(self) -> None:
        """Drop all records."""
        for partition, queue in self._queues.items():
            queue.clear()
            self._bytes[partition] = 0
        self._heads.clear()

    def add(self, partition: int, raw: Raw) -> None:
        """Append a record to its partition's queue."""
        self._queues[partition].append(raw)
        self._bytes[partition] += len(raw.data)

    def records(self, partition: int) -> int:
        """How many records of a partition wait."""
        return len(self._queues[partition])

    def exceeds(self, partition: int, records: int, size: int) -> bool:
        """Whether more than so many records, or bytes, of a partition wait."""
        return len(self._queues[partition]) > records or self._bytes[partition] > size

    def plain(self) -> dict[str, Any]:
        """The time that each partition has reached, as part of positions; {} if they are not kept in step."""
        reached = {str(partition): self._reached[partition] for partition in sorted(self._reached)}
        return {REACHED: reached} if reached else {}

    def take_up(self, positions: Mapping[str, Any]) -> None:
        """Go on from the times in stored positions."""
        stored = positions.get(REACHED)
        if self._in_step is not None and isinstance(stored, dict):
            self._reached = {
                int(partition): float(at)
                for partition, at in stored.items()
                if str(partition).isdecimal() and isinstance(at, int | float)
            }

    @property
    def holds(self) -> bool:
        """Whether any record waits."""
        return any(self._queues.values())

    def release(
        self,
        limit: int,
        stop: Mapping[int, int] | None,
        waiting: Callable[[int], bool],
        lives: Callable[[int], bool] = lambda partition: False,
    ) -> list[Raw]:
        """Return the next records, at most ``limit``.

        Only records below the offsets in ``stop`` are released. For a partition without queued records,
        ``waiting`` says whether all others must wait for it, and ``lives`` whether they keep in step with it.
        """
        heap: list[tuple[float, int, int]] = []
        bound = math.inf
        for partition in self._queues:
            if self._has_next(partition, stop):
                heap.append(self._key(partition))
            elif not self._queues[partition]:
                if waiting(partition):
                    return []
                bound = min(bound, self._bound(partition, lives))
        heapq.heapify(heap)
        found: list[Raw] = []
        if len(heap) == 1 and (self._in_step is None or len(self._queues) == 1):
            partition = heap[0][2]  # the only one that has any: times are not needed
            while len(found) < limit and self._has_next(partition, stop):
                found.append(self._take(partition))
            return found
        while heap and len(found) < limit and not self._ahead(heap[0][0], bound):
            partition = heap[0][2]
            found.append(self._take(partition))
            if self._has_next(partition, stop):
                heapq.heapreplace(heap, self._key(partition))
                continue
            if not self._queues[partition]:
                if waiting(partition):
                    break
                bound = min(bound, self._bound(partition, lives))
            heapq.heappop(heap)
        return found

    def _bound(self, partition: int, lives: Callable[[int], bool]) -> float:
        """The latest time that a partition without queued records allows others."""
        if self._in_step is None or partition not in self._reached or not lives(partition):
            return math.inf
        return self._reached[partition]

    def _ahead(self, key: float, bound: float) -> bool:
        """Whether a record must wait until others reach its time."""
        return self._in_step is not None and bound < key <= bound + self._in_step

    def _take(self, partition: int) -> Raw:
        raw = self._queues[partition].popleft()
        key = self._heads.pop(partition, -math.inf)
        if self._in_step is not None and key > -math.inf:
            self._reached[partition] = max(self._reached.get(partition, key), key)
        self._bytes[partition] -= len(raw.data)
        return raw

    def _has_next(self, partition: int, stop: Mapping[int, int] | None) -> bool:
        queue = self._queues[partition]
        if not queue:
            return False
        return stop is None or bool(queue[0].position["offset"] < stop.get(partition, 0))

    def _key(self, partition: int) -> tuple[float, int, int]:
        head = self._queues[partition][0]
        if partition not in self._heads:
            at = self._time_of(head) if len(self._queues) > 1 else None
            # not a number compares with nothing, and would leave the heap without an order
            self._heads[partition] = -math.inf if at is None or at != at else at
        return self._heads[partition], head.position["offset"], partition


def _broker_time(raw: Raw) -> float | None:
    return raw.time


class Arrivals:
    """When a topic's records arrived, by the wall clock; kept for records that may be replayed.

    Decisions that depend on the clock (whether a record is too far ahead of it, the time of a record without
    one) must come out the same when records are read again after a crash.
    """

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[int, float]]] = {}  # by partition, in order: as in positions

    def of(self, partition: int, offset: int, now: float) -> float:
        """When a record arrived: as is known, else now. It is known from then on."""
        known = self._known.setdefault(partition, [])
        if known and offset < known[-1][0]:
            return known[bisect.bisect_right(known, (offset, math.inf))][1]
        if known and known[-1][1] == now:
            known.pop()
        known.append((offset + 1, now))
        return now

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
