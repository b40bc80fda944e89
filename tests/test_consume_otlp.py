"""``streamdp consume`` of OpenTelemetry's log records: files and topics, and what a crash changes."""

from __future__ import annotations

import csv
import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from broker.topics import contents, make_topic, produce
from commands import assignments, call, fail, newest_lines, parsed, run_killed, start, succeed, wait_for
from otlp import logs, record, written

N = 12_000
OPTIONS = ("--keep", "level,n,service.name", "--params")
PATHS = ("--output", "out", "--events", "events", "--state", "state")


def spoil(path: Path) -> None:
    """Put lines and records that are none among the others."""
    found = path.read_text().splitlines()
    for i in range(20, len(found), 31):
        whole = json.loads(found[i])
        whole["resourceLogs"][0]["scopeLogs"][0]["logRecords"].insert(1, {"body": i})
        found[i] = ("{broken", json.dumps(whole), '{"resourceSpans": []}')[i % 3]
    path.write_text("\n".join(found) + "\n")


def data_of(reject: dict[str, Any]) -> bytes:
    """What was refused."""
    data: str = reject["data"]
    return data.encode()


def test_a_file_is_recognised_and_gives_templates(tmp_path: Path) -> None:
    kinds = written(tmp_path / "logs.json", 600)
    done = call(tmp_path, "consume", "logs.json", *OPTIONS, "--output", "out")
    assert done.returncode == 0
    assert "logs.json holds log records of OpenTelemetry (--format names another)" in done.stderr.decode()
    found = newest_lines((tmp_path / "out").read_bytes())
    assert [line["keep"]["n"] for line in found] == list(range(600))
    assert found[5]["keep"] == {"level": "INFO", "n": 5, "service.name": "shop"}
    assert found[5]["time"] == 1767571205.0
    places = [(line["position"]["line"], line["position"]["record"]) for line in found]
    assert places == sorted(set(places))
    assert places[0] == (1, 1)
    for kind in range(12):
        clusters = {line["cluster"] for line, own in zip(found, kinds, strict=True) if own == kind}
        assert len(clusters) == 1
    refused = next(line for line, kind in zip(found, kinds, strict=True) if kind == 7)
    assert refused["template"] == "connection from <ip> refused"


def test_a_table_says_which_record_of_a_line_it_was(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 60)
    succeed(tmp_path, "consume", "logs.json", "--keep", "n", "--output", "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows if row["revision"] == "0"] == list(range(60))
    assert {row["record"] for row in rows} >= {"1", "2", "3"}
    shown = succeed(tmp_path, "stories", "out.csv")
    assert b"connection from" in shown


def test_check_shows_levels_and_templates(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 200)
    spoil(tmp_path / "logs.json")
    told = succeed(tmp_path, "check", "logs.json").decode()
    assert "logs.json: otlp, all" in told
    assert "level: INFO" in told
    assert "component: shop.cart" in told
    assert "12 templates" in told
    assert "clustered by: templates of their messages" in told
    assert "times: from 'timeUnixNano', 2026-01-05" in told
    assert "line 1, record 1: " in told


def test_objects_in_a_pipe_are_recognised(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 20)
    done = call(tmp_path, "consume", "--file", "-", stdin=(tmp_path / "logs.json").read_bytes())
    assert "what comes holds log records of OpenTelemetry" in done.stderr.decode()
    assert done.stdout.count(b'"revision":0') >= 20


def test_settings_of_lines_of_a_log_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 20)
    code, why = fail(tmp_path, "consume", "logs.json", "--format", "otlp", "--pattern", "(?P<message>.*)")
    assert code == 78
    assert "pattern is for lines of a log" in why


def test_they_are_clustered_by_words_where_that_is_asked_for(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 60)
    more = ("--likelihood", "hierarchical-pitman-yor", "--beam", "2")
    out = succeed(tmp_path, "consume", "logs.json", "--format", "otlp", *more, "--output", "-")
    assert "template" not in assignments(out)[0]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, some of it spoiled, and the result of one run over it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    written(folder / "logs.json", N)
    spoil(folder / "logs.json")
    succeed(folder, "consume", "logs.json", *OPTIONS, *PATHS)
    return folder


def test_what_is_refused_is_kept_with_its_place(undisturbed: Path) -> None:
    rejects = parsed((undisturbed / "out.rejects.jsonl").read_bytes())
    assert {reject["reason"] for reject in rejects} == {"not_json", "missing_field", "wrong_type"}
    inside = [reject for reject in rejects if reject["reason"] == "wrong_type"]
    assert {reject["position"]["record"] for reject in inside} == {2}
    assert all(json.loads(data_of(reject)) == {"body": reject["position"]["line"] - 1} for reject in inside)


def test_killed_at_any_moment_it_ends_up_with_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "logs.json").symlink_to(undisturbed / "logs.json")
    command = ("consume", "logs.json", *OPTIONS, *PATHS)
    rng, whole = random.Random(5), (undisturbed / "out").stat().st_size
    for size in sorted(rng.randrange(whole // 50, whole - whole // 10) for _ in range(4)):
        later = rng.random() * 0.03
        code = run_killed(tmp_path, *command, size=size, later=later, snapshot_every="700")
        assert code == -signal.SIGKILL
    succeed(tmp_path, *command, snapshot_every="700")
    for name in ("out", "out.rejects.jsonl", "events"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes(), name
    shown = [
        succeed(folder, "stories", "state", "--json", "--least", "1") for folder in (tmp_path, undisturbed)
    ]
    assert shown[0] == shown[1]


def test_a_growing_file_is_followed_by_whole_lines(tmp_path: Path) -> None:
    first, second = (json.dumps(logs([record(f"a {n}"), record(f"b {n}")])).encode() for n in (1, 2))
    path, out = tmp_path / "logs.json", tmp_path / "out"
    path.write_bytes(first + b"\n" + second[:40])
    more = ("--file", "logs.json", "--follow", "--format", "otlp")
    with start(tmp_path, "consume", *more, *PATHS) as process:
        wait_for(lambda: out.exists() and len(assignments(out.read_bytes())) == 2, process)
        with path.open("ab") as file:
            file.write(second[40:] + b"\n")
        wait_for(lambda: len(newest_lines(out.read_bytes())) == 4, process)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    found = [line["position"] for line in newest_lines(out.read_bytes())]
    assert found == [{"file": "logs.json", "line": n, "record": k} for n in (1, 2) for k in (1, 2)]


def without_positions(data: bytes) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "position"} for line in parsed(data)]


def test_a_topic_gives_what_the_file_gives(undisturbed: Path, broker: Any, tmp_path: Path) -> None:
    lines = (undisturbed / "logs.json").read_bytes().splitlines()
    topic, output, rejects = (make_topic(broker.bootstrap) for _ in range(3))
    produce(broker.bootstrap, topic, [(0, line) for line in lines])
    where = ("--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--state", "state")
    to = ("--output-topic", output, "--rejects-topic", rejects)
    command = ("consume", "--format", "otlp", *OPTIONS, *where, *to)
    for seconds in (0.3, 0.6):
        process = start(tmp_path, *command, snapshot_every="500")
        time.sleep(seconds)
        process.kill()
        process.communicate()
    succeed(tmp_path, *command, snapshot_every="500")
    found = b"".join(each.value + b"\n" for each in contents(broker.bootstrap, output))
    assert without_positions(found) == without_positions((undisturbed / "out").read_bytes())
    second = parsed(found)[1]["position"]
    assert second == {"topic": topic, "partition": 0, "offset": second["offset"], "record": second["record"]}
    refused = parsed((undisturbed / "out.rejects.jsonl").read_bytes())
    assert [each.value for each in contents(broker.bootstrap, rejects)] == [
        data_of(reject) for reject in refused
    ]


def test_partitions_are_merged_by_the_times_in_their_records(broker: Any, tmp_path: Path) -> None:
    topic = make_topic(broker.bootstrap, 2)
    objects = [logs([record(f"a {n}", 10 * n), record(f"b {n}", 10 * n + 1)]) for n in range(40)]
    produce(broker.bootstrap, topic, [(n % 2, json.dumps(each).encode()) for n, each in enumerate(objects)])
    where = ("--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--state", "state")
    out = succeed(tmp_path, "consume", "--format", "otlp", *where, "--output", "-")
    times = [line["time"] for line in newest_lines(out)]
    assert times == sorted(times)
    assert len(times) == 80


def test_answers_carry_attributes_where_that_is_asked_for(tmp_path: Path) -> None:
    written(tmp_path / "logs.json", 300)
    command = ("consume", "logs.json", "--params", "--output")
    succeed(tmp_path, *command, "plain")
    succeed(tmp_path, *command, "otel", "--attributes", "otel")
    succeed(tmp_path, "consume", "logs.json", "--output", "templates", "--attributes", "otel")
    plain, otel = (parsed((tmp_path / name).read_bytes()) for name in ("plain", "otel"))
    assert any(line.get("revision") for line in plain)
    for line, more in zip(plain, otel, strict=True):
        found = more.pop("attributes", {})
        assert more == line
        assert found.get("log.record.template") == line.get("template")
        assert found.get("log.record.template.params") == line.get("params")
    assert set(assignments((tmp_path / "templates").read_bytes())[0]["attributes"]) == {"log.record.template"}
    shown = [succeed(tmp_path, "stories", name, "--json") for name in ("plain", "otel")]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--output", "out.csv"), "a table has no attributes"),
        (("--output", "out", "--format", "jsonl"), "this is no log"),
    ],
)
def test_attributes_are_of_templates_in_lines_of_json(
    tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    (tmp_path / "app.log").write_text("user 5 logged in\n")
    code, why = fail(tmp_path, "consume", "app.log", "--attributes", "otel", "--format", "log", *more)
    assert code == 64
    assert said in why
