"""Read records from a Kafka topic, and merge its partitions in event-time order."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from streamdp.errors import Exit
from streamdp.records import Raw
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.kafka.arrivals import Arrivals, Idle
from streamdp_connectors.kafka.batches import Row, Unread
from streamdp_connectors.kafka.client import Broker, patiently
from streamdp_connectors.kafka.gaps import GapPolicy, OnGap
from streamdp_connectors.kafka.log import BrokerSilentError, Ids, OutOfRangeError, TopicLog
from streamdp_connectors.kafka.merge import Merge, TimesOf
from streamdp_connectors.kafka.reach import Link
from streamdp_connectors.protocol import Gap, Lag, SourceError

_logger = logging.getLogger(__name__)

_FETCH = 2000  # records taken from the client at once
_QUEUED_RECORDS = 10_000  # of one partition, before it is paused
_QUEUED_BYTES = 16 << 20
_LIVE_SECONDS = 2.0  # that a question may take while records are read


class KafkaSource:
    """All partitions of one topic, or one ``partition`` of it, read by one process.

    A record's position is ``{"topic", "partition", "offset"}``, its time that of the broker; tombstones are
    passed over and counted as ``blank``. The partitions are merged by ``times_of`` (by default the broker's
    times), the earliest head first; a record whose time is None goes at once. Times are asked for many at
    once, or ``one_by_one``, each when it is needed. The merge waits for a partition that has not been read
    to its end, so with ``until_end`` (everything that was there when the source was opened) the order
    depends on the topic alone. Late records of a live topic are left to the engine.

    ``start`` counts only until ``seek``; partitions added later are read from their beginning. The caller
    keeps the positions: the consumer group is told them by ``commit``, and never asked. They hold the ids of
    the topic and its cluster, so that another topic of the same name is noticed. ``on_gap`` says what to do
    if records are gone: retention passed them, the broker lost them, or the topic was made anew, and
    ``on_damage`` whether a damaged batch ends the source (65), or comes as one record that is refused. The
    source waits ``give_up_after`` seconds at most for a lost broker, and ``idle_timeout`` seconds for a
    partition that has more and gives nothing while the broker answers (None or 0: for ever).

    With ``in_step`` a record waits until every live partition has reached its time, so that none comes late
    because another has run ahead. A partition that gave nothing for ``idle_timeout`` is left out, and a
    record more than ``in_step`` seconds ahead goes at once. Raises SourceError.
    """

    place = ("topic", "partition", "offset")

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        *,
        group: str | None = None,
        start: Literal["earliest", "latest"] | float = "earliest",
        until_end: bool = False,
        times_of: TimesOf | None = None,
        one_by_one: bool = False,
        on_gap: OnGap = "stop",
        on_damage: Literal["stop", "skip"] = "stop",
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
        broker = Broker(bootstrap, client_options or {}, timeout, SourceError)
        self._on_damage = on_damage
        self._patience = timeout if give_up_after is None else give_up_after
        self._log = patiently(
            lambda: TopicLog(topic, broker, refresh, give_up_after, partition), self._patience
        )
        self._bridge = GapPolicy(self._log, on_gap, until_end)
        self._link = Link(bootstrap, give_up_after, broker.why_silent)
        self._ids = self._log.ids()
        self._former: set[Ids] = set()
        self._arrived: dict[int, list[Row]] = {}  # and not known yet to be of this topic
        self._astray: OutOfRangeError | None = None
        self._new_merge = functools.partial(Merge, topic, times_of, in_step, one_by_one)
        self._idle = Idle(topic, idle_timeout)
        self._arrivals = Arrivals()
        self._closed = False
        self._tombstones = 0
        self._passed: dict[tuple[int, int], int] = {}  # where records end, and the offsets after them do
        self._safe: dict[int, int] = {}  # what a snapshot covers
        self._committed: dict[int, int] = {}
        self._committing = threading.Lock()
        self._beyond = ""  # why nothing is there to read, until that was said
        try:
            ends = patiently(lambda: self._log.ends(self._log.partitions), self._patience)
            self._ends = ends if until_end else None
            self._open(patiently(lambda: self._start(start, ends), self._patience))
        except BaseException:
            self._log.close()
            raise

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return self._closed or (self._ends is not None and not self._cuts)

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return what is there, at most ``max_records``; none if nothing came in ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        if self._beyond:
            _logger.warning(self._beyond)
            self._beyond = ""
        found = self._none()
        if self.at_end:
            return found
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
            pass
        self.up()
        self._idle.end()
        found.blank, self._tombstones = self._tombstones, 0
        if not found or self.at_end:
            self._pass_empty_offsets()
        return found

    def _none(self) -> RawBatch:
        return RawBatch({"topic": self.topic}, ("partition", "offset"))

    def _pass_empty_offsets(self) -> None:
        """Note which offsets after the last records have none, and tell the group of them."""
        if self._arrived or not self._link.up:
            return
        self._passed = {(p, self._next[p]): self._reached(p) for p in self._next}
        if self._committed != self._safe_end():
            self._commit(wait=False)

    def up(self) -> bool:
        """Return whether the broker answers; it is asked when nothing was heard of it for a second."""
        if not self._closed:
            self._link.check(self._log.answers)
        return self._link.up

    @property
    def holds(self) -> bool:
        """Whether records have arrived that wait for others."""
        return self._merge.holds

    def gaps(self) -> list[Gap]:
        """Return what was skipped since the last call."""
        found, self._bridge.gaps = self._bridge.gaps, []
        return found

    def positions(self) -> dict[str, Any]:
        """Return the topic, its ids, and by partition the offset after the last record ``read`` returned.

        If partitions are kept in step, also the time that each has reached.
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
        """Return when the records arrived that the last ``read`` returned, or a later one will return."""
        return self._arrivals.plain()

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue at stored positions; a partition they do not name is read from its beginning."""
        self._beyond = ""
        return patiently(lambda: self._seek(positions), self._patience)

    def _seek(self, positions: dict[str, Any]) -> bool:
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
        self._arrivals.clear()
        if before.differ(self._ids) or not set(stored) <= set(self._log.partitions):
            self._go_to(self._bridge.anew(stored, before, self._ids))
            return True
        added = self._log.begins([p for p in self._log.partitions if p not in stored])
        same = before.topic is not None and self._ids.topic is not None
        self._ids = self._ids.otherwise(before)
        self._arrivals.note(positions)
        self._merge.take_up(positions)
        self._go_to({**self._bridge.within(stored, same=same), **added})
        self._safe = self._committed = stored
        return True

    def replay(self, marks: Iterable[Mapping[str, Any]]) -> None:
        """Release records in the order of an earlier run, given its positions after each of its reads.

        To be called after ``seek``. Past the last of them the order is free again.
        """
        ours = [m for m in marks if m.get("topic") == self.topic and not Ids.of(m).differ(self._ids)]
        for mark in ours:
            self._arrivals.note(mark)
        ends = self._log.ends(self._log.partitions) if ours else {}
        cuts = sorted(
            (cut for cut in map(_offsets, ours) if cut and all(o <= ends.get(p, 0) for p, o in cut.items())),
            key=lambda cut: sum(cut.values()),
        )  # others may have written to the output, too: beyond the end nothing was read
        self._cuts.extendleft(reversed(cuts))

    def commit(self, positions: Mapping[str, Any]) -> None:
        """Tell the consumer group the positions, for whoever watches its lag; failing is only logged."""
        offsets = _offsets(positions)
        if offsets:
            self._safe = offsets
            self._commit()

    def _safe_end(self) -> dict[int, int]:
        """The safe offsets, past those after them that have no record: markers, and what compaction took."""
        return {p: self._passed.get((p, offset), offset) for p, offset in self._safe.items()}

    def _commit(self, *, wait: bool = True) -> None:
        here = not self._closed and self._bridge.gone_since is None and self._link.up
        if self.group is not None and here and self._committing.acquire(blocking=wait):
            try:
                self._committed = self._safe_end()
                self._log.commit(self.group, self._committed)
            finally:
                self._committing.release()

    def lags(self) -> list[Lag]:
        """Return how many offsets are between the last record returned and the end, as last heard."""
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
        if start == "latest":
            return ends
        found = self._log.since(float(start))
        if any(ends.values()) and all(found[p] >= end for p, end in ends.items()):
            time = datetime.fromtimestamp(float(start), UTC).isoformat().replace("+00:00", "Z")
            self._beyond = f"topic {self.topic} has no record at or after {time} (--from), only earlier ones"
        return found

    def _open(self, positions: dict[int, int]) -> None:
        """Begin to read the topic that has the name now."""
        self._merge = self._new_merge()
        self._paused: set[int] = set()
        self._cuts: deque[dict[int, int]] = deque([] if self._ends is None else [self._ends])
        self._next: dict[int, int] = {}
        self._last: dict[int, Raw] = {}
        for partition in self._log.partitions:
            self._merge.open(partition)
        self._go_to(positions)

    def _go_to(self, positions: dict[int, int]) -> None:
        self._merge.clear()
        self._arrived = {}
        self._log.seek(positions)
        self._next.update(positions)
        self._resume()

    def _reached(self, partition: int) -> int:
        """The next offset to return; when all was returned, past offsets without a record (gaps, markers)."""
        if self._merge.records(partition):
            return self._next[partition]
        return max(self._next[partition], self._log.position(partition))

    def _look_around(self) -> bool:
        """Whether the topic is there, and still the same; begin to read partitions that were added."""
        known, ids = self._log.known(), self._log.ids()
        if not known:
            self._bridge.gone()
            return False
        self._bridge.there()
        if ids.differ(self._ids):
            if ids in self._former:
                return False  # a broker that is behind the others says so
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

    def _begin_anew(self, ids: Ids, partitions: list[int]) -> None:
        """Read another topic that has the name now; queued records may be of either, and are dropped."""
        self._log.assign(partitions)
        ends = self._log.ends(partitions)
        positions = self._bridge.anew(self._next, self._ids, ids)
        self._former.add(self._ids)
        self._safe = self._committed = {}
        self._ids, self._astray = ids, None
        self._arrivals.clear()
        self._ends = None if self._ends is None else ends
        self._open(positions)

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
            return  # they may be another topic's: the next round finds out
        batches, self._arrived = self._arrived, {}
        now = self._clock()
        for partition, rows in batches.items():
            self._idle.heard(partition)
            self._merge.add(partition, self._raws(partition, rows, now))
            if self._merge.exceeds(partition, _QUEUED_RECORDS, _QUEUED_BYTES):
                self._log.pause(partition)
                self._paused.add(partition)

    def _raws(self, partition: int, rows: list[Row], now: float) -> RawBatch:
        """Records of a partition that were fetched together."""
        raws = self._none()
        count = len(rows)
        rows = [row for row in rows if row[1] is not None or row[3] is not None]
        self._tombstones += count - len(rows)
        if not rows:
            return raws
        offsets, values, stamps, unread = zip(*rows, strict=True)
        raws.data = [value or b"" for value in values]
        raws.places = [number for offset in offsets for number in (partition, offset)]
        raws.arrivals = self._arrivals.of(partition, offsets, now)
        raws.times = {i: stamp / 1000 for i, stamp in enumerate(stamps) if stamp is not None and stamp >= 0}
        for i, why in enumerate(unread):
            if why is not None:
                if self._on_damage == "stop":
                    self._stop_at(partition, why)
                raws.refused[i] = f"its batch, offsets {why.first} to {why.last}, cannot be read: {why.why}"
        return raws

    def _stop_at(self, partition: int, unread: Unread) -> None:
        """Raise SourceError at a batch that is damaged: a replica of it may be sound."""
        if unread.damaged:
            where = f"topic {self.topic}, partition {partition}, offsets {unread.first} to {unread.last}"
            raise SourceError(
                f"{where}: {unread.why}: the batch is damaged; restore it from a replica, or pass it with "
                "--on-damage skip, which notes it among the rejects",
                Exit.BAD_DATA,
            )

    def _resume(self) -> None:
        for partition in sorted(self._paused):
            if not self._merge.exceeds(partition, _QUEUED_RECORDS // 2, _QUEUED_BYTES // 2):
                self._log.resume(partition)
                self._paused.discard(partition)

    def _release(self, limit: int) -> RawBatch:
        while self._cuts:
            cut = self._cuts[0]
            found = self._merge.release(limit, cut, self._waits_in_cut)
            if found:
                break
            if any(self._reached(p) < offset for p, offset in cut.items() if p in self._next):
                return self._none()
            self._cuts.popleft()
        else:
            if self._ends is not None:
                return self._none()
            found = self._merge.release(limit, None, self._waits, self._lives)
        for partition, i in dict(zip(found.places[::2], range(len(found)), strict=True)).items():
            self._last[partition] = found[i]
            self._next[partition] = found.places[2 * i + 1] + 1
        return found

    def _waits_in_cut(self, partition: int) -> bool:
        return self._log.position(partition) < self._cuts[0].get(partition, 0)

    def _waits(self, partition: int) -> bool:
        """Whether more of a partition is to come, so that others must wait for it."""
        if self._log.exhausted(partition):
            return False
        self._log.ask_end(partition)
        return not (self._log.exhausted(partition) or (self._link.up and self._idle.over(partition)))

    def _lives(self, partition: int) -> bool:
        """Whether more of a partition may come soon, though all of it has been read."""
        return not (self._link.up and self._idle.silent(partition))


def _offsets(positions: Mapping[str, Any]) -> dict[int, int] | None:
    """The offsets in stored positions by partition; None if they are not those of a topic."""
    stored = positions.get("partitions")
    if not isinstance(stored, dict):
        return None
    try:
        offsets = {int(partition): int(offset) for partition, offset in stored.items()}
    except (TypeError, ValueError):
        return None
    return offsets if all(offset >= 0 for offset in offsets.values()) else None
