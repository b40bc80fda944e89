"""Which beam width to take for data that nobody has seen: agreement, evidence and rate, by set and order.

Each set is read in several orders: neighbouring records change places, times stay where they are. The width
for a set is chosen on all others, and judged on it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.quality import answers_of, told_of, truth_of
from benchmarks.workloads import digits, documents, drifting_mixture, mnist, segments, show, show_named, warm
from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

TEXTS = ("tweets_t", "tweets", "news_t", "news", "reuters21578")
VECTORS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "digits": digits,
    "segments": segments,
    "mixture": lambda: drifting_mixture(20_000),
    "mnist": lambda: tuple(part[:10_000] for part in mnist()),  # type: ignore[return-value]
}
BLOCK = 10
"""Neighbours that change places in another order."""

EQUAL = 0.002
"""A difference of agreement that is less than that between two orders."""


class Seen(NamedTuple):
    """Agreement of labels as first announced and as they are in the end, evidence, microseconds a record."""

    first: float
    newest: float
    rand: float
    evidence: float
    cost: float


def read(name: str) -> tuple[list[Record], np.ndarray]:
    """Records, one after the other, and the true clusters; -1 where the truth is unknown."""
    if name in VECTORS:
        rows, truth = VECTORS[name]()
        return [Record(row.tolist(), {}, time=float(i)) for i, row in enumerate(rows)], truth
    found = documents(name)
    return [Record(d.text, {}, time=d.time) for d in found], truth_of(found)


def order_of(n: int, seed: int) -> np.ndarray:
    """Neighbours in another order; seed 0: as they are."""
    if seed == 0:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    return np.concatenate([i + rng.permutation(min(BLOCK, n - i)) for i in range(0, n, BLOCK)])


def run(records: Sequence[Record], truth: np.ndarray, width: int, seed: int) -> Seen:
    """Read a set in one of its orders."""
    order = order_of(len(records), seed)
    placed = [
        msgspec.structs.replace(records[j], time=records[i].time, position={"line": i + 1})
        for i, j in enumerate(order.tolist())
    ]
    engine = Engine(Settings(beam=width))
    started = time.process_time()
    answers = answers_of(engine, placed)
    seconds = time.process_time() - started
    first, newest = told_of(answers, len(records))
    known = (truth[order] >= 0) & (newest >= 0)
    announced, revised = (agreement(labels[known], truth[order][known]) for labels in (first, newest))
    evidence = engine.log_evidence / len(records)
    return Seen(announced.nmi, revised.nmi, revised.ari, evidence, 1e6 * seconds / len(records))


def chosen(means: dict[str, dict[int, Seen]], left_out: str, widths: Sequence[int]) -> int:
    """The narrowest width whose newest labels agree as well as any's, in the mean of the other sets."""
    others = [name for name in means if name != left_out]
    mean = {width: float(np.mean([means[name][width].newest for name in others])) for width in widths}
    return min(width for width in widths if mean[width] >= max(mean.values()) - EQUAL)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*TEXTS, *VECTORS], choices=[*TEXTS, *VECTORS])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--orders", type=int, default=5)
    options = parser.parse_args()
    warm()
    means: dict[str, dict[int, Seen]] = {}
    rows = list[dict[str, object]]()
    for name in options.sets:
        records, truth = read(name)
        means[name] = {}
        for width in options.beams:
            seen = [run(records, truth, width, seed) for seed in range(options.orders)]
            mean = means[name][width] = Seen(*np.mean(seen, axis=0).tolist())
            spread = np.std([each.newest for each in seen], ddof=1) if len(seen) > 1 else 0.0
            rows.append(
                {
                    "set": name,
                    "beam": width,
                    "NMI first": f"{mean.first:.4f}",
                    "newest": f"{mean.newest:.4f}",
                    "of orders": f"± {spread:.4f}",
                    "ARI": f"{mean.rand:.3f}",
                    "nats a record": f"{mean.evidence:,.3f}",
                    "us a record": f"{mean.cost:.1f}",
                }
            )
    show_named(f"by beam width, means of {options.orders} orders", rows)
    judged = []
    for name, of in means.items() if len(means) > 1 else ():
        width = chosen(means, name, options.beams)
        best = max(each.newest for each in of.values())
        judged.append((name, width, f"{of[width].newest:.4f}", f"{best:.4f}"))
    show("chosen on the other sets", ("set", "beam", "NMI newest", "best of any"), judged)


if __name__ == "__main__":
    main()
