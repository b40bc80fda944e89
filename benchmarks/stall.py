"""For how long a stream stands still for a snapshot, against the number of live clusters.

The stream waits while its state becomes bytes (``Engine.dumps``); a thread writes them. State: K topics of
twelve words each, told three times in random order in texts of eight words, under the CRP with a
concentration of K / 5; nothing ever closes. Between two snapshots 500 more records come.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

from benchmarks.workloads import show, warm
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings

GOAL = 100.0
"""Milliseconds that 99 of 100 stay below."""


def percentile(seconds: list[float], share: float) -> str:
    """In milliseconds."""
    return f"{1000 * float(np.quantile(seconds, share)):.0f}"


def measure(topics: int, beam: int, snapshots: int) -> tuple[object, ...]:
    """A row of the table."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 6 * topics, (topics, 12))
    engine = Engine(Settings(beam=beam, prior="crp", concentration=topics / 5))
    number = 0

    def tell(told: np.ndarray) -> None:
        nonlocal number
        records = []
        for topic in told:
            text = " ".join(f"w{word}" for word in rng.choice(words[topic], 8))
            place = {"topic": "news", "partition": 0, "offset": number}
            records.append(Record(value=text, position=place, time=1e9 + number / 100, id=str(number)))
            number += 1
        engine.advance(records)

    order = np.concatenate([rng.permutation(topics) for _ in range(3)])
    for start in range(0, len(order), 1000):
        tell(order[start : start + 1000])
    wall, cpu, size = [], [], 0
    for _ in range(snapshots):
        tell(rng.integers(0, topics, 500))
        began, used = time.perf_counter(), time.thread_time()
        size = len(engine.dumps())
        wall.append(time.perf_counter() - began)
        cpu.append(time.thread_time() - used)
    live = engine.counters()["clusters_live"]
    times = [percentile(kind, share) for kind in (wall, cpu) for share in (0.5, 0.99)]
    return f"{live:,}", f"{size / 1e6:.1f}", f"{size / live / 1e3:.1f}", *times


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--beam", type=int, default=16)
    parser.add_argument("--snapshots", type=int, default=200)
    parser.add_argument("--topics", type=int, nargs="+", default=[1200, 4000, 12_000, 36_000])
    options = parser.parse_args()
    warm()
    gc.freeze()  # as consume does
    rows = [measure(topics, options.beam, options.snapshots) for topics in options.topics]
    columns = ["live clusters", "MB", "kB each", "ms median", "p99", "CPU ms median", "p99"]
    show(f"stall of {options.snapshots} snapshots, beam {options.beam}", columns, rows)


if __name__ == "__main__":
    main()
