"""Merge the partitions of a topic into one order, by event time: which comes next, and which to wait for."""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamdp.records.raw_batch import RawBatch

REACHED = "reached"
"""The key in positions for the time that each partition has reached."""

TimesOf = Callable[[RawBatch], Sequence[float | None]]
"""The times of records."""

_NEVER = -math.inf


class _Queue:
    """Records of a partition that wait, in lists side by side, and the times of the first of them."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.data: list[bytes] = []
        self.arrivals: list[float] = []
        self.stamps: list[float | None] = []
        self.keys: list[float] = []
        self.refused: dict[int, str] = {}  # by offset
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, raws: RawBatch) -> None:
        """Append records."""
        offsets = raws.places[1::2]
        self.refused.update({offsets[i]: why for i, why in raws.refused.items()})
        self.offsets += offsets
        self.data += raws.data
        self.arrivals += raws.arrivals
        self.stamps += map(raws.times.get, range(len(raws)))
        self.bytes += sum(map(len, raws.data))

    def drop(self, count: int) -> None:
        """Let go of the first ones."""
        self.bytes -= sum(map(len, self.data[:count]))
        for each in (self.offsets, self.data, self.arrivals, self.stamps, self.keys):
            del each[:count]
        if self.refused and self.offsets:
            self.refused = {at: why for at, why in self.refused.items() if at >= self.offsets[0]}


class Merge:
    """Queues of a topic's records, one for each partition; the earliest head is released first.

    Ties go by offset, then by partition: records that were written round robin in time order come back in
    that order, even if times are equal. A record without a time (``times_of`` says None) goes at once, so
    that a record that cannot be decoded holds up nothing. Which record comes next depends only on the records
    not yet released, so the order can be resumed anywhere.

    Partitions may be kept ``in_step``: a record waits until the others have reached its time, unless it is
    more than so many seconds ahead of them, when its own time may be wrong. The times of records are asked
    for many at once, or ``one_by_one``, each when it is the first of its partition.
    """

    def __init__(
        self,
        topic: str,
        times_of: TimesOf | None = None,
        in_step: float | None = None,
        one_by_one: bool = False,
    ) -> None:
        self._topic = topic
        self._times_of = times_of or _broker_times
        self._in_step = in_step
        self._one_by_one = one_by_one
        self._reached: dict[int, float] = {}  # the latest time that was released, if times were needed
        self._queues: dict[int, _Queue] = {}

    def open(self, partition: int) -> None:
        """Add a partition."""
        self._queues.setdefault(partition, _Queue())

    def clear(self) -> None:
        """Drop all records and keep the partitions."""
        self._queues = {partition: _Queue() for partition in self._queues}

    def add(self, partition: int, raws: RawBatch) -> None:
        """Append records to their partition's queue."""
        self._queues[partition].add(raws)

    def records(self, partition: int) -> int:
        """How many records of a partition wait."""
        return len(self._queues[partition])

    def exceeds(self, partition: int, records: int, size: int) -> bool:
        """Whether more than so many records, or bytes, of a partition wait."""
        queue = self._queues[partition]
        return len(queue) > records or queue.bytes > size

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
        return any(map(len, self._queues.values()))

    def release(
        self,
        limit: int,
        stop: Mapping[int, int] | None,
        waiting: Callable[[int], bool],
        lives: Callable[[int], bool] = lambda partition: False,
    ) -> RawBatch:
        """Return the next records, at most ``limit``.

        Only records below the offsets in ``stop`` are released. For a partition without queued records,
        ``waiting`` says whether all others must wait for it, and ``lives`` whether they keep in step with it.
        """
        queues, in_step = self._queues, self._in_step
        ends = {partition: _end(queue, partition, stop) for partition, queue in queues.items()}
        bound = math.inf
        for partition, queue in queues.items():
            if not queue:
                if waiting(partition):
                    return self._found([])
                bound = min(bound, self._bound(partition, lives))
        some = [partition for partition, end in ends.items() if end]
        if len(some) == 1 and (in_step is None or len(queues) == 1):  # times are not needed
            return self._found(some * min(limit, ends[some[0]]))
        heap = [(self._key(partition, 0), queues[partition].offsets[0], partition) for partition in some]
        heapq.heapify(heap)
        order: list[int] = []
        taken = dict.fromkeys(some, 0)
        while heap and len(order) < limit and not self._ahead(heap[0][0], bound):
            key, _, partition = heap[0]
            order.append(partition)
            if in_step is not None and key > _NEVER:
                self._reached[partition] = max(self._reached.get(partition, key), key)
            at = taken[partition] = taken[partition] + 1
            if at < ends[partition]:
                offset = queues[partition].offsets[at]
                heapq.heapreplace(heap, (self._key(partition, at), offset, partition))
                continue
            if at == len(queues[partition]):
                if waiting(partition):
                    break
                bound = min(bound, self._bound(partition, lives))
            heapq.heappop(heap)
        return self._found(order)

    def _found(self, order: list[int]) -> RawBatch:
        """The first records of the partitions in this order, which are let go."""
        found = RawBatch({"topic": self._topic}, ("partition", "offset"))
        counts = Counter(order)
        waiting = {
            partition: zip(queue.offsets, queue.data, queue.arrivals, queue.stamps, strict=True)
            for partition, queue in self._queues.items()
            if partition in counts
        }
        for i, (partition, (offset, data, arrival, stamp)) in enumerate(
            (partition, next(waiting[partition])) for partition in order
        ):
            found.places += partition, offset
            found.data.append(data)
            found.arrivals.append(arrival)
            if stamp is not None:
                found.times[i] = stamp
            if offset in self._queues[partition].refused:
                found.refused[i] = self._queues[partition].refused[offset]
        for partition, count in counts.items():
            self._queues[partition].drop(count)
        return found

    def _key(self, partition: int, at: int) -> float:
        """The time of one of the records that wait; it counts for nothing where there is one partition."""
        queue = self._queues[partition]
        keys = queue.keys
        if len(self._queues) == 1:
            return _NEVER
        if at == len(keys):
            raws = RawBatch({"topic": self._topic}, ("partition", "offset"))
            end = at + 1 if self._one_by_one else len(queue)
            raws.data, raws.arrivals = queue.data[at:end], queue.arrivals[at:end]
            raws.places = [number for offset in queue.offsets[at:end] for number in (partition, offset)]
            raws.times = {i: time for i, time in enumerate(queue.stamps[at:end]) if time is not None}
            raws.refused = {
                i: queue.refused[offset]
                for i, offset in enumerate(queue.offsets[at:end])
                if offset in queue.refused
            }
            # not a number compares with nothing, and would leave the heap without an order
            keys += [_NEVER if time is None or time != time else time for time in self._times_of(raws)]
        return keys[at]

    def _bound(self, partition: int, lives: Callable[[int], bool]) -> float:
        """The latest time that a partition without queued records allows others."""
        if self._in_step is None or partition not in self._reached or not lives(partition):
            return math.inf
        return self._reached[partition]

    def _ahead(self, key: float, bound: float) -> bool:
        """Whether a record must wait until others reach its time."""
        return self._in_step is not None and bound < key <= bound + self._in_step


def _end(queue: _Queue, partition: int, stop: Mapping[int, int] | None) -> int:
    """How many records come before the stop."""
    return len(queue) if stop is None else bisect.bisect_left(queue.offsets, stop.get(partition, 0))


def _broker_times(raws: RawBatch) -> list[float | None]:
    return [raws.times.get(i) for i in range(len(raws))]
