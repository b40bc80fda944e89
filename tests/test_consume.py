"""``streamdp consume``: what it writes, from every format, and how it behaves in a pipe."""

from __future__ import annotations

import gzip
import json
import os
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from commands import (
    assignments,
    command,
    environment,
    fail,
    linked,
    newest_lines,
    parsed,
    start,
    succeed,
)

KEYS = [
    "seq", "id", "position", "time", "cluster", "probability", "new_probability", "lasting_probability",
    "stability", "new", "link", "log_predictive", "novelty", "revision",
]  # fmt: skip


def test_lines_are_as_promised(learned: Path) -> None:
    output = (learned / "out").read_bytes()
    lines = parsed(output)
    first = [line for line in lines if line.get("revision") == 0]
    assert [list(line) for line in first] == [KEYS] * 3000
    assert [line["seq"] for line in first] == list(range(3000))
    assert [line["position"] for line in first] == [{"file": "in.jsonl", "line": i + 1} for i in range(3000)]
    assert lines[-1] == {"final_through": 2999}
    assert all(0.0 <= line["probability"] <= 1.0 for line in first)
    assert not (learned / "out.rejects.jsonl").exists()
    events = parsed((learned / "events").read_bytes())
    kinds = {event["event"] for event in events}
    assert {"born", "merged", "split", "titled", "renamed"} >= kinds >= {"born", "titled"}
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)


def test_standard_output_is_the_same(learned: Path, tmp_path: Path) -> None:
    output = succeed(linked(learned, tmp_path), "consume", "--file", "in.jsonl")
    assert output == (learned / "out").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_gzip_and_standard_input_are_the_same(learned: Path, tmp_path: Path) -> None:
    data = (learned / "in.jsonl").read_bytes()
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(data))
    expected = (learned / "out").read_bytes()
    packed = succeed(tmp_path, "consume", "--file", "in.jsonl.gz")
    assert packed.replace(b'"in.jsonl.gz"', b'"in.jsonl"') == expected
    piped = succeed(tmp_path, "consume", "--file", "-", stdin=data)
    assert piped.replace(b'"file":"-"', b'"file":"in.jsonl"') == expected


def test_final_only(learned: Path, tmp_path: Path) -> None:
    final = succeed(linked(learned, tmp_path), "consume", "--file", "in.jsonl", "--final-only")
    assert parsed(final) == newest_lines((learned / "out").read_bytes())


def test_keep(tmp_path: Path) -> None:
    data = b'{"text": "a text", "a": [1, {"b": null}], "c": 1}\n{"text": "a text", "d": 2}\n'
    first, second = newest_lines(succeed(tmp_path, "consume", "--file", "-", "--keep", "a,d", stdin=data))
    assert first["keep"] == {"a": [1, {"b": None}]}
    assert second["keep"] == {"d": 2}


def test_csv(learned: Path, tmp_path: Path) -> None:
    rows = ["text,time,id,cluster"]
    for line in parsed((learned / "in.jsonl").read_bytes())[:300]:
        rows.append(f'"{line["text"]}",{line["time"]},{line["id"]},secret')
    (tmp_path / "in.csv").write_text("\n".join(rows) + "\n")
    got = assignments(succeed(tmp_path, "consume", "--file", "in.csv"))
    expected = assignments((learned / "out").read_bytes())
    first = [line for line in expected if line["revision"] == 0][:300]
    same = [(line["id"], line["cluster"], line["log_predictive"]) for line in got if line["revision"] == 0]
    assert same == [(line["id"], line["cluster"], line["log_predictive"]) for line in first]


def test_csv_features(tmp_path: Path) -> None:
    rows = ["x,y,id,cluster"] + [f"{(i % 2) * 9 + i / 1000},{-i / 500},{i},{i % 2}" for i in range(300)]
    (tmp_path / "in.csv").write_text("\n".join([*rows, "1,oops,9,1", "1,2", ""]))
    lines = newest_lines(succeed(tmp_path, "consume", "--file", "in.csv", "--prior", "crp"))
    labels = [line["cluster"] for line in lines]
    assert labels == [labels[i % 2] for i in range(300)]
    assert labels[0] != labels[1]
    rejects = parsed((tmp_path / "streamdp-rejects.jsonl").read_bytes())
    assert [(r["position"]["line"], r["reason"]) for r in rejects] == [
        (302, "wrong_type"),
        (303, "csv_columns"),
    ]


def test_text(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("disk full on node one\n\nuser logged in\ndisk full on node two\n")
    lines = newest_lines(succeed(tmp_path, "consume", "--file", "app.log"))
    assert [line["position"]["line"] for line in lines] == [1, 3, 4]
    piped = newest_lines(
        succeed(tmp_path, "consume", "--file", "-", "--format", "text", stdin=b"one line\nanother")
    )
    assert len(piped) == 2


def test_frozen(learned: Path, tmp_path: Path) -> None:
    state = learned / "state"
    before = {path: path.read_bytes() for path in state.iterdir()}
    text = parsed((learned / "in.jsonl").read_bytes())[-1]["text"]
    data = (
        json.dumps({"id": "known", "text": text})
        + "\n"
        + '{"id": "new", "text": "zyx wvu tsr qpo nml"}\n{}\n'
    )
    run = ("consume", "--file", "-", "--state", str(state), "--frozen", "--beam", "3", "--rejects", "rejects")
    known, strange = parsed(succeed(tmp_path, *run, stdin=data.encode()))
    assert (known["id"], known["seq"]) == ("known", 0)
    assert known["cluster"] in {line["cluster"] for line in assignments((learned / "out").read_bytes())}
    assert (strange["id"], strange["cluster"], strange["new"]) == ("new", -1, True)
    assert known["log_predictive"] > strange["log_predictive"]
    assert len(parsed((tmp_path / "rejects").read_bytes())) == 1
    assert {path: path.read_bytes() for path in state.iterdir()} == before
    for missing in ((), ("--state", "none")):
        assert fail(tmp_path, "consume", "--file", "-", "--frozen", *missing)[0] == 66


def answer(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """The next line of a running process."""
    assert process.stdout is not None
    found = bytearray()
    while not found.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        assert ready, f"no answer within {seconds} s"
        found += os.read(process.stdout.fileno(), 1)  # a buffered reader would hide what it holds from select
    return bytes(found)


def first_answer(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
    """The next line that is no revision."""
    while (line := json.loads(answer(process, seconds)))["revision"]:
        pass
    return line  # type: ignore[no-any-return]


def test_a_pipe_is_answered_at_once(tmp_path: Path) -> None:
    with start(tmp_path, "consume", "--file", "-", "--format", "text") as process:
        assert process.stdin is not None
        for i in range(5):
            process.stdin.write(b"line number %d of several\n" % i)
            process.stdin.flush()
            assert first_answer(process, 120.0)["seq"] == i
        process.stdin.close()
        assert process.stdout is not None
        assert json.loads(process.stdout.readlines()[-1]) == {"final_through": 4}
        assert process.wait(120) == 0


@pytest.mark.parametrize("more", [(), ("--state", "state")])
def test_a_waiting_run_stops_at_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "in.log").write_text("one line\n")
    with start(tmp_path, "consume", "--file", "in.log", "--follow", *more) as process:
        assert first_answer(process, 120.0)["seq"] == 0
        with (tmp_path / "in.log").open("a") as file:
            file.write("another line\n")
        assert first_answer(process, 120.0)["seq"] == 1
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=120)
        assert time.monotonic() - began < 60
    assert process.returncode == (0 if more else 143)
    assert b"stopping" in errors
    finality = [line for line in parsed(output) if "seq" not in line]
    assert finality == ([] if more else [{"final_through": 1}])


def test_head_ends_it_quietly(learned: Path, tmp_path: Path) -> None:
    linked(learned, tmp_path)
    pipeline = f"set -o pipefail; {shlex.join(command('consume', '--file', 'in.jsonl'))} | head -1"
    done = subprocess.run(
        ["bash", "-c", pipeline], cwd=tmp_path, env=environment(), capture_output=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(parsed(done.stdout)) == 1
