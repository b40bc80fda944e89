"""Two runs of one state, or what is left of them: every answer is in the topic once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from broker.topics import contents, make_topic
from commands import call, succeed
from held import Held, assert_once, command, fill
from live import Live


def test_a_run_that_was_stopped_and_replaced_writes_nothing_more(held: Held, tmp_path: Path) -> None:
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 3000)
    with Live(tmp_path, *command(held.bootstrap, topic, output), snapshot_every="500") as first:
        first.until(lambda: (first.metric("streamdp_records_total") or 0) >= 1000)
        first.pause()
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
        fill(held, topic, 2000, 3000)
        succeed(tmp_path, *command(held.bootstrap, topic, output, "copy"), "--until", "end")
        assert_once(held, output, 5000)
        first.resume()
        assert first.ends() == 73
        said = [line for line in first.said if "compiling" not in line]
        assert f"another run of this state has written to topic {output}, from number" in said[-1]
        assert all(
            "cannot commit to group" in line for line in said[:-1]
        )  # its place in it was long given up
    assert_once(held, output, 5000)


def test_a_request_that_outlives_its_run_writes_nothing(held: Held, tmp_path: Path) -> None:
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 1000)
    try:
        with Live(tmp_path, *command(held.proxied, topic, output)) as first:
            first.until(lambda: len(contents(held.bootstrap, output)) >= 1000)
            held.hold()
            fill(held, topic, 1000, 1000)
            first.until(lambda: held.held > 0)
            first.kill()
        again = [*command(held.bootstrap, topic, output), "--until", "end"]
        succeed(tmp_path, *again)
        assert_once(held, output, 2000)
    finally:
        held.release()
    deadline = time.monotonic() + 120
    while held.held and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)  # for the broker to take it, if it does
    assert_once(held, output, 2000)
    fill(held, topic, 100, 2000)
    succeed(tmp_path, *again)
    assert_once(held, output, 2100)


def test_a_transaction_that_ran_out_of_time_is_written_again(held: Held, tmp_path: Path) -> None:
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 1000)
    short = {"kafka_transaction_timeout_ms": "1500"}
    try:
        with Live(tmp_path, *command(held.proxied, topic, output), **short) as run:
            run.until(lambda: len(contents(held.bootstrap, output)) >= 1000)
            held.hold()
            fill(held, topic, 1000, 1000)
            run.until(lambda: held.held > 0)
            time.sleep(4.0)
            held.release()
            run.until(lambda: len(contents(held.bootstrap, output)) >= 2000)
            assert run.terminate() == 0
            assert not [line for line in run.said if "topic" in line]
    finally:
        held.release()
    succeed(tmp_path, *command(held.bootstrap, topic, output), "--until", "end")
    assert_once(held, output, 2000)


def test_answers_that_the_state_does_not_know(held: Held, tmp_path: Path) -> None:
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 100)
    run = [*command(held.bootstrap, topic, output), "--until", "end"]
    succeed(tmp_path, *run)
    before = len(contents(held.bootstrap, output))
    shutil.rmtree(tmp_path / "state")
    done = call(tmp_path, *run)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (73, 1)
    assert f"topic {output} holds records already" in lines[0]
    assert "--new-output" in lines[0]
    assert len(contents(held.bootstrap, output)) == before
    succeed(tmp_path, *run, "--new-output")
    assert len(contents(held.bootstrap, output)) == 2 * before
    succeed(tmp_path, *run)
    assert len(contents(held.bootstrap, output)) == 2 * before
