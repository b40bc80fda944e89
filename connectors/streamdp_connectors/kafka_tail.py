"""What an earlier run has already written to an output topic."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from streamdp.errors import Exit
from streamdp_connectors.kafka_client import (
    Ids,
    Options,
    broken,
    ids_of,
    library,
    open_consumer,
    partitions_of,
    unreachable,
)
from streamdp_connectors.protocol import SinkError


def checksum(value: bytes) -> int:
    """By which a record's bytes are known again: 64 bits."""
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest())


class Tail(NamedTuple):
    """The records of one epoch from an offset on: checksums by ``out_seq``, and the positions noted there.

    ``known`` says whether the state has written to this topic before.
    """

    end: int
    ids: Ids
    known: bool
    checksums: dict[int, int]
    marks: list[dict[str, Any]]


def read_tail(
    topic: str,
    bootstrap: str,
    options: Options,
    timeout: float,
    resume: Mapping[str, Any] | None,
    anew: bool = False,
    partition: int = 0,
) -> Tail:
    """Read what was committed to an output partition, from where ``resume`` says to its end.

    Without ``resume`` the topic must hold no record, and with another topic's this one must not: both unless
    the output begins ``anew`` after what is there. Raises SinkError.
    """
    kafka = library(SinkError)
    at = kafka.TopicPartition(topic, partition)
    try:
        begin, end, ids = _bounds(topic, bootstrap, options, timeout, at)
        strange = "" if resume is None else _strange(topic, bootstrap, end, ids, resume)
        known = resume is not None and not strange
        tail = Tail(end, ids.otherwise(Ids.of(resume or {})) if known else ids, known, {}, [])
        if anew and not tail.known:
            return tail
        if resume is None:
            for record in _records(at, begin, end, bootstrap, options, timeout):
                what = f"topic {topic} holds records already (one at {record.offset})"
                how = "--new-output appends to them, --state continues an earlier run"
                raise SinkError(f"{what}: {how}", Exit.CANNOT_CREATE)
            return tail
        if strange:
            raise SinkError(strange, Exit.BAD_DATA)
        for record in _records(at, max(begin, resume["offset"]), end, bootstrap, options, timeout):
            _note(tail, record, resume)
        return tail
    except kafka.errors.RetriableError as error:
        raise unreachable(bootstrap, timeout, error, SinkError) from None
    except kafka.errors.KafkaError as error:
        raise broken(f"cannot read topic {topic}", error, SinkError) from None


def made_anew(topic: str, before: Ids, now: Ids, bootstrap: str) -> str:
    """What to say of an output topic that only has the name of the one before."""
    what = f"topic {topic} is not the one that the state has written to: {before.against(now, bootstrap)}"
    return f"{what}; what was written is not there, go on without it with --new-output"


def _strange(topic: str, bootstrap: str, end: int, ids: Ids, resume: Mapping[str, Any]) -> str:
    """Why the topic is not what the state has written to, and what to do; "" where it is."""
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


def _bounds(topic: str, bootstrap: str, options: Options, timeout: float, at: Any) -> tuple[int, int, Ids]:
    """Where a partition begins and ends, transactions that are still open included, and whose it is."""
    consumer = open_consumer(bootstrap, options, timeout, SinkError, isolation_level="read_uncommitted")
    try:
        there = partitions_of(consumer, topic, bootstrap, SinkError, Exit.CANNOT_CREATE)
        if at.partition not in there:
            what = f"topic {topic} has no partition {at.partition}: give it as many as are read"
            raise SinkError(what, Exit.CANNOT_CREATE)
        milliseconds = int(1000 * timeout)
        end = consumer.end_offsets([at], timeout_ms=milliseconds)[at]
        begin = consumer.beginning_offsets([at], timeout_ms=milliseconds)[at]
        return begin, end, ids_of(consumer._cluster, topic)  # noqa: SLF001
    finally:
        consumer.close()


def _records(
    at: Any, begin: int, end: int, bootstrap: str, options: Options, timeout: float
) -> Iterator[Any]:
    """What was committed between two offsets."""
    if begin >= end:
        return
    consumer = open_consumer(bootstrap, options, timeout, SinkError)
    try:
        consumer.assign([at])
        consumer.seek(at, begin)
        deadline, reached = time.monotonic() + timeout, begin
        while reached < end:
            yield from consumer.poll(timeout_ms=200).get(at, ())
            now = consumer.position(at, timeout_ms=0) or reached
            if now > reached:
                reached, deadline = now, time.monotonic() + timeout
            elif time.monotonic() > deadline:
                what = (
                    f"topic {at.topic} at {bootstrap} cannot be read to its end, {end}, but to {reached} only"
                )
                raise SinkError(
                    f"{what}: another producer may have left a transaction open there", Exit.UNAVAILABLE
                )
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
        tail.checksums[out_seq] = checksum(record.value or b"")
        tail.marks.extend(marks)
