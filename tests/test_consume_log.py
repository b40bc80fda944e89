"""``streamdp consume --format log``: what it writes, and that a stop changes none of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from commands import assignments, call, fail, newest_lines, parsed, succeed
from logs import lines

HEAD = "2026-01-05 {:02}:{:02}:{:02},500 INFO [main] app.Server: {}"
OPTIONS = ("--format", "log", "--snapshot-every", "100", "--params")


def written(path: Path, count: int) -> list[int]:
    """A log with a stack trace behind every seventh line; the template of each line."""
    texts, kinds = lines(count)
    with path.open("w") as file:
        for i, text in enumerate(texts):
            file.write(HEAD.format(i // 3600, i // 60 % 60, i % 60, text) + "\n")
            if i % 7 == 0:
                file.write("java.io.IOException: broken\n\tat app.Server.run(Server.java:17)\n")
    return kinds


def test_templates_times_and_fields(tmp_path: Path) -> None:
    kinds = written(tmp_path / "app.log", 1000)
    done = call(tmp_path, "consume", "app.log", *OPTIONS, "--keep", "level,component", "--output", "out")
    told = done.stderr.decode()
    assert done.returncode == 0
    assert "times are read as ISO 8601; a line without one has that of the line before it" in told
    assert "286 lines went on with the line before: 143 exceptions found in them" in told
    every = newest_lines((tmp_path / "out").read_bytes())
    exceptions = [line for line in every if line["template"] == "java.io.IOException@app.Server.run: broken"]
    assert len(exceptions) == 143
    assert exceptions[0]["position"] == {"file": "app.log", "line": 2}
    assert (exceptions[1]["time"], exceptions[1]["keep"]["level"]) == (1767571207.5, "INFO")
    found = [line for line in every if line not in exceptions]
    assert len(found) == 1000
    assert found[1]["position"] == {"file": "app.log", "line": 4}
    assert found[999]["time"] == 1767571200.5 + 999
    assert found[0]["keep"] == {"level": "INFO", "component": "app.Server"}
    for kind in range(12):
        clusters = {line["cluster"] for line, own in zip(found, kinds, strict=True) if own == kind}
        assert len(clusters) == 1
    refused = next(line for line, kind in zip(found, kinds, strict=True) if kind == 7)
    assert refused["template"] == "connection from <ip> refused"
    assert len(refused["params"]) == 1


def test_what_was_told_at_the_end_of_a_file_is_not_told_again_when_it_grows(tmp_path: Path) -> None:
    lasting = ("consume", "app.log", *OPTIONS, "--output", "out", "--state", "state")
    ends = ["InvalidLineError: 7 is none", "java.io.IOException: broken\n\tat java.io.File.read(File.java:7)"]
    for number, end in enumerate([*ends, "the last line"]):
        with (tmp_path / "app.log").open("a") as file:
            file.write(f"{HEAD.format(number, 0, 0, 'and on')}\n{HEAD.format(number, 0, 1, end)}\n")
        succeed(tmp_path, *lasting)
    found = newest_lines((tmp_path / "out").read_bytes())
    assert [(line["position"]["line"], line["template"]) for line in found] == [
        *((1, "and on"), (2, "InvalidLineError: <num> is none")),
        *((3, "and on"), (4, "java.io.IOException@java.io.File.read: broken")),
        *((6, "and on"), (7, "the last line")),
    ]


def test_a_table_tells_templates(tmp_path: Path) -> None:
    written(tmp_path / "app.log", 50)
    succeed(tmp_path, "consume", "app.log", *OPTIONS, "--keep", "level", "--output", "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    row = next(row for row in rows if row["template"] == "connection from <ip> refused")
    assert row["level"] == "INFO"
    assert row["params"].startswith('["')


def test_a_stopped_run_ends_up_with_the_same_bytes(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
        written(folder / "app.log", 1200)
    paths = ("--output", "out", "--events", "events", "--state", "state")
    succeed(whole, "consume", "app.log", *OPTIONS, *paths)
    data = (parts / "app.log").read_bytes()
    for share, end in ((0.3, b"\n"), (0.31, b"java:17)\n"), (0.8, b"java:17)\n"), (1.0, b"\n")):
        cut = data.rfind(end, 0, int(len(data) * share)) + len(end)
        (parts / "app.log").write_bytes(data[:cut])
        succeed(parts, "consume", "app.log", *OPTIONS, *paths)
    for name in ("out", "events"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    shown = [succeed(folder, "stories", "state", "--json", "--least", "1") for folder in (whole, parts)]
    assert shown[0] == shown[1]
    templates = {line["title"] for line in parsed(shown[0])}
    assert "session <uuid> opened for user <word>" in templates
    table = succeed(whole, "stories", "state").decode()
    assert "template" in table
    assert "session <uuid> opened for user <word>" in table


def test_a_frozen_state_scores_lines(tmp_path: Path) -> None:
    written(tmp_path / "app.log", 500)
    succeed(tmp_path, "consume", "app.log", "--format", "log", "--output", "out", "--state", "state")
    new = HEAD.format(9, 0, 0, "nobody has ever said anything like this")
    old = HEAD.format(9, 0, 1, "connection from 1.2.3.4:5 refused")
    output = succeed(
        tmp_path,
        "consume",
        "-",
        "--format",
        "log",
        "--state",
        "state",
        "--frozen",
        stdin=f"{new}\n{old}\n".encode(),
    )
    first, second = assignments(output)
    assert first["cluster"] == -1
    assert "template" not in first
    assert second["template"] == "connection from <ip> refused"
    assert first["novelty"] > second["novelty"]


def test_json_of_containers_and_a_pattern(tmp_path: Path) -> None:
    docker = [
        json.dumps({"log": f"worker {i} is ready\n", "stream": "stdout", "time": f"2026-01-05T00:00:{i:02}Z"})
        for i in range(9)
    ]
    found = assignments(
        succeed(tmp_path, "consume", "-", "--format", "log", stdin="\n".join(docker).encode())
    )
    assert {line["template"] for line in found} == {"worker <num> is ready"}
    assert [line["time"] for line in found] == [1767571200.0 + i for i in range(9)]
    own = "\n".join(f"E|{i}|it broke {i} times" for i in range(1767571200, 1767571205))
    pattern = r"(?P<level>\w)\|(?P<time>\d+)\|(?P<message>.*)"
    found = assignments(
        succeed(tmp_path, "consume", "-", "--format", "log", "--pattern", pattern, stdin=own.encode())
    )
    assert [line["time"] for line in found] == [1767571200.0 + i for i in range(5)]
    assert {line["template"] for line in found} == {"it broke <num> times"}


def test_what_cannot_be_is_said_in_a_line(tmp_path: Path) -> None:
    written(tmp_path / "app.log", 10)
    for options, part in (
        (("--format", "log", "--beam", "4"), "beam has no meaning with the template likelihood"),
        (("--format", "log", "--pattern", "("), "pattern is no regular expression"),
        (("--format", "log", "--timestamp-format", "%Q"), "%Q is no directive"),
        (("--format", "text", "--params"), "params are of templates"),
        (("--format", "text", "--pattern", "x"), "pattern is for lines of a log"),
    ):
        code, told = fail(tmp_path, "consume", "app.log", *options)
        assert code == 78
        assert part in told
    code, told = fail(tmp_path, "fit", "app.log", "--format", "log")
    assert code == 78
    assert "the template likelihood is for a stream of log lines: use consume" in told
