"""A transaction that a broker calls complete, and holds open in a partition: its answers can be read soon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from broker.process import Broker, started
from broker.topics import contents, make_topic
from commands import wait_for
from kafka import TopicPartition
from streamdp_connectors.kafka import internals
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaSink

LINES = [b'{"seq":%d}\n' % i for i in range(10)]


@pytest.fixture(scope="module")
def unverified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that takes records into a partition of which a transaction's coordinator knows nothing."""
    broker = Broker(tmp_path_factory.mktemp("unverified"))
    text = broker.properties.read_text()
    broker.properties.write_text(f"{text}\ntransaction.partition.verification.enable=false\n")
    broker.format()
    with started(broker):
        yield broker


def forget_next_marker(monkeypatch: pytest.MonkeyPatch, bootstrap: str) -> None:
    """Let the next transaction be complete without a marker in its partition.

    Its coordinator is told of another partition. So ends one whose partition has no leader at that moment.
    """
    other, join = TopicPartition(make_topic(bootstrap), 0), internals.join_transaction

    def join_other(producer: Any, at: Any) -> None:
        monkeypatch.setattr(internals, "join_transaction", join)
        join(producer, other)
        producer._transaction_manager._partitions_in_transaction.add(at)

    monkeypatch.setattr(internals, "join_transaction", join_other)


def opened(topic: str, broker: Broker, resume: Any = None) -> KafkaSink:
    delivery = Delivery(broker.bootstrap, name=f"test-{topic}", timeout=2.0)
    return KafkaSink(topic, delivery, 1500, resume=resume)


def numbers(broker: Broker, topic: str) -> list[int]:
    return [int(dict(record.headers)["out_seq"]) for record in contents(broker.bootstrap, topic)]


def test_while_the_run_goes_on(unverified: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(unverified.bootstrap)
    sink = opened(topic, unverified)
    forget_next_marker(monkeypatch, unverified.bootstrap)
    sink.write(b"".join(LINES))
    sink.flush(sync=True)
    assert numbers(unverified, topic) == []
    wait_for(lambda: numbers(unverified, topic) == list(range(10)), seconds=60.0)
    sink.write(LINES[0])
    sink.close()
    assert numbers(unverified, topic) == list(range(11))


def test_when_the_next_run_begins(unverified: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(unverified.bootstrap)
    sink = opened(topic, unverified)
    before = sink.state()
    forget_next_marker(monkeypatch, unverified.bootstrap)
    sink.write(b"".join(LINES))
    sink.close()
    assert numbers(unverified, topic) == []
    again = opened(topic, unverified, before)
    again.write(b"".join(LINES) + LINES[0])
    again.close()
    assert numbers(unverified, topic) == list(range(11))
