"""A broker goes away and comes back, or does not: told once, seen by probes, and obeyed by signals."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.process import Broker
from broker.topics import contents, make_topic, produce
from commands import command, succeed
from live import Live
from streamdp_connectors.kafka.reach import Link
from streamdp_connectors.protocol import SourceError


def fill(broker: Broker, topic: str, count: int, first: int = 0) -> None:
    values = (b'{"id": %d, "text": "storm over coast %d"}' % (i, i % 5) for i in range(first, first + count))
    produce(broker.bootstrap, topic, ((0, value) for value in values))


def where(broker: Broker, topic: str) -> list[str]:
    return ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--state", "state"]


def test_lost_and_back_is_one_line_each(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    fill(own_broker, topic, 100)
    with Live(tmp_path, *where(own_broker, topic), "--output", "out") as run:
        run.until(lambda: run.metric("streamdp_records_total") == 100)
        run.until(lambda: run.metric("streamdp_source_up") == 1 and run.get("readyz")[0] == 200)
        own_broker.kill()
        lost = run.hears("lost the Kafka broker")
        assert f"lost the Kafka broker at {own_broker.bootstrap}: nothing listens" in lost
        run.until(lambda: run.get("readyz") == (503, "source down\n"))
        assert run.get("livez")[0] == 200
        run.until(lambda: run.metric("streamdp_source_up") == 0)
        own_broker.restart()
        back = run.hears("is back after")
        assert own_broker.bootstrap in back
        run.until(lambda: run.get("readyz")[0] == 200 and run.metric("streamdp_source_up") == 1)
        fill(own_broker, topic, 50)
        run.until(lambda: run.metric("streamdp_records_total") == 150)
        assert run.terminate() == 0
        assert sum("broker" in line for line in run.said) == 2


def test_a_signal_is_obeyed_while_it_stands_still(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    with Live(tmp_path, *where(own_broker, topic), "--output", "out") as run:
        run.until(lambda: run.get("readyz")[0] == 200)
        own_broker.pause()
        try:
            assert "it does not answer" in run.hears("lost the Kafka broker")
            assert run.terminate() == 0
        finally:
            own_broker.resume()


def test_a_signal_is_obeyed_while_answers_wait_for_it(own_broker: Broker, tmp_path: Path) -> None:
    topic, output = make_topic(own_broker.bootstrap), make_topic(own_broker.bootstrap)
    fill(own_broker, topic, 60_000)  # there are more to answer when it goes
    command = [*where(own_broker, topic), "--output-topic", output]
    with Live(tmp_path, *command) as run:
        run.until(lambda: (run.metric("streamdp_records_total") or 0) >= 1000)
        own_broker.stop()
        try:
            run.hears("lost the Kafka broker")
            assert run.get("livez")[0] == 200
            assert run.terminate() == 0
            assert "the state goes on from record" in run.said[-1]
        finally:
            own_broker.restart()
    succeed(tmp_path, *command, "--until", "end")
    lines = [record.value for record in contents(own_broker.bootstrap, output)]
    assert sum(b'"revision":0' in line for line in lines) == 60_000
    assert len(lines) == len(set(lines))


def test_a_signal_is_obeyed_while_it_is_waited_for_at_the_start(tmp_path: Path) -> None:
    arguments = ["consume", "--topic", "news", "--bootstrap", "127.0.0.1:9", "--give-up-after", "300"]
    # what is said depends on when modules are imported, so in a process of its own
    with Live(tmp_path, *arguments, "--state", "state", program=command()) as run:
        run.until(lambda: run.get("livez")[0] == 200)
        assert run.get("readyz")[0] == 503
        assert run.terminate() == 0
        assert run.said == ["streamdp: stopped before anything was read"] or len(run.said) == 2


def test_not_waited_for_longer_than_told(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    command = [*where(own_broker, topic), "--output", "out", "--give-up-after", "4"]
    with Live(tmp_path, *command) as run:
        run.until(lambda: run.get("readyz")[0] == 200)
        own_broker.kill()
        try:
            assert run.ends() == 69
        finally:
            own_broker.restart()
        assert "--give-up-after" in run.said[-1]
        assert len(run.said) == 2


def test_what_a_link_tells(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    link = Link("host:1", 100.0, lambda: "the host is on fire", lambda: now[0])

    def check(seconds: float, there: bool) -> bool:
        now[0] = seconds
        link.check(lambda: there)
        return link.up

    assert check(0.5, False)
    assert check(40.0, False)  # a pause of one's own is no silence of the broker
    assert check(41.5, False)
    assert not check(45.0, False)
    assert check(115.0, True)
    assert [record.getMessage() for record in caplog.records] == [
        "lost the Kafka broker at host:1: the host is on fire; trying for 100 s in all",
        "the Kafka broker at host:1 is back after 1:15",
    ]
    assert check(200.0, False)
    with pytest.raises(SourceError, match="has not answered for 1:41"):
        check(301.0, False)
