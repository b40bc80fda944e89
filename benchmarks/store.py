"""What a store costs ``consume``: CPU a record, with and without search, in turn with runs without a store.

Run: python -m benchmarks.store [RECORDS] [TURNS]; and python -m benchmarks.store bounded [RECORDS] [ROWS],
which prints memory and sizes while generated records pass through a store that holds the latest ROWS of them.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec
import psutil

from benchmarks.drifting import demo_stream
from benchmarks.memory import endless
from benchmarks.workloads import CHUNK

RUNS: dict[str, tuple[str, ...]] = {
    "no store": (),
    "a store": ("--store", "news.db", "--no-store-search"),
    "with search": ("--store", "news.db"),
}


def cost(folder: Path, options: tuple[str, ...]) -> float:
    """CPU seconds of a run."""
    before = os.times()
    run = ("consume", "in.jsonl", "--output", "out", "--events", "events", "--beam", "1", "--overwrite")
    command = [sys.executable, "-m", "streamdp", *run, *options]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main(records: int = 100_000, turns: int = 3) -> None:
    """Measure, and print medians."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "in.jsonl").open("wb") as file:
            for item in demo_stream(records, 1):
                line = {"time": item.time, "id": item.id, "text": item.text}
                file.write(msgspec.json.encode(line) + b"\n")
        cost(folder, ())
        found: dict[str, list[float]] = {run: [] for run in RUNS}
        for _ in range(turns):
            for run, options in RUNS.items():
                found[run].append(cost(folder, options))
        plain = statistics.median(found["no store"])
        for run, spent in found.items():
            own = 1e6 * statistics.median(spent) / records
            print(f"{run}: {own:.1f} us of CPU a record, {own - 1e6 * plain / records:.1f} for the store")
        size = (folder / "news.db").stat().st_size
        print(f"{size / records:.0f} bytes a record with search")


EARLIER = 25 * 365 * 86_400
"""Seconds: times that are ahead of the clock would be refused."""


def feed(to: IO[bytes], records: int) -> None:
    """Write generated records, each with its time, and end."""
    source = endless(False)
    for at in range(0, records, CHUNK):
        some = islice(source, min(CHUNK, records - at))
        lines = [msgspec.json.encode({"time": (r.time or 0.0) - EARLIER, "text": r.value}) for r in some]
        to.write(b"\n".join([*lines, b""]))
    to.close()


def seen(folder: Path, process: psutil.Process, largest: int) -> str:
    """What is there at a moment."""
    with sqlite3.connect(f"file:{folder}/news.db?mode=ro", uri=True) as store:
        newest, rows = store.execute("SELECT max(seq) + 1, max(seq) - min(seq) + 1 FROM records").fetchone()
        (stories,) = store.execute("SELECT count(*) FROM stories").fetchone()
    store.close()
    spent = process.cpu_times()
    sizes = [(folder / name).stat().st_size / 2**20 for name in ("news.db", "news.db-wal")]
    resident = process.memory_info().rss / 2**20
    return (
        f"{newest:,} records, {spent.user + spent.system:,.0f} CPU s, resident {resident:,.0f} MiB "
        f"(largest {largest / 2**20:,.0f}), store {sizes[0]:,.0f} MiB and {sizes[1]:,.0f} of log, "
        f"{rows:,} records and {stories:,} stories in it"
    )


def bounded(records: int = 10_000_000, rows: int = 200_000) -> None:
    """Print how much memory and disk a run takes, twenty times on the way."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        run = ["consume", "-", "--output", os.devnull, "--beam", "1"]
        command = [sys.executable, "-m", "streamdp", *run, "--store", "news.db", "--store-rows", str(rows)]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        threading.Thread(target=feed, args=(process.stdin, records), daemon=True).start()
        looked, largest, told, last = psutil.Process(process.pid), 0, 0, ""
        while process.poll() is None:
            time.sleep(0.5)
            try:
                now = looked.memory_info().rss
                if now == 0:  # it has ended
                    break
                largest = max(largest, now)
                last = seen(folder, looked, largest)
            except (psutil.Error, sqlite3.Error, OSError, TypeError):  # before it begins, or after its end
                continue
            newest = int(last.split(" ", 1)[0].replace(",", ""))
            if newest * 20 // records > told:
                told = newest * 20 // records
                print(last, flush=True)
        print(f"exit code {process.wait()}; last seen: {last}")


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if argument != "bounded"]
    (bounded if "bounded" in sys.argv else main)(*map(int, chosen))
