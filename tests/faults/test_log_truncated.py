"""A broker comes back with a shorter log than it had: told, and never read as if nothing had happened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from broker.process import Broker
from broker.topics import make_topic, produce
from streamdp_connectors.kafka_source import KafkaSource
from streamdp_connectors.protocol import SourceError


def drain(source: KafkaSource, limit: int) -> int:
    count, deadline = 0, time.monotonic() + 60
    while count < limit:
        assert time.monotonic() < deadline
        count += len(source.read(500, 0.2))
    return count


def cut(broker: Broker, topic: str) -> None:
    """Kill the broker, take half of a partition's log away, and start it again."""
    broker.kill()
    folder: Path = broker.folder / "data" / f"{topic}-0"
    log = folder / f"{0:020}.log"
    size = log.stat().st_size
    for path in folder.glob("*.*index"):
        path.unlink()
    with log.open("r+b") as file:
        file.truncate(size // 2)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (broker.folder / "data" / name).unlink(missing_ok=True)
    broker.restart()


def test_the_log_is_cut_while_it_is_read(own_broker: Broker) -> None:
    topic = make_topic(own_broker.bootstrap)
    records = ((0, b"%d" % i) for i in range(100))
    produce(own_broker.bootstrap, topic, records, batch_size=50)  # many batches, so that whole ones are left
    strict = KafkaSource(topic, own_broker.bootstrap)
    lenient = KafkaSource(topic, own_broker.bootstrap, on_gap="earliest")
    for source in (strict, lenient):
        assert drain(source, 100) == 100
    cut(own_broker, topic)
    with pytest.raises(SourceError) as caught:
        drain(strict, 1)
    assert caught.value.exit_code == 65
    assert "was cut at" in caught.value.message
    assert "\n" not in caught.value.message
    lenient.read(10, 5.0)
    produce(own_broker.bootstrap, topic, [(0, b"after")])
    assert drain(lenient, 1) == 1
    (gap,) = lenient.gaps()
    assert "was cut at" in gap.detail
    strict.close()
    lenient.close()
