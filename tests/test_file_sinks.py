import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from streamdp_connectors.files import FileSink, SinkError
from streamdp_connectors.protocol import Sink
from streamdp_connectors.rejects import RejectSink, reject_line

from streamdp.records import Reject


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out"


def code_of(path: Path, resume_length: int | None = None, overwrite: bool = False) -> tuple[int, str]:
    with pytest.raises(SinkError) as caught:
        FileSink(str(path), resume_length, overwrite)
    assert "\n" not in caught.value.message
    return caught.value.exit_code, caught.value.message


def test_writes_and_counts(path: Path) -> None:
    sink: Sink[bytes] = FileSink(str(path))
    sink.write(b"one\n")
    assert sink.state() == 4
    assert path.read_bytes() == b""
    sink.flush(sync=True)
    assert path.read_bytes() == b"one\n"
    sink.write(b"x" * 1_000_000)
    assert (sink.state(), path.stat().st_size) == (1_000_004, 1_000_004)
    sink.write(b"last")
    sink.close()
    sink.close()
    assert path.read_bytes() == b"one\n" + b"x" * 1_000_000 + b"last"


@pytest.mark.parametrize("kind", [FileSink, RejectSink])
def test_a_file_keeps_no_marks(path: Path, kind: type[FileSink | RejectSink]) -> None:
    sink = kind(str(path))
    sink.mark({"topic": "in", "partitions": {"0": 1}})
    sink.close()
    again = kind(str(path), 0)
    assert (list(again.marks), again.state()) == ([], 0)
    again.close()


def test_resume_cuts(path: Path) -> None:
    path.write_bytes(b"kept|written again")
    sink = FileSink(str(path), resume_length=4, overwrite=True)
    assert sink.state() == 4
    sink.write(b"+")
    sink.close()
    assert path.read_bytes() == b"kept+"


def test_refuses_what_would_lose_data(path: Path) -> None:
    code, message = code_of(path, resume_length=3)
    assert (code, path.exists()) == (65, False)
    path.write_bytes(b"old")
    code, message = code_of(path)
    assert code == 73
    assert "--overwrite" in message
    assert "--state" in message
    assert code_of(path, resume_length=4)[0] == 65
    assert path.read_bytes() == b"old"
    FileSink(str(path), overwrite=True).close()
    assert path.read_bytes() == b""
    FileSink(str(path)).close()


def test_other_errors(path: Path, tmp_path: Path) -> None:
    assert code_of(tmp_path / "out.gz")[0] == 64
    assert code_of(tmp_path)[0] == 73
    assert code_of(path / "deeper")[0] == 73


def test_nothing_saved_needs_no_file(path: Path) -> None:
    sink = FileSink(str(path), resume_length=0)
    assert (sink.state(), path.exists()) == (0, True)
    sink.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_and_devices() -> None:
    sink = FileSink("/dev/full")
    sink.write(b"x")
    assert sink.state() == 0
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
from streamdp_connectors.files import FileSink, SinkClosed
sink = FileSink("-", 5)
try:
    for i in range(int(sys.argv[1])):
        sink.write(b"line\\n")
        sink.flush(True)
    assert sink.state() == 0
    sink.close()
except SinkClosed:
    sys.exit(7)
"""


def test_standard_output() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, "3"], capture_output=True, timeout=10)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"line\n" * 3, b"")
    command = [sys.executable, "-c", CHILD, "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.wait(10) == 7
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
    assert (sink.state(), path.exists()) == (0, False)
    sink.write(TEXT)
    sink.write(BYTES)
    assert sink.state() == len(reject_line(TEXT) + reject_line(BYTES))
    sink.close()
    RejectSink(str(path), len(reject_line(TEXT))).close()
    assert path.read_bytes() == reject_line(TEXT)
    RejectSink(str(path.with_suffix(".none"))).close()


def test_rejects_resume_like_any_output(path: Path) -> None:
    with pytest.raises(SinkError, match="gone"):
        RejectSink(str(path), resume_length=4)
    path.write_bytes(b"old\nagain\n")
    with pytest.raises(SinkError, match="--overwrite"):
        RejectSink(str(path))
    sink = RejectSink(str(path), resume_length=4)
    sink.write(TEXT)
    sink.close()
    assert path.read_bytes() == b"old\n" + reject_line(TEXT)
    RejectSink(str(path), overwrite=True).close()
    assert path.read_bytes() == b""
