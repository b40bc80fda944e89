"""A partition whose records lie behind those of another: none of them is late because the other ran ahead."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from broker.topics import contents, drain, make_topic, produce
from commands import succeed
from live import Live
from streamdp_connectors.kafka.source import KafkaSource

from streamdp.records import Raw

ROUNDS, BEHIND = 40, 60


def value(second: int, partition: int) -> bytes:
    number = b"%d" % ((second + partition) % 5)
    return b'{"time": %d, "text": "storm over coast %b"}' % (1_700_000_000 + second, number)


def feed(bootstrap: str, topic: str, rounds: range) -> None:
    """The first partition is a minute ahead of the second, each in an order of its own."""
    for seconds in (rounds[i : i + 5] for i in range(0, len(rounds), 5)):
        values = [[(0, value(second + BEHIND, 0)), (1, value(second, 1))] for second in seconds]
        produce(bootstrap, topic, [pair for pairs in values for pair in pairs])


def times(found: list[Raw]) -> list[float]:
    return [float(raw.data) for raw in found]


def read(source: KafkaSource, count: int) -> list[float]:
    """So many records, and what comes within half a second of them."""
    found = drain(source, limit=count)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        found += source.read(100, 0.1)
    return times(found)


def test_nothing_is_late_and_a_replay_reads_the_same(broker: Any, tmp_path: Path) -> None:
    topic, output, rejects = (make_topic(broker.bootstrap, n) for n in (2, 1, 1))
    where = ["--topic", topic, "--bootstrap", broker.bootstrap]
    order = ["--max-lateness", "5", "--late", "refuse"]
    to = ["--output-topic", output, "--rejects-topic", rejects]
    run = ["consume", *where, *order, "--state", "state", *to]
    feed(broker.bootstrap, topic, range(1))
    with Live(tmp_path, *run, snapshot_every="10") as first:
        first.until(lambda: (first.metric("streamdp_held_back_records") or 0) >= 1)
        feed(broker.bootstrap, topic, range(1, ROUNDS // 2))
        first.until(lambda: (first.metric("streamdp_stream_records") or 0) >= 10)
        first.kill()
    with Live(tmp_path, *run, snapshot_every="10") as again:
        again.until(lambda: again.get("readyz")[0] == 200)
        feed(broker.bootstrap, topic, range(ROUNDS // 2, ROUNDS))
        again.until(lambda: (again.metric("streamdp_stream_records") or 0) >= 30)
        assert (again.metric("streamdp_stream_records") or 0) <= ROUNDS  # the first's wait for the second
        assert again.terminate() == 0
    succeed(tmp_path, *run, "--until", "end")
    assert contents(broker.bootstrap, rejects) == []
    succeed(
        tmp_path, "consume", *where, *order, "--state", "quiet", "--output", "quiet.out", "--until", "end"
    )
    lines = b"".join(record.value + b"\n" for record in contents(broker.bootstrap, output))
    assert lines == (tmp_path / "quiet.out").read_bytes()


def test_a_partition_is_in_step_as_long_as_it_lives(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 3)
    options = {
        "times_of": lambda raws: [float(raw.data) for raw in raws],
        "in_step": 1000.0,
        "idle_timeout": 6.0,
    }
    produce(broker.bootstrap, topic, [(0, b"100"), (1, b"40")])
    source = KafkaSource(topic, broker.bootstrap, **options)
    assert read(source, 1) == [40.0]
    assert source.holds
    produce(broker.bootstrap, topic, [(1, b"41"), (1, b"42")])
    assert read(source, 2) == [41.0, 42.0]
    stored = source.positions()
    assert stored["reached"] == {"1": 42.0}
    source.close()
    source = KafkaSource(topic, broker.bootstrap, **options)
    source.seek(stored)
    assert read(source, 0) == []  # it knows where the second one is
    assert read(source, 1) == [100.0]  # which is silent by now
    assert not source.holds
    produce(broker.bootstrap, topic, [(0, b"101"), (1, b"43")])
    assert read(source, 1) == [43.0]
    source.close()
