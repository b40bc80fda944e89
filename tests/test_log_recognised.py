"""A log is recognised by its name or lines, unless its format is named; ``check`` shows how it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import assignments, call, succeed
from logs import lines

HEAD = "2026-01-05 10:{:02}:{:02} INFO [main] shop.Cart: {}\n"


def written(path: Path) -> None:
    """A log with a stack trace behind its first line."""
    texts = lines(120)[0]
    trace = "java.io.IOException: broken\n\tat app.Server.run(Server.java:17)\n"
    path.write_text(
        "".join(HEAD.format(n // 60, n % 60, text) + trace * (n == 0) for n, text in enumerate(texts))
    )


@pytest.mark.parametrize("name", ["app.log", "app.log.1", "syslog", "service"])
def test_a_log_is_read_without_options(tmp_path: Path, name: str) -> None:
    written(tmp_path / name)
    done = call(tmp_path, "consume", name, "--output", "out")
    assert done.returncode == 0
    assert f"{name} is read as a log, by templates (--format names another)" in done.stderr.decode()
    found = assignments((tmp_path / "out").read_bytes())
    assert found[1]["template"] == "java.io.IOException@app.Server.run: broken"


def test_a_folder_of_logs_is_read_as_they_are(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("app.log", "web.log", ".hidden"):
        written(logs / name)
    done = call(tmp_path, "consume", "logs", "--output", "out")
    assert "logs is read as a log, by templates" in done.stderr.decode()
    found = assignments((tmp_path / "out").read_bytes())
    assert {Path(answer["position"]["file"]).name for answer in found} == {"app.log", "web.log"}
    assert all("template" in answer for answer in found)
    (logs / "notes.txt").write_text("a note\n")
    done = call(tmp_path, "consume", "logs", "--output", "out2")
    assert "is read as a log" not in done.stderr.decode()


def test_journals_are_logs_and_other_objects_are_not(tmp_path: Path) -> None:
    texts = lines(30)[0]
    journal = [
        {"__REALTIME_TIMESTAMP": str(1767571200000000 + n), "MESSAGE": text} for n, text in enumerate(texts)
    ]
    (tmp_path / "journal.json").write_text("".join(json.dumps(each) + "\n" for each in journal))
    done = call(tmp_path, "consume", "journal.json", "--output", "out")
    assert "is read as a log" in done.stderr.decode()
    (tmp_path / "plain.json").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    done = call(tmp_path, "consume", "plain.json", "--output", "out2")
    assert "is read as a log" not in done.stderr.decode()


@pytest.mark.parametrize(
    ("object", "log"),
    [
        ({"ts": 1767571200.5, "level": "info", "logger": "db", "msg": "{}"}, True),
        ({"time": 1767571200000, "level": 30, "pid": 7, "msg": "{}"}, True),
        ({"timestamp": "2026-01-05T08:00:00Z", "level": "Error", "message": "{}", "stack_trace": "x"}, True),
        ({"time": "2026-01-05T08:00:00Z", "severity": "WARNING", "text": "{}"}, True),
        ({"time": "2026-01-05T08:00:00Z", "severity": "high", "text": "{}"}, False),
        ({"time": "2026-01-05T08:00:00Z", "level": 3, "text": "{}"}, False),
        ({"level": "info", "msg": "{}"}, False),
    ],
)
def test_objects_with_the_level_of_a_log_are_one(tmp_path: Path, object: dict[str, Any], log: bool) -> None:
    texts = [f"request {n} of user{n} answered" for n in range(50)]
    objects = [{**object, next(k for k, v in object.items() if v == "{}"): text} for text in texts]
    (tmp_path / "app.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    done = call(tmp_path, "check", "app.jsonl")
    assert ("is read as a log" in done.stderr.decode()) is log
    assert (
        "app.jsonl: a log, all 50 lines looked at\nform: objects of JSON\n" in done.stdout.decode()
    ) is log
    assert ("its lines are objects" in done.stderr.decode()) is log


@pytest.mark.parametrize("more", [("--format", "text"), ("--beam", "4")])
def test_what_is_named_or_has_no_meaning_with_templates_is_no_log(
    tmp_path: Path, more: tuple[str, str]
) -> None:
    written(tmp_path / "app.log")
    done = call(tmp_path, "consume", "app.log", "--output", "out", *more)
    assert done.returncode == 0
    assert "is read as a log" not in done.stderr.decode()
    assert "template" not in assignments((tmp_path / "out").read_bytes())[0]


def test_check_shows_heads_lines_that_go_on_and_templates(tmp_path: Path) -> None:
    written(tmp_path / "app.log")
    told = succeed(tmp_path, "check", "app.log").decode()
    assert "level: INFO 121" in told
    assert "component: shop.Cart 121" in told
    assert "1 line would go on with the line before" in told
    assert "templates, of 121 lines; the commonest:" in told
