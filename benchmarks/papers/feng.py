"""Feng, Blei and Frazier 2015: best-first search for the distance-dependent Chinese restaurant process."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import matplotlib.pyplot as plt
import msgspec
import numpy as np

from benchmarks.papers.figures import Experiment, Result, Table, interval, on_all_cores
from benchmarks.papers.problems import Problem
from benchmarks.priors import framed
from streamdp.likelihoods import Gaussian
from streamdp.offline.astar import astar
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import LinkGibbs
from streamdp.priors import DistanceDependent, Window

SIZES = (10, 20, 40, 80, 160)
QUEUES = (1, 3, 10, 30, 100, 300)
QUEUE = 100
SCORES = ("predictive", "inadmissible", "trivial")
MODES = {"likelihood_only": "log p(x | z), as in the paper", "joint": "log p(z, x)"}
GIBBS, SWEEPS = "Gibbs over links", 200
WINDOW = 20.0
SETS = 20


class Found(NamedTuple):
    """The best that a method has met, in nats, and its CPU seconds."""

    value: float
    seconds: float


def linked(n: int, seed: int) -> Problem:
    """Points in the plane, drawn from the distance-dependent process with a window over times."""
    rng = np.random.default_rng(seed)
    times = rng.exponential(1.0, n).cumsum()
    labels, clusters = np.zeros(n, np.int64), 0
    for i in range(n):
        near = np.flatnonzero(times[i] - times[:i] <= WINDOW)
        j = rng.integers(len(near) + 1)
        labels[i] = labels[near[j]] if j < len(near) else clusters
        clusters += int(j == len(near))
    centres = math.sqrt(10.0) * rng.normal(size=(clusters, 2))
    data = msgspec.structs.replace(Data.of_vectors(centres[labels] + rng.normal(size=(n, 2))), times=times)
    prior = DistanceDependent(1.0, Window(WINDOW), unit="seconds")
    return Problem(data, Gaussian(dimension=2, variance=1.0, mean_variance=10.0), prior)


def by_search(problem: Problem, mode: str, score: str, queue: int = QUEUE) -> Found:
    """What best-first search finds."""
    began = time.process_time()
    given = problem.data, problem.likelihood, problem.prior
    found = astar(*given, queue=queue, score=score, mode=mode)
    return Found(found.score, time.process_time() - began)


def by_links(problem: Problem, mode: str) -> Found:
    """The best that Gibbs sampling of links meets."""
    began = time.process_time()
    chain, move, best = problem.chain(), LinkGibbs(), -math.inf
    for _ in range(SWEEPS):
        move(chain)
        best = max(best, chain.log_joint if mode == "joint" else chain.log_likelihood)
    return Found(best, time.process_time() - began)


def of_one_set(job: tuple[int, int, str]) -> dict[tuple[str, int], Found]:
    """Of a set, what each method finds; of the largest also by queue."""
    n, seed, mode = job
    for score in SCORES:  # compiled, or loaded, before anything is timed
        by_search(linked(10, 0), mode, score, 2)
    by_links(linked(10, 0), mode)
    problem = linked(n, seed)
    queues = QUEUES if n == SIZES[-1] else (QUEUE,)
    found = {(score, q): by_search(problem, mode, score, q) for score in SCORES for q in queues}
    return {**found, (GIBBS, QUEUE): by_links(problem, mode)}


class Sets(NamedTuple):
    """What was found of so many records in each set."""

    found: list[dict[tuple[str, int], Found]]

    def gaps(self, name: str, queue: int = QUEUE) -> np.ndarray:
        """How far below the best that any method found, shape (sets,)."""
        best = [max(each.values()).value for each in self.found]
        return np.array(best) - [each[name, queue].value for each in self.found]

    def seconds(self, name: str, queue: int = QUEUE) -> float:
        """Mean CPU seconds."""
        return float(np.mean([each[name, queue].seconds for each in self.found]))


def search() -> Result:
    """Figure 1: best-first search and Gibbs sampling of links, by records and by queue."""
    figure, panels = plt.subplots(2, 4, figsize=(15, 6.5))
    result = Result(picture=figure)
    for row, (mode, objective) in enumerate(MODES.items()):
        jobs = [(n, seed, mode) for n in SIZES for seed in range(SETS)]
        found = on_all_cores(of_one_set, jobs)
        by_size = {n: Sets(found[i * SETS : (i + 1) * SETS]) for i, n in enumerate(SIZES)}
        most = by_size[SIZES[-1]]
        names = [*SCORES, GIBBS]
        for name in names:
            panels[row, 0].loglog(SIZES, [s.seconds(name) for s in by_size.values()], "o-", label=name)
            panels[row, 1].plot(SIZES, [-s.gaps(name).mean() for s in by_size.values()], "o-")
        for name in SCORES:
            panels[row, 2].loglog(QUEUES, [most.seconds(name, q) for q in QUEUES], "o-")
            panels[row, 3].semilogx(QUEUES, [-most.gaps(name, q).mean() for q in QUEUES], "o-")
        framed(panels[row, 0], "records", "CPU seconds", objective)
        framed(panels[row, 1], "records", "score less the best found", f"queue of {QUEUE}")
        framed(panels[row, 2], "queue", "CPU seconds", f"{SIZES[-1]} records")
        framed(panels[row, 3], "queue", "score less the best found", "")
        rows = [(name, *(interval(s.gaps(name)) for s in by_size.values())) for name in names]
        title = f"{objective}: mean nats below the best found, {SETS} sets"
        result.tables.append(Table(("", *(f"N = {n}" for n in SIZES)), rows, title))
        rows = [(name, *(f"{1e3 * s.seconds(name):.1f}" for s in by_size.values())) for name in names]
        title = f"{objective}: mean CPU milliseconds"
        result.tables.append(Table(("", *(f"N = {n}" for n in SIZES)), rows, title))
    panels[0, 0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return result


EXPERIMENTS = (Experiment("search", "figure 1", search),)
