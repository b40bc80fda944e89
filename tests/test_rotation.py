"""Output files while they are written: rotated without a loss, locked, given up when they are harmed."""

from __future__ import annotations

import os
import pty
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import command, environment, fail, newest_lines, start, succeed, wait_for, write_headlines
from streamdp_connectors.files.checkpoint import Rotation
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkError

RUN = ("consume", "--file", "in.jsonl", "--output", "out.jsonl", "--state", "state", "--beam", "2")


def lines_of(folder: Path, name: str = "out") -> bytes:
    """What the rotated files and the one being written hold together."""
    rotated = sorted(folder.glob(f"{name}-*.jsonl"))
    last = folder / f"{name}.jsonl"
    return b"".join(path.read_bytes() for path in [*rotated, *([last] if last.exists() else [])])


class Follower:
    """A run that follows a growing file."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        write_headlines(folder / "all.jsonl", 400)
        self.lines = (folder / "all.jsonl").read_bytes().splitlines(keepends=True)
        self.written = 0
        self.grow(100)
        self.process = start(folder, *RUN, "--follow", *more, snapshot_every="50")
        self.await_answers(100)

    def grow(self, count: int) -> None:
        with (self.folder / "in.jsonl").open("ab") as file:
            file.writelines(self.lines[self.written : self.written + count])
        self.written += count

    def await_answers(self, count: int) -> None:
        self.until(lambda: len(newest_lines(whole(lines_of(self.folder)))) >= count)

    def until(self, holds: Callable[[], bool]) -> None:
        wait_for(holds, self.process, 300.0)

    def end(self, number: int | None = None) -> tuple[int, list[str]]:
        """Exit code, and what was said apart from what depends on caches."""
        if number is not None:
            self.process.send_signal(number)
        said = self.process.communicate(timeout=180)[1].decode().splitlines()
        return self.process.returncode, [line for line in said if "compiling" not in line]


def whole(lines: bytes) -> bytes:
    return lines[: lines.rfind(b"\n") + 1]


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"mine\n")
    other.replace(path)


def copied_and_truncated(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.truncate(path, 0)


def written_by_another(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"mine\n")


@pytest.mark.parametrize("harm", [deleted, replaced, copied_and_truncated, written_by_another])
def test_a_run_stops_when_its_output_is_harmed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    run = Follower(tmp_path)
    run.until(lambda: any("000.sdp" not in path.name for path in (tmp_path / "state").glob("*.sdp")))
    out = tmp_path / "out.jsonl"
    harm(out)
    before = out.read_bytes() if out.exists() else None
    run.grow(100)
    code, said = run.end()
    assert code == 74, said
    assert not any("Traceback" in line for line in said)
    what = "was deleted or replaced" if harm in (deleted, replaced) else "something else cut or wrote it"
    (told,) = [line for line in said if what in line]
    assert "--new-output" in told
    assert (out.read_bytes() if out.exists() else None) == before  # and no hole
    code, message = fail(tmp_path, *RUN)
    assert (code, "out.jsonl" in message) == (65, True)
    if out.exists():
        out.rename(tmp_path / "theirs")
    succeed(tmp_path, *RUN, "--new-output")
    kept = tmp_path / "copy"
    earlier = kept.read_bytes() if harm is copied_and_truncated else b""
    seqs = {line["seq"] for line in newest_lines(earlier + out.read_bytes())}
    assert seqs >= set(range(0 if earlier else 100, 200))


def test_a_second_run_writes_to_no_file_of_a_live_one(tmp_path: Path) -> None:
    run = Follower(tmp_path, "--events", "events.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    for role in ("--output", "--events", "--rejects"):
        for name in ("out.jsonl", "events.jsonl"):
            again = ("consume", "--file", "all.jsonl", role, name, "--overwrite")
            code, message = fail(tmp_path, *again)
            assert (code, "another streamdp process writes to it" in message) == (73, True)
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert run.end(signal.SIGTERM)[0] == 0
    succeed(tmp_path, "consume", "--file", "all.jsonl", "--output", "out.jsonl", "--overwrite")


def test_a_signal_rotates(tmp_path: Path) -> None:
    write_headlines(tmp_path / "all.jsonl", 400)
    (tmp_path / "expected").mkdir()
    shutil.copy(tmp_path / "all.jsonl", tmp_path / "expected" / "in.jsonl")
    succeed(tmp_path / "expected", *RUN)
    run = Follower(tmp_path, "--events", "events.jsonl")
    for count in (200, 300):
        run.process.send_signal(signal.SIGHUP)
        run.until(lambda count=count: len(list(tmp_path.glob("out-*.jsonl"))) == count // 100 - 1)
        run.grow(100)
        run.await_answers(count)
    (tmp_path / "out.jsonl").rename(tmp_path / "out-by-hand")  # as logrotate does
    run.grow(50)
    moved = tmp_path / "out-by-hand"
    run.until(lambda: len(newest_lines(whole(moved.read_bytes()))) >= 150)
    run.process.send_signal(signal.SIGHUP)
    run.until((tmp_path / "out.jsonl").exists)
    run.grow(50)
    run.until(lambda: (tmp_path / "out.jsonl").stat().st_size > 0)
    code, said = run.end(signal.SIGTERM)
    assert code == 0
    assert sum("rotated: out-2" in line for line in said) == 2
    assert sum("was moved away" in line for line in said) == 1
    succeed(tmp_path, *RUN, "--events", "events.jsonl")
    parts = [*sorted(tmp_path.glob("out-2*.jsonl")), moved, tmp_path / "out.jsonl"]
    together = b"".join(path.read_bytes() for path in parts)
    assert together == (tmp_path / "expected" / "out.jsonl").read_bytes()
    assert len(list(tmp_path.glob("events-2*.jsonl"))) == 3  # events were not moved by hand


def test_rotated_by_size_and_killed(tmp_path: Path) -> None:
    """Whatever moment a run is killed at, the files hold each line once, in order."""
    write_headlines(tmp_path / "in.jsonl", 20_000)
    expected = tmp_path / "expected"
    expected.mkdir()
    (expected / "in.jsonl").symlink_to(tmp_path / "in.jsonl")
    (tmp_path / "in.jsonl").write_bytes(b"no json\n" + (tmp_path / "in.jsonl").read_bytes())
    succeed(expected, *RUN, "--events", "events.jsonl")
    rotating = (*RUN, "--events", "events.jsonl", "--rotate", "100k")
    rng = random.Random(7)
    kills = 0
    for _ in range(25):
        process = start(tmp_path, *rotating, snapshot_every="1700")
        at = len(list(tmp_path.glob("out-*"))) + 1
        deadline = time.monotonic() + 300
        while len(list(tmp_path.glob("out-*"))) < at and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.02)
        process.kill()
        said = process.communicate()[1].decode()
        assert process.returncode in (0, -9), said
        assert "Traceback" not in said
        if process.returncode == 0:
            break
        kills += 1
    succeed(tmp_path, *rotating)
    assert kills > 5
    assert len(list(tmp_path.glob("out-*"))) > 10
    for name in ("out", "events", "out.jsonl.rejects"):
        assert lines_of(tmp_path, name) == lines_of(expected, name), name


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_killed_within_a_rotation(tmp_path: Path, renamed: bool, replayed: bool) -> None:
    path = tmp_path / "out"
    sink = FileSink(str(path))
    sink.write(b"{1}\n")
    sink.flush(sync=True)
    name = Path(sink.begin_rotation())
    left = sink.state()
    if renamed:
        sink.rotate()
        sink.write(b"{2}\n{3")
        sink.flush(sync=True)
    os.close(sink._fd)
    again = FileSink(str(path), left, replayed=replayed)
    again.write(b"{4}\n")
    again.flush(sync=True)
    assert "rotated" not in again.state()
    again.close()
    assert name.read_bytes() == b"{1}\n"
    assert path.read_bytes() == (b"{2}\n{4}\n" if renamed and not replayed else b"{4}\n")


def test_a_file_changed_within_a_rotation_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink(str(path))
    sink.write(b"{}\n" * 50_000)
    sink.flush(sync=True)
    sink.begin_rotation()
    left = sink.state()
    os.close(sink._fd)
    os.truncate(path, 120_000)
    with pytest.raises(SinkError, match="was to be rotated") as caught:
        FileSink(str(path), left)
    assert (caught.value.exit_code, path.stat().st_size) == (65, 120_000)


def test_a_table_has_a_header_in_every_file(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 5000)
    run = ("consume", "--file", "in.jsonl", "--output", "out.csv", "--beam", "1", "--rotate", "64k")
    succeed(tmp_path, *run)
    files = sorted(tmp_path.glob("out*.csv"))
    assert len(files) > 2
    heads = {path.read_bytes().split(b"\n")[0] for path in files}
    assert len(heads) == 1
    assert heads.pop().startswith(b"seq,")


def test_rules(tmp_path: Path) -> None:
    assert Rotation.of("2k").due(2048, 0.0, 0.0)
    assert not Rotation.of("2K").due(2047, 0.0, 1e9)
    assert (Rotation.of("10").size, Rotation.of("3G").size) == (10, 3 << 30)
    daily = Rotation.of("daily")
    assert not daily.due(10**9, 86_400.0, 2 * 86_400.0 - 1)
    assert daily.due(1, 86_400.0, 2 * 86_400.0)
    for wrong in ("", "0", "-1", "weekly", "1T", "1.5M"):
        code, message = fail(tmp_path, "consume", "--file", "in", "--rotate", wrong)
        assert (code, "--rotate" in message) == (64, True)


def hang_up(folder: Path) -> tuple[int, str]:
    """Run in a terminal that goes away; exit code and what it said."""
    leader = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests were begun with
child = subprocess.Popen(sys.argv[1:], stderr=open("said", "wb"), stdout=subprocess.DEVNULL)
signal.signal(signal.SIGHUP, lambda *_: child.send_signal(signal.SIGHUP))  # as shells do
open("code.tmp", "w").write(str(child.wait()))
os.rename("code.tmp", "code")
"""
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover
        os.chdir(folder)
        arguments = command(*RUN, "--follow")
        os.execve(sys.executable, [sys.executable, "-c", leader, *arguments], environment())
    out = folder / "out.jsonl"
    wait_for(lambda: out.exists() and out.stat().st_size, seconds=300.0)
    os.close(master)
    wait_for((folder / "code").exists, seconds=300.0)
    os.waitpid(pid, 0)
    return int((folder / "code").read_text()), (folder / "said").read_text()


def test_a_terminal_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    write_headlines(tmp_path / "in.jsonl", 50)
    code, said = hang_up(tmp_path)
    assert (code, "stopping after this batch" in said) == (0, True)
    assert list(tmp_path.glob("out-*")) == []
