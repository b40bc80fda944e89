"""How long a stream waits for the answer to one record, with few clusters and with many.

``Engine.advance`` of one record after the other: wall / CPU milliseconds, all but the first hundred. Beside
it, records per CPU second one at a time, and in batches. State of many clusters: as ``benchmarks.scaling``
makes it, K topics each told three times in random order, under the CRP, absorbed at beam 1; measured on
records of these topics and, 5 % of them, of fresh ones.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.scaling import SHARE, TOLD
from benchmarks.workloads import CHUNK, Document, ShortTexts, documents, records_of, show, timed, warm
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings

BATCH = 500
"""Records in a batch beside one at a time."""
SKIPPED = 100
"""Records at the beginning whose latency does not count."""
SHARES = (0.5, 0.99, 0.999, 1.0)


def one_by_one(engine: Engine, records: Sequence[Record]) -> np.ndarray:
    """Wall seconds and CPU seconds of ``advance`` for each record, two rows."""
    clocks = (time.perf_counter, time.process_time)
    taken = np.zeros((2, len(records)))
    for i, record in enumerate(records):
        began = [clock() for clock in clocks]
        engine.advance([record])
        taken[:, i] = [clock() for clock in clocks]
        taken[:, i] -= began
    return taken


def percentiles(taken: np.ndarray) -> list[str]:
    """p50, p99, p99.9 and the longest, in milliseconds, wall / CPU."""
    wall, cpu = 1e3 * np.quantile(taken[:, SKIPPED:], SHARES, axis=1).T
    return [f"{w:.2f} / {c:.2f}" for w, c in zip(wall, cpu, strict=True)]


def in_batches(engine: Engine, records: Sequence[Record]) -> None:
    """Let the engine absorb them."""
    for start in range(0, len(records), BATCH):
        engine.advance(records[start : start + BATCH])


def texts_about(source: ShortTexts, topics: np.ndarray) -> list[Record]:
    """One text of made-up words about each of these topics."""
    batch = source.about(topics).batch
    cut = np.split(batch.words, batch.offsets[1:-1])
    return records_of(
        Document(str(i), float(i), " ".join(f"w{word}" for word in words.tolist()))
        for i, words in enumerate(cut)
    )


def crowded(clusters: int, count: int) -> tuple[Callable[[Settings], Engine], list[Record], dict[str, float]]:
    """How an engine with so many clusters is made, records to go on with, and the settings of its model."""
    fresh = min(count // 20, clusters // 10)
    source = ShortTexts(clusters + fresh, seed=clusters)
    order = np.concatenate([source.rng.permutation(clusters) for _ in range(TOLD)])
    model = {"prior": "crp", "concentration": clusters / SHARE}
    seeded = Engine(Settings(beam=1, **model))  # type: ignore[arg-type]
    for start in range(0, len(order), CHUNK):
        seeded.advance(texts_about(source, order[start : start + CHUNK]))
    stored = seeded.dumps()

    def engine(settings: Settings) -> Engine:
        return Engine.loads(stored, settings)

    topics = source.rng.integers(0, clusters, count)
    topics[source.rng.permutation(count)[:fresh]] = clusters + np.arange(fresh)
    return engine, texts_about(source, topics), model  # type: ignore[return-value]


def rows_of(
    make: Callable[[Settings], Engine], records: Sequence[Record], **model: float
) -> Iterator[tuple[object, ...]]:
    """A row for each beam, with second looks and without."""
    for beam in (1, 16):
        for look in (Settings().second_look, 0):
            settings = Settings(beam=beam, second_look=look, **model)  # type: ignore[arg-type]
            engine = make(settings)
            taken = one_by_one(engine, records)
            alone = len(records) / taken[1].sum()
            live = engine.counters()["clusters_live"]
            engine = make(settings)
            together = len(records) / timed(lambda engine=engine: in_batches(engine, records))  # type: ignore[misc]
            rates = (f"{alone:,.0f}", f"{together:,.0f}", f"{together / alone:.1f}")
            yield f"{beam}, {look:,}", live, *percentiles(taken), *rates


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", default="tweets_t", help="tweets_t, tweets, news_t or news")
    parser.add_argument("--clusters", type=int, default=10_000, help="in the crowded state; 0: leave it out")
    parser.add_argument("--records", type=int, default=5_000, help="records measured in the crowded state")
    options = parser.parse_args()
    warm()
    records = records_of(documents(options.corpus))
    list(rows_of(Engine, records[:1600]))  # compiled before the clock runs
    gc.freeze()  # as consume does
    head = ("beam, look", "live", "p50 ms", "p99", "p99.9", "max", "one / CPU s", f"by {BATCH}", "ratio")
    show(f"{options.corpus}, {len(records):,} records, one at a time", head, rows_of(Engine, records))
    if options.clusters:
        make, records, model = crowded(options.clusters, options.records)
        gc.freeze()
        title = f"{options.clusters:,} topics told before, {len(records):,} records, one at a time"
        show(title, head, rows_of(make, records, **model))


if __name__ == "__main__":
    main()
