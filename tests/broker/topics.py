"""Making topics, filling them and reading them, for the tests."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable
from typing import Any

from commands import wait_for
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from streamdp_connectors.kafka.source import KafkaSource

from streamdp.records import Raw

_numbers = itertools.count()


def make_topic(
    bootstrap: str, partitions: int = 1, name: str | None = None, *, replicas: int = 1, **settings: str
) -> str:
    """A new topic, unless told otherwise of a name never used before."""
    topic = name or f"test-{os.getpid()}-{next(_numbers)}"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        options = {"num_partitions": partitions, "replication_factor": replicas, "configs": settings}
        admin.create_topics({topic: options}, wait_for_metadata=True)
    finally:
        admin.close()
    return topic


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, and wait until the broker knows no such topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_topics([topic])
        wait_for(lambda: topic not in admin.list_topics(), seconds=120.0)
    finally:
        admin.close()


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Give a topic more partitions, ``count`` in all."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_partitions({topic: count})
        wait_for(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == count)
    finally:
        admin.close()


def forget(bootstrap: str, topic: str, offsets: dict[int, int]) -> None:
    """Delete what lies below these offsets, as retention does."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_records({TopicPartition(topic, p): offset for p, offset in offsets.items()})
    finally:
        admin.close()


def produce(bootstrap: str, topic: str, items: Iterable[tuple[int, bytes | None]], **settings: Any) -> None:
    """Write values to partitions; None is a tombstone."""
    settings = {"linger_ms": 5, "max_request_size": 16 << 20, **settings}
    producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    try:
        sent = [producer.send(topic, value, key=b"k", partition=partition) for partition, value in items]
        for future in sent:
            future.get(120)
    finally:
        producer.close()


def settle(bootstrap: str, topic: str, partition: int = 0) -> None:
    """Wait until nothing that was committed or given up counts as open: a broker marks it a moment later."""
    at, deadline = TopicPartition(topic, partition), time.monotonic() + 120.0
    levels = ("read_committed", "read_uncommitted")
    consumers = [KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=level) for level in levels]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        while len({each.end_offsets([at])[at] for each in consumers}) > 1:
            decided = admin.list_transactions(state_filters=["PrepareCommit", "PrepareAbort"])
            if not any(decided.values()):
                return  # what is open is open
            assert time.monotonic() < deadline
    finally:
        for each in (*consumers, admin):
            each.close()


def contents(bootstrap: str, topic: str, partition: int = 0) -> list[Any]:
    """All records of a partition, but for those of transactions that were given up."""
    settle(bootstrap, topic, partition)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed"
    )
    try:
        at = TopicPartition(topic, partition)
        consumer.assign([at])
        consumer.seek_to_beginning(at)
        end = consumer.end_offsets([at])[at]
        found: list[Any] = []
        while consumer.position(at) < end:
            found.extend(consumer.poll(timeout_ms=500).get(at, ()))
        return found
    finally:
        consumer.close()


def drain(source: KafkaSource, size: int = 300, limit: int = 10**9, seconds: float = 120.0) -> list[Raw]:
    """Read to the end, or ``limit`` records."""
    found: list[Raw] = []
    deadline = time.monotonic() + seconds
    while not source.at_end and len(found) < limit:
        assert time.monotonic() < deadline, f"only {len(found)} records"
        found.extend(source.read(min(size, limit - len(found)), 0.2))
    return found
