import gzip
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from streamdp_connectors.files.source import FileSource
from streamdp_connectors.protocol import Source, SourceError

from streamdp.records import Raw

Rows = list[tuple[int, bytes]]


def seen(records: list[Raw]) -> Rows:
    return [(record.position["line"], record.data) for record in records]


def place(source: FileSource) -> tuple[int, int]:
    """The line and the offset of a source."""
    positions = source.positions()
    assert positions["file"] == source.path
    return positions["line"], positions["offset"]


def wait_for(source: Source, count: int, seconds: float = 60.0) -> Rows:
    rows: Rows = []
    deadline = time.monotonic() + seconds
    while len(rows) < count and time.monotonic() < deadline:
        rows += seen(source.read(10, 0.05))
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in"


def test_follow_waits_for_whole_lines(path: Path) -> None:
    path.write_bytes(b"a\nb")
    source = FileSource(str(path), follow=True)
    assert wait_for(source, 1) == [(1, b"a")]
    start = time.monotonic()
    assert source.read(9, 0.15) == []
    assert 0.1 < time.monotonic() - start < 60.0
    with path.open("ab") as file:
        file.write(b"c\nd\ne")
    assert wait_for(source, 2) == [(2, b"bc"), (3, b"d")]
    assert place(source) == (3, 7)
    assert not source.at_end
    source.close()


def test_follow_wakes_up_while_waiting(path: Path) -> None:
    path.touch()
    source = FileSource(str(path), follow=True)
    timer = threading.Timer(0.1, path.write_bytes, [b"a\n"])
    timer.start()
    start = time.monotonic()
    assert seen(source.read(9, 300.0)) == [(1, b"a")]
    assert time.monotonic() - start < 60.0
    timer.join()
    source.close()


@pytest.mark.parametrize("gap", [False, True])
def test_follow_rotation(path: Path, gap: bool) -> None:
    path.write_bytes(b"a\n")
    source = FileSource(str(path), follow=True)
    assert wait_for(source, 1) == [(1, b"a")]
    with path.open("ab") as old:
        path.rename(path.with_suffix(".1"))
        if gap:
            assert source.read(9, 0.15) == []
        old.write(b"late\nunfinished")
    path.write_bytes(b"new\n")
    assert wait_for(source, 3) == [(2, b"late"), (3, b"unfinished"), (1, b"new")]
    assert place(source) == (1, 4)
    source.close()


def test_follow_truncation(path: Path) -> None:
    path.write_bytes(b"first\nsecond\n")
    source = FileSource(str(path), follow=True)
    assert len(wait_for(source, 2)) == 2
    path.write_bytes(b"new\n")
    assert wait_for(source, 1) == [(1, b"new")]
    source.close()


def test_follow_csv_reads_the_new_header(path: Path) -> None:
    path.write_bytes(b"x,y\n1,2\n")
    source = FileSource(str(path), "csv", follow=True)
    assert wait_for(source, 1) == [(2, b"1,2")]
    for header, name in ((b"x,y\n", ".b"), (b"y,z\n", ".c")):
        path.with_suffix(name).write_bytes(header + b"3,4\n")
        path.with_suffix(name).rename(path)
        if name == ".b":
            assert wait_for(source, 1) == [(2, b"3,4")]
    with pytest.raises(SourceError, match="another CSV header"):
        wait_for(source, 1)
    source.close()


CHILD = """
import sys
from streamdp_connectors.files.source import FileSource
source = FileSource("-", sys.argv[1])
source.seek({"file": "-", "line": 0, "offset": 0})
while not source.at_end:
    for record in source.read(5, 0.5):
        print(record.position["line"], record.data, flush=True)
print(source.seekable, flush=True)
"""


def child(format: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CHILD, format]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_standard_input_is_read_as_it_comes() -> None:
    with child("csv") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x,y\n1,2\n3")
        process.stdin.flush()
        assert process.stdout.readline() == b"2 b'1,2'\n"
        process.stdin.write(b',"4\n')
        process.stdin.flush()
        process.stdin.write(b'5"\n6,7')
        process.stdin.flush()
        assert process.stdout.readline() == b"3 b'3,\"4\\n5\"'\n"
        process.stdin.close()
        assert process.stdout.readline() == b"5 b'6,7'\n"
        assert process.stdout.readline() == b"False\n"
        assert process.wait(120) == 0


def test_standard_input_takes_gzip_and_much() -> None:
    lines = b"".join(b"line %d\n" % i for i in range(50_000))
    expected = b"".join(b"%d b'line %d'\n" % (i + 1, i) for i in range(50_000))
    for data in (lines, gzip.compress(lines)):
        with child("text") as process:
            output, _ = process.communicate(data, 120)
        assert output.startswith(expected)


def test_closed_standard_input() -> None:
    program = 'from streamdp_connectors.files.source import FileSource; FileSource("-")'
    command = f"{sys.executable} -c '{program}' <&-"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=120)
    assert b"SourceError: cannot read standard input" in done.stderr


def test_named_pipe(path: Path) -> None:
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb",))
    writer.start()
    source = FileSource(str(path))
    assert wait_for(source, 2) == [(1, b"a"), (2, b"b")]
    assert source.read(9, 1.0) == []
    assert source.at_end
    writer.join()
