"""Write lines and rejected records to Kafka topics: each exactly once, also over a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp.records import Reject
from streamdp_connectors.kafka.batches import Entry, room
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.output import checksum
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)
_REMEMBERED = 100_000
"""Records after which no answer is repeated that was given at an end of the input."""

Headers = list[tuple[str, bytes]]


def check_stored(resume: Mapping[str, Any]) -> None:
    """Raise SinkError (65) unless this is what ``state`` of a sink returned."""
    numbers = [resume.get(name) for name in ("epoch", "out_seq", "offset")]
    said, topic = resume.get("said", []), resume.get("topic", "")
    if isinstance(said, list):
        numbers += said
    sound = isinstance(said, list) and isinstance(topic, str)
    if not sound or any(type(number) is not int or not 0 <= number < 1 << 64 for number in numbers):
        raise SinkError("the state holds no position in a topic of answers", Exit.BAD_DATA)


class TopicWriter:
    """Numbered records in one partition of a topic.

    Every record has the headers ``epoch`` (of the first run that wrote this output) and ``out_seq`` (its
    number in it). ``resume`` is what ``state`` returned at the snapshot: records written after it are found
    in the topic, and are not written again. Without it the topic must be empty, unless the output begins
    ``anew`` after what is there. If the input had ``ended`` at the snapshot, the records after it answer what
    the state still holds open. Such an answer is recognised by its bytes when it comes again; a different one
    is another record. Raises SinkError.
    """

    def __init__(
        self,
        topic: str,
        delivery: Delivery,
        epoch: int,
        *,
        resume: Mapping[str, Any] | None = None,
        anew: bool = False,
        ended: bool = False,
    ) -> None:
        if resume is not None:
            check_stored(resume)
        self.topic, self._delivery = topic, delivery
        self._epoch = epoch if resume is None else resume["epoch"]
        self._out_seq = 0 if resume is None else resume["out_seq"]
        self._place, tail = delivery.open(topic, self._epoch, resume, anew)
        self.marks = tail.marks
        """The source positions that were noted after the snapshot, for the source's ``replay``."""
        self.differing = 0
        """How many records came again with other bytes than those found in the topic."""
        self._written = {} if ended else tail.checksums
        self._said = set((resume or {}).get("said", ()))
        if ended:
            self._said |= set(tail.checksums.values())
            self._out_seq = max([self._out_seq, *(number + 1 for number in tail.checksums)])
        self._forgets = self._out_seq + _REMEMBERED
        self._noted: list[Mapping[str, Any]] = []

    def mark(self, positions: Mapping[str, Any]) -> None:
        """Note the source's positions after a read, before the answers to it are written.

        They go with the next record, so that a run after a crash can read in the same order.
        """
        self._noted.append(positions)

    @property
    def noted(self) -> bytes:
        """What was noted since the last record, as its header holds it."""
        return msgspec.json.encode(self._noted)

    def flush(self, sync: bool) -> None:
        """Hand everything over to be sent; with ``sync`` wait until it has arrived."""
        self._delivery.flush(sync)

    def lasting(self) -> Callable[[], None]:
        """Return a function that waits until everything handed over so far has arrived."""
        return self._delivery.lasting()

    def state(self) -> dict[str, Any]:
        """Return what ``resume`` needs; to be called right after a flush."""
        place = {"offset": self._place.offset, "topic": self.topic, **self._place.ids.plain()}
        state = {"epoch": self._epoch, "out_seq": self._out_seq, **place}
        if self._out_seq > self._forgets:
            self._said.clear()
        return state | {"said": sorted(self._said)} if self._said else state

    def close(self) -> None:
        """Wait for what was written, unless writing has failed; a second call does nothing."""
        self._delivery.close()

    def send(self, value: bytes, headers: Headers) -> None:
        """Write one record, unless the topic has it already."""
        if self._said and (known := checksum(value)) in self._said:
            self._said.discard(known)
            self._noted.clear()
            return
        number = self._out_seq
        self._out_seq += 1
        if self._written:
            found = self._written.pop(number, None)
            if found is not None:
                self._noted.clear()
                self._compare(number, found, value)
                return
        if self._noted:
            headers = [*headers, ("read", self.noted)]
            self._noted.clear()
        self._delivery.put(self.topic, Entry(number, value, headers))

    def _compare(self, number: int, found: int, value: bytes) -> None:
        if found != checksum(value):
            self.differing += 1
            if self.differing == 1:
                _log.warning("topic %s: record %d came again with other bytes", self.topic, number)


class KafkaSink(TopicWriter):
    """An output topic: every line a record without key, its value the line without its newline."""

    def write(self, lines: bytes) -> None:
        """Append whole lines."""
        for line in lines.removesuffix(b"\n").split(b"\n") if lines else ():
            self.send(line, [])


class KafkaRejects(TopicWriter):
    """A dead-letter topic: the original bytes, with ``position``, ``reason`` and ``detail`` as headers.

    A record too large for the topic must not stop the stream: bytes beyond what the topic takes, or beyond
    ``max_bytes``, are cut off, and header ``bytes`` says how many there were.
    """

    max_bytes = 900_000

    def write(self, reject: Reject) -> None:
        """Append one rejected record."""
        headers = [
            ("reason", reject.reason.encode()),
            ("detail", reject.detail.encode()),
            ("position", msgspec.json.encode(reject.position)),
            ("bytes", b"%d" % len(reject.data)),
        ]
        fits = min(self.max_bytes, room(self._place.largest, [*headers, ("read", self.noted)]))
        self.send(reject.data[:fits], headers if len(reject.data) > fits else headers[:-1])
