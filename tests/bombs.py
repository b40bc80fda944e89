"""Inputs that are much longer than they look, or ask for much to be held: made, and measured.

    python tests/bombs.py --seconds 60

Each is read by ``streamdp consume`` in a process of its own. Prints the exit code, after *reads on* where it
was ended by SIGTERM after so many seconds; CPU seconds; the most MiB that were resident; and seconds until a
second run obeys SIGTERM, which comes two seconds after it has begun to listen for it: by the clock, and CPU
seconds.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import zstandard

MIB = 1 << 20


def packed(pack: Callable[[bytes], bytes], letter: bytes, mib: int) -> bytes:
    """So many MiB of one letter, as frames of 16 MiB each."""
    return pack(letter * (16 * MIB)) * (mib // 16)


def zstd(data: bytes) -> bytes:
    """One frame."""
    return zstandard.ZstdCompressor(level=1).compress(data)


def gz(data: bytes) -> bytes:
    """One member."""
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
"""By name of the file, so many MiB of them."""


# ---------------------------------------------------------------- what is held of records


def records(n: int, **more: Callable[[int], object]) -> Iterator[bytes]:
    """Lines of JSON of few topics; ``more`` fields, each made of the record's number."""
    rng = random.Random(1)
    for i in range(n):
        topic = rng.randrange(5)
        text = " ".join(f"w{topic}x{rng.randrange(40)}" for _ in range(8))
        fields = {name: make(i) for name, make in more.items()}
        yield json.dumps({"text": text, "time": float(i)} | fields).encode() + b"\n"


def long_word(i: int) -> str:
    """A word of 300 kB that no other record has."""
    return f"storm {i}x" + "a" * 300_000


def known_words(i: int) -> str:
    """60,000 words of 66,000 that come again and again."""
    return _known(i % 50)


@functools.cache
def _known(seed: int) -> str:
    return " ".join(map(str, random.Random(seed).sample(range(10_000, 76_000), 60_000)))


class Held(NamedTuple):
    """Records that ask for much to be held, so many of them, and the options of their run."""

    lines: Callable[[int], Iterator[bytes]]
    count: int
    options: tuple[str, ...] = ()


HELD: dict[str, Held] = {
    "words of 300 kB": Held(lambda n: records(n, text=long_word), 2000),
    "ids of 100 kB": Held(lambda n: records(n, id=lambda i: f"{i}" + "a" * 100_000), 5000),
    "ids of 4 kB": Held(lambda n: records(n, id=lambda i: f"{i}".rjust(4000, "a")), 50_000),
    "kept fields of 300 kB": Held(
        lambda n: records(n, k=lambda i: f"{i}".rjust(300_000, "b")), 5000, ("--keep", "k")
    ),
    "held back, of 1.4 kB": Held(
        lambda n: records(n, k=lambda i: "c" * 1400), 400_000, ("--max-lateness", "1e9", "--max-leap", "1e9")
    ),
    "60,000 known words each": Held(lambda n: records(n, text=known_words), 1000),
    "a line of 500 MB, allowed": Held(
        lambda n: iter([b'{"text": "', *itertools.repeat(b"a b c d e " * 100_000, n), b'"}\n']),
        500,
        ("--max-record-bytes", "600000000"),
    ),
}
"""By what is in them."""


class Seen(NamedTuple):
    """What became of a run: its exit code, or minus a signal; CPU seconds; most MiB; seconds in all."""

    code: int
    cpu: float
    mebibytes: int
    seconds: float


def hears(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def cpu_seconds(pid: int) -> float:
    """CPU seconds that a process has taken so far."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def most_resident(pid: int) -> int:
    """Most MiB that a process has held; what the one that it was forked from held does not count."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10 if "VmHWM:" in status else 0


def ended(process: subprocess.Popen[bytes], seconds: float) -> Seen | None:
    """What became of a process, if it ends in time."""
    began, most = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        most = max(most, most_resident(process.pid))
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu = used.ru_utime + used.ru_stime
            return Seen(process.returncode, cpu, most, time.monotonic() - began)
        time.sleep(0.01)
    return None


def measure(
    folder: Path, name: str, *options: str, seconds: float, after: float | None = None
) -> tuple[Seen, bool]:
    """Read a file; end it by SIGTERM after so many seconds, or ``after`` it has begun to listen.

    Returns what became of it, and whether there was a signal: seconds are from there on, and so are CPU
    seconds if it came ``after``.
    """
    state = f"state-{random.randrange(1 << 40)}"
    command = [sys.executable, "-m", "streamdp", "consume", "--file", name, "--state", state, *options]
    command += ["--output", f"{state}.out", "--rejects", f"{state}.rejects"]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    try:
        if after is not None:
            while not hears(process.pid):
                time.sleep(0.01)
        found = ended(process, seconds if after is None else after)
        if found is not None:
            return found, False
        before = 0.0 if after is None else cpu_seconds(process.pid)
        process.send_signal(signal.SIGTERM)
        found = ended(process, 60.0) or Seen(-signal.SIGKILL, before, 0, 60.0)
        return found._replace(cpu=found.cpu - before), True
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()


def row(folder: Path, name: str, file: str, options: tuple[str, ...], seconds: float) -> str:
    """A row of the table."""
    seen, stopped = measure(folder, file, *options, seconds=seconds)
    again, signalled = measure(folder, file, *options, seconds=seconds, after=2.0)
    answer = f"{'reads on; ' if stopped else ''}{seen.code}"
    obeyed = f"{again.seconds:.2f}, {again.cpu:.2f}" if signalled else "had ended"
    return f"| {name} | {answer} | {seen.cpu:.1f}, {seen.mebibytes} | {obeyed} |"


def main() -> None:
    """Make and measure all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="after which a run is ended by SIGTERM")
    parser.add_argument("--mib", type=int, default=1024, help="of inputs that are not packed")
    parser.add_argument("--packed", type=int, default=4096, help="MiB that packed inputs unpack to")
    parser.add_argument("--only", help="those whose name has this")
    options = parser.parse_args()
    print("| input | exit | CPU s, most MiB | s, CPU s until SIGTERM is obeyed |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for file, make in BOMBS.items():
            mib = options.mib if file.endswith(".txt") else options.packed
            if options.only is None or options.only in file:
                (folder / file).write_bytes(make(mib))
                name = f"{file}, {mib:,} MiB"
                print(row(folder, name, file, ("--format", "text"), options.seconds), flush=True)
                (folder / file).unlink()
        for what, held in HELD.items():
            if options.only is None or options.only in what:
                with (folder / "in.jsonl").open("wb") as out:
                    out.writelines(held.lines(held.count))
                print(
                    row(folder, f"{held.count:,}: {what}", "in.jsonl", held.options, options.seconds),
                    flush=True,
                )


if __name__ == "__main__":
    main()
