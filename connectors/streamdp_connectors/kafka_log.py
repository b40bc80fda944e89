"""A topic's partitions as one consumer sees them: positions, ends, fetching and committing."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.kafka_client import (
    Ids,
    Options,
    broken,
    clear_used_up,
    has_leaders,
    ids_of,
    known_partitions,
    library,
    one_line,
    open_consumer,
    partitions_of,
    refresh_metadata,
    unreachable,
    why_silent,
)
from streamdp_connectors.protocol import SourceError

_log = logging.getLogger(__name__)
_COMMIT_SECONDS = 2.0
_ANSWER_SECONDS = 0.5
_ASK_EVERY = 0.5
"""Seconds between two questions for the end of a partition that holds up others."""
_CONFIRMED_FOR = 0.1
"""Seconds in which nobody deletes a topic, makes it anew and fills it."""


class OutOfRangeError(Exception):
    """A fetch position is no longer within its partition.

    ``cut`` names the partitions whose logs were cut below it, each with the offset of the cut, or None.
    """

    def __init__(self, cut: Mapping[int, int | None]) -> None:
        super().__init__()
        self.cut = cut


class BrokerSilentError(SourceError):
    """A broker does not answer a question; it may do later."""


class TopicLog:
    """All partitions of one topic, or ``only`` one, assigned by hand to one consumer. Raises SourceError."""

    partitions: list[int]
    """Those that are fetched."""

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        options: Options,
        timeout: float,
        refresh: float,
        wait: float | None = None,
        only: int | None = None,
    ) -> None:
        self.topic, self.bootstrap = topic, bootstrap
        self._only = only
        self._options = options
        self.patience = timeout
        """Seconds that a question may take."""
        self._kafka = library(SourceError)
        self._errors = self._kafka.errors
        self._consumer = open_consumer(
            bootstrap,
            options,
            timeout if wait is None else wait,
            SourceError,
            metadata_max_age_ms=max(1000, int(1000 * refresh)),
        )
        self._committer: Any = None
        self._refreshed = -1.0
        self._told = ""
        self._astray: OutOfRangeError | None = None
        self._ends: dict[int, tuple[int, float]] = {}  # and when that was asked
        try:
            there = partitions_of(self._consumer, topic, bootstrap, SourceError)
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
        """The ids of the topic and of its cluster, as last heard of; None where the broker names none."""
        return ids_of(self._consumer._cluster, self.topic)  # noqa: SLF001

    def refresh(self) -> None:
        """Ask anew which topics and partitions there are. Raises BrokerSilentError."""
        asked = time.monotonic()
        if not refresh_metadata(self._consumer, self.patience):
            error = TimeoutError("no metadata")
            raise unreachable(self.bootstrap, self.patience, error, BrokerSilentError)
        self._refreshed = asked

    def answers(self) -> bool:
        """Whether a broker answers within half a second, and every partition has one that leads it."""
        if not refresh_metadata(self._consumer, _ANSWER_SECONDS):
            return False
        self._refreshed = time.monotonic() - _ANSWER_SECONDS
        return has_leaders(self._consumer, self.topic)

    def why_silent(self) -> str:
        """Why no broker answers, and what to do, as far as knocking tells."""
        return why_silent(self.bootstrap, self._options)

    def confirm(self) -> None:
        """Refresh unless that was done a moment ago. Raises BrokerSilentError.

        A broker is asked for records by the name of the topic, so that another one of the name answers as
        well: what has come is of the topic of before only if that still had its id afterwards.
        """
        if time.monotonic() - self._refreshed > _CONFIRMED_FOR:
            self.refresh()

    def known(self) -> list[int]:
        """The topic's partitions as last heard of, without asking; [] when it is gone."""
        there = known_partitions(self._consumer, self.topic)
        return there if self._only is None else [p for p in there if p == self._only]

    def assign(self, partitions: list[int]) -> None:
        """Fetch these partitions and no others."""
        self.partitions = sorted(partitions)
        self._consumer.assign([self._at(partition) for partition in self.partitions])

    def begins(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that is still there, by partition."""
        return self._asked(self._consumer.beginning_offsets, partitions)

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after the last record that can be read now, by partition."""
        ends = self._asked(self._consumer.end_offsets, partitions)
        now = time.monotonic()
        self._ends.update({partition: (end, now) for partition, end in ends.items()})
        return ends

    def since(self, seconds: float) -> dict[int, int]:
        """The first offset at or after a time, by partition."""
        ends = self.ends(self.partitions)
        wanted = {self._at(partition): int(1000 * seconds) for partition in self.partitions}
        found = self._call(lambda: self._consumer.offsets_for_times(wanted, timeout_ms=self._milliseconds))
        return {p: ends[p] if found[self._at(p)] is None else found[self._at(p)].offset for p in ends}

    def seek(self, positions: Mapping[int, int]) -> None:
        """Fetch from these offsets on."""
        for partition, offset in positions.items():
            self._consumer.seek(self._at(partition), offset)

    def fetch(self, timeout: float, limit: int) -> dict[int, list[Any]]:
        """Return consumer records by partition; {} when none came in time. Raises OutOfRangeError."""
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
            self._tell_once(one_line(error))
            time.sleep(min(0.1, max(0.0, timeout)))
            return {}
        except errors.KafkaError as error:
            raise broken(f"cannot read topic {self.topic}", error, SourceError) from None
        return {at.partition: records for at, records in batches.items()}

    @staticmethod
    def _cut(error: Any) -> OutOfRangeError:
        """What the client says of logs that were cut, each partition with the offset of the cut."""
        found = error.divergent_offsets.items()
        return OutOfRangeError({at.partition: e and int(e.offset) for at, e in found})

    def _tell_once(self, what: str) -> None:
        """Of what may pass by itself, a line for as long as it is the same."""
        if what != self._told:
            _log.warning("topic %s: %s; trying again", self.topic, what)
        self._told = what

    def pause(self, partition: int) -> None:
        """Fetch no more of a partition for now."""
        self._consumer.pause(self._at(partition))

    def resume(self, partition: int) -> None:
        """Fetch a paused partition again."""
        self._consumer.resume(self._at(partition))

    def position(self, partition: int) -> int:
        """The offset to be fetched next; 0 where that is not known just now."""
        try:
            return int(self._consumer.position(self._at(partition), timeout_ms=0) or 0)
        except self._errors.LogTruncationError as error:
            self._astray = self._cut(error)  # for the next fetch to raise, whose business it is
        except self._errors.RetriableError:
            pass
        return 0

    def end(self, partition: int) -> int:
        """The end as last heard of, without asking."""
        high = self._consumer.highwater(self._at(partition))
        asked = self._ends.get(partition, (0, 0.0))[0]
        return asked if high is None else max(int(high), asked)

    def exhausted(self, partition: int) -> bool:
        """Whether everything of a partition has been fetched, as far as was heard lately."""
        position = self.position(partition)
        high = self._consumer.highwater(self._at(partition))
        if high is not None and position >= high:
            return True
        # An open transaction keeps the position below the high watermark: ask for the readable end.
        end, asked = self._ends.get(partition, (-1, 0.0))
        return position == end and time.monotonic() - asked < 2 * _ASK_EVERY

    def ask_ends(self, partitions: Iterable[int]) -> None:
        """Ask for ends that were not asked for lately; a broker that does not answer is left for later."""
        late = time.monotonic() - _ASK_EVERY
        due = [p for p in partitions if self._ends.get(p, (0, 0.0))[1] < late]
        if not due:
            return
        wanted = [self._at(partition) for partition in due]
        try:
            found = self._consumer.end_offsets(wanted, timeout_ms=500)
        except self._errors.KafkaError as error:
            _log.debug("topic %s: %s", self.topic, one_line(error))
            return
        now = time.monotonic()
        self._ends.update({at.partition: (end, now) for at, end in found.items()})

    def commit(self, group: str, positions: Mapping[int, int]) -> None:
        """Tell a consumer group where reading has come to; a failure is only logged."""
        try:
            if self._committer is None:
                self._committer = open_consumer(
                    self.bootstrap, self._options, _COMMIT_SECONDS, SourceError, group_id=group
                )
            entry = self._kafka.structs.OffsetAndMetadata
            offsets = {self._at(p): entry(offset, "", -1) for p, offset in positions.items()}
            self._committer.assign(list(offsets))
            self._committer.commit(offsets, timeout_ms=int(1000 * _COMMIT_SECONDS))
        except (SourceError, self._errors.KafkaError) as error:
            _log.warning("cannot commit to group %s: %s", group, one_line(error))

    @property
    def _milliseconds(self) -> int:
        return int(1000 * self.patience)

    def _poll(self, timeout: float, limit: int) -> dict[Any, list[Any]]:
        clear_used_up(self._consumer)
        found: dict[Any, list[Any]] = self._consumer.poll(timeout_ms=int(1000 * timeout), max_records=limit)
        return found

    def _at(self, partition: int) -> Any:
        return self._kafka.TopicPartition(self.topic, partition)

    def _asked(self, question: Any, partitions: Iterable[int]) -> dict[int, int]:
        wanted = [self._at(partition) for partition in partitions]
        if not wanted:
            return {}
        found = self._call(lambda: question(wanted, timeout_ms=self._milliseconds))
        return {at.partition: int(offset) for at, offset in found.items()}

    def _call(self, ask: Any) -> Any:
        try:
            return ask()
        except self._errors.RetriableError as error:
            raise unreachable(self.bootstrap, self.patience, error, BrokerSilentError) from None
        except self._errors.KafkaError as error:
            raise broken(f"cannot read topic {self.topic}", error, SourceError) from None
