"""What an earlier run has already written to an output topic."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from streamdp.errors import Exit
from streamdp_connectors.kafka_client import (
    Options,
    broken,
    library,
    open_consumer,
    partitions_of,
    unreachable,
)
from streamdp_connectors.protocol import SinkError

PARTITION = 0
"""All output goes to one partition, so that its order is kept."""


class Tail(NamedTuple):
    """The records of one epoch from an offset on: checksums by ``out_seq``, and the positions noted there."""

    end: int
    checksums: dict[int, int]
    marks: list[dict[str, Any]]


def read_tail(
    topic: str, bootstrap: str, options: Options, timeout: float, resume: Mapping[str, int] | None
) -> Tail:
    """Read an output partition from where ``resume`` says to its end; without it only ask for the end."""
    kafka = library(SinkError)
    consumer = open_consumer(bootstrap, options, timeout, SinkError)
    try:
        partitions_of(consumer, topic, bootstrap, SinkError, Exit.CANNOT_CREATE)
        at = kafka.TopicPartition(topic, PARTITION)
        milliseconds = int(1000 * timeout)
        end = consumer.end_offsets([at], timeout_ms=milliseconds)[at]
        tail = Tail(end, {}, [])
        if resume is None:
            return tail
        begin = consumer.beginning_offsets([at], timeout_ms=milliseconds)[at]
        if resume["offset"] > end:
            what = f"topic {topic} ends at {end}, and the state says at {resume['offset']} or later"
            raise SinkError(f"{what}: it was made anew", Exit.BAD_DATA)
        consumer.assign([at])
        consumer.seek(at, max(begin, resume["offset"]))
        deadline = time.monotonic() + timeout
        while consumer.position(at, timeout_ms=0) < end:
            records = consumer.poll(timeout_ms=200).get(at, ())
            for record in records:
                _note(tail, record, resume)
            if records:
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                raise SinkError(f"topic {topic} at {bootstrap} cannot be read to its end", Exit.UNAVAILABLE)
        return tail
    except kafka.errors.RetriableError as error:
        raise unreachable(bootstrap, timeout, error, SinkError) from None
    except kafka.errors.KafkaError as error:
        raise broken(f"cannot read topic {topic}", error, SinkError) from None
    finally:
        consumer.close()


def _note(tail: Tail, record: Any, resume: Mapping[str, int]) -> None:
    headers = dict(record.headers)
    try:
        epoch, out_seq = int(headers["epoch"]), int(headers["out_seq"])
        marks = msgspec.json.decode(headers.get("read", b"[]"), type=list[dict[str, Any]])
    except (KeyError, ValueError, TypeError):  # not one of ours
        return
    if epoch == resume["epoch"] and out_seq >= resume["out_seq"]:
        tail.checksums[out_seq] = zlib.crc32(record.value or b"")
        tail.marks.extend(marks)
