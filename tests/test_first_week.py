"""What a first week of use meets: pipes that start again, silence, signals, full devices, clean tables."""

from __future__ import annotations

import contextlib
import csv
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pytest
import zstandard
from commands import (
    assignments,
    call,
    command,
    environment,
    fail,
    parsed,
    start,
    succeed,
    wait_for,
    write_headlines,
)
from inside import fork
from pyarrow import parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_headlines(tmp_path / "in.jsonl", 60)
    return tmp_path


def wait_for_lines(path: Path, lines: int) -> None:
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= lines)


def test_a_pipe_goes_on_with_what_comes(folder: Path) -> None:
    run = ("consume", "-", "--state", "s", "--output", "out", "--beam", "1")
    lines = (folder / "in.jsonl").read_bytes().splitlines(keepends=True)
    assert call(folder, *run, stdin=b"".join(lines[:40])).returncode == 0
    again = call(folder, *run, stdin=b"".join(lines[40:]))
    assert again.returncode == 0
    assert "cannot be read again: going on with what comes" in again.stderr.decode()
    found = assignments((folder / "out").read_bytes())
    assert sorted({line["seq"] for line in found}) == list(range(60))
    assert [line["position"]["line"] for line in found if line["revision"] == 0] == list(range(1, 61))
    whole = [line["cluster"] for line in assignments(succeed(folder, "consume", "in.jsonl", "--beam", "1"))]
    assert [line["cluster"] for line in found] == whole


def test_a_pipe_that_ended_while_records_were_held_back(tmp_path: Path) -> None:
    """They are answered at its end, and not twice when it goes on."""
    lines = [b'{"vector": [%d, %d.5], "id": %d}\n' % (9 * (i % 2), i % 3, i) for i in range(250)]
    run = ("consume", "-", "--state", "s", "--output", "out")
    succeed(tmp_path, *run, stdin=b"".join(lines[:100]))
    answered = {line["seq"] for line in assignments((tmp_path / "out").read_bytes())}
    assert answered == set(range(100))
    succeed(tmp_path, *run, stdin=b"".join(lines[100:]))
    output = (tmp_path / "out").read_bytes()
    first = [line["id"] for line in assignments(output) if line["revision"] == 0]
    assert first == list(range(250))
    final = [line["final_through"] for line in parsed(output) if "seq" not in line]
    assert final == sorted(set(final))
    assert final[-1] == 249


def test_answers_of_a_killed_pipe_are_kept(folder: Path) -> None:
    run = ("consume", "-", "--state", "s", "--output", "out", "--beam", "1", "--snapshot-seconds", "0")
    process = start(folder, *run)
    assert process.stdin is not None
    process.stdin.write((folder / "in.jsonl").read_bytes())
    process.stdin.flush()
    wait_for_lines(folder / "out", 60)
    process.kill()
    process.wait()
    before = (folder / "out").read_bytes()
    assert call(folder, *run, stdin=b'{"text": "storm over the coast"}\n').returncode == 0
    assert (folder / "out").read_bytes().startswith(before)


def test_what_is_held_back_is_answered_in_silence(tmp_path: Path) -> None:
    run = (
        "consume",
        "-",
        "--output",
        "out",
        "--max-lateness",
        "3600",
        "--idle-timeout",
        "0.5",
        "--state",
        "s",
    )
    process = start(tmp_path, *run)
    assert process.stdin is not None
    process.stdin.write(b'{"text": "storm over the coast", "time": 5}\n')
    process.stdin.flush()
    wait_for_lines(tmp_path / "out", 1)
    wait_for(
        lambda: (
            [each["records"] for each in parsed(succeed(tmp_path, "stories", "s", "--json", "--least", "1"))]
            == [1]
        )
    )
    process.stdin.close()
    assert process.wait(120) == 0
    assert len(assignments((tmp_path / "out").read_bytes())) == 1


def test_a_running_stream_can_be_looked_at(tmp_path: Path) -> None:
    run = ("consume", "-", "--state", "s", "--snapshot-seconds", "0.2", "--output", "out")
    process = start(tmp_path, *run)
    assert process.stdin is not None
    for number in range(2):
        process.stdin.write(b'{"text": "storm %d over the coast"}\n' % number)
        process.stdin.flush()
        wait_for_lines(tmp_path / "out", number + 1)
    wait_for(lambda: b"2 records" in succeed(tmp_path, "stories", "s"))
    told = succeed(tmp_path, "stories", "s")
    assert "storm 0 over the coast" in told.decode()
    assert "record 0" in told.decode()
    process.stdin.close()
    assert process.wait(120) == 0


def test_records_without_times_live_in_records(folder: Path) -> None:
    data = b"".join(b'{"text": "storm over the coast number%d"}\n' % (i % 3) for i in range(9))
    succeed(folder, "consume", "-", "--state", "s", stdin=data)
    clusters = parsed(succeed(folder, "stories", "s", "--json", "--least", "1"))
    assert sum(c["records"] for c in clusters) == 9
    assert all(c["began"] is None and c["last"] is None for c in clusters)
    assert all(0 <= c["first_seq"] <= c["last_seq"] <= 8 and c["now"] <= c["records"] for c in clusters)


def test_frozen_answers_are_numbered_and_counted(folder: Path) -> None:
    succeed(folder, "consume", "in.jsonl", "--state", "s", "--output", "out")
    scored = call(folder, "consume", "in.jsonl", "--state", "s", "--frozen")
    assert [line["seq"] for line in assignments(scored.stdout)] == list(range(60))
    assert "60 records scored against" in scored.stderr.decode()


def test_a_clean_table(folder: Path) -> None:
    run = ("consume", "in.jsonl", "--keep", "text,cluster", "--finality", "final.jsonl")
    succeed(folder, *run, "--output", "out.jsonl")
    assert all("seq" in line for line in parsed((folder / "out.jsonl").read_bytes()))
    final = parsed((folder / "final.jsonl").read_bytes())
    assert final[-1] == {"final_through": 59}
    succeed(folder, *run[:4], "--output", "out.csv")
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = assignments((folder / "out.jsonl").read_bytes())
    assert [int(row["cluster"]) for row in rows] == [line["cluster"] for line in lines]
    assert [row["text"] for row in rows] == [line["keep"]["text"] for line in lines]
    assert [row["kept_cluster"] for row in rows] == [line["keep"]["cluster"] for line in lines]
    assert [int(row["line"]) for row in rows] == [line["position"]["line"] for line in lines]


def test_a_table_survives_a_kill(folder: Path) -> None:
    write_headlines(folder / "in.jsonl", 3_000)
    run = ("consume", "in.jsonl", "--keep", "text", "--state", "s", "--snapshot-every", "500")
    expected = succeed(folder, *run[:4], "--output-format", "csv", "--beam", "4")
    process = start(folder, *run, "--output", "out.csv", "--beam", "4")
    wait_for_lines(folder / "out.csv", 1_200)
    process.kill()
    process.wait()
    succeed(folder, *run, "--output", "out.csv", "--beam", "4")
    assert (folder / "out.csv").read_bytes() == expected


def test_one_file_named_in_two_ways(folder: Path) -> None:
    assert succeed(folder, "consume", "in.jsonl") == succeed(folder, "consume", "--file", "in.jsonl")
    assert fail(folder, "consume", "in.jsonl", "--file", "in.jsonl")[0] == 64


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("consume", "in.jsonl", "--from", "latest"), 64, "--from is for topics"),
        (("consume", "in.jsonl", "--on-gap", "earliest"), 64, "--on-gap is for topics"),
        (("consume", "in.jsonl", "--state", ""), 64, "--state is empty"),
        (("consume", "in.jsonl", "--nonsense"), 64, "No such option"),
        (("nonsense",), 64, "No such command"),
        (("fit", "in.jsonl", "--method", "nonsense"), 64, "'nonsense' is not one of"),
        (("fit", os.devnull), 65, "no records"),
        (("fit", "-"), 65, "no records"),
    ],
)
def test_mistakes_are_told_in_one_line(
    folder: Path, arguments: tuple[str, ...], code: int, part: str
) -> None:
    found, message = fail(folder, *arguments)
    assert (found, part in message) == (code, True), message


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device(folder: Path) -> None:
    succeed(folder, "consume", "in.jsonl", "--state", "s", "--output", "out")
    for arguments in (
        ("stories", "s"),
        ("stories", "s", "--json", "--least", "1"),
        ("diff", "out", "--truth", "in.jsonl"),
    ):
        with open("/dev/full", "wb") as full:
            streams: dict[str, Any] = {"stdout": full, "stderr": subprocess.PIPE}
            process = fork(arguments, folder, environment(), stdin=subprocess.DEVNULL, **streams)
        assert process.communicate(timeout=180)[1] == b"streamdp: standard output: No space left on device\n"
        assert process.returncode == 74


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_without_a_state(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = start(tmp_path, "consume", "-", "--output", "out")
    assert process.stdin is not None
    process.stdin.write(b'{"text": "storm over the coast"}\n')
    process.stdin.flush()
    wait_for_lines(tmp_path / "out", 1)
    process.send_signal(number)
    assert process.wait(120) == code
    assert (tmp_path / "out").read_bytes().endswith(b'{"final_through":0}\n')


def on_a_terminal(folder: Path, *arguments: str, **settings: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run whose standard error is a terminal, and that terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(**settings) | {"TERM": "xterm", "COLUMNS": "150"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    return process, ours


@pytest.mark.parametrize("what", ["consume", "check"])
def test_progress_and_ctrl_c_while_kernels_compile(folder: Path, what: str) -> None:
    """With an empty cache the line moves at once, and the first Ctrl-C ends it."""
    (folder / "some.log").write_text("2026-01-05 09:00:00 INFO started\n" * 20)
    process, terminal = on_a_terminal(folder, what, "some.log", cache_dir=str(folder / "cache"))
    shown = b""
    while b"compiling kernels" not in shown:
        shown += os.read(terminal, 1 << 16)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert time.monotonic() - asked < 60
    os.close(terminal)


def test_what_is_waited_for_is_said(folder: Path) -> None:
    process, terminal = on_a_terminal(folder, "consume", "-")
    shown = b""
    while b"waiting for the first lines of standard input" not in shown:
        shown += os.read(terminal, 1 << 16)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(120) == 0
    os.close(terminal)


def test_progress_of_a_search(folder: Path) -> None:
    process, terminal = on_a_terminal(folder, "fit", "in.jsonl", "--budget", "1h")
    shown = b""
    while not re.search(rb" of 1:00:00; log joint -[\d,.]+, \d+ clusters", shown):
        shown += os.read(terminal, 1 << 16)
    process.send_signal(signal.SIGINT)
    assert process.wait(120) in (0, 130), "130 where a kernel was just being compiled"
    os.close(terminal)


def test_progress_of_a_run(folder: Path) -> None:
    process, terminal = on_a_terminal(folder, "consume", "-")
    assert process.stdin is not None
    process.stdin.write((folder / "in.jsonl").read_bytes())
    process.stdin.flush()
    shown = b""
    while b"live stor" not in shown:
        shown += os.read(terminal, 1 << 16)
    assert b"60 records" in shown
    process.stdin.close()
    shown = b""
    while b"since the stream began" not in shown:
        shown += os.read(terminal, 1 << 16)
    assert process.wait(120) == 0
    os.close(terminal)


def test_a_terminal_shows_stories_and_no_flood_of_answers(folder: Path) -> None:
    """Unless an output is named, be it standard output."""
    for more, flood in (((), False), (("--output", "-"), True)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command("consume", "in.jsonl", "--state", f"st{flood}", *more),
            cwd=folder,
            env=environment() | {"TERM": "xterm", "COLUMNS": "150"},
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        assert process.wait(120) == 0
        os.close(ours)
        assert (b'"probability":' in shown) is flood
        assert (b"largest stories" in shown) is not flood
        assert process.stderr is not None
        assert b"60 records" in process.stderr.read()
    assert not list(folder.glob("*rejects*"))
    again = call(folder, "consume", "in.jsonl", "--state", "stFalse", "--output", "out")
    assert b"are not written (--output names a file, or -)" in again.stderr


def test_a_folder_of_json_lines(folder: Path) -> None:
    lines = (folder / "in.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "many").mkdir()
    (folder / "many" / ".hidden").write_text("no json")
    for number in range(3):
        (folder / "many" / f"part-{number}.jsonl").write_bytes(
            b"".join(lines[20 * number : 20 * number + 20])
        )
    whole = [line["cluster"] for line in assignments(succeed(folder, "consume", "in.jsonl"))]
    found = assignments(succeed(folder, "consume", "many"))
    assert [line["cluster"] for line in found] == whole
    assert found[-1]["position"] == {"file": "many/part-2.jsonl", "line": 20}
    run = ("consume", "many", "--state", "s", "--output", "out", "--snapshot-every", "7")
    (folder / "many" / "part-2.jsonl").rename(folder / "later")
    succeed(folder, *run)
    (folder / "later").rename(folder / "many" / "part-2.jsonl")
    succeed(folder, *run)
    assert [line["cluster"] for line in assignments((folder / "out").read_bytes())] == whole
    (folder / "many" / "notes.txt").write_text("a line")
    assert fail(folder, "consume", "many")[0] == 64


def test_parquet(folder: Path) -> None:
    lines = parsed((folder / "in.jsonl").read_bytes())
    table = arrow.Table.from_pylist(lines)
    parquet.write_table(table, folder / "in.parquet", row_group_size=25)
    whole = [(line["cluster"], line["time"]) for line in assignments(succeed(folder, "consume", "in.jsonl"))]
    found = assignments(succeed(folder, "consume", "in.parquet"))
    assert [(line["cluster"], line["time"]) for line in found] == whole
    assert found[-1]["position"] == {"file": "in.parquet", "line": 60}
    run = ("consume", "in.parquet", "--state", "s", "--output", "out")
    parquet.write_table(table.slice(0, 33), folder / "in.parquet", row_group_size=10)
    succeed(folder, *run)
    parquet.write_table(table, folder / "in.parquet", row_group_size=10)
    succeed(folder, *run)
    assert [(line["cluster"], line["time"]) for line in assignments((folder / "out").read_bytes())] == whole
    numbers = arrow.table({"a": [float(i % 2) for i in range(220)], "b": [1.0] * 220, "name": ["x"] * 220})
    parquet.write_table(numbers, folder / "numbers.parquet")
    assert len({line["cluster"] for line in assignments(succeed(folder, "consume", "numbers.parquet"))}) == 2
    (folder / "bad.parquet").write_text("no table")
    assert fail(folder, "consume", "bad.parquet")[0] == 65
    assert fail(folder, "consume", "none.parquet")[0] == 66


def test_zstandard(folder: Path) -> None:
    data = (folder / "in.jsonl").read_bytes()
    packed = zstandard.compress(data[:3000]) + zstandard.compress(data[3000:])  # frames, one after the other
    (folder / "in.jsonl.zst").write_bytes(packed)
    whole = [line["cluster"] for line in assignments(succeed(folder, "consume", "in.jsonl"))]
    run = ("consume", "in.jsonl.zst", "--state", "s", "--output", "out", "--snapshot-every", "7")
    succeed(folder, *run)
    succeed(folder, *run)
    assert [line["cluster"] for line in assignments((folder / "out").read_bytes())] == whole
    piped = assignments(succeed(folder, "consume", "-", stdin=packed))
    assert [line["cluster"] for line in piped] == whole
    (folder / "cut.zst").write_bytes(packed[:-9])
    code, message = fail(folder, "consume", "cut.zst", "--output", "o")
    assert (code, "ends too early" in message) == (65, True)
