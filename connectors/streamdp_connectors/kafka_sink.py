"""Write lines, and what was refused, to Kafka topics: each exactly once, also over a crash."""

from __future__ import annotations

import contextlib
import logging
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp.records import Reject
from streamdp_connectors.kafka_client import Options, abandon, broken, library, open_producer
from streamdp_connectors.kafka_limit import largest_batch, room
from streamdp_connectors.kafka_tail import PARTITION, read_tail
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)
_PENDING = 10_000  # records without acknowledgement
_PENDING_BYTES = 32 << 20
_ACK_SECONDS = 60.0  # to wait for a receipt from a broker that answers other questions
_LOOK_EVERY = 0.2

Headers = list[tuple[str, bytes]]


class TopicWriter:
    """Numbered records in one partition of a topic.

    Every record has the headers ``epoch`` (of the first run that wrote this output) and ``out_seq`` (its
    number in it). ``resume`` is what ``state`` returned at the snapshot: what was written after it is found
    in the topic, and not written again when it comes again. A broker that is lost is waited for, and
    ``waiting`` is called meanwhile: it says whether the broker answers, and may raise. Raises SinkError.
    """

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        *,
        resume: Mapping[str, int] | None = None,
        client_options: Options | None = None,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.time,
        waiting: Callable[[], bool] = lambda: True,
    ) -> None:
        if resume is not None and not {"epoch", "out_seq", "offset"} <= set(resume):
            raise SinkError(f"the state holds no position in topic {topic}", Exit.BAD_DATA)
        options = client_options or {}
        tail = read_tail(topic, bootstrap, options, timeout, resume)
        self.topic = topic
        self.marks = tail.marks
        """The source positions that were noted after the snapshot, for the source's ``replay``."""
        self.differing = 0
        """How many records came again with other bytes than those found in the topic."""
        self._written = tail.checksums
        self._epoch = int(1000 * clock()) if resume is None else resume["epoch"]
        self._out_seq = 0 if resume is None else resume["out_seq"]
        self._offset = tail.end if resume is None else resume["offset"]
        self._noted: list[Mapping[str, Any]] = []
        self._pending: deque[tuple[Any, int]] = deque()
        self._pending_bytes = 0
        self._failed = self._closed = False
        self._waiting = waiting
        self._errors = library(SinkError).errors
        self.largest = largest_batch(topic, bootstrap, options, timeout)
        """Bytes that the topic takes at once."""
        self._producer = open_producer(bootstrap, options, timeout, SinkError, self.largest)

    def mark(self, positions: Mapping[str, Any]) -> None:
        """Note the source's positions after a read, before what comes of it is written.

        They travel with the next record, so that a run after a crash can read in the same order.
        """
        self._noted.append(positions)

    @property
    def noted(self) -> bytes:
        """What was noted since the last record, as it travels."""
        return msgspec.json.encode(self._noted)

    def flush(self, sync: bool) -> None:
        """Hand everything to the client, which sends on its own; with ``sync`` wait for all receipts."""
        self._settle(0 if sync else _PENDING)

    def state(self) -> dict[str, int]:
        """Return what ``resume`` needs; to be asked for right after ``flush(sync=True)``."""
        return {"epoch": self._epoch, "out_seq": self._out_seq, "offset": self._offset}

    @property
    def missing(self) -> int:
        """How many receipts are missing; may be asked from another thread."""
        return sum(not future.is_done for future, _ in list(self._pending))

    def close(self) -> None:
        """Wait for what was written, unless writing has failed; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._failed:
                self._settle(0)
        finally:
            if self._failed:
                abandon(self._producer)
            with contextlib.suppress(self._errors.KafkaError):
                self._producer.close(timeout=5)

    def send(self, value: bytes, headers: Headers) -> None:
        """Write one record, unless the topic has it already."""
        number = self._out_seq
        self._out_seq += 1
        found = self._written.pop(number, None)
        if found is not None:
            self._noted.clear()
            if found != zlib.crc32(value):
                self.differing += 1
                if self.differing == 1:
                    _log.warning("topic %s: record %d came again with other bytes", self.topic, number)
            return
        headers = [("epoch", b"%d" % self._epoch), ("out_seq", b"%d" % number), *headers]
        if self._noted:
            headers.append(("read", self.noted))
            self._noted.clear()
        try:
            future = self._producer.send(self.topic, value=value, headers=headers, partition=PARTITION)
        except (self._errors.KafkaError, ValueError, AssertionError) as error:
            raise self._broken(error) from None
        self._pending.append((future, len(value)))
        self._pending_bytes += len(value)
        if len(self._pending) > _PENDING or self._pending_bytes > _PENDING_BYTES:
            self._settle(_PENDING // 2)

    def _settle(self, limit: int) -> None:
        """Take receipts, and wait for them while more than ``limit`` are missing. Raises on a refusal."""
        if self._failed:
            raise SinkError(f"writing to topic {self.topic} has failed before", Exit.IO_ERROR)
        pending = self._pending
        while pending and (
            pending[0][0].is_done or len(pending) > limit or self._pending_bytes > _PENDING_BYTES // 2
        ):
            receipt = self._receipt(pending[0][0])
            self._pending_bytes -= pending.popleft()[1]
            self._offset = max(self._offset, receipt.offset + 1)

    def _receipt(self, future: Any) -> Any:
        """Wait for one, as long as no broker answers; where one does, only so long."""
        waited = 0.0
        while True:
            try:
                return future.get(timeout=_LOOK_EVERY)
            except self._errors.KafkaError as error:
                if future.is_done:
                    raise self._broken(error) from None
            try:
                if self._waiting():
                    waited += _LOOK_EVERY
            except BaseException:
                self._failed = True  # what is missing is not waited for again
                raise
            if waited > _ACK_SECONDS:
                self._failed = True
                what = (
                    f"topic {self.topic} has taken nothing for {_ACK_SECONDS:g} s, though the broker answers"
                )
                raise SinkError(f"{what}: see whether the topic is there and has a leader", Exit.IO_ERROR)

    def _broken(self, error: Exception) -> SinkError:
        self._failed = True
        return broken(f"cannot write to topic {self.topic}", error, SinkError)  # type: ignore[return-value]


class KafkaSink(TopicWriter):
    """An output topic: every line a record without key, its value the line without its newline."""

    def write(self, lines: bytes) -> None:
        """Append whole lines. Raises SinkError."""
        for line in lines.removesuffix(b"\n").split(b"\n") if lines else ():
            self.send(line, [])


class KafkaRejects(TopicWriter):
    """A dead-letter topic: the original bytes, with ``position``, ``reason`` and ``detail`` as headers.

    A topic takes no records of any size, and what is wrong with one record must not stop the stream: where
    there are more bytes than it takes, or than ``max_bytes``, as many are kept as fit, with their number as
    header ``bytes``.
    """

    max_bytes = 900_000

    def write(self, reject: Reject) -> None:
        """Append one rejected record. Raises SinkError."""
        headers = [
            ("reason", reject.reason.encode()),
            ("detail", reject.detail.encode()),
            ("position", msgspec.json.encode(reject.position)),
            ("bytes", b"%d" % len(reject.data)),
        ]
        fits = min(self.max_bytes, room(self.largest, [*headers, ("read", self.noted)]))
        self.send(reject.data[:fits], headers if len(reject.data) > fits else headers[:-1])
