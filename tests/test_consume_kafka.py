"""``streamdp consume --topic`` against a real broker: the same answers as from the file."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import make_topic, produce
from commands import call, start, succeed, write_headlines

N, PARTITIONS = 4000, 4


@pytest.fixture(scope="module")
def filled(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """A topic that holds a stream round robin over its partitions, and the run over the same file."""
    folder = tmp_path_factory.mktemp("filled")
    write_headlines(folder / "in.jsonl", N)
    lines = (folder / "in.jsonl").read_bytes().splitlines()
    assert len({json.loads(line)["time"] for line in lines}) == N
    topic = make_topic(broker.bootstrap, PARTITIONS)
    produce(broker.bootstrap, topic, [(i % PARTITIONS, line) for i, line in enumerate(lines)])
    succeed(folder, "consume", "--file", "in.jsonl", "--output", "out")
    return broker.bootstrap, topic, folder


def arguments(bootstrap: str, topic: str) -> list[str]:
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end"]
    return ["consume", *where, "--output", "out", "--state", "state"]


def without_positions(path: Path) -> list[dict[str, Any]]:
    """All lines, but where each record stood."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line.pop("position", None)
    return lines


def test_a_topic_gives_what_the_file_gives(filled: tuple[str, str, Path], tmp_path: Path) -> None:
    bootstrap, topic, folder = filled
    assert succeed(tmp_path, *arguments(bootstrap, topic)) == b""
    assert without_positions(tmp_path / "out") == without_positions(folder / "out")
    first = json.loads((tmp_path / "out").read_bytes().splitlines()[5])
    assert first["position"] == {"topic": topic, "partition": 5 % PARTITIONS, "offset": 5 // PARTITIONS}


def test_killed_and_started_again(filled: tuple[str, str, Path], tmp_path: Path) -> None:
    bootstrap, topic, folder = filled
    chance = random.Random(4)
    for _ in range(3):
        process = start(tmp_path, *arguments(bootstrap, topic), snapshot_every="500")
        size = (tmp_path / "out").stat().st_size if (tmp_path / "out").exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if (tmp_path / "out").exists() and (tmp_path / "out").stat().st_size > size + 50_000:
                break
            time.sleep(0.002)
        time.sleep(chance.random() / 50)
        process.kill()
        process.communicate()
    succeed(tmp_path, *arguments(bootstrap, topic), snapshot_every="500")
    assert without_positions(tmp_path / "out") == without_positions(folder / "out")


def test_what_is_said_when_there_is_no_topic_or_no_broker(own_broker: Broker, tmp_path: Path) -> None:
    for bootstrap, topic, code in (
        (own_broker.bootstrap, "no-such-topic", 66),
        ("127.0.0.1:9", "news", 69),
    ):
        done = call(tmp_path, *arguments(bootstrap, topic))
        errors = [line for line in done.stderr.decode().splitlines() if "compiling" not in line]
        assert done.returncode == code, errors
        assert len(errors) == 1
        assert topic in errors[0] or bootstrap in errors[0]


def test_one_place_to_read_from(tmp_path: Path) -> None:
    for both in ([], ["--file", os.devnull, "--topic", "news"]):
        done = call(tmp_path, "consume", *both)
        assert done.returncode == 64
        assert b"either --file PATH or --topic NAME" in done.stderr
