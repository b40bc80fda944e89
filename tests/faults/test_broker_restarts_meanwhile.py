"""The broker is killed and started again while a run begins: it is waited for, whatever was asked last."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import contents, make_topic, produce
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError
from live import Live
from streamdp_connectors.kafka import internals
from streamdp_connectors.kafka.delivery import Delivery


@pytest.mark.parametrize("delay", [0.0, 0.6, 1.2, 2.0])
def test_it_is_waited_for(own_broker: Broker, tmp_path: Path, delay: float) -> None:
    topic, answers = make_topic(own_broker.bootstrap), make_topic(own_broker.bootstrap)
    produce(own_broker.bootstrap, topic, ((0, b'{"text": "storm over the coast %d"}' % i) for i in range(50)))
    where = ("--topic", topic, "--bootstrap", own_broker.bootstrap, "--state", "state")
    with Live(
        tmp_path, "consume", *where, "--output-topic", answers, "--give-up-after", "60", "--beam", "1"
    ) as run:
        time.sleep(delay)
        own_broker.kill()
        own_broker.restart()
        run.until(lambda: run.metric("streamdp_records_total") == 50, 180.0)
        run.until(lambda: len(contents(own_broker.bootstrap, answers)) == 50)


def patient(broker: Broker, topic: str) -> Delivery:
    """What waits for a broker longer than one question takes."""
    return Delivery(broker.bootstrap, name=f"test-{topic}", timeout=1.0, patience=60.0)


def test_an_output_is_opened_by_a_broker_that_is_away_longer_than_one_question(own_broker: Broker) -> None:
    topic = make_topic(own_broker.bootstrap)
    own_broker.kill()
    back = threading.Timer(3.0, own_broker.restart)
    back.start()
    try:
        patient(own_broker, topic).close()
    finally:
        back.join()


def test_a_coordinator_that_does_not_answer_is_asked_again(
    own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(own_broker.bootstrap)
    keep, back = internals.keep_requests, threading.Timer(3.0, own_broker.resume)

    def keep_and_pause(producer: Any) -> None:
        monkeypatch.setattr(internals, "keep_requests", keep)
        keep(producer)
        own_broker.pause()
        back.start()

    monkeypatch.setattr(internals, "keep_requests", keep_and_pause)
    patient(own_broker, topic).close()
    back.join()


def test_the_size_of_a_batch_is_asked_again(own_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(own_broker.bootstrap, **{"max.message.bytes": "5000"})
    describe = KafkaAdminClient.describe_configs

    def lost(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(KafkaAdminClient, "describe_configs", describe)
        raise KafkaConnectionError("lost")

    monkeypatch.setattr(KafkaAdminClient, "describe_configs", lost)
    delivery = patient(own_broker, topic)
    assert delivery.open(topic, 1500, None, False)[0].largest == 5000
    delivery.close()
