"""Small data sets drawn from the model: how far search and samplers stay behind what is proved best."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from typing import NamedTuple

import numpy as np

from benchmarks.papers.problems import Problem, searched, split_merge, warm
from benchmarks.workloads import show
from streamdp.likelihoods import DirichletMultinomial, Gaussian
from streamdp.offline.astar import AStarResult, astar
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, Move
from streamdp.offline.schedule import Budget, run
from streamdp.priors import CRP

SIZES = (5, 7, 9, 11, 13, 15)
CONCENTRATION = 1.0
MEAN_VARIANCE = 10.0
WORDS, TOKENS = 10, 20
QUEUES = (1, 10, 100)
MOST_STATES = 20_000_000
"""States after which no proof is waited for."""
PROOF = "proof: A*, admissible"
SAME = 1e-6
"""Nats below the best within which a clustering counts as it."""


def partition(rng: np.random.Generator, n: int) -> np.ndarray:
    """Clusters drawn from the Chinese restaurant process."""
    labels, sizes = np.zeros(n, np.int64), np.zeros(n)
    for i in range(n):
        clusters = int(np.count_nonzero(sizes))
        weights = np.append(sizes[:clusters], CONCENTRATION)
        labels[i] = rng.choice(clusters + 1, p=weights / weights.sum())
        sizes[labels[i]] += 1.0
    return labels


def gaussian(rng: np.random.Generator, n: int) -> Problem:
    """Points in the plane around normal centres."""
    labels = partition(rng, n)
    centres = MEAN_VARIANCE**0.5 * rng.normal(size=(n, 2))
    likelihood = Gaussian(dimension=2, variance=1.0, mean_variance=MEAN_VARIANCE)
    return Problem(Data.of_vectors(centres[labels] + rng.normal(size=(n, 2))), likelihood, CRP(CONCENTRATION))


def words(rng: np.random.Generator, n: int) -> Problem:
    """Twenty tokens a record from a vocabulary of ten words, evenly distributed word probabilities."""
    labels = partition(rng, n)
    probabilities = rng.dirichlet(np.ones(WORDS), n)
    counts = [rng.multinomial(TOKENS, probabilities[k]) for k in labels]
    records = [(np.flatnonzero(c), c[c > 0]) for c in counts]
    return Problem(Data.of_words(records), DirichletMultinomial(1.0, WORDS), CRP(CONCENTRATION))


class Answer(NamedTuple):
    """What a method found, the states it expanded and its wall seconds."""

    log_joint: float
    expanded: int
    seconds: float


Answers = dict[str, Answer]


def by_queue(problem: Problem, queue: int, score: str) -> tuple[AStarResult, Answer]:
    """Best-first search with a bounded queue, or without a bound."""
    began = time.monotonic()
    found = astar(
        problem.data,
        problem.likelihood,
        problem.prior,
        queue=queue,
        score=score,
        max_states=MOST_STATES,
    )
    return found, Answer(found.log_joint, found.expanded, time.monotonic() - began)


def by_beam(problem: Problem, width: int) -> Answer:
    """A beam in the given order."""
    began = time.monotonic()
    labels, _ = searched(problem, np.arange(problem.data.size), width)
    seconds = time.monotonic() - began
    return Answer(problem.chain(labels).log_joint, 0, seconds)


def by_sampling(problem: Problem, move: Move, seconds: float, seed: int) -> Answer:
    """The best clustering met from one cluster in so many wall seconds, and at least one round."""
    began = time.monotonic()
    chain = problem.chain(seed=seed)
    left = max(seconds - (time.monotonic() - began), 0.0)
    _, best = run(chain, move, Budget(seconds=left))
    return Answer(best.log_joint, 0, time.monotonic() - began)


def answers(problem: Problem, seed: int) -> tuple[Answers, bool]:
    """Every method's answer to one data set, and whether the best is proved."""
    exact, proof = by_queue(problem, 0, "admissible")
    found: Answers = {f"beam {width}": by_beam(problem, width) for width in QUEUES}
    for queue in QUEUES:
        found[f"A*, inadmissible, {queue}"] = by_queue(problem, queue, "inadmissible")[1]
    found["A*, predictive, 100"] = by_queue(problem, 100, "predictive")[1]
    moves: dict[str, Callable[[], Move]] = {"Gibbs": Gibbs, "split-merge": split_merge}
    budgets = {"A*": found[f"A*, inadmissible, {QUEUES[-1]}"].seconds, "proof": proof.seconds}
    for name, make in moves.items():
        for budget, seconds in budgets.items():
            found[f"{name}, time of {budget}"] = by_sampling(problem, make(), seconds, seed)
    return found | {PROOF: proof}, exact.proved


def table(make: Callable[[np.random.Generator, int], Problem], sets: int) -> Iterator[tuple[object, ...]]:
    """A line for each method: mean gap and share of sets solved by N; states and time at the largest."""
    kept: dict[int, list[Answers]] = {}
    unproved = 0
    for n in SIZES:
        kept[n] = []
        for seed in range(sets):
            found, proved = answers(make(np.random.default_rng((n, seed)), n), seed)
            kept[n] += [found] if proved else []
            unproved += not proved
    for name in kept[SIZES[0]][0]:
        cells = []
        for n in SIZES:
            gaps = [found[PROOF].log_joint - found[name].log_joint for found in kept[n]]
            cells.append(f"{max(mean(gaps), 0.0):.2f} {mean(gap < SAME for gap in gaps):4.0%}")
        largest = [found[name] for found in kept[SIZES[-1]]]
        expanded = round(median(a.expanded for a in largest))
        yield (name, *cells, expanded or "", f"{1e3 * median(a.seconds for a in largest):.2f}")
    if unproved:
        yield (f"{unproved} sets left out: nothing proved", *[""] * (len(SIZES) + 2))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20, help="data sets of each size")
    options = parser.parse_args()
    for title, make in (("Gaussian clusters in the plane", gaussian), ("Dirichlet-multinomial", words)):
        problem = make(np.random.default_rng(0), 20)
        warm(problem, Gibbs(), split_merge())
        for score in ("inadmissible", "predictive"):
            by_queue(make(np.random.default_rng(0), SIZES[0]), 1, score)
        show(
            f"{title}, {options.sets} sets of N records: mean gap in nats, share of sets solved; "
            f"states and wall ms at {SIZES[-1]}",
            ("", *(f"N = {n}" for n in SIZES), "states", "ms"),
            table(make, options.sets),
        )


if __name__ == "__main__":
    main()
