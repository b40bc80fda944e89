"""Liang, Jordan and Taskar 2007, A permutation-augmented sampler for DP mixture models."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.cluster import KMeans

from benchmarks.papers import problems
from benchmarks.papers.figures import Experiment, Result, Table, interval, on_all_cores
from benchmarks.priors import framed
from streamdp.likelihoods import DirichletMultinomial
from streamdp.offline.chain import Chain
from streamdp.offline.diagnostics import autocorrelation, effective_sample_size
from streamdp.offline.kernels.permutation import Program
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, Move, Permutation
from streamdp.offline.schedule import Hybrid
from streamdp.priors import CRP

BURN_IN, ROUNDS, LAGS = 200, 2_000, (1, 5, 20)
WIDTHS = [(order, keep) for order in ("uniform", "projection") for keep in (0.1, 1e-3, 1e-6)]
CLUSTERS, CLOSE, UNKNOWN = 40, 100.0, "-"
"""Of the mixtures; nats below the truth at which it counts as found; for what the paper shows as a curve."""


class EveryDraw(Permutation):
    """Takes what projections propose even if the log joint falls, and notes the runs kept at each record."""

    def _climb(self, chain: Chain) -> None:
        self._take(chain)

    def _forward(self, *given: Any) -> Program:
        program = super()._forward(*given)
        self.kept = np.diff(program.offset[: len(program.order) + 1])
        return program


MOVES: dict[str, Callable[[], Move]] = {
    "Gibbs": Gibbs,
    "and projections, as in the paper": lambda: problems.permuted("projection"),
    "the same, every draw taken": lambda: Hybrid(
        [Gibbs(), EveryDraw(order="projection", keep=1e-3, width=50)]
    ),
    "and projections through pairs": lambda: problems.permuted("projection-pair"),
    "and uniform permutations": lambda: problems.permuted("uniform"),
    "and split-merge (Jain and Neal)": problems.split_merge,
    "and split-merge (Dahl)": problems.allocated,
}
ORDERED = partial(Permutation, burn_in=BURN_IN)
EXACT: dict[str, Callable[[], Move]] = {
    "Gibbs": Gibbs,
    "uniform permutations": ORDERED,
    "Markov, p(b given a)": partial(ORDERED, order="markov"),
    "Markov, p(b given a) / p(b)": partial(ORDERED, order="markov-ratio"),
    "Gibbs and uniform permutations": lambda: Hybrid([Gibbs(), ORDERED()]),
    "Gibbs and split-merge (Dahl)": problems.allocated,
}
"""Those under which the posterior is invariant, after ``BURN_IN`` rounds."""


@cache
def problem(name: str, seed: int) -> tuple[problems.Problem, np.ndarray | None]:
    """A set of records, and its true clusters where there are any; the seed draws what is generated."""
    if name == "AP":
        return problems.articles(), None
    if name == "MNIST":
        return problems.standardised_digits(5_000, 16), None
    if name == "points":
        return problems.mixture(100, 2, 6, 2.5, 6.25, seed)
    if name != "texts":
        return problems.mixture(10_000, int(name.split()[0]), CLUSTERS, 1.5, 30.0, seed)
    rng = np.random.default_rng(seed)
    topics, truth = rng.dirichlet(np.full(30, 0.3), 6), rng.integers(0, 6, 100)
    bags = [rng.multinomial(rng.integers(1, 16), topics[k]) for k in truth]
    data = Data.of_words([(np.flatnonzero(bag), bag[bag > 0]) for bag in bags])
    return problems.Problem(data, DirichletMultinomial(0.3, 30), CRP(1.0)), truth


class Job(NamedTuple):
    """A chain: on which records, from where, by which moves, for how many CPU seconds."""

    data: str
    start: str
    move: str
    seed: int
    seconds: float = 0.0

    def begun(self, moves: dict[str, Callable[[], Move]], seed: int) -> tuple[Chain, Move, np.ndarray | None]:
        """The chain and its moves, all kernels compiled, and the true clusters."""
        records, truth = problem(self.data, seed)
        few = problems.Problem(records.data.take(np.arange(20)), records.likelihood, records.prior)
        moves[self.move]()(few.chain(np.arange(20) % 3))
        chain = records.chain(seed=self.seed)
        if self.start == "random clusters":
            chain.set_labels(np.random.default_rng(self.seed).integers(0, CLUSTERS, chain.size))
        elif self.start == "k-means":
            means = KMeans(CLUSTERS, init="random", n_init=1, random_state=self.seed)
            chain.set_labels(means.fit_predict(records.data.vectors))
        elif self.start == "singletons":
            chain.set_labels(np.arange(chain.size))
        return chain, moves[self.move](), truth


def times(seconds: float) -> np.ndarray:
    return np.geomspace(0.02, seconds, 80)


def chained(job: Job) -> tuple[np.ndarray, int, float]:
    """The log joint of a chain at its times, its clusters in the end, and the truth's log joint or nan."""
    chain, move, truth = job.begun(MOVES, job.seed)
    seconds, at, seen = 0.0, [0.0], [chain.log_joint]
    while seconds < job.seconds:
        began = time.process_time()
        move(chain)
        seconds += time.process_time() - began
        at.append(seconds)
        seen.append(chain.log_joint)
    clusters, places = chain.clusters, np.searchsorted(at, times(job.seconds), side="right") - 1
    if truth is not None:
        chain.set_labels(truth)
    return np.array(seen)[places], clusters, np.nan if truth is None else chain.log_joint


def compared(axes: Axes, data: str, start: str, seeds: int, seconds: float) -> Table:
    """All moves on one set: nats below the best clustering met by any, over time and in the end."""
    runs = on_all_cores(chained, [Job(data, start, m, seed, seconds) for m in MOVES for seed in range(seeds)])
    joint, clusters, truth = (np.array(x).reshape(len(MOVES), seeds, -1) for x in zip(*runs, strict=True))
    known, at, title = not np.isnan(truth).any(), times(seconds), f"{data}, from {start}"
    best = np.fmax(joint, truth).max(axis=(0, 2) if known else None, keepdims=True)
    below, rows = best - joint, []
    for i, move in enumerate(MOVES):
        line = axes.plot(at, np.median(below[i], axis=0) + 1.0, label=move)[0]
        edges = below[i].min(axis=0) + 1.0, below[i].max(axis=0) + 1.0
        axes.fill_between(at, *edges, color=line.get_color(), alpha=0.15, linewidth=0)
        found = joint[i] > truth[i] - CLOSE
        ever = found.any(axis=1)
        until = interval(at[found.argmax(axis=1)]) if ever.all() else f"{ever.sum()} of {seeds} chains"
        cells = interval(below[i, :, -1], 0), interval(clusters[i, :, 0], 1), *([until] if known else [])
        rows.append((move, *cells, UNKNOWN))
    axes.set(xscale="log", yscale="log")
    framed(axes, "CPU seconds", "nats below the best, and 1", title)
    columns = "nats below the best", "clusters", *(["CPU s until the truth"] if known else [])
    return Table(("", *columns, "the paper"), rows, title)


def panels(cases: Sequence[tuple[str, str, int, float]]) -> Result:
    """Several sets or starts beside each other."""
    picture = Figure(figsize=(4.2 * len(cases), 4.2), layout="constrained")
    panes = picture.subplots(1, len(cases))
    tables = [compared(axes, *case) for axes, case in zip(panes, cases, strict=True)]
    picture.legend(*panes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return Result(tables, picture)


def traced(job: Job) -> tuple[np.ndarray, float]:
    """Clusters and log joint by round, shape (2, rounds), after a burn-in; CPU seconds."""
    chain, move, _ = job.begun(EXACT, 0)
    for each in [Gibbs()] * 300 + [move] * BURN_IN:
        each(chain)
    began, trace = time.process_time(), []
    for _ in range(ROUNDS):
        move(chain)
        trace.append((chain.clusters, chain.log_joint))
    return np.array(trace, float).T, time.process_time() - began


def autocorrelated() -> Result:
    """How soon the number of clusters and the log joint forget where they were."""
    result = Result(picture=(picture := Figure(figsize=(9.0, 3.4))))
    for axes, data in zip(picture.subplots(1, 2), ("points", "texts"), strict=True):
        runs = on_all_cores(traced, [Job(data, "one", move, seed) for move in EXACT for seed in range(6)])
        rows: list[Any] = []
        for move, mine in zip(EXACT, (runs[i : i + 6] for i in range(0, len(runs), 6)), strict=True):
            by_lag = np.array([[autocorrelation(x)[: LAGS[-1] + 1] for x in trace] for trace, _ in mine])
            axes.plot(by_lag[:, 0].mean(axis=0), label=move)
            cells = [interval(by_lag[:, what, lag]) for what in (0, 1) for lag in LAGS]
            rate = interval((effective_sample_size(trace[:1]) / seconds for trace, seconds in mine), 0)
            rows.append((move, *cells, rate, UNKNOWN))
        framed(axes, "lag, rounds", "autocorrelation of the number of clusters", data)
        columns = [f"{what}, lag {lag}" for what in ("clusters", "log joint") for lag in LAGS]
        result.tables.append(Table(("", *columns, "draws a CPU s", "the paper"), rows, data))
    picture.axes[0].legend(fontsize=7, frameon=False)
    picture.tight_layout()
    return result


def kept(job: Job) -> list[np.ndarray]:
    """How many runs are kept at each record after 20 Gibbs sweeps, by order and share pruned."""
    chain = problem(job.data, job.seed)[0].chain(seed=job.seed)
    beams = [EveryDraw(order=order, keep=keep) for order, keep in WIDTHS]
    for _ in range(20):
        Gibbs()(chain)
    labels = chain.labels.copy()
    for beam in beams:
        chain.set_labels(labels)
        beam(chain)
    return [beam.kept for beam in beams]


def pruned() -> Result:
    """How many runs the beam keeps: means, and the most."""
    rows = []
    for data in ("10 dimensions", "40 dimensions", "80 dimensions", "MNIST", "AP"):
        runs = zip(*on_all_cores(kept, [Job(data, "one", "", seed) for seed in range(4)]), strict=True)
        cells = [f"{interval(map(np.mean, of), 1)} ({max(map(np.max, of))})" for of in runs]
        rows.append((data, *cells, "about 5"))
    return Result([Table(("", *(f"{order}, {keep:g}" for order, keep in WIDTHS), "the paper"), rows)])


MIXTURES = [(f"{dimension} dimensions", "one cluster", 5, 3.0) for dimension in (10, 40, 80)]
STARTS = [("40 dimensions", start, 5, 3.0) for start in ("random clusters", "k-means", "singletons")]
COLLECTIONS = [("MNIST", "one cluster", 4, 5.0), ("AP", "one cluster", 4, 8.0)]
EXPERIMENTS = (
    Experiment("mixtures", "figures 2 and 3, mixtures from one cluster", partial(panels, MIXTURES)),
    Experiment("starts", "figure 3, other starts", partial(panels, STARTS)),
    Experiment("collections", "figure 3, MNIST and AP", partial(panels, COLLECTIONS)),
    Experiment("autocorrelation", "figure 3, autocorrelation at lags", autocorrelated),
    Experiment("beam", "runs that the beam keeps", pruned),
)
