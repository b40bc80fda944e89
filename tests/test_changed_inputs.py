"""Inputs that change while they are read, or while no run reads them: never is anything lost in silence."""

from __future__ import annotations

import gzip
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import assignments, call, fail, start, succeed, wait_for
from streamdp_connectors.files.folder import FolderSource
from streamdp_connectors.files.source import FileSource
from streamdp_connectors.protocol import Source, SourceError

RUN = ("consume", "--file", "in.txt", "--state", "state", "--output", "out")


def lines(name: str, first: int, count: int) -> bytes:
    """Lines of one length, each told from all others."""
    return b"".join(b"%s says %06d of a storm\n" % (name.encode(), i) for i in range(first, first + count))


def texts(source: Source, seconds: float = 0.0) -> list[str]:
    """What a source gives until it ends, or gives nothing for some time, however often it is asked."""
    found: list[str] = []
    until, asked = time.monotonic() + seconds, 0
    while not source.at_end:
        rows = source.read(100, 0.05)
        found += [row.data.decode() for row in rows]
        asked = 0 if rows else asked + 1
        if rows:
            until = time.monotonic() + seconds
        elif seconds and asked > 20 * seconds and time.monotonic() > until:
            break
    return found


def expected(*parts: bytes) -> list[str]:
    return b"".join(parts).decode().splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.txt"


# ------------------------------------------------------------------ a file, while the run is away


def read_some(path: Path, data: bytes, count: int) -> dict[str, Any]:
    """The positions of a source that has read so many records of a file."""
    path.write_bytes(data)
    source = FileSource(str(path), "text")
    assert len(source.read(count, 0.0)) == count
    positions = source.positions()
    source.close()
    return positions


def rewritten(path: Path) -> None:
    path.write_bytes(lines("b", 0, 300))


def line_inserted(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:50] + b"one more\n" + data[50:])


def replaced(path: Path) -> None:
    path.with_name("new").write_bytes(lines("b", 0, 300))
    path.with_name("new").rename(path)


def last_line_changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.find(b"000099")
    data[at : at + 6] = b"777777"
    path.write_bytes(data)


CHANGES: list[Callable[[Path], None]] = [rewritten, line_inserted, replaced, last_line_changed]


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_another_is_refused(path: Path, change: Callable[[Path], None]) -> None:
    positions = read_some(path, lines("a", 0, 300), 100)
    change(path)
    with pytest.raises(SourceError, match="not what was read") as caught:
        FileSource(str(path), "text").seek(positions)
    assert caught.value.exit_code == 65
    assert "restore it" in caught.value.message


@pytest.mark.parametrize("change", CHANGES)
def test_a_followed_one_begins_anew_and_that_is_told(
    path: Path, change: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    positions = read_some(path, lines("a", 0, 300), 100)
    change(path)
    source = FileSource(str(path), "text", follow=True)
    source.seek(positions)
    assert texts(source, 0.3) == expected(path.read_bytes())
    assert "what followed line 100" in caplog.text
    assert str(path) in caplog.text


def test_what_a_rotation_left_unread_is_read_first(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    positions = read_some(path, lines("a", 0, 300), 100)
    path.rename(path.with_name("in.txt.1"))
    path.write_bytes(lines("b", 0, 5))
    source = FileSource(str(path), "text", follow=True)
    source.seek(positions)
    assert texts(source, 0.3) == expected(lines("a", 100, 200), lines("b", 0, 5))
    assert "in.txt.1" in caplog.text


def test_a_copy_of_the_file_goes_on(path: Path) -> None:
    positions = read_some(path, lines("a", 0, 300), 100)
    path.unlink()
    path.write_bytes(lines("a", 0, 400))
    source = FileSource(str(path), "text")
    source.seek(positions)
    assert texts(source) == expected(lines("a", 100, 300))


def test_packed_files_are_known_too(path: Path) -> None:
    positions = read_some(path, gzip.compress(lines("a", 0, 300)), 100)
    path.write_bytes(gzip.compress(lines("a", 0, 300)) + gzip.compress(lines("a", 300, 20)))
    source = FileSource(str(path), "text")
    source.seek(positions)
    assert texts(source) == expected(lines("a", 100, 220))
    path.write_bytes(gzip.compress(lines("b", 0, 300)))
    with pytest.raises(SourceError, match="not what was read"):
        FileSource(str(path), "text").seek(positions)


def test_a_run_refuses_a_file_replaced_while_it_was_away(tmp_path: Path, path: Path) -> None:
    path.write_bytes(lines("a", 0, 1000))
    succeed(tmp_path, *RUN)
    path.write_bytes(lines("b", 0, 2000))
    code, message = fail(tmp_path, *RUN)
    assert (code, "not what was read" in message) == (65, True), message


# ------------------------------------------------------------------ a file, while it is read


@pytest.mark.parametrize("count", [299, 300, 600])
def test_a_followed_file_cut_and_written_again(
    path: Path, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Shorter, as long, and longer than what was read."""
    path.write_bytes(lines("a", 0, 300))
    source = FileSource(str(path), "text", follow=True)
    assert texts(source, 0.3) == expected(lines("a", 0, 300))
    path.write_bytes(lines("b", 0, count))
    assert texts(source, 0.3) == expected(lines("b", 0, count))
    assert "cut" in caplog.text
    with path.open("ab") as file:
        file.write(lines("b", count, 10))
    assert texts(source, 0.3) == expected(lines("b", count, 10))


def test_a_run_that_follows_loses_nothing(tmp_path: Path, path: Path) -> None:
    path.write_bytes(lines("a", 0, 1000))
    process = start(tmp_path, *RUN, "--follow")

    def answered() -> int:
        out = tmp_path / "out"
        return out.read_bytes().count(b'"seq"') if out.exists() else 0

    wait_for(lambda: answered() == 1000, process)
    path.write_bytes(lines("b", 0, 2000))
    wait_for(lambda: answered() == 3000, process)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0
    assert b"cut" in told


def test_a_file_that_changes_under_the_hands_of_a_run_is_refused(path: Path) -> None:
    path.write_bytes(lines("a", 0, 3000))
    source = FileSource(str(path), "text")
    source.read(10, 0.0)
    path.write_bytes(lines("b", 0, 3000))
    with pytest.raises(SourceError, match="changed while it was read"):
        texts(source)


# ------------------------------------------------------------------ folders


def folder_source(folder: Path, follow: bool = False) -> FolderSource:
    return FolderSource(str(folder), lambda path, whole: FileSource(path, "text", whole=whole), follow)


def fill(folder: Path, **files: bytes) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_what_changed_in_a_folder_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, b=lines("b", 0, 10), c=lines("c", 0, 10), d=lines("d", 0, 10))
    source = folder_source(tmp_path)
    assert texts(source) == expected(lines("b", 0, 10), lines("c", 0, 10), lines("d", 0, 10))
    positions = source.positions()
    source.close()
    fill(tmp_path, a=lines("a", 0, 5), b=lines("b", 0, 12), c=lines("x", 0, 10), e=lines("e", 0, 3))
    again = folder_source(tmp_path)
    again.seek(positions)
    assert texts(again) == expected(lines("e", 0, 3))
    for part in ("a came later", "b has grown", "c has changed", "--follow"):
        assert part in caplog.text, part


def test_a_followed_folder_reads_what_is_new(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, b=lines("b", 0, 10), c=lines("c", 0, 10))
    source = folder_source(tmp_path, follow=True)
    assert texts(source, 1.5) == expected(lines("b", 0, 10), lines("c", 0, 10))
    fill(tmp_path, a=lines("a", 0, 5), b=lines("b", 0, 12), e=lines("e", 0, 3)[:-1])
    assert texts(source, 1.5) == expected(lines("a", 0, 5), lines("b", 10, 2), lines("e", 0, 2))
    positions = source.positions()
    source.close()
    with (tmp_path / "e").open("ab") as file:
        file.write(b"\nthe last one\n")
    fill(tmp_path, c=lines("x", 0, 4), aa=gzip.compress(b"packed, without a newline"))
    again = folder_source(tmp_path, follow=True)
    again.seek(positions)
    assert not again.at_end
    found = texts(again, 1.5)
    assert sorted(found) == sorted(
        ["packed, without a newline", *expected(lines("x", 0, 4), lines("e", 2, 1), b"the last one\n")]
    )
    assert "c has changed" in caplog.text


def test_a_file_renamed_in_a_followed_folder_is_not_read_twice(tmp_path: Path) -> None:
    fill(tmp_path, log=lines("a", 0, 10))
    source = folder_source(tmp_path, follow=True)
    assert texts(source, 1.5) == expected(lines("a", 0, 10))
    with (tmp_path / "log").open("ab") as file:
        (tmp_path / "log").rename(tmp_path / "log.1")
        file.write(lines("a", 10, 2))
    fill(tmp_path, log=lines("b", 0, 3))
    assert sorted(texts(source, 1.5)) == sorted(expected(lines("a", 10, 2), lines("b", 0, 3)))
    source.close()


def test_a_damaged_file_does_not_stop_a_followed_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path, a=b"\x1f\x8bnonsense", b=lines("b", 0, 3))
    source = folder_source(tmp_path, follow=True)
    assert texts(source, 1.5) == expected(lines("b", 0, 3))
    assert "not valid gzip" in caplog.text
    with pytest.raises(SourceError, match="not valid gzip"):
        texts(folder_source(tmp_path))


def test_a_link_that_loops_is_named_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, b=lines("b", 0, 3))
    (tmp_path / "loop").symlink_to("loop")
    assert texts(folder_source(tmp_path)) == expected(lines("b", 0, 3))
    assert f"{tmp_path / 'loop'} is left out" in caplog.text


def test_a_run_over_a_folder(tmp_path: Path) -> None:
    """A late file and an appended one are told of, and read under --follow."""
    run = ("consume", "--file", "data", "--format", "text", "--state", "state", "--output", "out")
    folder = tmp_path / "data"
    folder.mkdir()
    fill(folder, b=lines("b", 0, 100), c=lines("c", 0, 100))
    succeed(tmp_path, *run)
    fill(folder, a=lines("a", 0, 50), b=lines("b", 0, 300))
    told = call(tmp_path, *run).stderr
    assert b"a came later" in told
    assert b"b has grown" in told
    assert len(assignments((tmp_path / "out").read_bytes())) == 200
    process = start(tmp_path, *run, "--follow")
    wait_for(lambda: (tmp_path / "out").read_bytes().count(b'"seq"') == 450, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 0
