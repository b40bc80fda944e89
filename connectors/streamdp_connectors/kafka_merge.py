"""Put the partitions of a topic into one order, by event time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping

from streamdp.records import Raw

TimeOf = Callable[[Raw], float | None]


class Merge:
    """Records of several partitions that wait to be released, the smallest head first.

    Ties go by offset, then by partition: what was written round robin in time order comes back in that
    order, also where times are equal. A record without a time (``time_of`` gives None) goes at once:
    nothing may be held up by what cannot be understood. Which record comes next depends only on the
    records not yet released, so the order can be taken up anywhere.
    """

    def __init__(self, time_of: TimeOf | None = None) -> None:
        self._time_of = time_of or _broker_time
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

    def release(
        self, limit: int, stop: Mapping[int, int] | None, waiting: Callable[[int], bool]
    ) -> list[Raw]:
        """Return the next records, at most ``limit``.

        Only records below the offsets in ``stop`` are released. Where no record of a partition waits,
        ``waiting`` says whether one must be waited for before any other may go.
        """
        heap: list[tuple[float, int, int]] = []
        for partition in self._queues:
            if self._has_next(partition, stop):
                heap.append(self._key(partition))
            elif not self._queues[partition] and waiting(partition):
                return []
        heapq.heapify(heap)
        found: list[Raw] = []
        if len(heap) == 1:
            self._take_from_one(heap[0][2], limit, stop, found)
            return found
        while heap and len(found) < limit:
            partition = heap[0][2]
            found.append(self._take(partition))
            if self._has_next(partition, stop):
                heapq.heapreplace(heap, self._key(partition))
            elif not self._queues[partition] and waiting(partition):
                break
            else:
                heapq.heappop(heap)
        return found

    def _take_from_one(
        self, partition: int, limit: int, stop: Mapping[int, int] | None, found: list[Raw]
    ) -> None:
        """No other partition has anything: keys need not be asked for."""
        while len(found) < limit and self._has_next(partition, stop):
            found.append(self._take(partition))

    def _take(self, partition: int) -> Raw:
        raw = self._queues[partition].popleft()
        self._heads.pop(partition, None)
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
            key = -float("inf") if time is None or time != time else time
            self._heads[partition] = key
        return key


def _broker_time(raw: Raw) -> float | None:
    return raw.time
