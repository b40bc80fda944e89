"""An engine for each partition, shared among processes: they come, die, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from broker.topics import add_partitions, contents, make_topic, produce
from commands import call, command, environment, succeed, wait_for

PARTITIONS = 3


def values(count: int, first: int = 0) -> list[tuple[int, bytes]]:
    return [
        (i % PARTITIONS, b'{"id": %d, "time": %d, "text": "storm over coast %d"}' % (i, i, i % 7))
        for i in range(first, first + count)
    ]


def shared(bootstrap: str, topic: str, *output: str) -> list[str]:
    where = ["--topic", topic, "--bootstrap", bootstrap, "--scope", "partition", "--state", "state"]
    return ["consume", *where, "--session-timeout", "6", *(output or ("--output", "out.jsonl"))]


class Member:
    """A process that shares the partitions, and what it says."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._log = folder / f"said-{len(list(folder.glob('said-*')))}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command(*arguments), cwd=folder, env=environment(snapshot_every="200"), stderr=log
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def hears(self, pattern: str, seconds: float = 180.0) -> re.Match[str]:
        """Wait until it says something, or one of its runs does."""
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, self.said)) is None:
            assert time.monotonic() < deadline, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.1)
        return found

    def runs(self) -> list[int]:
        """The processes of its partitions."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def terminate(self) -> int:
        """End it in order; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextmanager
def member(folder: Path, arguments: list[str]) -> Iterator[Member]:
    """One that is dead at the end, whatever happens."""
    found = Member(folder, arguments)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()


def answered(path: Path) -> int:
    """Records in an output, as far as lines are whole."""
    return len(re.findall(rb'"revision":0\b', path.read_bytes())) if path.exists() else 0


def until(folder: Path, each: int) -> None:
    """Wait until so many records of each partition are answered."""
    wait_for(
        lambda: all(answered(folder / f"out-{p}.jsonl") >= each for p in range(PARTITIONS)), seconds=180.0
    )


def test_processes_share_the_partitions_and_one_that_is_killed_is_stood_in_for(
    broker: Any, tmp_path: Path
) -> None:
    topic = make_topic(broker.bootstrap, PARTITIONS)
    run = shared(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, values(900))
    with member(tmp_path, run) as first:
        first.hears("this process's: 0, 1, 2")
        until(tmp_path, 300)
        with member(tmp_path, run) as second:
            mine = second.hears(r"this process's: (\d(?:, \d)*)")[1]
            assert mine != "0, 1, 2"
            for partition in mine.split(", "):
                second.hears(rf"partition {partition}: resuming from record \d+ of state/partition-")
            produce(broker.bootstrap, topic, values(600, 900))
            until(tmp_path, 500)
            runs = first.runs()
            for pid in (first.process.pid, *runs):
                os.kill(pid, signal.SIGKILL)
            produce(broker.bootstrap, topic, values(600, 1500))
            second.hears("this process's: 0, 1, 2")
            until(tmp_path, 700)
            assert second.terminate() == 0, second.said
            assert "Traceback" not in first.said + second.said
    succeed(tmp_path, *run, "--until", "end")
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    succeed(quiet, *run, "--until", "end")
    for partition in range(PARTITIONS):
        name = f"out-{partition}.jsonl"
        assert (tmp_path / name).read_bytes() == (quiet / name).read_bytes()
        lines = [msgspec.json.decode(line) for line in (quiet / name).read_bytes().splitlines()]
        assert {line["position"]["partition"] for line in lines if "position" in line} == {partition}


def test_a_killed_run_begins_again_and_a_partition_that_is_added_is_taken_up(
    broker: Any, tmp_path: Path
) -> None:
    topic, output = make_topic(broker.bootstrap, 2), make_topic(broker.bootstrap, PARTITIONS)
    run = shared(broker.bootstrap, topic, "--output-topic", output)
    two = [(i % 2, value) for i, (_, value) in enumerate(values(400))]
    produce(broker.bootstrap, topic, two)
    with member(tmp_path, run) as told:
        told.hears("this process's: 0, 1\n")
        deadline = time.monotonic() + 180
        while len(contents(broker.bootstrap, output, 1)) < 200:
            assert time.monotonic() < deadline, told.said
        os.kill(told.runs()[0], signal.SIGKILL)
        told.hears(r"the run of partition \d has ended by signal 9: it begins again")
        add_partitions(broker.bootstrap, topic, PARTITIONS)
        told.hears("this process's: 0, 1, 2")
        produce(broker.bootstrap, topic, [(2, value) for _, value in values(50, 400)])
        deadline = time.monotonic() + 180
        while len(contents(broker.bootstrap, output, 2)) < 50:
            assert time.monotonic() < deadline, told.said
        assert told.terminate() == 0
    for partition, count in ((0, 200), (1, 200), (2, 50)):
        lines = [
            msgspec.json.decode(record.value) for record in contents(broker.bootstrap, output, partition)
        ]
        offsets = [line["position"]["offset"] for line in lines if line.get("revision") == 0]
        assert offsets == list(range(count)), partition


def test_a_state_is_of_one_partition_or_of_the_whole_topic(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap, PARTITIONS)
    produce(broker.bootstrap, topic, values(60))
    where = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--output", "o"]
    succeed(tmp_path, *where, "--partition", "1", "--state", "one")
    refused = call(tmp_path, *where, "--state", "one")
    assert refused.returncode == 65
    assert b"the state continues partition 1 alone, not the whole topic" in refused.stderr
    refused = call(tmp_path, *where, "--partition", "2", "--state", "one")
    assert b"continues partition 1 alone, not partition 2 alone" in refused.stderr
    refused = call(tmp_path, *where, "--partition", "7", "--state", "other")
    assert (refused.returncode, b"has no partition 7, only 0 to 2" in refused.stderr) == (66, True)
    refused = call(tmp_path, *where, "--scope", "partition", "--state", "one")
    assert refused.returncode == 73
    assert b"holds the state of one stream, which is not divided" in refused.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), b"cannot share standard output"),
        (("--output", "o", "--page", "0"), b"--page shows one stream"),
        (("--output", "o", "--frozen"), b"--frozen scores against one state"),
        (("--output", "o", "--partition", "1"), b"leave --partition out"),
    ],
)
def test_what_partitions_cannot_share_is_said(tmp_path: Path, more: tuple[str, ...], message: bytes) -> None:
    refused = call(tmp_path, "consume", "--topic", "news", "--scope", "partition", *more)
    assert refused.returncode == 64
    assert message in refused.stderr
    assert refused.stderr.count(b"\n") == 1
    refused = call(tmp_path, "consume", "file.jsonl", "--scope", "partition", "--output", "o")
    assert b"--scope partition is for topics" in refused.stderr
    refused = call(tmp_path, "consume", "file.jsonl", "--partition", "1", "--output", "o")
    assert b"--partition is for topics" in refused.stderr
