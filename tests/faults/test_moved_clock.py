"""A run that was killed goes on when the clock shows another time: what it had decided stays decided."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from broker.topics import contents, make_topic, produce
from commands import environment, succeed
from live import Live
from streamdp_connectors.kafka.source import KafkaSource

MOVED = """
import os, time
_real, _by = time.time, float(os.environ["MOVED_BY"])
time.time = lambda: _real() + _by
"""


def later(folder: Path, seconds: float, monkeypatch: Any) -> None:
    """Let processes that are started from now on see the clock moved."""
    (folder / "moved").mkdir(exist_ok=True)
    (folder / "moved" / "sitecustomize.py").write_text(MOVED)
    monkeypatch.setenv("MOVED_BY", str(seconds))
    path = environment().get("PYTHONPATH", "")
    if str(folder / "moved") not in path:
        monkeypatch.setenv("PYTHONPATH", f"{folder / 'moved'}:{path}")


def test_what_was_too_far_ahead_still_is(broker: Any, tmp_path: Path, monkeypatch: Any) -> None:
    names = [make_topic(broker.bootstrap) for _ in range(3)]
    topic, output, rejects = names
    now = time.time()
    times = [now + i / 100 for i in range(200)]
    times[100] = now + 86_400 + 600  # ten minutes further than is taken
    lines = [json.dumps({"id": i, "time": t, "text": "storm over coast"}) for i, t in enumerate(times)]
    produce(broker.bootstrap, topic, [(0, line.encode()) for line in lines])
    where = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--state", "state"]
    command = [*where, "--output-topic", output, "--rejects-topic", rejects]
    never = {"snapshot_seconds": "0", "max_lateness": "0.1"}
    with Live(tmp_path, *command, **never) as run:
        run.until(lambda: len(contents(broker.bootstrap, output)) > 150)
        run.until(lambda: len(contents(broker.bootstrap, rejects)) == 1)
        run.kill()
    later(tmp_path, 3600.0, monkeypatch)
    succeed(tmp_path, *command, "--until", "end", **never)
    (refused,) = contents(broker.bootstrap, rejects)
    assert dict(refused.headers)["reason"] == b"ahead"
    found = [json.loads(record.value) for record in contents(broker.bootstrap, output)]
    answered = [line["id"] for line in found if line.get("revision") == 0]
    assert sorted(answered) == sorted(i for i in range(200) if i != 100)


def test_records_are_given_the_arrival_that_was_noted(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 2)
    produce(broker.bootstrap, topic, [(i % 2, b"%d" % i) for i in range(100)])
    clock = [100.0]
    source = KafkaSource(topic, broker.bootstrap, clock=lambda: clock[0])

    def read(source: KafkaSource, count: int) -> list[tuple[int, int, float]]:
        found: list[tuple[int, int, float]] = []
        deadline = time.monotonic() + 120
        while len(found) < count and time.monotonic() < deadline:
            for raw in source.read(min(7, count - len(found)), 1.0):
                found.append((raw.position["partition"], raw.position["offset"], raw.arrival))
            marks.append(json.loads(json.dumps(source.positions() | source.decided())))
        return found

    marks: list[Any] = []
    read(source, 10)
    stored = json.loads(json.dumps(source.positions()))
    marks.clear()
    first = read(source, 60)
    clock[0] = 200.0
    produce(broker.bootstrap, topic, [(i % 2, b"%d" % i) for i in range(40)])
    first += read(source, 60)
    assert {arrival for _, _, arrival in first} == {100.0, 200.0}
    source.close()
    noted = list(marks)
    again = KafkaSource(topic, broker.bootstrap, clock=lambda: 9000.0)
    again.seek(stored)
    again.replay(noted)
    assert read(again, 120) == first
    produce(broker.bootstrap, topic, [(i % 2, b"%d" % i) for i in range(10)])
    assert {arrival for _, _, arrival in read(again, 20)} == {200.0, 9000.0}
    again.close()
