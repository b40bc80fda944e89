"""A topic as one consumer sees it: its ids, its partitions with their positions and ends, and its records."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from streamdp.errors import Exit
from streamdp_connectors.kafka import internals
from streamdp_connectors.kafka.batches import Row
from streamdp_connectors.kafka.client import Broker, one_line
from streamdp_connectors.protocol import SourceError

_log = logging.getLogger(__name__)
_COMMIT_SECONDS = 2.0
_ANSWER_SECONDS = 0.5
_ASK_EVERY = 0.5
"""Seconds between two questions for the end of a partition that others wait for."""
_CONFIRMED_FOR = 0.1
"""Seconds in which nobody deletes a topic, makes it anew and fills it."""


class Ids(NamedTuple):
    """What identifies a topic; None if the broker is too old to tell."""

    topic: str | None
    cluster: str | None

    @classmethod
    def of(cls, positions: Mapping[str, Any]) -> Ids:
        """The ids in stored positions."""
        found = (positions.get("topic_id"), positions.get("cluster_id"))
        return cls(*(value if isinstance(value, str) else None for value in found))

    def plain(self) -> dict[str, str]:
        """The inverse of ``of``; what is not known is left out."""
        named = {"topic_id": self.topic, "cluster_id": self.cluster}
        return {name: value for name, value in named.items() if value is not None}

    def otherwise(self, other: Ids) -> Ids:
        """These ids, each taken from ``other`` if it is not known."""
        return Ids(self.topic or other.topic, self.cluster or other.cluster)

    def differ(self, other: Ids) -> bool:
        """Whether they belong to different topics, as far as both are known."""
        return any(a and b and a != b for a, b in zip(self, other, strict=True))

    def against(self, now: Ids, bootstrap: str) -> str:
        """How they differ from the ids at ``bootstrap`` now."""
        if self.cluster and now.cluster and self.cluster != now.cluster:
            return f"{bootstrap} is another cluster (id {now.cluster}) than before (id {self.cluster})"
        return f"its id was {self.topic}, and is {now.topic}"


def ids_of(client: Any, topic: str) -> Ids:
    """The ids of a topic, as a consumer or producer last heard."""
    return Ids(*internals.ids_heard_of(client, topic))


class OutOfRangeError(Exception):
    """A fetch position is no longer within its partition.

    ``cut`` holds, for partitions whose logs were cut below the position, the offset of the cut, or None.
    """

    def __init__(self, cut: Mapping[int, int | None]) -> None:
        self.cut = cut


class BrokerSilentError(SourceError):
    """A broker does not answer a question; it may do later."""


class TopicLog:
    """All partitions of one topic, or ``only`` one, assigned by hand to one consumer. Raises SourceError."""

    partitions: list[int]
    """Those that are fetched."""

    def __init__(
        self, topic: str, broker: Broker, refresh: float, wait: float | None = None, only: int | None = None
    ) -> None:
        self.topic, self.broker, self._only = topic, broker, only
        self.patience = broker.timeout
        """Seconds that a question may take."""
        self._kafka = broker.kafka
        self._errors = self._kafka.errors
        first = broker if wait is None else broker._replace(timeout=wait)
        self._consumer = first.consumer(metadata_max_age_ms=max(1000, int(1000 * refresh)))
        internals.poll_rows(self._consumer)
        self._committer: Any = None
        self._refreshed = -1.0
        self._reported = ""
        self._astray: OutOfRangeError | None = None
        self._ends: dict[int, tuple[int, float]] = {}  # and when they were asked for
        try:
            there = broker.partitions_of(self._consumer, topic)
            if only is not None and only not in there:
                what = f"topic {topic} has no partition {only}, only {there[0]} to {there[-1]}"
                raise SourceError(what, Exit.NO_INPUT)
            self.assign(there if only is None else [only])
        except BaseException:
            self._consumer.close()
            raise

    def close(self) -> None:
        """Give the connections back."""
        self._consumer.close()
        if self._committer is not None:
            self._committer.close()

    def ids(self) -> Ids:
        """The ids of the topic and of its cluster, as last heard."""
        return ids_of(self._consumer, self.topic)

    def refresh(self) -> None:
        """Ask anew which topics and partitions there are. Raises BrokerSilentError."""
        asked = time.monotonic()
        if not internals.refresh_metadata(self._consumer, self.patience):
            broker = self.broker._replace(timeout=self.patience, failure=BrokerSilentError)
            raise broker.unreachable(TimeoutError("no metadata"))
        self._refreshed = asked

    def answers(self) -> bool:
        """Whether a broker answers within half a second, and every partition has one that leads it."""
        if not internals.refresh_metadata(self._consumer, _ANSWER_SECONDS):
            return False
        self._refreshed = time.monotonic() - _ANSWER_SECONDS
        return internals.has_leaders(self._consumer, self.topic)

    def confirm(self) -> None:
        """Refresh unless that was done a moment ago. Raises BrokerSilentError.

        Records are fetched by the topic's name, so another topic of the same name would answer as well. They
        belong to the known topic only if it still has its id afterwards.
        """
        if time.monotonic() - self._refreshed > _CONFIRMED_FOR:
            self.refresh()

    def known(self) -> list[int]:
        """The topic's partitions as last heard, without asking; [] when it is gone."""
        there = internals.partitions_heard_of(self._consumer, self.topic)
        return there if self._only is None else [p for p in there if p == self._only]

    def assign(self, partitions: list[int]) -> None:
        """Fetch these partitions and no others."""
        self.partitions = sorted(partitions)
        self._consumer.assign([self._at(partition) for partition in self.partitions])

    def begins(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that is still there, by partition."""
        return self._offsets(self._consumer.beginning_offsets, partitions)

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after the last record that can be read now, by partition."""
        ends = self._offsets(self._consumer.end_offsets, partitions)
        now = time.monotonic()
        self._ends.update({partition: (end, now) for partition, end in ends.items()})
        return ends

    def since(self, seconds: float) -> dict[int, int]:
        """The first offset at or after a time, by partition."""
        ends = self.ends(self.partitions)
        wanted = {self._at(partition): int(1000 * seconds) for partition in self.partitions}
        with self._asked():
            found = self._consumer.offsets_for_times(wanted, timeout_ms=int(1000 * self.patience))
        return {p: ends[p] if found[self._at(p)] is None else found[self._at(p)].offset for p in ends}

    def seek(self, positions: Mapping[int, int]) -> None:
        """Fetch from these offsets on."""
        for partition, offset in positions.items():
            self._consumer.seek(self._at(partition), offset)

    def fetch(self, timeout: float, limit: int) -> dict[int, list[Row]]:
        """Return records by partition; {} when none came in time. Raises OutOfRangeError."""
        errors = self._errors
        if self._astray is not None:
            astray, self._astray = self._astray, None
            raise astray
        try:
            batches = self._poll(0.0, limit) or (self._poll(timeout, limit) if timeout > 0 else {})
        except errors.OffsetOutOfRangeError:
            raise OutOfRangeError({}) from None
        except errors.LogTruncationError as error:
            raise self._cut(error) from None
        except errors.UnsupportedCodecError as error:
            what = f"topic {self.topic} is compressed, and its codec is not installed"
            hint = "pip install lz4 python-snappy zstandard"
            raise SourceError(f"{what} ({one_line(error)}): {hint}", Exit.UNAVAILABLE) from None
        except errors.RetriableError as error:
            what = one_line(error)  # it may pass by itself: one line for as long as it stays the same
            if what != self._reported:
                _log.warning("topic %s: %s; trying again", self.topic, what)
            self._reported = what
            time.sleep(min(0.1, max(0.0, timeout)))
            return {}
        except errors.KafkaError as error:
            raise self.broker.broken(f"cannot read topic {self.topic}", error) from None
        return {at.partition: records for at, records in batches.items()}

    @staticmethod
    def _cut(error: Any) -> OutOfRangeError:
        """The error for logs that were cut, as the client says where."""
        found = error.divergent_offsets.items()
        return OutOfRangeError({at.partition: e and int(e.offset) for at, e in found})

    def pause(self, partition: int) -> None:
        """Fetch no more of a partition for now."""
        self._consumer.pause(self._at(partition))

    def resume(self, partition: int) -> None:
        """Fetch a paused partition again."""
        self._consumer.resume(self._at(partition))

    def position(self, partition: int) -> int:
        """The offset to be fetched next; 0 if it is not known just now."""
        try:
            return int(self._consumer.position(self._at(partition), timeout_ms=0) or 0)
        except self._errors.LogTruncationError as error:
            self._astray = self._cut(error)  # for the next fetch to raise
        except self._errors.RetriableError:
            pass
        return 0

    def end(self, partition: int) -> int:
        """The end as last heard, without asking."""
        high = self._consumer.highwater(self._at(partition))
        asked = self._ends.get(partition, (0, 0.0))[0]
        return asked if high is None else max(int(high), asked)

    def exhausted(self, partition: int) -> bool:
        """Whether everything of a partition has been fetched, as last heard."""
        position = self.position(partition)
        high = self._consumer.highwater(self._at(partition))
        if high is not None and position >= high:
            return True
        # An open transaction keeps the position below the high watermark: ask for the readable end.
        end, asked = self._ends.get(partition, (-1, 0.0))
        return position == end and time.monotonic() - asked < 2 * _ASK_EVERY

    def ask_end(self, partition: int) -> None:
        """Ask for an end that was not asked for lately; ignore that a broker does not answer."""
        if self._ends.get(partition, (0, 0.0))[1] >= time.monotonic() - _ASK_EVERY:
            return
        try:
            (end,) = self._consumer.end_offsets([self._at(partition)], timeout_ms=500).values()
            self._ends[partition] = end, time.monotonic()
        except self._errors.KafkaError as error:
            _log.debug("topic %s: %s", self.topic, one_line(error))

    def commit(self, group: str, positions: Mapping[int, int]) -> None:
        """Tell a consumer group how far reading has come; a failure is only logged."""
        try:
            if self._committer is None:
                self._committer = self.broker._replace(timeout=_COMMIT_SECONDS).consumer(group_id=group)
            entry = self._kafka.structs.OffsetAndMetadata
            offsets = {self._at(p): entry(offset, "", -1) for p, offset in positions.items()}
            self._committer.assign(list(offsets))
            self._committer.commit(offsets, timeout_ms=int(1000 * _COMMIT_SECONDS))
        except (SourceError, self._errors.KafkaError) as error:
            _log.warning("cannot commit to group %s: %s", group, one_line(error))

    def _poll(self, timeout: float, limit: int) -> dict[Any, list[Row]]:
        internals.clear_used_up(self._consumer)
        found: dict[Any, list[Row]] = self._consumer.poll(timeout_ms=int(1000 * timeout), max_records=limit)
        return found

    def _at(self, partition: int) -> Any:
        return self._kafka.TopicPartition(self.topic, partition)

    def _offsets(self, question: Any, partitions: Iterable[int]) -> dict[int, int]:
        wanted = [self._at(partition) for partition in partitions]
        if not wanted:
            return {}
        with self._asked():
            found = question(wanted, timeout_ms=int(1000 * self.patience))
        return {at.partition: int(offset) for at, offset in found.items()}

    def _asked(self) -> contextlib.AbstractContextManager[None]:
        broker = self.broker._replace(timeout=self.patience)
        return broker.asked(f"cannot read topic {self.topic}", BrokerSilentError)
