"""A topic is deleted while a run reads it, or writes to it: one line, and no waiting in silence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from broker.process import Broker
from broker.topics import delete_topic, make_topic, produce
from live import Live
from streamdp_connectors.kafka import delivery
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaSink
from streamdp_connectors.protocol import SinkError


def test_the_run_ends_in_one_line(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    produce(own_broker.bootstrap, topic, [(0, b'{"text": "storm over the coast"}')])
    command = ["consume", "--topic", topic, "--bootstrap", own_broker.bootstrap, "--state", "state"]
    with Live(tmp_path, *command, "--output", "out") as run:
        run.until(lambda: run.metric("streamdp_records_total") == 1)
        delete_topic(own_broker.bootstrap, topic)
        assert run.ends() == 66
        said = [line for line in run.said if "compiling" not in line]
        assert len(said) == 1
        assert said[0].startswith(f"streamdp: topic {topic} is gone: it was deleted, or may not be read")


def test_an_output_topic(own_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_ACK_SECONDS", 1.0)
    topic = make_topic(own_broker.bootstrap)
    sink = KafkaSink(topic, Delivery(own_broker.bootstrap, name=f"test-{topic}"), 1)
    sink.write(b"one\n")
    sink.flush(sync=True)
    delete_topic(own_broker.bootstrap, topic)
    began = time.monotonic()
    sink.write(b"two\n")
    with pytest.raises(SinkError) as caught:
        sink.flush(sync=True)
    sink.close()
    assert time.monotonic() - began < 120
    assert caught.value.exit_code == 74
    assert f"topic {topic} has taken nothing for 1 s" in caught.value.message
