"""Cost per record against the number of live clusters, on generated short texts under the CRP.

State: K topics, each told three times in random order (six to twelve words each), absorbed by a beam
of width 1; nothing ever closes. The concentration is K / 5, with which about as many clusters are found
as there are topics. Measured, at each width from that state: 5,000 more records, of topics drawn
uniformly; 5 % of them, but at most a tenth of K, are of topics never told before.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from benchmarks.workloads import ShortTexts, chunks, feed, show_named, timed, warm, word_search
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.settings import Settings

GOAL = 0.3
"""The exponent of the cost in K stays below."""

TOLD = 3
SHARE = 5
"""Topics over the concentration."""


class Point(NamedTuple):
    """What was seen at one K, times in CPU microseconds per record."""

    clusters: int
    live: int
    grown: int
    cost: float
    scoring: float
    postings: float
    touched: float
    classes: int
    copies: float


def touched_per_record(search: BeamSearch, texts: Batch, sample: int = 200) -> float:
    """Clusters that share a word with a record, on average over the first records."""
    index = search.words.inverted
    met = 0
    for i in range(sample):
        words = texts.words[texts.offsets[i] : texts.offsets[i + 1]]
        lists = [index.lists[w] for w in words]
        slots = [index.slot[row["start"] : row["start"] + row["length"]] for row in lists]
        met += np.unique(np.concatenate(slots)).shape[0]
    return met / sample


def copied(value: Any) -> Any:
    """Arrays and tuples of them, copied."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return type(value)(*(copied(part) for part in value))


def widened(seeded: BeamSearch, settings: Settings) -> BeamSearch:
    """A beam of the settings' width that goes on from what a beam of width 1 has found."""
    search = word_search(settings, 1)
    state = copied(seeded.state)
    beam, pool = search.state.beam, state.pool
    for wide, narrow in zip(beam, state.beam, strict=True):
        wide[tuple(slice(n) for n in narrow.shape)] = narrow  # counters are of no dimension
    holds = np.zeros((2, settings.beam, pool.holds.shape[2]), np.uint8)
    search.state = state._replace(beam=beam, pool=pool._replace(holds=holds))
    return search


def measure(clusters: int, widths: list[int], records: int) -> list[Point]:
    """Seed a state with this many clusters, then measure from there at each width."""
    fresh = min(records // 20, clusters // 10)
    source = ShortTexts(clusters + fresh, seed=clusters)
    order = np.concatenate([source.rng.permutation(clusters) for _ in range(TOLD)])
    model = {"prior": "crp", "concentration": clusters / SHARE}
    seeded = word_search(Settings(beam=1, **model), source.WORDS)  # type: ignore[arg-type]
    feed(seeded, chunks(source.about(order).batch))
    topics = source.rng.integers(0, clusters, records)
    topics[source.rng.permutation(records)[:fresh]] = clusters + np.arange(fresh)
    texts = source.about(topics).batch
    lengths = seeded.words.inverted.lists["length"][texts.words]
    touched = touched_per_record(seeded, texts)
    batches = chunks(texts)
    points = []
    for width in widths:
        search = widened(seeded, Settings(beam=width, **model))  # type: ignore[arg-type]
        before = search.counters()
        search.score(batches[0])  # scratch space fits from here on
        scored = [timed(lambda search=search: search.score(batches[0])) for _ in range(2)]
        scoring = min(scored) / batches[0].size
        seconds = timed(lambda search=search: feed(search, batches))
        after = search.counters()
        points.append(
            Point(
                clusters,
                before["clusters_live"],
                after["clusters_live"],
                1e6 * seconds / records,
                1e6 * scoring,
                float(lengths.sum()) / records,
                touched,
                int(seeded.words.sizes.counters.used),
                (after["cluster_copies"] - before["cluster_copies"]) / records,
            )
        )
    return points


def exponent(points: list[Point]) -> float:
    """Slope of log cost over log live clusters, by least squares."""
    x, y = np.log([p.live for p in points]), np.log([p.cost for p in points])
    return float(np.polyfit(x, y, 1)[0])


def plot(path: str, found: dict[int, list[Point]]) -> None:
    """Draw cost against clusters."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for width, points in found.items():
        label = f"beam {width}, exponent {exponent(points):.2f}"
        axes.loglog([p.live for p in points], [p.cost for p in points], "o-", label=label)
    axes.set_xlabel("live clusters")
    axes.set_ylabel("CPU microseconds per record")
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clusters", nargs="+", type=int, default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--records", type=int, default=5_000, help="records measured at each point")
    parser.add_argument("--plot", help="file to draw the curve into")
    options = parser.parse_args()
    warm()
    found: dict[int, list[Point]] = {}
    measured = []
    for clusters in options.clusters:
        points = measure(clusters, options.beams, options.records)
        measured.append(dict(zip(options.beams, points, strict=True)))
    for width in options.beams:
        points = found[width] = [by_width[width] for by_width in measured]
        rows = [
            {
                "topics": f"{p.clusters:,}",
                "live": p.live,
                "live after": p.grown,
                "us / record": f"{p.cost:.1f}",
                "scoring alone": f"{p.scoring:.1f}",
                "postings": f"{p.postings:,.0f}",
                "touched": f"{p.touched:,.0f}",
                "size classes": p.classes,
                "copies": f"{p.copies:.1f}",
            }
            for p in points
        ]
        show_named(f"beam {width}, {options.records:,} records at each K", rows)
        if len(points) > 1:
            last = exponent(points[-2:])
            whole = exponent(points)
            print(f"exponent {whole:.2f} (goal: below {GOAL}), over the last two points {last:.2f}\n")
    if options.plot:
        plot(options.plot, found)


if __name__ == "__main__":
    main()
