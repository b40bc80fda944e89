import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamdp_connectors.files.checkpoint import remember
from streamdp_connectors.files.sink import FileSink, RejectSink, reject_line
from streamdp_connectors.protocol import Marked, Sink, SinkError

from streamdp.records import Reject


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out"


def left_by(path: Path, length: int | None = None) -> dict[str, Any]:
    """What a snapshot would hold of a file, or of its beginning."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return remember(str(path), fd, os.fstat(fd).st_size if length is None else length).plain()
    finally:
        os.close(fd)


def code_of(path: Path, left: dict[str, Any] | None = None, **how: bool) -> tuple[int, str]:
    with pytest.raises(SinkError) as caught:
        FileSink(str(path), left, **how)
    assert "\n" not in caught.value.message
    return caught.value.exit_code, caught.value.message


def test_writes_and_counts(path: Path) -> None:
    sink: Sink[bytes] = FileSink(str(path))
    sink.write(b"one\n")
    assert path.read_bytes() == b""
    sink.flush(sync=True)
    assert path.read_bytes() == b"one\n"
    assert sink.state() == left_by(path)
    sink.write(b"x" * 1_000_000)
    assert (sink.state()["length"], path.stat().st_size) == (1_000_004, 1_000_004)
    assert sink.state() == left_by(path)
    sink.write(b"last")
    sink.close()
    sink.close()
    assert path.read_bytes() == b"one\n" + b"x" * 1_000_000 + b"last"


@pytest.mark.parametrize("kind", [FileSink, RejectSink])
def test_a_file_keeps_no_marks(path: Path, kind: type[FileSink | RejectSink]) -> None:
    sink = kind(str(path))
    assert not isinstance(sink, Marked)
    left = sink.state()
    sink.close()
    again = kind(str(path), left)
    assert again.state() == left
    again.close()


def test_resume_cuts_what_is_its_own(path: Path) -> None:
    path.write_bytes(b'{"kept"}\n{"written again"}\n{"torn\0\0')
    left = left_by(path, 9)
    sink = FileSink(str(path), left, overwrite=True)
    assert sink.state() == left
    sink.write(b"+")
    sink.close()
    assert path.read_bytes() == b'{"kept"}\n+'


@pytest.mark.parametrize("more", [b"my own line\n", b'{"seq":1}\nmine'])
def test_what_it_did_not_write_is_never_cut(path: Path, more: bytes) -> None:
    path.write_bytes(b"{}\n")
    left = left_by(path)
    path.write_bytes(b"{}\n" + more)
    code, message = code_of(path, left)
    assert (code, path.read_bytes()) == (65, b"{}\n" + more)
    assert "did not write" in message


@pytest.mark.parametrize("size", [10, 100_000, 300_000])
def test_another_file_is_refused_whatever_its_length(path: Path, size: int) -> None:
    path.write_bytes(b"a" * size)
    left = left_by(path)
    other = path.with_name("other")
    for changed in (b"b" + b"a" * size, b"a" * (size - 1) + b"b" + b"a" * 9, b"a" * (size - 1)):
        other.write_bytes(changed)
        path.write_bytes(changed)
        assert code_of(other, left)[0] == 65
        code, message = code_of(path, left)
        assert (code, "changed" in message) == (65, True)
        assert other.read_bytes() == path.read_bytes() == changed


def test_a_file_is_known_by_its_content(path: Path) -> None:
    path.write_bytes(b"{}\n" * 50_000)
    left = left_by(path)
    moved = path.rename(path.with_name("moved"))
    code, message = code_of(path, left)
    assert (code, "--new-output" in message, path.exists()) == (65, True, False)
    sink = FileSink(str(moved), left)
    sink.write(b"{}\n")
    sink.close()
    assert moved.read_bytes() == b"{}\n" * 50_001
    anew = FileSink(str(path), left, anew=True)
    anew.write(b"{}\n")
    anew.close()
    assert path.read_bytes() == b"{}\n"


def test_standard_output_gives_no_right_to_a_file(path: Path) -> None:
    sink = FileSink("-")
    left = sink.state()
    path.write_bytes(b"precious")
    assert code_of(path, left)[0] == 73
    assert code_of(path, left, overwrite=True)[0] == 73
    assert path.read_bytes() == b"precious"
    path.unlink()
    FileSink(str(path), left).close()


def test_a_change_under_its_hands_is_told(path: Path) -> None:
    sink = FileSink(str(path))
    sink.write(b"{}\n")
    sink.flush(sync=True)
    os.truncate(path, 0)
    with pytest.raises(SinkError, match="something else cut") as caught:
        sink.state()
    assert caught.value.exit_code == 74
    sink.close()


def test_refuses_what_would_lose_data(path: Path) -> None:
    path.write_bytes(b"old")
    code, message = code_of(path)
    assert code == 73
    assert "--overwrite" in message
    assert "--state" in message
    assert path.read_bytes() == b"old"
    FileSink(str(path), overwrite=True).close()
    assert path.read_bytes() == b""
    FileSink(str(path)).close()


def test_other_errors(path: Path, tmp_path: Path) -> None:
    assert code_of(tmp_path / "out.gz")[0] == 64
    assert code_of(tmp_path)[0] == 73
    assert code_of(path / "deeper")[0] == 73


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_and_devices() -> None:
    sink = FileSink("/dev/full")
    sink.write(b"x")
    assert sink.state()["length"] == 0
    with pytest.raises(SinkError, match="No space") as caught:
        sink.flush(sync=True)
    assert caught.value.exit_code == 74
    sink.close()
    null = FileSink("/dev/null")
    null.write(b"x")
    null.flush(sync=True)
    null.close()


CHILD = """
import sys
from streamdp_connectors.files.sink import FileSink
from streamdp_connectors.protocol import SinkClosed
sink = FileSink("-", {"path": "-", "length": 0, "head": 0, "tail": 0})
try:
    for i in range(int(sys.argv[1])):
        sink.write(b"line\\n")
        sink.flush(True)
    assert sink.state()['length'] == 0
    sink.close()
except SinkClosed:
    sys.exit(7)
"""


def test_standard_output() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, "3"], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"line\n" * 3, b"")
    command = [sys.executable, "-c", CHILD, "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.wait(120) == 7
        assert process.stderr.read() == b""


TEXT = Reject({"file": "x", "line": 1}, "empty", "field 'text' is empty", 'é "\n'.encode())
BYTES = Reject({"file": "x", "line": 2}, "not_utf8", "byte 0", b"\xff\x00")


def test_reject_lines() -> None:
    assert json.loads(reject_line(TEXT)) == {
        "position": {"file": "x", "line": 1},
        "reason": "empty",
        "detail": "field 'text' is empty",
        "data": 'é "\n',
    }
    line = json.loads(reject_line(BYTES))
    assert base64.b64decode(line.pop("data_base64")) == b"\xff\x00"
    assert "data" not in line
    assert reject_line(BYTES).count(b"\n") == 1


def test_rejects_make_a_file_only_when_needed(path: Path) -> None:
    sink = RejectSink(str(path))
    sink.flush(sync=True)
    assert (sink.state()["length"], path.exists()) == (0, False)
    sink.write(TEXT)
    sink.write(BYTES)
    sink.flush(sync=True)
    assert sink.state() == left_by(path)
    sink.close()
    RejectSink(str(path), left_by(path, len(reject_line(TEXT)))).close()
    assert path.read_bytes() == reject_line(TEXT)
    RejectSink(str(path.with_suffix(".none"))).close()


def test_rejects_resume_like_any_output(path: Path) -> None:
    path.write_bytes(reject_line(TEXT) + reject_line(BYTES))
    left = left_by(path, len(reject_line(TEXT)))
    with pytest.raises(SinkError, match="--overwrite"):
        RejectSink(str(path))
    sink = RejectSink(str(path), left)
    sink.write(TEXT)
    sink.close()
    assert path.read_bytes() == 2 * reject_line(TEXT)
    path.rename(path.with_name("moved"))
    with pytest.raises(SinkError, match="gone"):
        RejectSink(str(path), left)
    path.write_bytes(b"{}\n")
    RejectSink(str(path), overwrite=True).close()
    assert path.read_bytes() == b""


def test_a_spare_file_is_nobody_elses(path: Path) -> None:
    path.write_bytes(b"mine")
    for number in (2, 3):
        sink = RejectSink(str(path), spare=True)
        sink.write(TEXT)
        sink.close()
        assert sink.path == f"{path}-{number}"
    assert path.read_bytes() == b"mine"
