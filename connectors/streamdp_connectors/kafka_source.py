"""Read records from a Kafka topic, its partitions merged in event-time order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from streamdp.errors import Exit
from streamdp.records import Raw
from streamdp_connectors.kafka_log import OutOfRangeError, TopicLog
from streamdp_connectors.kafka_merge import Merge, TimeOf
from streamdp_connectors.protocol import SourceError

_FETCH = 2000  # records taken from the client at once
_QUEUED_RECORDS = 10_000  # of one partition, before it is paused
_QUEUED_BYTES = 16 << 20


class KafkaSource:
    """All partitions of one topic, read by one process.

    A record's position is ``{"topic", "partition", "offset"}``, its time that of the broker, and a
    tombstone has no bytes. The partitions are merged by ``time_of`` (by the broker's time where it is not
    given), the smallest head first; a record of which ``time_of`` says None goes at once. A partition is
    waited for unless it has been read to its end, so with ``until_end`` (everything that was there when the
    source was opened) the order depends on the topic alone. Live, who comes late is the engine's matter.

    ``start`` counts only until ``seek``; partitions added later are read from their beginning. Positions
    are kept by the caller: the consumer group is told of them by ``commit``, and never asked. ``on_gap``
    says what to do when retention, or a topic made anew, took away the stored position. Raises SourceError.
    """

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        *,
        group: str | None = None,
        start: Literal["earliest", "latest"] | float = "earliest",
        until_end: bool = False,
        time_of: TimeOf | None = None,
        on_gap: Literal["fail", "earliest"] = "fail",
        client_options: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
        timeout: float = 10.0,
        refresh: float = 30.0,
    ) -> None:
        self.topic, self.group = topic, group
        self._clock, self._refresh = clock, refresh
        self._skip_gaps = on_gap == "earliest"
        self._log = TopicLog(topic, bootstrap, client_options or {}, timeout, refresh)
        self._merge = Merge(time_of)
        self._paused: set[int] = set()
        self._refreshed = time.monotonic()
        self._closed = False
        self._ends: dict[int, int] | None = None
        self._cuts: deque[dict[int, int]] = deque()
        self._next: dict[int, int] = {}
        try:
            for partition in self._log.partitions:
                self._merge.open(partition)
            ends = self._log.ends(self._log.partitions)
            if until_end:
                self._ends = ends
                self._cuts.append(ends)
            self._go_to(self._start(start, ends))
        except BaseException:
            self._log.close()
            raise

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return self._closed or (self._ends is not None and not self._cuts)

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return what is there, at most ``max_records``; [] when nothing came within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        if self.at_end:
            return []
        self._look_for_partitions()
        self._fetch(0.0)  # keeps the next answers on their way
        while True:
            found = self._release(max_records)
            left = deadline - time.monotonic()
            if found or self.at_end or left <= 0:
                return found
            self._fetch(left)

    def positions(self) -> dict[str, Any]:
        """Return the topic, and by partition the offset after the last record that ``read`` returned."""
        return {"topic": self.topic, "partitions": {str(p): self._next[p] for p in sorted(self._next)}}

    def seek(self, positions: dict[str, Any]) -> None:
        """Continue at stored positions; a partition they do not name is read from its beginning."""
        topic, stored = positions.get("topic"), _offsets(positions)
        if stored is None:
            raise SourceError(f"the stored position {positions} is not one of a topic", Exit.BAD_DATA)
        if topic != self.topic:
            raise SourceError(f"the state continues topic {topic}, not {self.topic}", Exit.BAD_DATA)
        gone = sorted(set(stored) - set(self._log.partitions))
        if gone and not self._skip_gaps:
            what = f"topic {topic} has no partition {gone[0]}, which the state continues: it was made anew"
            raise SourceError(f"{what} (--on-gap earliest goes on with what is there)", Exit.BAD_DATA)
        known = {p: offset for p, offset in stored.items() if p not in gone}
        added = self._log.begins([p for p in self._log.partitions if p not in known])
        self._go_to({**self._log.within(known, self._skip_gaps), **added})

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """Release records in the order of an earlier run, which had these positions after its reads.

        To be called after ``seek``. Past the last of them the order is free again.
        """
        wanted = [_offsets(mark) for mark in marks if mark.get("topic") == self.topic]
        kept = sorted((cut for cut in wanted if cut), key=lambda cut: sum(cut.values()))
        self._cuts.extendleft(reversed(kept))

    replayable = True
    """A topic keeps its records."""

    def share(self) -> None:
        """A topic has no end."""

    def commit(self) -> None:
        """Tell the consumer group the positions, for whoever watches its lag; failing is only logged."""
        if self.group is not None and not self._closed:
            self._log.commit(self.group, self._next)

    def lag(self) -> int:
        """Return how many offsets lie between the last record returned and the ends, as last heard of."""
        return sum(max(0, self._log.end(p) - self._reached(p)) for p in self._next)

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._log.close()

    def _start(self, start: str | float, ends: dict[int, int]) -> dict[int, int]:
        if start == "earliest":
            return self._log.begins(self._log.partitions)
        return ends if start == "latest" else self._log.since(float(start))

    def _go_to(self, positions: dict[int, int]) -> None:
        self._merge.clear()
        self._log.seek(positions)
        self._next.update(positions)
        self._resume()

    def _reached(self, partition: int) -> int:
        """The next offset to return; past what is no record (gaps, markers) when all was returned."""
        if self._merge.records(partition):
            return self._next[partition]
        return max(self._next[partition], self._log.position(partition))

    def _look_for_partitions(self) -> None:
        now = time.monotonic()
        if self._ends is not None or now - self._refreshed < self._refresh:
            return
        self._refreshed = now
        added = self._log.new_partitions()
        for partition in added:
            self._merge.open(partition)
        begins = self._log.begins(added)
        self._log.seek(begins)
        self._next.update(begins)

    def _fetch(self, timeout: float) -> None:
        self._resume()
        try:
            batches = self._log.fetch(timeout, _FETCH)
        except OutOfRangeError:
            self._go_to(self._log.within(self._next, self._skip_gaps))
            return
        arrival = self._clock()
        for partition, records in batches.items():
            for record in records:
                position = {"topic": self.topic, "partition": partition, "offset": record.offset}
                stamp = None if record.timestamp is None or record.timestamp < 0 else record.timestamp / 1000
                self._merge.add(partition, Raw(record.value or b"", position, arrival, stamp))
            if self._merge.exceeds(partition, _QUEUED_RECORDS, _QUEUED_BYTES):
                self._log.pause(partition)
                self._paused.add(partition)

    def _resume(self) -> None:
        for partition in sorted(self._paused):
            if not self._merge.exceeds(partition, _QUEUED_RECORDS // 2, _QUEUED_BYTES // 2):
                self._log.resume(partition)
                self._paused.discard(partition)

    def _release(self, limit: int) -> list[Raw]:
        while self._cuts:
            cut = self._cuts[0]
            found = self._merge.release(limit, cut, self._waits_in_cut)
            if found:
                break
            if any(self._reached(p) < offset for p, offset in cut.items() if p in self._next):
                return []
            self._cuts.popleft()
        else:
            if self._ends is not None:
                return []
            found = self._merge.release(limit, None, self._waits)
        for raw in found:
            self._next[raw.position["partition"]] = raw.position["offset"] + 1
        return found

    def _waits_in_cut(self, partition: int) -> bool:
        return self._log.position(partition) < self._cuts[0].get(partition, 0)

    def _waits(self, partition: int) -> bool:
        """Whether more of a partition is known to come, so that others must wait for it."""
        if self._log.exhausted(partition):
            return False
        self._log.ask_ends([partition])
        return not self._log.exhausted(partition)


def _offsets(positions: Mapping[str, Any]) -> dict[int, int] | None:
    """The offsets in stored positions; None when they are no such thing."""
    stored = positions.get("partitions")
    if not isinstance(stored, dict):
        return None
    try:
        offsets = {int(partition): int(offset) for partition, offset in stored.items()}
    except (TypeError, ValueError):
        return None
    return offsets if all(offset >= 0 for offset in offsets.values()) else None
