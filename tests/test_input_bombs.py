"""Inputs that are much longer than they look: every read returns, and SIGTERM is obeyed."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from commands import start
from streamdp_connectors.files.source import FileSource

MIB = 1 << 20
PATIENCE = 2.0
"""Seconds within which a signal is obeyed on a quiet machine; tests allow some more."""


def packed(pack: Callable[[bytes], bytes], letter: bytes, mib: int) -> bytes:
    """So many MiB of one letter, as frames of 16 MiB each."""
    return pack(letter * (16 * MIB)) * (mib // 16)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(data)


def gz(data: bytes) -> bytes:
    return gzip.compress(data, 9)


def zeros_of_zstd(mib: int) -> bytes:
    """One frame whose blocks of 4 bytes stand for 128 KiB each."""
    header = b"\x28\xb5\x2f\xfd\x00\x58"  # no checksum, no size, a window of 2 MiB
    block = (1 << 1 | (128 << 10) << 3).to_bytes(3, "little") + b"a"
    return header + block * (8 * mib - 1) + (block[0] | 1).to_bytes(1, "little") + block[1:]


BOMBS: dict[str, Callable[[int], bytes]] = {
    "blank.txt": lambda mib: b"\n" * (mib * MIB),
    "spaces.txt": lambda mib: b" \r\n" * (mib * MIB // 3),
    "mixed.txt": lambda mib: (b"\n" * (MIB // 2) + b"a text\n") * (2 * mib),
    "one.txt": lambda mib: b"a" * (mib * MIB),
    "blank.txt.gz": lambda mib: packed(gz, b"\n", mib),
    "empty.gz": lambda mib: gz(b"") * (50 * mib),
    "letter.txt.zst": lambda mib: packed(zstd, b"a", mib),
    "zeros.txt.zst": zeros_of_zstd,
}


@pytest.mark.parametrize("name", BOMBS)
def test_every_read_returns(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    mib = 16 if name == "mixed.txt" else 128
    path.write_bytes(BOMBS[name](mib))
    source = FileSource(str(path), "text", max_line=1000)
    longest, lines = 0.0, 0
    while not source.at_end:
        began = time.monotonic()
        found = source.read(1000, 0.1)
        longest = max(longest, time.monotonic() - began)
        lines += found.blank + len(found)
        assert found or found.unfinished or source.at_end
    assert longest < 1.0
    source.close()
    if name == "blank.txt":
        assert lines == 128 * MIB
    if name == "mixed.txt":
        assert lines == 2 * mib * (MIB // 2 + 1)


def test_what_zstandard_unpacks_costs_little_more_than_the_library_takes(tmp_path: Path) -> None:
    path = tmp_path / "zeros.zst"
    path.write_bytes(zeros_of_zstd(256))

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    def library() -> None:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            while reader.read(MIB):
                pass

    def ours() -> None:
        source = FileSource(str(path), "text", max_line=1000)
        while not source.at_end:
            source.read(1000, 0.1)
        source.close()

    assert seconds(ours) < 10.0 * seconds(library) + 0.5


def obeys(process: subprocess.Popen[bytes], seconds: float) -> None:
    """A first SIGTERM ends a run."""
    time.sleep(seconds)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    process.communicate(timeout=60)
    assert time.monotonic() - began < 3 * PATIENCE


@pytest.mark.parametrize("name", ["blank.txt.gz", "letter.txt.zst", "mixed.txt"])
def test_a_run_obeys(tmp_path: Path, name: str) -> None:
    packed = (tmp_path / name).suffix != ".txt"
    (tmp_path / name).write_bytes(BOMBS[name](64_000 if packed else 512))
    process = start(tmp_path, "consume", name, "--format", "text", "--state", "s")
    obeys(process, 1.5)
    assert process.returncode == 0


@pytest.mark.parametrize("format", ["text", "csv"])
def test_a_run_that_waits_for_a_pipe_obeys(tmp_path: Path, format: str) -> None:
    """Nobody has opened it for writing yet."""
    os.mkfifo(tmp_path / "pipe")
    process = start(tmp_path, "consume", "--file", "pipe", "--format", format)
    obeys(process, 1.5)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_run_that_skips_what_it_has_read_obeys(tmp_path: Path) -> None:
    """To go on in a packed file is to unpack all before the position again."""
    name = "late.txt.gz"
    (tmp_path / name).write_bytes(packed(gz, b"\n", 32_000) + gz(b"a text\nanother text\n"))
    source = FileSource(str(tmp_path / name), "text")
    positions = source.positions() | {"line": 32_000 * MIB + 1, "offset": 32_000 * MIB + 7}
    began = time.monotonic()
    source.seek(positions)
    assert source.read(10, 0.1) == []
    assert time.monotonic() - began < 1.0
