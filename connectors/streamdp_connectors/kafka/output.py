"""One partition of an output topic: read what an earlier run has written, and write in transactions."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from streamdp.errors import Exit
from streamdp_connectors.kafka import internals
from streamdp_connectors.kafka.batches import Entry, batches, room
from streamdp_connectors.kafka.client import Broker, one_line, passing
from streamdp_connectors.kafka.log import Ids, ids_of
from streamdp_connectors.protocol import SinkError

_log = logging.getLogger(__name__)
_LOOK_EVERY = 0.2
_COMMIT_SECONDS = 30.0  # that a transaction may take before it is begun anew: half of what brokers let it

Load = dict[str, list[Entry]]
"""Records by topic, in order."""


def checksum(value: bytes) -> int:
    """64 bits that stand for a record's bytes."""
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest())


class Tail(NamedTuple):
    """What follows an offset in one epoch: checksums of records by ``out_seq``, and the positions they hold.

    Anybody who may write there can give a record a number that was, or will be, another's.

    ``known`` says whether the state has written to this topic before.
    """

    end: int
    ids: Ids
    known: bool
    checksums: dict[int, set[int]]
    marks: list[dict[str, Any]]


def read_tail(
    topic: str, broker: Broker, resume: Mapping[str, Any] | None, anew: bool = False, partition: int = 0
) -> Tail:
    """Read what was committed to an output partition, from the offset in ``resume`` to its end.

    A topic that this state has not written to must hold no record, unless the output begins ``anew`` after
    what is there. Raises SinkError.
    """
    at = broker.kafka.TopicPartition(topic, partition)
    with broker.asked(f"cannot read topic {topic}"):
        begin, end, ids = _bounds(broker, at)
        mismatch = "" if resume is None else _mismatch(topic, broker.bootstrap, end, ids, resume)
        known = resume is not None and not mismatch
        tail = Tail(end, ids.otherwise(Ids.of(resume or {})) if known else ids, known, {}, [])
        if anew and not tail.known:
            return tail
        if resume is None:
            for record in _records(broker, at, begin, end):
                what = f"topic {topic} holds records already (one at {record.offset})"
                how = "--new-output appends to them, --state continues an earlier run"
                raise SinkError(f"{what}: {how}", Exit.CANNOT_CREATE)
            return tail
        if mismatch:
            raise SinkError(mismatch, Exit.BAD_DATA)
        for record in _records(broker, at, max(begin, resume["offset"]), end):
            _note(tail, record, resume)
        return tail


def readable(topic: str, broker: Broker, offset: int, partition: int) -> bool:
    """Whether no open transaction holds back what was committed before an offset. Raises SinkError."""
    at = broker.kafka.TopicPartition(topic, partition)
    with broker.asked(f"cannot read topic {topic}"):
        consumer = broker.consumer()
        try:
            end = consumer.end_offsets([at], timeout_ms=int(1000 * broker.timeout))[at]
        finally:
            consumer.close()
        return end >= offset or _bounds(broker, at)[1] < offset  # as in a topic made anew


def made_anew(topic: str, before: Ids, now: Ids, bootstrap: str) -> str:
    """The message for an output topic that only has the name of the one before."""
    what = f"topic {topic} is not the one that the state has written to: {before.against(now, bootstrap)}"
    return f"{what}; what was written is not there, go on without it with --new-output"


def _mismatch(topic: str, bootstrap: str, end: int, ids: Ids, resume: Mapping[str, Any]) -> str:
    """Why the topic is not the one that the state has written to, and what to do; "" if it is."""
    before, offset, known = resume.get("topic", topic), resume["offset"], Ids.of(resume)
    if before != topic:
        what = f"the state has written to topic {before}, not to {topic}: name that one"
        return f"{what}, or begin another with --new-output"
    if known.differ(ids):
        return made_anew(topic, known, ids, bootstrap)
    if offset > end:
        what = f"topic {topic} ends at {end}, and the state says at {offset} or later: it was made anew"
        return f"{what}; go on with --new-output"
    return ""


def _bounds(broker: Broker, at: Any) -> tuple[int, int, Ids]:
    """Where a partition begins and ends, open transactions included, and the ids of its topic."""
    consumer = broker.consumer(isolation_level="read_uncommitted")
    try:
        if at.partition not in broker.partitions_of(consumer, at.topic, Exit.CANNOT_CREATE):
            what = f"topic {at.topic} has no partition {at.partition}: give it as many as are read"
            raise SinkError(what, Exit.CANNOT_CREATE)
        milliseconds = int(1000 * broker.timeout)
        end = consumer.end_offsets([at], timeout_ms=milliseconds)[at]
        begin = consumer.beginning_offsets([at], timeout_ms=milliseconds)[at]
        return begin, end, ids_of(consumer, at.topic)
    finally:
        consumer.close()


def _records(broker: Broker, at: Any, begin: int, end: int) -> Iterator[Any]:
    """The records that were committed between two offsets."""
    if begin >= end:
        return
    consumer, bootstrap = broker.consumer(), broker.bootstrap
    try:
        consumer.assign([at])
        consumer.seek(at, begin)
        deadline, reached = time.monotonic() + broker.timeout, begin
        while reached < end:
            yield from consumer.poll(timeout_ms=200).get(at, ())
            now = consumer.position(at, timeout_ms=0) or reached
            if now > reached:
                reached, deadline = now, time.monotonic() + broker.timeout
            elif time.monotonic() > deadline:
                what = (
                    f"topic {at.topic} at {bootstrap} cannot be read to its end, {end}, but to {reached} only"
                )
                why = "another producer may have left a transaction open there"
                raise passing(StuckError(f"{what}: {why}", Exit.UNAVAILABLE))
    finally:
        consumer.close()


def _note(tail: Tail, record: Any, resume: Mapping[str, Any]) -> None:
    headers = dict(record.headers)
    try:
        epoch, out_seq = int(headers["epoch"]), int(headers["out_seq"])
        marks = msgspec.json.decode(headers.get("read", b"[]"), type=list[dict[str, Any]])
    except (KeyError, ValueError, TypeError):  # not one of ours
        return
    if epoch == resume["epoch"] and out_seq >= resume["out_seq"]:
        tail.checksums.setdefault(out_seq, set()).add(checksum(record.value or b""))
        tail.marks.extend(marks)


class StuckError(SinkError):
    """A transaction is open in an output, and what follows cannot be read."""


class FencedError(SinkError):
    """Another run with the same id writes now."""


@dataclass
class Topic:
    """An output: its epoch, how many records were delivered, and the offset before which they all are.

    ``largest`` is how many bytes a batch of them may have; ``ids`` tell it from another of its name.
    """

    epoch: int
    written: int
    offset: int
    largest: int
    ids: Ids


class Transactions:
    """Sends loads to a partition: in transactions under ``name``, if the broker allows them, else without.

    Opening ends the transaction that an earlier process with this name may have left open, and shuts that
    process out, including requests that are still under way. Raises SinkError.
    """

    def __init__(self, broker: Broker, name: str | None, partition: int) -> None:
        self._broker, self._name, self._partition = broker, name, partition
        self._kafka = broker.kafka
        self._abandoned = False
        self.transactional = name is not None
        """Whether loads are transactions."""
        self._producer = self._open()

    def reopen(self) -> None:
        """Begin again with another producer; nothing that the one before has sent is taken any more."""
        internals.abandon(self._producer)
        self._producer = self._open()

    def abandon(self) -> None:
        """Stop sending, at once; for any thread."""
        self._abandoned = True
        internals.abandon(self._producer)

    def close(self) -> None:
        """Give the connections back."""
        with contextlib.suppress(self._kafka.errors.KafkaError):
            self._producer.close(timeout=5)

    def refused(self, error: Exception) -> bool:
        """Whether an error is the broker's refusal of what was sent, which it would repeat."""
        errors = self._kafka.errors
        if self._abandoned or isinstance(error, ValueError | AssertionError):
            return True
        fenced = (*self._fencing(), errors.OutOfOrderSequenceNumberError, errors.UnknownProducerIdError)
        return isinstance(error, errors.BrokerResponseError) and not (
            error.retriable or isinstance(error, fenced)
        )

    def send(self, load: Load, topics: dict[str, Topic]) -> dict[str, int]:
        """Send a load and wait until all of it is there; return by topic the offset after it.

        Raises KafkaError, FencedError where another producer of this name is known to write, and SinkError
        (65) where a topic is found to have been made anew.
        """
        producer, size, futures = self._producer, self._producer.config["batch_size"], []
        try:
            if self.transactional:
                producer.begin_transaction()
            for topic, entries in load.items():
                at = self._join(topic)
                most = min(size, room(topics[topic].largest, ()))
                for records, count in batches(entries, topics[topic].epoch, most):
                    futures += internals.hand_over(
                        producer, at, records, count, futures=not self.transactional
                    )
            if self.transactional:
                self._commit()
            else:
                self._await(futures)
            for topic in load:
                before, now = topics[topic].ids, ids_of(producer, topic)
                if before.differ(now):
                    raise SinkError(made_anew(topic, before, now, self._broker.bootstrap), Exit.BAD_DATA)
        except self._kafka.errors.KafkaError as error:
            raise self._cause(error) from None
        return {topic: internals.offset_after(producer, self._at(topic)) for topic in load}

    def settle(self, topics: Iterable[str]) -> None:
        """Let outputs be read where a transaction has ended, and its broker holds it open. Raises SinkError.

        A broker that finds a partition without a leader takes it for deleted, and calls the transaction
        complete without its marker (KAFKA-20734). The marker of an empty one serves instead. It commits,
        since what is held may be delivered answers; what else there is is found by who reads it then.
        """
        with self._broker.asked("cannot end a transaction"):
            try:
                self._producer.begin_transaction()
                for topic in topics:
                    self._join(topic)
                self._commit()
            except self._kafka.errors.KafkaError as error:
                raise self._cause(error) from None

    def _join(self, topic: str) -> Any:
        """Make the partition part of the transaction, if there is one, and return it."""
        at = self._at(topic)
        if not internals.partitions_heard_of(self._producer, topic):
            self._producer.partitions_for(topic)
        if self.transactional:
            internals.join_transaction(self._producer, at)
        return at

    def _cause(self, error: Exception) -> Exception:
        """What ended a transaction: FencedError where that was another producer of this name."""
        cause = (internals.cause_of_abort(self._producer) if self.transactional else None) or error
        if isinstance(cause, self._fencing()):
            return FencedError(one_line(cause), Exit.CANNOT_CREATE)
        return cause

    def _at(self, topic: str) -> Any:
        return self._kafka.TopicPartition(topic, self._partition)

    def _commit(self) -> None:
        done, deadline = internals.begin_commit(self._producer), time.monotonic() + _COMMIT_SECONDS
        while not done.wait(timeout_ms=1000 * _LOOK_EVERY):
            if self._abandoned:
                raise self._kafka.errors.KafkaTimeoutError("nothing is waited for any more")
            if time.monotonic() > deadline:
                raise self._kafka.errors.KafkaTimeoutError(f"it has not ended for {_COMMIT_SECONDS:g} s")

    def _await(self, futures: list[Any]) -> None:
        for future in futures:
            while not future.is_done:
                with contextlib.suppress(self._kafka.errors.KafkaTimeoutError):
                    future.get(timeout=_LOOK_EVERY)
                if self._abandoned:
                    raise self._kafka.errors.KafkaTimeoutError("nothing is waited for any more")
            future.get(timeout=0)

    def _fencing(self) -> tuple[type[Exception], ...]:
        errors = self._kafka.errors
        return (errors.ProducerFencedError, errors.InvalidProducerEpochError, errors.InvalidTxnStateError)

    def _open(self) -> Any:
        errors, timeout = self._kafka.errors, self._broker.timeout
        more = {"transactional_id": self._name} if self.transactional else {}
        producer = self._broker.producer(**more, max_block_ms=int(1000 * timeout))
        if not self.transactional:
            return producer
        internals.forbid_new_epochs(producer)
        internals.keep_requests(producer)
        try:
            producer.init_transactions()
            return producer
        except (errors.TransactionalIdAuthorizationFailedError, errors.UnsupportedVersionError) as error:
            internals.abandon(producer)
            self.transactional = False
            _log.warning(
                "the broker allows no transactions (%s): answers come once over a crash, but no run is shut "
                "out that was stopped, is replaced by another and goes on",
                type(error).__name__,
            )
            return self._open()
        except errors.KafkaTimeoutError:
            internals.abandon(producer)
            who = f"the transaction coordinator of {self._broker.bootstrap}"
            what = f"{who} does not answer within {timeout:g} s"
            how = "see transaction.state.log.replication.factor, or set transactional.id.prefix=none"
            raise passing(SinkError(f"{what}: {how}", Exit.UNAVAILABLE)) from None
        except errors.RetriableError as error:
            internals.abandon(producer)
            raise self._broker.unreachable(error) from None
        except errors.KafkaError as error:
            internals.abandon(producer)
            raise self._broker.broken(f"cannot begin transactions as {self._name}", error) from None
