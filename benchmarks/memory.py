"""Resident memory while one engine takes in a million records under a prior that lets clusters close."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import islice

import psutil

from benchmarks.drifting import START, demo_stream
from benchmarks.workloads import CHUNK, show, warm
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings

GOAL = 0.10
"""The last figure is at most this share above the first."""

TURN = 20_000
"""Records of one generated stream, after which the next seed goes on."""


def endless(fresh_words: bool) -> Iterator[Record]:
    """One generated stream after another, in time order; with words never seen before where wanted."""
    seed, begin, line = 0, START, 0
    while True:
        now = begin
        for d in demo_stream(TURN, seed):
            line += 1
            now = begin + d.time - START
            # a word of the story's own, and one that no other record has
            text = f"{d.text} story{seed}x{d.topic.split()[0]} only{line}" if fresh_words else d.text
            yield Record(value=text, position={"line": line}, time=now, id=str(line))
        seed, begin = seed + 1, now


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=5, help="how often memory is looked at")
    parser.add_argument("--beam", type=int, default=16)
    parser.add_argument("--fresh-words", action="store_true", help="the vocabulary grows with every record")
    parser.add_argument("--max-words", type=int, default=100_000, help="bound on the vocabulary")
    options = parser.parse_args()
    warm()
    process = psutil.Process()
    settings = Settings(
        beam=options.beam,
        prior="distance-dependent",
        decay="window",
        decay_scale=2000.0,
        max_words=options.max_words,
    )
    engine = Engine(settings)
    source = endless(options.fresh_words)
    before = process.memory_info().rss
    rows: list[tuple[object, ...]] = [("0", f"{before / 2**20:.1f}", "", "", "", "", "")]
    resident: list[int] = []
    step = options.records // options.steps
    spent, taken = 0.0, 0
    while taken < options.records:
        batch = list(islice(source, min(CHUNK, step - taken % step)))
        started = time.process_time()
        engine.advance(batch)
        spent += time.process_time() - started
        taken += len(batch)
        if taken % step:
            continue
        resident.append(process.memory_info().rss)
        counters = engine.counters()
        rows.append(
            (
                f"{taken:,}",
                f"{resident[-1] / 2**20:.1f}",
                f"{resident[-1] / resident[0]:.3f}",
                counters["clusters_live"],
                counters["undecided"],
                counters["words"],
                f"{taken / spent:,.0f}",
            )
        )
    words = "new words in every record" if options.fresh_words else "a closed vocabulary"
    show(
        f"beam {options.beam}, window of 2,000 records, {words}",
        ("records", "resident MiB", "of the first", "live", "undecided", "words", "records / CPU s"),
        rows,
    )
    growth = resident[-1] / resident[0] - 1.0
    print(f"growth from the first to the last: {growth:+.1%} (goal: at most {GOAL:.0%})")


if __name__ == "__main__":
    main()
