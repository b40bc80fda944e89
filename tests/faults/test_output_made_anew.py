"""A topic of answers or rejects is deleted and made again: nothing is written to a stranger unsaid."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import contents, delete_topic, make_topic, produce
from commands import fail, succeed
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaRejects, KafkaSink
from streamdp_connectors.protocol import SinkError


def fill(bootstrap: str, topic: str, count: int) -> None:
    produce(bootstrap, topic, ((0, b'{"text": "storm over coast %d"}' % (i % 5)) for i in range(count)))


def anew(bootstrap: str, topic: str) -> None:
    """Another topic of the name, that holds more than the one before did."""
    delete_topic(bootstrap, topic)
    make_topic(bootstrap, name=topic)
    produce(bootstrap, topic, [(0, b"of another")] * 100)


def test_an_output_made_anew_is_refused(own_broker: Broker, tmp_path: Path) -> None:
    bootstrap = own_broker.bootstrap
    topic, output = make_topic(bootstrap), make_topic(bootstrap)
    fill(bootstrap, topic, 20)
    where = ["--topic", topic, "--bootstrap", bootstrap, "--state", "state", "--until", "end"]
    run = ["consume", *where, "--output-topic", output]
    succeed(tmp_path, *run)
    anew(bootstrap, output)
    code, message = fail(tmp_path, *run)
    assert code == 65
    assert f"topic {output} is not the one that the state has written to: its id was" in message
    assert "--new-output" in message
    assert len(contents(bootstrap, output)) == 100
    fill(bootstrap, topic, 10)
    succeed(tmp_path, *run, "--new-output")
    succeed(tmp_path, *run)  # the new one is known by now
    values = [record.value for record in contents(bootstrap, output)]
    assert sum(b'"revision":0' in value for value in values[100:]) == 10


@pytest.mark.parametrize("kind", [KafkaSink, KafkaRejects])
def test_so_is_one_of_rejects(own_broker: Broker, kind: type[KafkaSink | KafkaRejects]) -> None:
    topic = make_topic(own_broker.bootstrap)

    def opened(**more: Any) -> KafkaSink | KafkaRejects:
        return kind(topic, Delivery(own_broker.bootstrap, name=f"test-{topic}"), 1, **more)

    sink = opened()
    state = sink.state()
    sink.close()
    opened(resume=state).close()
    anew(own_broker.bootstrap, topic)
    with pytest.raises(SinkError, match="is not the one that the state has written to") as caught:
        opened(resume=state)
    assert caught.value.exit_code == 65
    sink = opened(resume=state, anew=True)
    assert sink.state()["topic_id"] != state["topic_id"]
    sink.close()


def test_made_anew_while_it_is_written_to(own_broker: Broker) -> None:
    topic = make_topic(own_broker.bootstrap)
    sink = KafkaSink(topic, Delivery(own_broker.bootstrap, name=f"test-{topic}"), 1)
    sink.write(b"one\n")
    sink.flush(sync=True)
    anew(own_broker.bootstrap, topic)
    with pytest.raises(SinkError, match="is not the one that the state has written to") as caught:
        write_for(sink, 120.0)
    assert caught.value.exit_code == 65
    sink.close()


def write_for(sink: KafkaSink, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sink.write(b"two\n")
        sink.flush(sync=True)
        time.sleep(0.2)
