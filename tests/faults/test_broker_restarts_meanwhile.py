"""The broker is killed and started again while a run begins: it is waited for, whatever was asked last."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from broker.process import Broker
from broker.topics import contents, make_topic, produce
from live import Live


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
