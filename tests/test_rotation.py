"""Output files while they are written: begun anew without a loss, locked, given up when they are harmed."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import command, environment, fail, newest_lines, start, succeed, wait_for, write_headlines
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkError

from streamdp.run.writing import Sinks
from streamdp.settings import Settings
from streamdp.settings.io_options import Input, Outputs

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


def test_a_signal_begins_others_where_files_were_renamed(tmp_path: Path) -> None:
    write_headlines(tmp_path / "all.jsonl", 400)
    (tmp_path / "expected").mkdir()
    shutil.copy(tmp_path / "all.jsonl", tmp_path / "expected" / "in.jsonl")
    succeed(tmp_path / "expected", *RUN)
    run = Follower(tmp_path, "--events", "events.jsonl")
    out, moved = tmp_path / "out.jsonl", [tmp_path / f"out-{count}.jsonl" for count in (1, 2)]
    run.process.send_signal(signal.SIGHUP)  # nothing was renamed
    run.grow(100)
    run.await_answers(200)
    for name, count in zip(moved, (250, 300), strict=True):
        out.rename(name)  # as logrotate does
        run.grow(50)
        run.await_answers(count)
        run.process.send_signal(signal.SIGHUP)
        run.until(out.exists)
    run.grow(100)
    run.until(lambda: out.stat().st_size > 0)
    code, said = run.end(signal.SIGTERM)
    assert code == 0
    assert sum("SIGHUP: no output was renamed" in line for line in said) == 1
    assert sum("began new output files" in line for line in said) == 2
    assert sum("was moved away" in line for line in said) == 2
    succeed(tmp_path, *RUN, "--events", "events.jsonl")
    together = b"".join(path.read_bytes() for path in [*moved, out])
    assert together == (tmp_path / "expected" / "out.jsonl").read_bytes()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("replayed", [False, True])
def test_killed_while_another_file_is_begun(tmp_path: Path, begun: bool, replayed: bool) -> None:
    path, moved = tmp_path / "out", tmp_path / "moved"
    sink = FileSink(str(path))
    sink.write(b"{1}\n")
    sink.flush(sync=True)
    assert not sink.leave()
    path.rename(moved)
    assert sink.leave()
    left = sink.state()
    if begun:
        sink.begin_anew()
        sink.write(b"{2}\n{3")
        sink.flush(sync=True)
    os.close(sink._fd)
    again = FileSink(str(path), left, replayed=replayed)
    again.write(b"{4}\n")
    again.flush(sync=True)
    again.close()
    assert moved.read_bytes() == b"{1}\n"
    assert path.read_bytes() == (b"{2}\n{4}\n" if begun and not replayed else b"{4}\n")


def test_another_file_in_the_place_of_a_renamed_one_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink(str(path))
    sink.write(b"{1}\n")
    sink.flush(sync=True)
    path.rename(tmp_path / "moved")
    path.write_bytes(b"mine")
    assert sink.leave()
    with pytest.raises(SinkError, match="another file stands there"):
        sink.begin_anew()
    assert path.read_bytes() == b"mine"


def test_a_table_has_a_header_in_every_file(tmp_path: Path) -> None:
    settings, outputs = Settings(), Outputs(output=str(tmp_path / "out.csv"))
    sinks = Sinks(Input(file="in"), outputs, None, settings)
    sinks.flush(sync=True)
    (tmp_path / "out.csv").rename(tmp_path / "moved.csv")
    sinks.begin_anew(sinks.left())
    sinks.close()
    heads = {path.read_bytes() for path in tmp_path.glob("*.csv")}
    assert len(list(tmp_path.glob("*.csv"))) == 2
    assert len(heads) == 1
    assert heads.pop().startswith(b"seq,")


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
