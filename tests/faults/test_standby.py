"""Several processes with one state: one runs, the others stand by, and take over when it is dead or hangs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from broker.topics import contents, make_topic, produce
from commands import call, succeed
from live import Live

SILENT = "6"


def values(count: int, first: int = 0) -> list[tuple[int, bytes]]:
    rows = range(first, first + count)
    return [(0, b'{"id": %d, "time": %d, "text": "storm over coast %d"}' % (i, i, i % 5)) for i in rows]


def command(bootstrap: str, topic: str, *output: str) -> list[str]:
    where = ["--topic", topic, "--bootstrap", bootstrap, "--state", "state", "--rejects", "rejects"]
    return ["consume", *where, "--session-timeout", SILENT, *(output or ("--output", "out"))]


def quiet(bootstrap: str, topic: str, folder: Path) -> bytes:
    """What a run leaves that nothing happens to."""
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end", "--state", "quiet"]
    succeed(folder, "consume", *where, "--output", "quiet.out")
    return (folder / "quiet.out").read_bytes()


def test_who_stands_by_takes_over_from_the_dead_and_the_next_from_who_hangs(
    broker: Any, tmp_path: Path
) -> None:
    topic = make_topic(broker.bootstrap)
    run = command(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, values(3000))
    with Live(tmp_path, *run, snapshot_every="1000") as first:
        first.until(lambda: (first.metric("streamdp_records_total") or 0) >= 1000)
        with Live(tmp_path, *run) as second, Live(tmp_path, *run) as third:
            for other in (second, third):
                said = other.hears("standing by")
                assert said.startswith("streamdp: standing by: PID ")
                assert said.endswith("runs with state")
                other.until(lambda other=other: other.metric("streamdp_standing_by") == 1)
                assert (other.get("livez")[0], other.get("readyz")) == (200, (503, "standing by\n"))
            assert first.metric("streamdp_standing_by") == 0
            first.kill()
            began = time.monotonic()
            while not (successors := [run for run in (second, third) if run.get("readyz")[0] == 200]):
                assert time.monotonic() - began < 120
            (now,) = successors
            last = third if now is second else second
            assert "it has ended" in now.hears("taking over from PID")
            now.until(lambda: now.metric("streamdp_standing_by") == 0)
            produce(broker.bootstrap, topic, values(1000, 3000))
            now.until(lambda: (now.metric("streamdp_stream_records") or 0) >= 4000)
            now.pause()
            produce(broker.bootstrap, topic, values(1000, 4000))
            assert f"no sign of life for {SILENT} s, and was ended" in last.hears("taking over from PID")
            assert now.ends() == -9
            last.until(lambda: (last.metric("streamdp_stream_records") or 0) >= 5000)
            assert last.terminate() == 0
    succeed(tmp_path, *run, "--until", "end")
    assert (tmp_path / "out").read_bytes() == quiet(broker.bootstrap, topic, tmp_path)


ELSEWHERE = """
import fcntl, sys
import streamdp.state.claim as claim
claim._boot = lambda: "another machine"
if sys.argv.pop(1) == "apart":
    fcntl.flock = lambda fd, how: None  # a network folder that knows only the locks of each machine
from streamdp.cli import main
main()
"""


@pytest.mark.parametrize("locks", ["shared", "apart"])
def test_another_machine_takes_over_from_one_that_hangs_and_shuts_it_out(
    broker: Any, tmp_path: Path, locks: str
) -> None:
    topic, output = make_topic(broker.bootstrap), make_topic(broker.bootstrap)
    run = command(broker.bootstrap, topic, "--output-topic", output)
    produce(broker.bootstrap, topic, values(2000))
    with Live(tmp_path, *run, snapshot_every="500") as first:
        first.until(lambda: (first.metric("streamdp_records_total") or 0) >= 1000)
        with Live(tmp_path, *run, program=[sys.executable, "-c", ELSEWHERE, locks]) as second:
            second.hears("standing by: PID")
            if locks == "apart":
                time.sleep(float(SILENT) + 1.0)
                assert second.metric("streamdp_standing_by") == 1  # one that is alive is left alone
            first.pause()
            assert second.hears("taking over from PID").endswith(f"it gave no sign of life for {SILENT} s")
            produce(broker.bootstrap, topic, values(1000, 2000))
            second.until(lambda: (second.metric("streamdp_stream_records") or 0) >= 3000)
            first.resume()
            assert first.ends() == 73
            assert "has taken over" in first.said[-1] or "another run of this state" in first.said[-1]
            produce(broker.bootstrap, topic, values(1000, 3000))
            second.until(lambda: (second.metric("streamdp_stream_records") or 0) >= 4000)
            assert second.terminate() == 0
    succeed(tmp_path, *run, "--until", "end")
    lines = b"".join(record.value + b"\n" for record in contents(broker.bootstrap, output))
    assert lines == quiet(broker.bootstrap, topic, tmp_path)


def test_who_only_reads_to_the_end_does_not_stand_by(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap)
    run = command(broker.bootstrap, topic)
    with Live(tmp_path, *run) as first, Live(tmp_path, *run) as second:
        for other in (first, second):
            other.until(lambda other=other: other.get("readyz")[0] in (200, 503))
        first.until(lambda: {run.get("readyz")[1] for run in (first, second)} == {"ok\n", "standing by\n"})
        done = call(tmp_path, *run, "--until", "end")
        assert done.returncode == 73
        assert b"in use by another streamdp process" in done.stderr
        waiting, runs = (first, second) if first.metric("streamdp_standing_by") else (second, first)
        assert waiting.terminate() == 0
        assert waiting.said[-1] == "streamdp: stopped before anything was read"
        assert runs.terminate() == 0
        with Live(tmp_path, *run) as third:  # who ended in order is waited for by nobody
            third.until(lambda: third.get("readyz")[0] == 200)
            assert not [line for line in third.said if "standing" in line or "taking" in line]
