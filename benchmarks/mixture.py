"""A mixture of 40 Gaussians from one cluster, as Liang et al. do: which moves find all, and how soon."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.papers.problems import Problem, allocated, permuted, split_merge, verdict, warm
from benchmarks.workloads import show
from streamdp.likelihoods import Gaussian
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, Move
from streamdp.priors import CRP
from streamdp.scoring.agreement import agreement

RECORDS, DIMENSION, CLUSTERS = 10_000, 40, 40
ALIKE = 0.999
"""NMI from which the clusters count as found."""
GOAL = 5.0
"""CPU seconds in which permutation moves are to find them, and Gibbs sampling alone is not expected to."""
MOVES: dict[str, tuple[Callable[[], Move], bool | None]] = {
    "Gibbs": (Gibbs, False),
    "Gibbs, split-merge": (split_merge, None),
    "Gibbs, sequentially allocated": (allocated, None),
    "Gibbs, uniform permutations": (lambda: permuted("uniform"), None),
    "Gibbs, permutations by projection": (lambda: permuted("projection-pair"), True),
}
"""What is tried, and whether it is expected to reach the goal."""
CASES = ((1.5, 30.0), (2.0, 100.0))
"""Standard deviation of the centres, and their prior variance."""


class Run(NamedTuple):
    """How a chain ended."""

    found: bool
    seconds: float
    clusters: int
    nmi: float
    log_joint: float


def mixture(deviation: float, mean_variance: float) -> tuple[Problem, np.ndarray]:
    """Normal centres, unit noise around them; and the true clusters."""
    rng = np.random.default_rng(1)
    centres = deviation * rng.normal(size=(CLUSTERS, DIMENSION))
    truth = rng.integers(0, CLUSTERS, RECORDS)
    vectors = centres[truth] + rng.normal(size=(RECORDS, DIMENSION))
    likelihood = Gaussian(dimension=DIMENSION, variance=1.0, mean_variance=mean_variance)
    return Problem(Data.of_vectors(vectors), likelihood, CRP(1.0)), truth


def tried(problem: Problem, truth: np.ndarray, move: Move, seed: int, budget: float) -> Run:
    """Rounds of a move from one cluster, until all clusters are found or the CPU seconds are used up."""
    chain = problem.chain(seed=seed)
    seconds, found = 0.0, False
    while seconds < budget and not found:
        began = time.process_time()
        move(chain)
        seconds += time.process_time() - began
        found = chain.clusters == CLUSTERS and agreement(chain.labels, truth).nmi >= ALIKE
    nmi = agreement(chain.labels, truth).nmi
    return Run(found, seconds, chain.clusters, nmi, chain.log_joint)


def rows(problem: Problem, truth: np.ndarray, seeds: int, budget: float) -> Iterator[tuple[object, ...]]:
    """A line for each kind of move: medians over the seeds."""
    best = problem.chain(truth).log_joint
    for name, (make, expected) in MOVES.items():
        runs = [tried(problem, truth, make(), seed, budget) for seed in range(seeds)]
        in_time = [run.found and run.seconds <= GOAL for run in runs]
        seconds = median(run.seconds for run in runs)
        yield (
            name,
            f"{sum(run.found for run in runs)} of {seeds}",
            f"{seconds:.2f}" if seconds < budget else f"> {budget:g}",
            round(median(run.clusters for run in runs)),
            f"{median(run.nmi for run in runs):.4f}",
            f"{median(run.log_joint for run in runs) - best:,.0f}",
            "" if expected is None else f"{'all' if expected else 'none'} in {GOAL:g} s",
            verdict(None if expected is None else all(hit is expected for hit in in_time)),
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="chains of each kind")
    parser.add_argument("--budget", type=float, default=6.0, help="CPU seconds of a chain")
    options = parser.parse_args()
    for deviation, mean_variance in CASES:
        problem, truth = mixture(deviation, mean_variance)
        warm(problem, *(make() for make, _ in MOVES.values()))
        show(
            f"{RECORDS:,} points, {DIMENSION} dimensions, {CLUSTERS} clusters of unit variance: "
            f"centres' deviation {deviation:g}, prior variance {mean_variance:g}",
            ("", "found", "CPU s", "K", "NMI", "log joint less truth's", "expected", "met"),
            rows(problem, truth, options.seeds, options.budget),
        )


if __name__ == "__main__":
    main()
