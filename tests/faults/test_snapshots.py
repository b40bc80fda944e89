"""When snapshots are taken, what they wait for, and what waits for them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from broker.topics import contents, make_topic, produce
from commands import succeed
from held import Held, assert_once, command, fill
from kafka import KafkaConsumer, TopicPartition
from live import Live

from streamdp.state.snapshot import Header, newest


def header(state: Path) -> Header:
    """That of the newest snapshot."""
    found = newest(state, pytest.fail)
    assert found is not None
    return found[0]


def committed(bootstrap: str, topic: str) -> int | None:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=f"streamdp-{topic}", enable_auto_commit=False
    )
    try:
        at: int | None = consumer.committed(TopicPartition(topic, 0))
        return at
    finally:
        consumer.close()


@pytest.mark.parametrize("when", [{"snapshot_every": "100"}, {"snapshot_seconds": "0.5"}])
def test_records_that_are_refused_count_too(broker: Any, tmp_path: Path, when: dict[str, str]) -> None:
    topic = make_topic(broker.bootstrap)
    where = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--state", "state"]
    settings = {"snapshot_seconds": "0", **when}
    with Live(tmp_path, *where, "--output", "out", **settings) as run:
        run.until(lambda: run.get("readyz")[0] == 200)
        # read at once, or what comes after a snapshot may be too few for another
        at_once = {"linger_ms": 1000, "batch_size": 1 << 20}
        produce(broker.bootstrap, topic, ((0, b"{broken") for _ in range(500)), **at_once)
        run.until(lambda: header(tmp_path / "state").positions["partitions"]["0"] == 500)
        run.until(lambda: committed(broker.bootstrap, topic) == 500)
        run.kill()


def test_the_stream_goes_on_but_no_snapshot_counts_before_its_answers(held: Held, tmp_path: Path) -> None:
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 1000)
    often = {"snapshot_every": "200", "snapshot_seconds": "0"}
    try:
        with Live(tmp_path, *command(held.proxied, topic, output), **often) as run:
            run.until(lambda: len(contents(held.bootstrap, output)) >= 900)
            held.hold()
            fill(held, topic, 2000, 1000)
            run.until(lambda: run.metric("streamdp_records_total") == 3000)
            arrived = sum(b'"revision":0' in record.value for record in contents(held.bootstrap, output))
            assert arrived < 3000
            assert header(tmp_path / "state").seq <= arrived
            run.kill()
    finally:
        held.release()
    succeed(tmp_path, *command(held.bootstrap, topic, output), "--until", "end")
    assert_once(held, output, 3000)


def test_one_that_cannot_be_written_ends_the_run(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap)
    where = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--state", "state"]
    with Live(tmp_path, *where, "--output", "out", snapshot_seconds="0.5") as run:
        run.until(lambda: run.get("readyz")[0] == 200)
        shutil.rmtree(tmp_path / "state")
        produce(broker.bootstrap, topic, [(0, b'{"text": "storm over coast"}')])
        assert run.ends() == 74
        assert "cannot be written: No such file" in run.said[-1]
        assert committed(broker.bootstrap, topic) in (None, 0)
