"""What a store costs ``consume``: CPU a record, with and without search, in turn with runs without a store.

Run: python -m benchmarks.store [records] [turns]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from streamdp.demo.stream import demo_stream

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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
