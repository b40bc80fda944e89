"""A real run is scraped by a real Prometheus, which answers all that is asked of it in ``deploy/``."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from broker.process import Broker
from broker.topics import make_topic
from faults.live import Live
from kafka import KafkaProducer
from scraper.process import Prometheus
from test_deploy import DASHBOARDS, DEPLOY, expressions, rules

from benchmarks.drifting import demo_stream

ONE_RUN = {"$job": "streamdp", "$instance": ".*", "$__rate_interval": "1m"}
SETTINGS = {
    "snapshot_seconds": "1",
    "refine_every": "512",
    "refine_moves": "512",
    "retain": "3000",
    "alert": "http://127.0.0.1:9/",  # where nobody listens
}


class Feed(threading.Thread):
    """Writes records that happen now, some of them rubbish, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic, self._stopped = topic, threading.Event()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
        self.sent = self.good = 0

    def run(self) -> None:
        for number, record in enumerate(demo_stream(1_000_000, 1)):
            rubbish = number % 50 == 49
            value = {"time": time.time(), "text": record.text}
            self._producer.send(
                self.topic, b"{" if rubbish else msgspec.json.encode(value), partition=number % 2
            )
            self.sent += 1
            self.good += not rubbish
            if self._stopped.wait(0.0025):
                break
        self._producer.flush(120)

    def stop(self) -> None:
        self._stopped.set()
        self.join(120)
        self._producer.close()


@pytest.fixture
def feed(own_broker: Broker) -> Iterator[Feed]:
    feed = Feed(own_broker.bootstrap, make_topic(own_broker.bootstrap, 2))
    yield feed
    if feed.is_alive():
        feed.stop()


def quick_rules(folder: Path) -> Path:
    """The rules, evaluated every second."""
    path = folder / "rules.yml"
    path.write_text((DEPLOY / "rules.yml").read_text("utf-8").replace("interval: 15s", "interval: 1s"))
    return path


def as_asked(expression: str) -> str:
    """An expression of a panel as Grafana would send it."""
    for variable, value in ONE_RUN.items():
        expression = expression.replace(variable, value)
    return expression


def without_thresholds(expression: str) -> str:
    """An alert's expression that answers 0 or 1 wherever its operands answer anything."""
    labels: list[str] = []

    def put_aside(found: re.Match[str]) -> str:
        labels.append(found[0])
        return f"\x00{len(labels) - 1}\x00"

    bare = re.sub(r"\{[^}]*\}", put_aside, expression)
    asked = re.sub(r"(==|!=|>=|<=|>|<)", r"\1 bool", bare)
    return re.sub(r"\x00(\d+)\x00", lambda found: labels[int(found[1])], asked)


def increase(samples: list[float]) -> float:
    """How much a counter grew, as Prometheus reckons it: what is less than before began at 0."""
    return samples[0] + sum(now - (before if now >= before else 0.0) for before, now in pairwise(samples))


def test_every_expression_is_answered_and_a_restart_is_no_burst(
    own_broker: Broker, feed: Feed, tmp_path: Path
) -> None:
    where = ["consume", "--topic", feed.topic, "--bootstrap", own_broker.bootstrap]
    where += ["--state", "state", "--output", "out"]
    where += ["--store", "store.db", "--store-rows", "1000"]
    feed.start()
    with (
        Live(tmp_path, *where, **SETTINGS) as run,
        Prometheus(tmp_path, quick_rules(tmp_path), [f"127.0.0.1:{run.port}"]) as prometheus,
    ):
        run.until(lambda: (run.metric("streamdp_records_total") or 0) > 3000, 300)
        prometheus.until(lambda: sum(prometheus.values("streamdp_refinements_adopted_total")) > 0)
        prometheus.until(lambda: prometheus.values("count_over_time(streamdp:log_predictive:mean5m[1h]) > 2"))
        wrong = list[object]()

        def all_answer() -> bool:
            wrong[:] = faults(prometheus)
            return wrong == []

        try:
            prometheus.until(all_answer)
        finally:
            assert wrong == []
        healthy = prometheus.ask("rules")["groups"]
        assert all(rule["health"] == "ok" for group in healthy for rule in group["rules"])

        before = run.metric("streamdp_records_total") or 0
        prometheus.until(lambda: sum(prometheus.values("streamdp_records_total")) >= before)
        run.kill()
        prometheus.until(lambda: prometheus.values('ALERTS{alertname="StreamdpDown",alertstate="pending"}'))
        with Live(tmp_path, *where, port=run.port, **SETTINGS) as again:
            resumed = again.hears("resuming from record")
            again.until(lambda: (again.metric("streamdp_records_total") or 0) > 1000, 300)
            feed.stop()
            again.until(lambda: again.metric("streamdp_stream_records") == feed.good, 300)
            prometheus.until(lambda: prometheus.values("streamdp_stream_records") == [feed.good])
            prometheus.until(
                lambda: (
                    prometheus.values("streamdp_records_total") == [again.metric("streamdp_records_total")]
                )
            )
            data = prometheus.ask("query", query="streamdp_records_total[1h]")["result"]
            (series,) = data
            counted = increase([float(value) for _, value in series["values"]])
            from_record = int(re.sub(r"\D", "", resumed.split("record ")[1].split(" of ")[0]))
            again_counted = again.metric("streamdp_records_total")
            assert again_counted == feed.good - from_record
            assert before + again_counted <= counted <= feed.good + 3000  # what a second's work may be

            own_broker.kill()
            try:
                pending = 'ALERTS{alertname="StreamdpSourceDown",alertstate="pending"}'
                prometheus.until(lambda: prometheus.values(pending))
            finally:
                own_broker.restart()
            prometheus.until(lambda: not prometheus.values(pending))
            assert again.terminate() == 0


def faults(prometheus: Prometheus) -> list[object]:
    """Expressions of panels and recorded ones that answer nothing now, and alerts that fire.

    One scrape that comes late leaves all of them without an answer for a moment. An alert's is to answer
    nothing, for nothing is wrong with the run: it is its operands that must answer. One that has to hold for
    minutes before it fires may hold for a moment in a run that has just begun.
    """
    silent = list[object]()
    for path in DASHBOARDS:
        for expression in expressions(path):
            values = prometheus.values(as_asked(expression))
            if not any(math.isfinite(value) for value in values):
                silent.append((path.stem, expression, values))
    for rule in rules():
        name, expression = rule.get("alert"), " ".join(rule["expr"].split())
        values = prometheus.values(expression)
        if name is not None:
            if values and "for" not in rule:
                silent.append((name, "answers, and should not", values))
            values = prometheus.values(without_thresholds(expression))
        if not any(math.isfinite(value) for value in values):
            silent.append((str(name or rule["record"]), expression, values))
    return silent + prometheus.values('ALERTS{alertstate="firing"}')


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("a > 3 and b == 0", "a > bool 3 and b == bool 0"),
        ('a{b!="c"} <= d{e=~"f"}', 'a{b!="c"} <= bool d{e=~"f"}'),
    ],
)
def test_thresholds_are_taken_off(expression: str, asked: str) -> None:
    assert without_thresholds(expression) == asked


def test_counters_that_begin_anew() -> None:
    assert increase([5.0, 7.0, 7.0, 1.0, 4.0]) == 11.0
