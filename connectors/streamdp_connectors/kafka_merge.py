"""Put the partitions of a topic into one order, by event time."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from streamdp.records import Raw

REACHED = "reached"
"""Where positions hold to which time each partition has come."""

TimeOf = Callable[[Raw], float | None]


class Merge:
    """Records of several partitions that wait to be released, the smallest head first.

    Ties go by offset, then by partition: what was written round robin in time order comes back in that
    order, also where times are equal. A record without a time (``time_of`` gives None) goes at once:
    nothing may be held up by what cannot be understood. Which record comes next depends only on the
    records not yet released, so the order can be taken up anywhere.

    Partitions may be kept ``in_step``: no record goes before the others have come to its time, unless it is
    more than so many seconds ahead, when it may be the one that is wrong.
    """

    def __init__(self, time_of: TimeOf | None = None, in_step: float | None = None) -> None:
        self._time_of = time_of or _broker_time
        self._in_step = in_step
        self._reached: dict[int, float] = {}  # the latest time of what was released, where that is asked for
        self._queues: dict[int, deque[Raw]] = {}
        self._heads: dict[int, float] = {}  # the key of the first record, where it has been asked for
        self._bytes: dict[int, int] = {}

    def open(self, partition: int) -> None:
        """Know a partition from now on."""
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
        """To which time each partition has come, as part of positions; {} where they are not kept in step."""
        reached = {str(partition): self._reached[partition] for partition in sorted(self._reached)}
        return {REACHED: reached} if reached else {}

    def take_up(self, positions: Mapping[str, Any]) -> None:
        """Go on from the times in stored positions."""
        stored = positions.get(REACHED)
        if self._in_step is not None and isinstance(stored, dict):
            self._reached = {
                int(partition): float(time)
                for partition, time in stored.items()
                if str(partition).isdecimal() and isinstance(time, int | float)
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

        Only records below the offsets in ``stop`` are released. Where no record of a partition waits,
        ``waiting`` says whether one must be waited for before any other may go, and ``lives`` whether others
        keep in step with what it has come to.
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
            self._take_from_one(heap[0][2], limit, stop, found)
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
        """The time that others may go to, as far as this partition is concerned, of which no record waits."""
        if self._in_step is None or partition not in self._reached or not lives(partition):
            return math.inf
        return self._reached[partition]

    def _ahead(self, key: float, bound: float) -> bool:
        """Whether a record has to wait for others to come to its time."""
        return self._in_step is not None and bound < key <= bound + self._in_step

    def _take_from_one(
        self, partition: int, limit: int, stop: Mapping[int, int] | None, found: list[Raw]
    ) -> None:
        """No other partition has anything: keys need not be asked for."""
        while len(found) < limit and self._has_next(partition, stop):
            found.append(self._take(partition))

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
        return self._head(partition), self._queues[partition][0].position["offset"], partition

    def _head(self, partition: int) -> float:
        key = self._heads.get(partition)
        if key is None:
            time = self._time_of(self._queues[partition][0]) if len(self._queues) > 1 else None
            # not a number compares with nothing, and would leave the heap without an order
            key = -math.inf if time is None or time != time else time
            self._heads[partition] = key
        return key


def _broker_time(raw: Raw) -> float | None:
    return raw.time
