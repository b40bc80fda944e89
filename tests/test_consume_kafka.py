"""``streamdp consume --topic`` against a real broker: the same answers as from the file."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from bombs import hears
from broker.process import Broker
from broker.topics import contents, make_topic, produce, settle
from commands import call, command, environment, fail, start, succeed, wait_for, write_headlines
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pages import ROOT, blocks
from ports import free_port
from tables_of_vectors import write_folder

import streamdp
from streamdp.state.corrections import CorrectionsFile
from streamdp.state.snapshot import Header, newest

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


def test_texts_of_a_topic_have_their_embedding(broker: Any, tmp_path: Path) -> None:
    write_folder(tmp_path / "tiny")
    texts = [f"{'refund money' if i % 2 else 'parcel late'} number {i % 7}" for i in range(300)]
    lines = [json.dumps({"text": text, "time": 60.0 * i}).encode() for i, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    topic = make_topic(broker.bootstrap, 2)
    produce(broker.bootstrap, topic, [(i % 2, line) for i, line in enumerate(lines)])
    with_it = ("--embed", "tiny")
    succeed(tmp_path, "consume", "in.jsonl", "--output", "of_file", *with_it)
    succeed(tmp_path, "consume", "in.jsonl", "--output", "of_words")
    succeed(tmp_path, *arguments(broker.bootstrap, topic), *with_it)
    found = without_positions(tmp_path / "out")
    assert found == without_positions(tmp_path / "of_file") != without_positions(tmp_path / "of_words")


def test_killed_and_started_again(filled: tuple[str, str, Path], tmp_path: Path) -> None:
    bootstrap, topic, folder = filled
    chance = random.Random(4)
    for _ in range(3):
        process = start(tmp_path, *arguments(bootstrap, topic), snapshot_every="500")
        size = (tmp_path / "out").stat().st_size if (tmp_path / "out").exists() else 0
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if (tmp_path / "out").exists() and (tmp_path / "out").stat().st_size > size + 50_000:
                break
            time.sleep(0.002)
        time.sleep(chance.random() / 50)
        process.kill()
        process.communicate()
    succeed(tmp_path, *arguments(bootstrap, topic), snapshot_every="500")
    assert without_positions(tmp_path / "out") == without_positions(folder / "out")


def run_for(folder: Path, seconds: float, number: signal.Signals, *more: str) -> int:
    """Begin a run with a state, and send it a signal this long after its state appeared."""
    process = start(folder, *more, snapshot_every="300")
    wait_for(lambda: hears(process.pid) and list((folder / "state").glob("snapshot-*")))
    time.sleep(seconds)
    process.send_signal(number)
    began = time.monotonic()
    process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    return process.returncode


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_answers_to_a_topic_come_exactly_once(
    filled: tuple[str, str, Path], tmp_path: Path, number: signal.Signals
) -> None:
    bootstrap, topic, folder = filled
    output, rejects = make_topic(bootstrap), make_topic(bootstrap)
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end", "--state", "state"]
    command = ["consume", *where, "--output-topic", output, "--rejects-topic", rejects]
    for seconds in (0.05, 0.1, 0.25):
        code = run_for(tmp_path, seconds, number, *command)
        assert code in ((0,) if number is signal.SIGTERM else (0, -signal.SIGKILL))
    succeed(tmp_path, *command, snapshot_every="300")
    (tmp_path / "out").write_bytes(b"".join(r.value + b"\n" for r in contents(bootstrap, output)))
    assert without_positions(tmp_path / "out") == without_positions(folder / "out")
    assert contents(bootstrap, rejects) == []


def test_corrections_come_by_a_topic_each_once(filled: tuple[str, str, Path], tmp_path: Path) -> None:
    """Those that it holds at the start, and those that come; through a kill and further runs."""
    bootstrap, topic, _ = filled
    hands = make_topic(bootstrap)
    run = [*arguments(bootstrap, topic), "--corrections-topic", hands]
    succeed(tmp_path, *run)
    a, b = [story.label for story in streamdp.stories(tmp_path / "state")][:2]
    renamed = {"what": "rename", "stories": [a], "title": "By hand", "who": "ann"}
    produce(bootstrap, hands, [(0, b"{broken"), (0, json.dumps(renamed).encode())])
    done = call(tmp_path, *run)
    assert done.returncode == 0
    assert f"topic {hands}: no correction".encode() in done.stderr
    assert streamdp.stories(tmp_path / "state").story(a).title == "By hand"
    follows = [*run[: run.index("--until")], *run[run.index("--until") + 2 :]]
    process = start(tmp_path, *follows)
    produce(bootstrap, hands, [(0, json.dumps({"what": "pin", "stories": [b]}).encode())])
    file = CorrectionsFile(tmp_path / "state")
    wait_for(lambda: file.read() or 2 in file.marks, process)
    process.kill()
    process.communicate()
    for _ in range(2):
        succeed(tmp_path, *run)
    file.read()
    assert [(each.what, each.who) for each in file.corrections] == [("rename", "ann"), ("pin", "")]
    assert file.marks == {1: N, 2: N}
    assert file.heard is not None
    assert file.heard["partitions"] == {"0": 3}


def test_what_is_refused_goes_to_its_topic(broker: Any, tmp_path: Path) -> None:
    topic, rejects = make_topic(broker.bootstrap), make_topic(broker.bootstrap)
    values = [b'{"text": "storm over the coast"}', b"{broken", b'{"text": ""}', None]
    produce(broker.bootstrap, topic, [(0, value) for value in values])
    where = ["--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--state", "state"]
    output = succeed(tmp_path, "consume", *where, "--rejects-topic", rejects)
    assert len(output.splitlines()) == 2  # the answer and that it is final
    found = contents(broker.bootstrap, rejects)
    assert [record.value for record in found] == [b"{broken", b'{"text": ""}']
    reasons = [dict(record.headers)["reason"] for record in found]
    assert reasons == [b"not_json", b"empty"]


MIXED = [
    b'{"text": "storm over the coast", "id": 1}',
    None,
    b'\0\0\0\0\x07{"text": "storm over the coast", "id": 2.0}',
    b'\0\xff\xff\xff\xff {"text": "storm over the coast", "id": "3", "x": NaN}',
    None,
    b"\0\0\0\0\x09\x02\x1astorm over the",
    b"\0\0\0\0\x09{broken",
    b'{"text": "storm over the coast", "id": 4, "time": "1767571201"}',
    None,
]


@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("lateness", ["0", "60"])
def test_tombstones_are_passed_and_json_behind_a_schema_is_read(
    broker: Any, tmp_path: Path, copies: int, lateness: str
) -> None:
    topic = make_topic(broker.bootstrap, 2)
    produce(broker.bootstrap, topic, [(i % 2, value) for i, value in enumerate(MIXED * copies)])
    run = [*arguments(broker.bootstrap, topic), "--max-lateness", lateness, "--max-leap", "1e12"]
    for run_again in (False, True):
        done = call(tmp_path, *run, "--rejects", "rejects")
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        if not run_again:
            assert f"{3 * copies} tombstones skipped" in done.stderr.decode()
    found = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    ids = [line["id"] for line in found if line.get("kind", "assignment") == "assignment" and "id" in line]
    assert sorted(map(str, ids)) == sorted(["1", "2", "3", "4"] * copies)
    rejects = [json.loads(line) for line in (tmp_path / "rejects").read_bytes().splitlines()]
    assert {reject["reason"] for reject in rejects} == {"not_json"}
    said = sorted(reject["detail"] for reject in rejects)
    assert said[-1].startswith(
        "it is Avro or Protobuf, by schema 9 of a schema registry: write the topic as JSON"
    )
    assert len(said) == 2 * copies
    assert len(set(said)) == 2


def test_a_topic_of_avro_alone_is_refused_by_what_it_is(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b"\0\0\0\0\x07\x1astorm over the")] * 20)
    done = call(tmp_path, *arguments(broker.bootstrap, topic))
    said = done.stderr.decode()
    assert done.returncode == 65
    assert "it is Avro or Protobuf, by schema 7 of a schema registry: write the topic as JSON" in said
    assert "unpack" not in said


STARTS = [
    ("1767571200000", 100), ("1767574200", 50), ("1767574200000000", 50), ("1767574200000000000", 50),
    ("2026-01-05T00:50:00", 50), ("2026-01-05T01:50:00+01:00", 50), ("1.7675742e9", 50),
]  # fmt: skip


def test_a_topic_is_begun_at_a_time_written_as_times_in_records_are(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap, **{"retention.ms": "-1"})
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for i in range(100):
        at = 1_767_571_200_000 + 60_000 * i
        producer.send(topic, b'{"text": "storm over the coast"}', partition=0, timestamp_ms=at)
    producer.close()
    run = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--output", "-"]
    for i, (start_at, records) in enumerate(STARTS):
        output = succeed(tmp_path, *run, "--final-only", "--state", f"state{i}", "--from", start_at)
        assert len(output.splitlines()) == records, start_at
    for later in ("2030-01-01", "1893456000000"):
        done = call(tmp_path, *run, "--state", f"state{later}", "--from", later)
        assert (done.returncode, done.stdout) == (0, b"")
        line = f"topic {topic} has no record at or after 2030-01-01T00:00:00Z (--from), only earlier ones"
        assert done.stderr.decode().count(line) == 1


@pytest.mark.parametrize("wrong", ["-1767571200", "0", "soon", "2026-13-01", "1e400", "nan", "1e30", " "])
def test_a_start_that_is_no_time_is_refused_in_a_line(tmp_path: Path, wrong: str) -> None:
    code, said = fail(tmp_path, "consume", "--topic", "news", "--bootstrap", "127.0.0.1:9", "--from", wrong)
    assert code == 64
    assert said.startswith(f"streamdp: --from: {wrong!r} is neither earliest, latest, a time in ISO 8601 nor")


def committed(bootstrap: str, group: str, topic: str) -> int | None:
    """What a group has been told of the first partition."""
    watcher = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    try:
        found: int | None = watcher.committed(TopicPartition(topic, 0))
        return found
    finally:
        watcher.close()


def newest_header(folder: Path) -> Header:
    found = newest(folder, pytest.fail)
    assert found is not None
    return found[0]


def end_of(bootstrap: str, topic: str) -> int:
    """The end of the first partition, as lag tools ask for it."""
    watcher = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        at = TopicPartition(topic, 0)
        return int(watcher.end_offsets([at])[at])
    finally:
        watcher.close()


def test_the_group_is_told_the_end_beyond_markers(broker: Any, tmp_path: Path) -> None:
    """Behind a commit marker, an aborted transaction and tombstones; also while a run waits for more."""
    topic = make_topic(broker.bootstrap)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
    producer.init_transactions()

    def transaction(records: int, *, kept: bool) -> None:
        producer.begin_transaction()
        for _ in range(records):
            producer.send(topic, b'{"text": "storm over the coast"}', partition=0)
        producer.flush()
        (producer.commit_transaction if kept else producer.abort_transaction)()
        settle(broker.bootstrap, topic)

    def told() -> bool:
        return committed(broker.bootstrap, topic, topic) == end_of(broker.bootstrap, topic)

    transaction(20, kept=True)
    run = [*arguments(broker.bootstrap, topic), "--group", topic]
    succeed(tmp_path, *run)
    assert committed(broker.bootstrap, topic, topic) == 21 == end_of(broker.bootstrap, topic)
    assert newest_header(tmp_path / "state").positions["partitions"] == {"0": 20}
    transaction(5, kept=False)
    succeed(tmp_path, *run)
    assert committed(broker.bootstrap, topic, topic) == 27 == end_of(broker.bootstrap, topic)
    process = start(tmp_path, *run[: run.index("--until")], *run[run.index("--until") + 2 :])
    transaction(3, kept=False)
    wait_for(told, process)
    transaction(1, kept=True)
    wait_for(lambda: told() and newest_header(tmp_path / "state").seq == 21, process)
    transaction(2, kept=False)
    wait_for(told, process)
    process.terminate()
    process.communicate(timeout=180)
    assert told()
    producer.close()


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


def test_the_first_start_says_where_the_state_is(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b'{"text": "storm over the coast"}')])
    where = ["consume", "--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end"]
    for said in ("the state is in", "resuming from record 1 of"):
        done = subprocess.run(
            command(*where, "--output", "out"),
            cwd=tmp_path,
            env=environment() | {"XDG_STATE_HOME": str(tmp_path / "home")},
            capture_output=True,
            timeout=180,
        )
        assert f"streamdp: {said} {tmp_path}/home/streamdp/{topic}" in done.stderr.decode()


def test_one_place_to_read_from(tmp_path: Path) -> None:
    for both in ([], ["--file", os.devnull, "--topic", "news"]):
        done = call(tmp_path, "consume", *both)
        assert done.returncode == 64
        assert b"either FILE or --topic NAME" in done.stderr


def is_well(port: int, path: str) -> bool:
    """Whether a probe is answered by 200."""
    with contextlib.suppress(OSError):
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}").status == 200)
    return False


def test_metrics_and_health_of_a_live_run(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap, 2)
    texts = [b'{"text": "storm over the coast"}', b'{"text": "coast storm warning"}', b"{broken"]
    produce(broker.bootstrap, topic, [(i % 2, text) for i, text in enumerate(texts)])
    where = ["--topic", topic, "--bootstrap", broker.bootstrap, "--state", "state"]
    port = free_port()
    process = start(tmp_path, "consume", *where, "--output", "out", "--metrics-port", str(port))
    try:
        deadline, page = time.monotonic() + 120, ""
        partition = f'{{partition="%d",topic="{topic}"}} 0.0'
        lags = ("streamdp_lag_records", "streamdp_lag_seconds")
        wanted = [name + partition % number for name in lags for number in (0, 1)]
        wanted += ["streamdp_records_total 2.0", "streamdp_answer_seconds_count 3.0"]
        wanted += ['streamdp_rejects_total{reason="not_json"} 1.0']
        while not all(line in page for line in wanted) and time.monotonic() < deadline:
            time.sleep(0.1)
            with contextlib.suppress(OSError):
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert [line for line in wanted if line not in page] == []
        wait_for(lambda: is_well(port, "livez") and is_well(port, "readyz"), process)
        taken = call(tmp_path, "consume", "--file", os.devnull, "--metrics-port", str(port))
        assert taken.returncode == 69
        assert f"port {port}".encode() in taken.stderr
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_the_page_for_newcomers(broker: Any, tmp_path: Path) -> None:
    (block,) = [block for block in blocks("docs/kafka.md") if "produce_demo.py" in block.text]
    topic, python = make_topic(broker.bootstrap, 1), shlex.quote(sys.executable)
    port = free_port()
    _, _, commands = block.text.split("\n", 2)  # the installation
    for shown, meant in {
        ".venv/bin/python deploy/produce_demo.py": f"{python} {ROOT}/deploy/produce_demo.py --topic {topic}",
        ".venv/bin/streamdp": f"{python} -m streamdp",
        "--topic news": f"--topic {topic} --until end",
        "localhost:9092": broker.bootstrap,
        "--metrics-port 9464": f"--metrics-port {port}",
    }.items():
        assert shown in commands
        commands = commands.replace(shown, meant)
    done = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, env=environment(), capture_output=True, timeout=180
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = (tmp_path / "assignments.jsonl").read_bytes().splitlines()
    assert json.loads(lines[-1]) == {"final_through": 4999}
    assert b"5,000 records" in succeed(tmp_path, "stories", "st")
