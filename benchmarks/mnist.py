"""MNIST on 50 whitened components under Daume's model: search, refinement, and what a Gibbs sweep costs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.papers.problems import (
    Figures,
    Problem,
    digits,
    greedy,
    millions,
    refined,
    searched,
    split_merge,
    verdict,
    warm,
)
from benchmarks.workloads import median_of, show, timed
from streamdp.offline.chain import Chain
from streamdp.offline.samplers import Gibbs
from streamdp.offline.schedule import Hybrid
from streamdp.offline.starts import Order, order_of, random_clusters

CLUSTERS = 100
"""Clusters that refinement from a random start begins with."""
Row = tuple[object, ...]


class Size(NamedTuple):
    """A subset: what the paper's search reached, what refinement is to reach and how long it may try."""

    paper: float
    refined: float
    rounds: int
    widest: int


SIZES = {
    3_000: Size(2.04e5, 1.95e5, 300, 16),
    12_000: Size(8.02e5, 7.6e5, 300, 16),
    60_000: Size(3.96e6, 3.75e6, 100, 100),
}
WITHIN = 0.02


def many_splits() -> Hybrid:
    """Gibbs sweeps with splits and mergers in between; vectors are cheap to propose for."""
    return split_merge(scans=3, proposals=20)


def row(name: str, f: Figures, seconds: float, goal: str = "", met: bool | None = None) -> Row:
    """A line of a table."""
    return (name, f.clusters, millions(f.loss), millions(f.objective), f"{seconds:.3f}", goal, verdict(met))


def passes(problem: Problem, size: Size) -> Iterator[Row]:
    """Greedy search and beams, in one pass."""
    goal = f"{millions(size.paper)} +- {WITHIN:.0%}"
    orders: tuple[Order, ...] = ("descending", "random")
    for order in orders:
        f, seconds = greedy(problem, order, count_prior=True)
        yield row(f"count prior, {order}", f, seconds, goal, abs(f.loss / size.paper - 1) <= WITHIN)
    f, seconds = greedy(problem, "ascending", count_prior=True)
    yield row("count prior, ascending", f, seconds)
    f, seconds = greedy(problem, "ascending")
    yield row("CRP, ascending", f, seconds)
    shuffled = order_of(problem.chain(), "random")
    for width in sorted({1, 16, size.widest}):
        for temper in (1.0, 0.5, 0.25, 0.0):
            labels, seconds = searched(problem, shuffled, width, temper)
            name = f"beam {width}, random, temper {temper:g}"
            yield row(name, problem.figures(problem.chain(labels)), seconds)


def refinements(problem: Problem, size: Size) -> Iterator[Row]:
    """The answer of a tempered beam, or random clusters, refined."""
    answer, _ = searched(problem, order_of(problem.chain(), "random"), 16, 0.0)

    def from_answer(chain: Chain) -> None:
        chain.set_labels(answer)

    def from_random(chain: Chain) -> None:
        random_clusters(chain, CLUSTERS)

    for start, name in ((from_answer, "beam 16, temper 0"), (from_random, f"{CLUSTERS} random clusters")):
        for move, moves in ((Gibbs(), "Gibbs"), (many_splits(), "Gibbs, split-merge")):
            f, seconds = refined(problem, start, move, size.rounds)
            met = f.loss <= size.refined
            yield row(f"{name}: {moves}", f, seconds, f"<= {millions(size.refined)}", met)


def numpy_sweep(vectors: np.ndarray, labels: np.ndarray, concentration: float, mean_variance: float) -> None:
    """A collapsed Gibbs sweep with unit variance, numpy scoring all clusters at once; changes ``labels``."""
    rng, dimension, k = np.random.default_rng(0), vectors.shape[1], int(labels.max()) + 1
    sizes = np.zeros(2 * k + 100)
    sums = np.zeros((len(sizes), dimension))
    np.add.at(sizes, labels, 1.0)
    np.add.at(sums, labels, vectors)
    for i, x in enumerate(vectors):
        old = labels[i]
        sizes[old] -= 1.0
        sums[old] -= x
        if sizes[old] == 0.0:  # the last cluster takes its place
            k -= 1
            sizes[old], sums[old] = sizes[k], sums[k]
            labels[labels == k] = old
            sizes[k], sums[k] = 0.0, 0.0
        n = sizes[: k + 1]  # the last is empty: a new cluster
        v = 1.0 / (1.0 / mean_variance + n)
        gaps = x - v[:, None] * sums[: k + 1]
        log_p = -0.5 * dimension * np.log(1.0 + v) - 0.5 * np.einsum("kd,kd->k", gaps, gaps) / (1.0 + v)
        log_p[:k] += np.log(n[:k])
        log_p[k] += np.log(concentration)
        totals = np.cumsum(np.exp(log_p - log_p.max()))
        new = int(np.searchsorted(totals, rng.random() * totals[-1]))
        labels[i] = new
        sizes[new] += 1.0
        sums[new] += x
        k += new == k


def speed(runs: int) -> Iterator[Row]:
    """CPU seconds of the search at width one, and of a Gibbs sweep beside numpy's."""
    problem = digits(60_000)
    order = order_of(problem.chain(), "random")
    for temper in (1.0, 0.0):
        seconds = median_of(runs, lambda temper=temper: searched(problem, order, 1, temper)[1])
        yield (
            f"search of 60,000, width 1, temper {temper:g}",
            f"{seconds:.3f}",
            "0.5",
            verdict(seconds < 0.5),
        )
    few = digits(10_000)
    chain, gibbs = few.chain(), Gibbs()
    random_clusters(chain, 50)
    for _ in range(10):
        gibbs(chain)
    before, k = chain.labels, chain.clusters
    seconds = median(timed(lambda: gibbs(chain)) for _ in range(4 * runs + 1))
    name = f"Gibbs sweep of 10,000, K = {k}"
    yield (name, f"{seconds:.4f}", "0.06", verdict(seconds <= 0.06))
    assert few.data.vectors is not None
    vectors = few.data.vectors
    peer = median_of(runs, lambda: timed(lambda: numpy_sweep(vectors, before.copy(), 1.0, 0.1)))
    yield (f"the same by numpy: {peer / seconds:.0f} times as long", f"{peer:.3f}", "", "")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--runs", type=int, default=3, help="timed runs, of which the median counts")
    options = parser.parse_args()
    columns = ("", "K", "NLL", "J", "CPU s", "goal for NLL", "met")
    for n in options.sizes:
        problem = digits(n)
        warm(problem, Gibbs(), many_splits())
        few = Problem(problem.data.take(np.arange(20)), problem.likelihood, problem.prior)
        greedy(few, "given", count_prior=True)
        show(f"MNIST {n:,}, one pass: NLL and J in millions of nats", columns, passes(problem, SIZES[n]))
        show(f"MNIST {n:,}, {SIZES[n].rounds} rounds", columns, refinements(problem, SIZES[n]))
    show("CPU seconds", ("", "seconds", "goal", "met"), speed(options.runs))


if __name__ == "__main__":
    main()
