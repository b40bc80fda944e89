"""Clustering a finite set of records: from settings and a method to one clustering and what led to it."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.beam.state import REVISIONS
from streamdp.errors import Exit
from streamdp.likelihoods import HierarchicalDirichlet, HierarchicalPitmanYor
from streamdp.likelihoods.base import Likelihood
from streamdp.offline.chain import Chain
from streamdp.offline.hyper import Hyper, default_names
from streamdp.offline.moves import Gibbs, LinkGibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.permutation import Permutation
from streamdp.offline.prepare import Data, base_measure
from streamdp.offline.schedule import Best, Hybrid, Trace, Watcher, run, run_chains
from streamdp.offline.similarity import LIMIT, point_estimate, similarity_matrix
from streamdp.offline.starts import one_cluster, random_clusters, sequential, singletons
from streamdp.priors import DistanceDependent
from streamdp.priors.base import Prior
from streamdp.settings import Settings
from streamdp.settings.assemble import build_model
from streamdp.settings.load import ConfigError

Method = Literal["beam", "astar", "gibbs", "split-merge", "permutation", "hybrid"]
Start = Literal["sequential", "one", "singletons", "random", "beam"]
Estimate = Literal["best", "vi", "binder"]
SAMPLERS = ("gibbs", "split-merge", "permutation", "hybrid")
CLIMB = 1e-3
DRAWN = ("beta", "base_concentration", "word_discount", "variance", "mean_variance", "kappa", "shape")
"""Hyperparameters of likelihoods that a hybrid draws where they are automatic."""
MOST_DRAWS = 200

Report = Callable[[int, Chain, Trace], None]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to search.

    Parameters
    ----------
    method
        "beam" and "astar" search; the others sample, from ``start``.
    start
        Where chains start.
    rounds, seconds
        When a sampler stops, whichever comes first.
    chains
        How many run side by side.
    estimate
        Which clustering is the answer: the best met, or the point estimate of the draws.
    hyper
        Whether samplers draw the hyperparameters that are automatic.
    queue, score, order
        Of A*.
    """

    method: Method = "hybrid"
    start: Start = "sequential"
    rounds: int | None = None
    seconds: float | None = 30.0
    chains: int = 1
    estimate: Estimate = "best"
    hyper: bool = True
    queue: int = 100
    score: str = "inadmissible"
    order: str = "given"


@dataclasses.dataclass
class Fit:
    """A clustering, the chain that holds it, and how it was found."""

    labels: np.ndarray
    chain: Chain
    traces: list[Trace] = dataclasses.field(default_factory=list)
    draws: list[np.ndarray] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is clustered, and under which model."""

    data: Data
    likelihood: Likelihood[Any, Any]
    prior: Prior
    settings: Settings
    distances: np.ndarray | None = None
    learned: bool = False
    """Whether part of the model was learned from these records, so that nothing can be proved."""

    def chain(self, seed: int | np.random.SeedSequence, labels: np.ndarray | None = None) -> Chain:
        """A chain over it."""
        return Chain(self.data, self.likelihood, self.prior, labels, seed=seed, distances=self.distances)


def with_base(data: Data, likelihood: Likelihood[Any, Any]) -> Likelihood[Any, Any]:
    """The family with its base measure learned from all records at once, and fixed, where it has one."""
    if not isinstance(likelihood, HierarchicalDirichlet | HierarchicalPitmanYor):
        return likelihood
    if likelihood.base is not None:
        return likelihood
    return dataclasses.replace(likelihood, base=tuple(base_measure(data, likelihood).tolist()))


def fit(
    problem: Problem,
    plan: Plan,
    report: Report | None = None,
    stop: threading.Event | None = None,
    labels: np.ndarray | None = None,
) -> Fit:
    """Cluster. Raises ConfigError where method and model do not go together.

    Parameters
    ----------
    problem, plan
        What and how.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.
    labels
        Where samplers start, instead of ``plan.start``.
    """
    try:
        if plan.method == "beam":
            return _of_labels(problem, beam_labels(problem))
        if plan.method == "astar":
            return _astar(problem, plan, stop)
        return _sample(problem, plan, report, stop, labels)
    except ValueError as error:
        raise ConfigError(str(error), Exit.BAD_DATA) from error


def _of_labels(problem: Problem, labels: np.ndarray) -> Fit:
    chain = problem.chain(problem.settings.seed, labels)
    return Fit(chain.labels, chain)


def beam_labels(problem: Problem) -> np.ndarray:
    """The clustering of a beam's best hypothesis at the end of the records, shape (N,)."""
    if problem.distances is not None:
        raise ConfigError("the beam does not read distances: use gibbs or astar", Exit.USAGE)
    data = problem.data
    search = BeamSearch(build_model(problem.settings, problem.prior, problem.likelihood))
    labels = np.zeros(data.size, np.int64)
    if data.sparse:
        search.ensure_words(int(data.words.max()) + 1)
    for start, stop, out in search.run(data):
        labels[start:stop] = out.label[start:stop]
        revisions = int(out.meta[REVISIONS])
        for r in range(revisions):  # in order: a record may be revised more than once
            labels[out.revision_seq[r]] = out.revision_label[r]
    return labels


def _astar(problem: Problem, plan: Plan, stop: threading.Event | None) -> Fit:
    from streamdp.offline.astar import astar

    deadline = math.inf if plan.seconds is None else time.monotonic() + plan.seconds
    found = astar(
        problem.data,
        problem.likelihood,
        problem.prior,
        queue=plan.queue,
        score=plan.score,  # type: ignore[arg-type]
        order=plan.order,  # type: ignore[arg-type]
        seed=problem.settings.seed,
        distances=problem.distances,
        until=lambda: time.monotonic() > deadline or (stop is not None and stop.is_set()),
    )
    result = _of_labels(problem, found.labels)
    proved = "proved" if found.proved and not problem.learned else "not proved"
    result.notes.append(
        f"{found.expanded:,} states expanded, {found.enqueued:,} enqueued; "
        f"{proved} to be the most probable clustering"
    )
    return result


def _moves(method: str, prior: Prior) -> list[Move]:
    linked = isinstance(prior, DistanceDependent)
    if method == "gibbs" or (method == "hybrid" and not prior.exchangeable):
        return [LinkGibbs() if linked else Gibbs()]
    if method == "split-merge":
        return [SplitMerge(3)]
    if method == "permutation":
        return [Permutation(keep=CLIMB)]
    return [Gibbs(), SplitMerge(2, scans=3), SequentiallyAllocated()]


def _free(problem: Problem) -> tuple[str, ...]:
    """Hyperparameters of the likelihood that are automatic, each a single number."""
    found = []
    for name in (
        "beta",
        "base_concentration",
        "word_discount",
        "variance",
        "mean_variance",
        "kappa",
        "shape",
    ):
        value = getattr(problem.likelihood, name, None)
        if getattr(problem.settings, name) is None and isinstance(value, float):
            found.append(name)
    return tuple(found)


def _climbing(problem: Problem, plan: Plan) -> list[Move]:
    """Moves of the first half of a hybrid, which need not leave the posterior as it is."""
    climb = Permutation(keep=CLIMB, order="projection", width=50)
    if plan.method == "permutation":
        return [climb, Permutation(keep=CLIMB, adaptive=True)]
    return [climb] if plan.method == "hybrid" and problem.prior.exchangeable else []


def _begin(chain: Chain, problem: Problem, plan: Plan) -> None:
    if plan.start == "one":
        one_cluster(chain)
    elif plan.start == "singletons":
        singletons(chain)
    elif plan.start == "random":
        random_clusters(chain)
    elif plan.start == "beam":
        chain.set_labels(beam_labels(problem))
    else:
        sequential(chain)


def _sample(
    problem: Problem,
    plan: Plan,
    report: Report | None,
    stop: threading.Event | None,
    labels: np.ndarray | None,
) -> Fit:
    _warm(problem, plan)
    seeds = np.random.SeedSequence(problem.settings.seed).spawn(plan.chains)
    chains = [problem.chain(seed, labels) for seed in seeds]
    drawn: list[list[np.ndarray]] = [[] for _ in chains]

    def job(c: int) -> tuple[Trace, Best]:
        if labels is None:
            _begin(chains[c], problem, plan)
        watch = None if report is None else functools.partial(report, c)
        return _run_one(problem, plan, chains[c], drawn[c], watch, stop)

    results = run_chains([lambda c=c: job(c) for c in range(plan.chains)])  # type: ignore[misc]
    top = max(range(plan.chains), key=lambda c: results[c][1].log_joint)
    chain, best = chains[top], results[top][1]
    if problem.settings.concentration is None or plan.hyper:
        chain.replace(prior=best.prior, likelihood=best.likelihood)
    answer, draws = best.labels, [labels for each in drawn for labels in each]
    if plan.estimate != "best":
        if chain.size > LIMIT:
            raise ConfigError(f"a point estimate is for up to {LIMIT:,} records; use --estimate best")
        similarity = similarity_matrix(np.array(draws))
        answer, _ = point_estimate(similarity, np.array(draws), plan.estimate)
    chain.set_labels(answer)
    return Fit(chain.labels, chain, [trace for trace, _ in results], draws)


def _warm(problem: Problem, plan: Plan) -> None:
    """Compile every kernel on a few records, so that compiling takes nothing from the budget."""
    few = problem.data.take(np.arange(min(problem.data.size, 3)))
    distances = None if problem.distances is None else problem.distances[: few.size, : few.size]
    chain = dataclasses.replace(problem, data=few, distances=distances).chain(0)
    sequential(chain)
    for move in [*_climbing(problem, plan), *_moves(plan.method, problem.prior)]:
        move(chain)


def _run_one(
    problem: Problem,
    plan: Plan,
    chain: Chain,
    draws: list[np.ndarray],
    watch: Watcher | None,
    stop: threading.Event | None,
) -> tuple[Trace, Best]:
    """A burn-in of half the budget that may climb, then a half that samples."""
    moves, climbing = _moves(plan.method, problem.prior), _climbing(problem, plan)
    if plan.hyper:
        names = default_names(chain) if problem.settings.concentration is None else ()
        names += _free(problem) if plan.method == "hybrid" else ()
        if names:
            moves.append(Hyper(names))
    halves = [None if whole is None else whole / 2 for whole in (plan.rounds, plan.seconds)]
    rounds = None if plan.rounds is None else max(plan.rounds // 2, 1)
    first = Hybrid(climbing if plan.method == "permutation" else climbing + moves)
    trace, best = run(chain, first, rounds=rounds, seconds=halves[1], watch=watch, stop=stop)
    thin = max(len(trace.seconds) // MOST_DRAWS, 1)
    rest = None if plan.rounds is None else max(plan.rounds - (rounds or 0), 1)
    after, later = run(
        chain,
        Hybrid(moves),
        rounds=rest,
        seconds=halves[1],
        thin=thin,
        draws=draws,
        watch=watch,
        stop=stop,
    )
    return trace.followed_by(after), max(best, later, key=lambda b: b.log_joint)


def check(plan: Plan) -> None:
    """Raise ConfigError (64) for a plan that cannot be."""
    for name, allowed in (("method", Method), ("start", Start), ("estimate", Estimate)):
        if getattr(plan, name) not in get_args(allowed):
            raise ConfigError(f"--{name} must be one of {', '.join(get_args(allowed))}", Exit.USAGE)
    if plan.chains < 1:
        raise ConfigError("--chains must be at least 1", Exit.USAGE)
