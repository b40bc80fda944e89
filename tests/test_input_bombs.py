"""Inputs that are much longer than they look: every read returns, and SIGTERM is obeyed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from bombs import BOMBS, HELD, MIB, cpu_seconds, ended, gz, hears, measure, packed, zeros_of_zstd
from commands import start, wait_for
from streamdp_connectors.files.source import FileSource

PATIENCE = 2.0
"""CPU seconds within which a signal is obeyed; tests allow some more."""


@pytest.mark.parametrize("name", BOMBS)
def test_every_read_returns(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    mib = 16 if name == "mixed.txt" else 128
    path.write_bytes(BOMBS[name](mib))
    source = FileSource(str(path), "text", max_line=1000)
    longest, lines = 0.0, 0
    while not source.at_end:
        began = time.process_time()
        found = source.read(1000, 0.1)
        longest = max(longest, time.process_time() - began)
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


def obeys(process: subprocess.Popen[bytes]) -> None:
    """A first SIGTERM ends a run that has begun."""
    wait_for(lambda: hears(process.pid), process)
    time.sleep(1.0)
    assert process.poll() is None
    before = cpu_seconds(process.pid)
    process.send_signal(signal.SIGTERM)
    seen = ended(process, 120.0)
    assert seen is not None
    assert seen.cpu - before < 3 * PATIENCE
    process.communicate()


@pytest.mark.parametrize("name", ["blank.txt.gz", "letter.txt.zst", "mixed.txt"])
def test_a_run_obeys(tmp_path: Path, name: str) -> None:
    large = 512 if name.endswith(".txt") else 64_000
    (tmp_path / name).write_bytes(BOMBS[name](large))
    process = start(tmp_path, "consume", name, "--format", "text", "--state", "s")
    obeys(process)
    assert process.returncode == 0


@pytest.mark.parametrize("format", ["text", "csv"])
def test_a_run_that_waits_for_a_pipe_obeys(tmp_path: Path, format: str) -> None:
    """Nobody has opened it for writing yet."""
    os.mkfifo(tmp_path / "pipe")
    process = start(tmp_path, "consume", "--file", "pipe", "--format", format)
    obeys(process)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_run_that_skips_what_it_has_read_obeys(tmp_path: Path) -> None:
    """To go on in a packed file is to unpack all before the position again."""
    name = "late.txt.gz"
    (tmp_path / name).write_bytes(packed(gz, b"\n", 32_000) + gz(b"a text\nanother text\n"))
    source = FileSource(str(tmp_path / name), "text")
    positions = source.positions() | {"line": 32_000 * MIB + 1, "offset": 32_000 * MIB + 7}
    began = time.process_time()
    source.seek(positions)
    assert source.read(10, 0.1) == []
    assert time.process_time() - began < 1.0


WITHIN = {
    "words of 300 kB": (200, 300),
    "ids of 4 kB": (20_000, 300),
    "kept fields of 300 kB": (400, 300),
    "held back, of 1.4 kB": (100_000, 300),
}
"""Records that ask for much to be held, and MiB within which they are read under a small memory limit."""


def test_a_line_that_is_longer_than_memory_lets_it_be_is_refused(tmp_path: Path) -> None:
    held = HELD["a line of 500 MB, allowed"]
    with (tmp_path / "in.jsonl").open("wb") as file:
        file.writelines(held.lines(100))
        file.write(b'{"text": "after it"}\n')
    options = (*held.options, "--memory-limit", str(16 * MIB))
    seen, signalled = measure(tmp_path, "in.jsonl", *options, seconds=300.0)
    assert not signalled
    assert seen.code == 0
    assert seen.mebibytes < 400
    said = (tmp_path / "said").read_text()
    assert "records of more than 2,097,152 bytes are refused" in said
    assert "1 record refused (1 too_large)" in said


def test_long_cells_that_a_parquet_file_holds_once_are_not_unpacked_together(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = arrow.array(["storm over coast " * 10_000])
    cells = arrow.DictionaryArray.from_arrays(arrow.array([0] * 20_000, arrow.int32()), text)
    parquet.write_table(arrow.table({"text": cells}), tmp_path / "in.parquet")
    assert (tmp_path / "in.parquet").stat().st_size < 100_000  # and 3.4 GB unpacked
    seen, signalled = measure(tmp_path, "in.parquet", seconds=300.0, after=3.0)
    assert signalled
    assert seen.code in (0, -signal.SIGTERM)
    assert seen.mebibytes < 600
    assert seen.cpu < PATIENCE


@pytest.mark.parametrize("what", WITHIN)
def test_memory_is_bounded_in_bytes(tmp_path: Path, what: str) -> None:
    held, (count, most) = HELD[what], WITHIN[what]
    with (tmp_path / "in.jsonl").open("wb") as file:
        file.writelines(held.lines(count))
    options = (*held.options, "--memory-limit", str(16 * MIB))
    seen, signalled = measure(tmp_path, "in.jsonl", *options, seconds=300.0)
    assert not signalled, (tmp_path / "said").read_text()
    assert seen.code == 0
    assert seen.mebibytes < most
