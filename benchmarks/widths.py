"""Whether a wider beam finds more: log joint and evidence of every stream and prior, by beam width.

The log joint is that of the beam's best hypothesis. Gains are over the first width, and with several orders
(neighbouring records change places) they have a standard error: without one, a few thousand nats say little.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.workloads import (
    Encoded,
    chunks,
    digits,
    documents,
    drifting_mixture,
    encode,
    feed,
    mnist,
    show,
    strangers,
    vector_search,
    word_search,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.likelihoods.base import Moments
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import WARMUP, build_likelihood, build_prior

PRIORS = ("distance-dependent", "crp", "pitman-yor", "uniform")
CORPORA = ("tweets_t", "tweets", "news_t", "news", "reuters21578")
TRUTHLESS = np.zeros(0, np.int64)


class Stream(NamedTuple):
    """Encoded records, how many words there are (none: vectors), and the true clusters, if known."""

    batch: Batch
    vocabulary: int
    truth: np.ndarray


def corpus(name: str) -> Stream:
    """A corpus; the truth is -1 where a text has none."""
    found = documents(name)
    names = [str(d.cluster) for d in found]
    truth = np.unique(names, return_inverse=True)[1]
    truth[[d.cluster is None for d in found]] = -1
    return Stream(*encode(found), truth)


def unlike(texts: Encoded) -> Stream:
    """Texts of which nothing is known to belong together."""
    return Stream(*texts, TRUTHLESS)


def vectors(found: tuple[np.ndarray, np.ndarray]) -> Stream:
    """Vectors, one a second."""
    return Stream(Batch.of_vectors(found[0], np.arange(len(found[0]), dtype=float)), 0, found[1])


STREAMS: dict[str, Callable[[], Stream]] = {
    **{name: lambda name=name: corpus(name) for name in CORPORA},  # type: ignore[misc]
    "strangers-3": lambda: unlike(strangers(20_000, 3)),
    "strangers-8": lambda: unlike(strangers(20_000, 8)),
    "digits": lambda: vectors(digits()),
    "mnist": lambda: vectors(mnist()),
    "mixture": lambda: vectors(drifting_mixture()),
}


BLOCK = 10
"""Neighbours that change places in another order."""


class Seen(NamedTuple):
    """How a run ended; in mean where there were several."""

    joint: float
    evidence: float
    clusters: int
    nmi: float
    seconds: float
    peak: float
    state: float


def new_search(stream: Stream, settings: Settings) -> BeamSearch:
    """A beam that has seen nothing; of vectors the first say where they lie, as in the engine."""
    if stream.vocabulary:
        return word_search(settings, stream.vocabulary)
    first = np.asarray(stream.batch.vectors)[:WARMUP]
    likelihood = build_likelihood(settings, Moments.of(first))
    return vector_search(settings, build_prior(settings, False), likelihood)


def reordered(stream: Stream, seed: int) -> Stream:
    """Records in random order among ten neighbours each; seed 0: as they are."""
    b, n = stream.batch, stream.batch.size
    if seed == 0:
        return stream
    rng = np.random.default_rng(seed)
    order = np.concatenate([i + rng.permutation(min(BLOCK, n - i)) for i in range(0, n, BLOCK)])
    truth = stream.truth[order] if stream.truth.size else stream.truth
    if stream.vocabulary == 0:
        return stream._replace(batch=Batch.of_vectors(np.asarray(b.vectors)[order], b.times), truth=truth)
    taken = np.concatenate([np.arange(b.offsets[i], b.offsets[i + 1]) for i in order])
    offsets = np.concatenate([[0], np.cumsum(np.diff(b.offsets)[order])])
    return stream._replace(batch=Batch(offsets, b.words[taken], b.counts[taken], times=b.times), truth=truth)


def bytes_of(value: Any) -> int:
    """Of all arrays in a state."""
    return value.nbytes if isinstance(value, np.ndarray) else sum(bytes_of(part) for part in value)


def run(name: str, settings: Settings, order: int) -> Seen:
    """A stream under these settings, in one of its orders."""
    stream = reordered(load(name), order)
    search = new_search(stream, settings)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    labels = feed(search, chunks(stream.batch))
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    known = stream.truth >= 0
    nmi = agreement(labels[known], stream.truth[known]).nmi if known.any() else np.nan
    best, live = float(search.log_joints.max()), search.counters()["clusters_live"]
    return Seen(best, search.log_evidence, live, nmi, seconds, peak / 1024, bytes_of(search.state) / 2**20)


@cache
def load(name: str) -> Stream:
    """A stream, read once."""
    return STREAMS[name]()


def apart(name: str, settings: Settings, order: int) -> Seen:
    """The same in a process of its own, so that its memory is told apart."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(run, (name, settings, order))


def warm(name: str, settings: Settings) -> None:
    """Have kernels at hand before the clock is started."""
    stream = load(name)
    feed(new_search(stream, settings), [stream.batch.slice(0, 5)])


def gained(values: list[float], first: list[float]) -> str:
    """The mean difference, and its standard error where there are several."""
    d = np.subtract(values, first)
    error = f" ± {d.std(ddof=1) / np.sqrt(len(d)):,.0f}" if len(d) > 1 else ""
    return f"{d.mean():+,.0f}{error}"


def report(name: str, prior: str, widths: list[int], orders: int) -> None:
    """A table: one stream, one prior, a line for each width; the first is what all are compared with."""
    rows: list[tuple[object, ...]] = []
    warm(name, Settings(prior=prior, beam=1))
    first: list[Seen] = []
    for width in widths:
        seen = [apart(name, Settings(prior=prior, beam=width), order) for order in range(orders)]
        first = first or seen
        s = Seen(*np.mean(seen, axis=0))
        rows.append(
            (
                width,
                f"{s.joint:,.0f}",
                gained([x.joint for x in seen], [x.joint for x in first]),
                f"{s.evidence:,.0f}",
                gained([x.evidence for x in seen], [x.evidence for x in first]),
                f"{s.clusters:,.0f}",
                "-" if np.isnan(s.nmi) else f"{s.nmi:.3f}",
                f"{s.seconds:.2f}",
                f"{s.peak:.0f}",
                f"{s.state:.1f}",
            )
        )
    show(
        f"{name}, {prior}",
        ("beam", "log joint", "gain", "evidence", "gain", "live", "NMI", "CPU s", "peak MiB", "state MiB"),
        rows,
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--priors", nargs="+", default=list(PRIORS), choices=list(PRIORS))
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--orders", type=int, default=1, help="orders of the records, whose mean counts")
    options = parser.parse_args()
    for name in options.streams:
        for prior in options.priors:
            report(name, prior, options.beams, options.orders)


if __name__ == "__main__":
    main()
