"""Very many live clusters: memory, cost and latency while nearly every record begins one.

Texts of five words drawn from 500,000, through ``Engine.advance`` in batches of 1,000, under the CRP at
beam 1: nothing closes, no word is frequent. At each size, on the same engine: records that repeat three words
of one of those texts, in batches and then one at a time. What arrays that grow cost at once is in the longest
batch.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import NamedTuple

import numpy as np
import psutil

from benchmarks.latency import in_batches, one_by_one
from benchmarks.workloads import CHUNK, show, timed, warm
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings

WORDS, REPEATED, VOCABULARY = 5, 3, 500_000
AGAIN = 3_000
"""Records that join clusters, at each size."""


class Seen(NamedTuple):
    """What was seen at one size, times in CPU seconds."""

    live: int
    resident: int
    founding: float
    longest: float
    joining: float
    latencies: np.ndarray


def texts(words: np.ndarray, first: int) -> list[Record]:
    """A record of each row, numbered from ``first`` on."""
    return [
        Record(value=" ".join(f"w{word}" for word in row), position={"line": i}, time=float(i), id=str(i))
        for i, row in enumerate(words.tolist(), first)
    ]


class Run:
    """An engine that founds clusters up to one size after the other."""

    def __init__(self, settings: Settings, most: int) -> None:
        self.draw = np.random.default_rng(1)
        self.subjects = self.draw.integers(0, VOCABULARY, (most, WORDS))
        self.engine, self.line, self.founded = Engine(settings), 0, 0
        self.process = psutil.Process()
        self.before = self.process.memory_info().rss

    def records(self, words: np.ndarray) -> list[Record]:
        """The next records, of these words."""
        made = texts(words, self.line)
        self.line += len(made)
        return made

    def up_to(self, size: int) -> Seen:
        """Found clusters; then join some."""
        batches = []
        begun = self.founded
        for start in range(begun, size, CHUNK):
            batch = self.records(self.subjects[start : min(start + CHUNK, size)])
            began = time.process_time()
            self.engine.advance(batch)
            batches.append(time.process_time() - began)
        self.founded = size
        live, resident = self.engine.counters()["clusters_live"], self.process.memory_info().rss - self.before
        told = self.subjects[self.draw.integers(0, size, 2 * AGAIN), :REPEATED]
        together, alone = self.records(told[:AGAIN]), self.records(told[AGAIN:])
        joining = timed(lambda: in_batches(self.engine, together)) / AGAIN
        latencies = np.quantile(one_by_one(self.engine, alone)[1], (0.5, 0.99, 0.999, 1.0))
        return Seen(live, resident, sum(batches) / (size - begun), max(batches), joining, latencies)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--second-look", type=int, default=0, help="records after which one is looked at again"
    )
    options = parser.parse_args()
    warm()
    gc.freeze()  # as consume does
    most = max(options.sizes)
    settings = Settings(
        prior="crp",
        concentration=1e6,
        beam=1,
        second_look=options.second_look,
        max_words=2 * VOCABULARY,
        max_clusters=2 * most,
    )
    run, rows = Run(settings, most), []
    for size in sorted(options.sizes):
        seen = run.up_to(size)
        memory = f"{seen.resident / 2**20:,.0f}", f"{seen.resident / seen.live:,.0f}"
        costs = f"{1e6 * seen.founding:.1f}", f"{1e3 * seen.longest:.0f}", f"{1e6 * seen.joining:.1f}"
        rows.append((f"{seen.live:,}", *memory, *costs, *(f"{1e3 * s:.2f}" for s in seen.latencies)))
    head = ("live", "MiB", "bytes each", "found, us", "longest 1,000, ms", "join, us")
    show("clusters none of which closes", (*head, "p50 ms", "p99", "p99.9", "max"), rows)


if __name__ == "__main__":
    main()
