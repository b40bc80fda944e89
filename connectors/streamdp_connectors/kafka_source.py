"""Read records from a Kafka topic, its partitions merged in event-time order."""

from __future__ import annotations

import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from streamdp.errors import Exit
from streamdp.records import Raw
from streamdp_connectors.kafka_client import Ids
from streamdp_connectors.kafka_clock import Arrivals
from streamdp_connectors.kafka_codecs import Unread
from streamdp_connectors.kafka_gap import Bridge, OnGap
from streamdp_connectors.kafka_idle import Idle
from streamdp_connectors.kafka_link import Link
from streamdp_connectors.kafka_log import BrokerSilentError, OutOfRangeError, TopicLog
from streamdp_connectors.kafka_merge import Merge, TimeOf
from streamdp_connectors.protocol import Gap, Lag, SourceError

_log = logging.getLogger(__name__)

_FETCH = 2000  # records taken from the client at once
_QUEUED_RECORDS = 10_000  # of one partition, before it is paused
_QUEUED_BYTES = 16 << 20
_LIVE_SECONDS = 2.0  # that a question may take while records are read
GONE_SECONDS = 10.0
"""Seconds that a topic may be missing: a broker that has just started may not know of it yet."""


class KafkaSource:
    """All partitions of one topic, or one ``partition`` of it, read by one process.

    A record's position is ``{"topic", "partition", "offset"}``, its time that of the broker, and a
    tombstone has no bytes. The partitions are merged by ``time_of`` (by the broker's time where it is not
    given), the smallest head first; a record of which ``time_of`` says None goes at once. A partition is
    waited for unless it has been read to its end, so with ``until_end`` (everything that was there when the
    source was opened) the order depends on the topic alone. Live, who comes late is the engine's matter.

    ``start`` counts only until ``seek``; partitions added later are read from their beginning. Positions
    are kept by the caller: the consumer group is told of them by ``commit``, and never asked. They hold the
    ids of the topic and its cluster, so that another topic of the name is not taken for it. ``on_gap`` says
    what to do where records are gone: retention passed them, the broker lost them, or the topic was made
    anew. A broker that is lost is waited for, ``give_up_after`` seconds at most; a partition that has more
    and gives nothing, while the broker answers, ``idle_timeout`` seconds (None or 0: for ever).

    With ``in_step`` a record waits until every partition that lives has come to its time, so that none comes
    late because another has run ahead; a partition of which nothing came for ``idle_timeout`` is left out,
    and a record more than ``in_step`` seconds ahead goes at once. Raises SourceError.
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
        on_gap: OnGap = "stop",
        client_options: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
        timeout: float = 10.0,
        refresh: float = 5.0,
        give_up_after: float | None = None,
        idle_timeout: float | None = None,
        in_step: float | None = None,
        partition: int | None = None,
    ) -> None:
        self.topic, self.group, self.partition = topic, group, partition
        self._clock = clock
        self._waits_for_topic = on_gap != "stop" and not until_end
        self._log = TopicLog(
            topic, bootstrap, client_options or {}, timeout, refresh, give_up_after, partition
        )
        self._bridge = Bridge(self._log, on_gap)
        self._link = Link(bootstrap, give_up_after, self._log.why_silent)
        self._ids = self._log.ids()
        self._former: set[Ids] = set()
        self._arrived: dict[int, list[Any]] = {}  # and not known yet to be of this topic
        self._astray: OutOfRangeError | None = None
        self._gone: float | None = None  # since when
        self._told_gone = False
        self._new_merge = functools.partial(Merge, time_of, in_step)
        self._idle = Idle(topic, idle_timeout)
        self._merge = self._new_merge()
        self._paused: set[int] = set()
        self._closed = False
        self._ends: dict[int, int] | None = None
        self._cuts: deque[dict[int, int]] = deque()
        self._next: dict[int, int] = {}
        self._arrivals = Arrivals()
        self._last: dict[int, Raw] = {}
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
        self._log.patience = _LIVE_SECONDS
        self._arrivals.forget(self._next)
        self._idle.begin()
        try:
            self._fetch(0.0)  # keeps the next answers on their way
            while True:
                found = self._release(max_records)
                left = deadline - time.monotonic()
                if found or self.at_end or left <= 0:
                    break
                self._fetch(left)
        except BrokerSilentError:
            found = []
        self.up()
        self._idle.end()
        return found

    def up(self) -> bool:
        """Return whether the broker answers; it is asked when nothing was heard of it for a second."""
        if not self._closed:
            self._link.check(self._log.answers)
        return self._link.up

    @property
    def holds(self) -> bool:
        """Whether records have come that wait for others."""
        return self._merge.holds

    def gaps(self) -> list[Gap]:
        """Return what was passed over since this was asked last."""
        found, self._bridge.gaps = self._bridge.gaps, []
        return found

    def positions(self) -> dict[str, Any]:
        """Return the topic, its ids, and by partition the offset after the last record ``read`` returned.

        Where partitions are kept in step also to which time each has come.
        """
        return {
            "topic": self.topic,
            "topic_id": self._ids.topic,
            "cluster_id": self._ids.cluster,
            **({} if self.partition is None else {"partition": self.partition}),
            "partitions": {str(p): self._next[p] for p in sorted(self._next)},
            **self._arrivals.plain(self._next),
            **self._merge.plain(),
        }

    def decided(self) -> dict[str, Any]:
        """Return when the records arrived that the last ``read`` returned, or a later one will."""
        return self._arrivals.plain()

    def seek(self, positions: dict[str, Any]) -> None:
        """Continue at stored positions; a partition they do not name is read from its beginning."""
        topic, stored = positions.get("topic"), _offsets(positions)
        if stored is None:
            raise SourceError(f"the stored position {positions} is not one of a topic", Exit.BAD_DATA)
        if topic != self.topic:
            raise SourceError(f"the state continues topic {topic}, not {self.topic}", Exit.BAD_DATA)
        if positions.get("partition") != self.partition:
            held, wanted = (
                "the whole topic" if partition is None else f"partition {partition} alone"
                for partition in (positions.get("partition"), self.partition)
            )
            raise SourceError(
                f"the state continues {held}, not {wanted}: name another --state", Exit.BAD_DATA
            )
        before = Ids.of(positions)
        if before.differ(self._ids) or not set(stored) <= set(self._log.partitions):
            self._go_to(self._bridge.anew(stored, before, self._ids))
            return
        added = self._log.begins([p for p in self._log.partitions if p not in stored])
        same = before.topic is not None and self._ids.topic is not None
        self._ids = self._ids.otherwise(before)
        self._arrivals.note(positions)
        self._merge.take_up(positions)
        self._go_to({**self._bridge.within(stored, same=same), **added})

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """Release records in the order of an earlier run, which had these positions after its reads.

        To be called after ``seek``. Past the last of them the order is free again.
        """
        ours = [mark for mark in marks if mark.get("topic") == self.topic]
        wanted = [_offsets(mark) for mark in ours if not Ids.of(mark).differ(self._ids)]
        for mark in ours:
            if not Ids.of(mark).differ(self._ids):
                self._arrivals.note(mark)
        kept = sorted((cut for cut in wanted if cut), key=lambda cut: sum(cut.values()))
        self._cuts.extendleft(reversed(kept))

    replayable = True
    """A topic keeps its records."""

    def share(self) -> None:
        """A topic has no end."""

    def commit(self, positions: Mapping[str, Any]) -> None:
        """Tell the consumer group the positions, for whoever watches its lag; failing is only logged."""
        offsets = _offsets(positions)
        here = not self._closed and self._gone is None and self._link.up
        if self.group is not None and offsets and here:
            self._log.commit(self.group, offsets)

    def lags(self) -> list[Lag]:
        """Return how many offsets lie between the last record returned and the end, as last heard of."""
        ahead = {p: max(0, self._log.end(p) - self._reached(p)) for p in sorted(self._next)}
        return [Lag(self.topic, p, records, self._last.get(p)) for p, records in ahead.items()]

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
        self._arrivals.clear(noted=False)
        self._arrived = {}
        self._log.seek(positions)
        self._next.update(positions)
        self._resume()

    def _reached(self, partition: int) -> int:
        """The next offset to return; past what is no record (gaps, markers) when all was returned."""
        if self._merge.records(partition):
            return self._next[partition]
        return max(self._next[partition], self._log.position(partition))

    def _look_around(self) -> bool:
        """Whether the topic is there, and the one it was; take up partitions that were added."""
        known, ids = self._log.known(), self._log.ids()
        if not known:
            self._miss()
            return False
        if self._gone is not None:
            self._gone, self._told_gone = None, False
        if ids.differ(self._ids):
            if ids in self._former:
                return False  # told by a broker that is behind the others
            self._begin_anew(ids, known)
            return True
        self._ids = ids.otherwise(self._ids)
        added = sorted(set(known) - set(self._log.partitions))
        if added and self._ends is None:
            begins = self._log.begins(added)
            self._log.assign([*self._log.partitions, *added])
            for partition in added:
                self._merge.open(partition)
            self._log.seek(begins)
            self._next.update(begins)
        return True

    def _miss(self) -> None:
        now = time.monotonic()
        self._gone = now if self._gone is None else self._gone
        if now - self._gone < GONE_SECONDS or self._told_gone:
            return
        what = f"topic {self.topic} is gone: it was deleted, or may not be read"
        if not self._waits_for_topic:
            raise SourceError(
                f"{what}; make it again and start with --on-gap earliest, or begin with another --state",
                Exit.NO_INPUT,
            )
        self._told_gone = True
        _log.warning("%s; waiting until it is there again", what)

    def _begin_anew(self, ids: Ids, partitions: list[int]) -> None:
        """Another topic has the name now: what waits may be of either, and is not handed out."""
        self._log.assign(partitions)
        ends = self._log.ends(partitions)
        positions = self._bridge.anew(self._next, self._ids, ids)
        self._former.add(self._ids)
        self._ids, self._astray = ids, None
        self._merge = self._new_merge()
        self._arrivals.clear(noted=True)
        self._paused.clear()
        self._cuts.clear()
        self._next.clear()
        self._last.clear()
        for partition in self._log.partitions:
            self._merge.open(partition)
        if self._ends is not None:
            self._ends = ends
            self._cuts.append(ends)
        self._go_to(positions)

    def _fetch(self, timeout: float) -> None:
        self._resume()
        if self._astray is not None:
            self._log.refresh()  # it may be another topic by now
        if not self._look_around():
            time.sleep(timeout)
            return
        try:
            if self._astray is not None:
                self._go_to(self._bridge.within(self._next, self._astray, same=self._ids.topic is not None))
                self._astray = None
            if not self._arrived:
                self._arrived = self._log.fetch(timeout, _FETCH)
        except OutOfRangeError as error:
            self._astray = error
            return
        if not self._arrived:
            return
        self._log.confirm()
        self._link.answered()
        if self._log.ids().differ(self._ids):
            return  # they may be another topic's, for which the next round looks
        batches, self._arrived = self._arrived, {}
        now = self._clock()
        for partition, records in batches.items():
            self._idle.heard(partition)
            for record in records:
                position = {"topic": self.topic, "partition": partition, "offset": record.offset}
                stamp = None if record.timestamp is None or record.timestamp < 0 else record.timestamp / 1000
                arrival = self._arrivals.of(partition, record.offset, now)
                refused = ""
                if record.headers.__class__ is Unread:
                    first, last, why = record.headers.first, record.headers.last, record.headers.why
                    refused = f"its batch, offsets {first} to {last}, cannot be read: {why}"
                self._merge.add(partition, Raw(record.value or b"", position, arrival, stamp, refused))
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
            found = self._merge.release(limit, None, self._waits, self._lives)
        for partition, raw in {raw.position["partition"]: raw for raw in found}.items():
            self._next[partition] = raw.position["offset"] + 1
            self._last[partition] = raw
        return found

    def _waits_in_cut(self, partition: int) -> bool:
        return self._log.position(partition) < self._cuts[0].get(partition, 0)

    def _waits(self, partition: int) -> bool:
        """Whether more of a partition is known to come, so that others must wait for it."""
        if self._log.exhausted(partition):
            return False
        self._log.ask_ends([partition])
        return not (self._log.exhausted(partition) or (self._link.up and self._idle.over(partition)))

    def _lives(self, partition: int) -> bool:
        """Whether more of a partition may come soon, of which all has been read."""
        return not (self._link.up and self._idle.silent(partition))


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
