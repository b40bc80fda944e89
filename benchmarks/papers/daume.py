"""Daume III 2007, Fast search for Dirichlet process mixture models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.papers.figures import Experiment, Result, Table, interval, on_all_cores
from benchmarks.papers.problems import (
    FIRST_WORD,
    Figures,
    Problem,
    data_file,
    digits,
    greedy,
    nips,
    refined,
    searched,
    split_merge,
    warm,
)
from streamdp.likelihoods import DirichletMultinomial
from streamdp.offline.astar import astar
from streamdp.offline.chain import Chain
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, Move
from streamdp.offline.schedule import Budget, run
from streamdp.offline.starts import Order, one_cluster, order_of, random_clusters, sequential, singletons
from streamdp.priors import CRP, Uniform
from streamdp.priors.base import Prior

NONE = "-"
ORDERS: tuple[Order, ...] = ("ascending", "descending", "random")


def several(values: Sequence[float], digits: int, unit: float = 1.0) -> str:
    """One value, or the interval of several."""
    return interval([value / unit for value in values], digits)


# ---------------------------------------------------------------- section 4.1: drawn from the model

SIZES, SETS = (4, 7, 10, 15, 20, 30, 50), 15
VOCABULARY, TOKENS, QUEUE, SWEEPS = 10, 20, 100, 100
ENDS, MOST_STATES = 10, 2_000_000
"""Up to how many records, and states, a search without a bound is tried."""
SCORES = ("trivial", "admissible", "replica", "predictive", "inadmissible")
TRUTH = "the clusters drawn"


class Answer(NamedTuple):
    """A clustering, its log joint, the states that entered the queue (a search alone), and CPU seconds."""

    labels: np.ndarray
    log_joint: float
    enqueued: float = np.nan
    seconds: float = np.nan


def drawn(n: int, seed: int) -> tuple[Problem, np.ndarray]:
    """Records of twenty tokens from a Dirichlet process of evenly distributed word probabilities."""
    rng = np.random.default_rng((n, seed))
    labels = np.zeros(n, np.int64)
    for i in range(1, n):
        sizes = np.bincount(labels[:i])
        labels[i] = rng.choice(len(sizes) + 1, p=np.append(sizes, 1.0) / (i + 1.0))
    probabilities = rng.dirichlet(np.ones(VOCABULARY), n)
    counts = [rng.multinomial(TOKENS, probabilities[k]) for k in labels]
    records = Data.of_words([(np.flatnonzero(c), c[c > 0]) for c in counts])
    return Problem(records, DirichletMultinomial(1.0, VOCABULARY), CRP(1.0)), labels


def by_search(problem: Problem, score: str, queue: int) -> Answer:
    """Best first."""
    began = time.process_time()
    limit = None if queue else MOST_STATES
    found = astar(problem.data, problem.likelihood, problem.prior, queue=queue, score=score, max_states=limit)
    return Answer(found.labels, found.log_joint, found.enqueued, time.process_time() - began)


def by_beam(problem: Problem, width: int) -> Answer:
    """The beam of streams."""
    labels, seconds = searched(problem, np.arange(problem.data.size), width)
    return Answer(labels, problem.chain(labels).log_joint, seconds=seconds)


def by_sampling(problem: Problem, move: Move, seed: int) -> Answer:
    """The best clustering met from one cluster on."""
    began = time.process_time()
    _, best = run(problem.chain(seed=seed), move, Budget(SWEEPS))
    return Answer(best.labels, best.log_joint, seconds=time.process_time() - began)


def answers(task: tuple[int, int]) -> tuple[dict[str, Answer], np.ndarray]:
    """What every method finds in one set; and the truth."""
    n, seed = task
    few, _ = drawn(4, 0)
    warm(drawn(20, 0)[0], Gibbs(), split_merge())
    for score in SCORES:
        by_search(few, score, QUEUE)
    problem, truth = drawn(n, seed)
    found = {TRUTH: Answer(truth, problem.chain(truth).log_joint)}
    for score in SCORES[:3] if n <= ENDS else ():
        found[f"A*, {score}, no bound"] = by_search(problem, score, 0)
    for score in SCORES:
        found[f"A*, {score}, {QUEUE}"] = by_search(problem, score, QUEUE)
    for width in (1, 10, QUEUE):
        found[f"beam {width}"] = by_beam(problem, width)
    found["Gibbs"] = by_sampling(problem, Gibbs(), seed)
    found["Gibbs, split-merge"] = by_sampling(problem, split_merge(), seed)
    return found, truth


def f_score(labels: np.ndarray, truth: np.ndarray) -> float:
    """The harmonic mean of precision and recall of pairs in one cluster; 1 where there are none."""
    pairs = np.triu_indices(len(truth), 1)
    found, true = ((z[pairs[0]] == z[pairs[1]]) for z in (labels, truth))
    several_in_one = int(found.sum() + true.sum())
    return 2.0 * float((found & true).sum()) / several_in_one if several_in_one else 1.0


def artificial() -> Result:
    """All scores on sets of 4 to 50 records, beside beams and samplers."""
    tasks = [(n, seed) for n in reversed(SIZES) for seed in range(SETS)]
    every = dict(zip(tasks, on_all_cores(answers, tasks), strict=True))
    sets = {n: [every[n, seed] for seed in range(SETS)] for n in SIZES}
    best = {n: [max(a.log_joint for a in found.values()) for found, _ in sets[n]] for n in SIZES}
    names = list(sets[SIZES[0]][0][0])

    def f_of(name: str, n: int) -> list[float]:
        return [f_score(found[name].labels, truth) for found, truth in sets[n]]

    def gap(name: str, n: int) -> list[float]:
        pairs = zip(best[n], sets[n], strict=True)
        return [max(most - found[name].log_joint, 0.0) for most, (found, _) in pairs]

    def states(name: str, n: int) -> list[float]:
        return [found[name].enqueued for found, _ in sets[n]]

    def milliseconds(name: str, n: int) -> list[float]:
        return [1e3 * found[name].seconds for found, _ in sets[n]]

    def middle(values: list[float], digits: int) -> str:
        return f"{median(values):,.{digits}f}"

    shown: list[tuple[str, Callable[[str, int], list[float]], Callable[[list[float]], str]]] = [
        ("F-score of pairs", f_of, lambda v: interval(v)),
        ("Nats below the best found", gap, lambda v: interval(v)),
        ("States enqueued, median", states, lambda v: middle(v, 0)),
        ("CPU milliseconds, median", milliseconds, lambda v: middle(v, 1)),
    ]
    result = Result(picture=Figure(figsize=(11, 6.5), layout="constrained"))
    assert result.picture is not None
    for panel, (title, values, cell) in zip(result.picture.subplots(2, 2).flat, shown, strict=True):
        rows = []
        for name in names:
            sizes = [n for n in SIZES if name in sets[n][0][0] and np.isfinite(values(name, n)).all()]
            cells = [cell(values(name, n)) if n in sizes else NONE for n in SIZES]
            rows += [(name, *cells)] if sizes else []
            if sizes and name not in (TRUTH, "beam 1", "beam 100") and not name.endswith("bound"):
                statistic = median if "median" in title else np.mean
                panel.plot(sizes, [statistic(values(name, n)) for n in sizes], marker=".", label=name)
        panel.set_title(title)
        panel.set_xlabel("records")
        if "median" in title:
            panel.set_yscale("log")
        result.tables.append(Table(("", *(f"N = {n}" for n in SIZES)), rows, title))
    result.picture.legend(
        *result.picture.axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7
    )
    return result


# ---------------------------------------------------------------- what search and samplers find in real data


Runs = list[tuple[Figures, float]]


class Row(NamedTuple):
    """What several runs of a method found, and what the paper prints of it."""

    name: str
    runs: Runs
    paper: tuple[str, ...] = (NONE, NONE, NONE)

    def cells(self) -> tuple[str, ...]:
        """K, NLL and J in millions, CPU seconds; the paper's."""
        found = [f for f, _ in self.runs]
        return (
            self.name,
            several([f.clusters for f in found], 0 if len(found) == 1 else 1),
            several([f.loss for f in found], 4, 1e6),
            several([f.objective for f in found], 4, 1e6),
            f"{median(seconds for _, seconds in self.runs):.2f}",
            *self.paper,
        )


COLUMNS = ("", "K", "NLL", "J", "CPU s", "paper: K", "NLL", "s")


def by_order(find: Callable[[Order, int], tuple[Figures, float]], seeds: int) -> Iterator[tuple[Order, Runs]]:
    """What a search finds in each order, in several random ones."""
    for order in ORDERS:
        yield order, [find(order, seed) for seed in range(seeds if order == "random" else 1)]


def searches(problem: Problem, seeds: int, paper: Mapping[Order, tuple[str, ...]]) -> Iterator[Row]:
    """A* with a short queue and one pass under the prior of the counts (eq. 2), and one pass under p(z)."""

    def best_first(order: Order, seed: int) -> tuple[Figures, float]:
        began = time.process_time()
        given = problem.data, problem.likelihood, problem.prior
        found = astar(*given, queue=10, score="inadmissible", mode="count_prior", order=order, seed=seed)
        seconds = time.process_time() - began
        return problem.figures(problem.chain(found.labels)), seconds

    best_first("given", 0)
    for name, find in (
        ("A* 10, eq. 2", best_first),
        ("one pass, eq. 2", lambda order, seed: greedy(problem, order, seed, count_prior=True)),
        ("one pass, p(z)", lambda order, seed: greedy(problem, order, seed)),
    ):
        for order, runs in by_order(find, seeds):
            printed = paper[order] if "eq. 2" in name else (NONE, NONE, NONE)  # the paper's prior
            yield Row(f"{name}, {order}", runs, printed)


def by_beams(problem: Problem, order: np.ndarray, width: int, prior: Prior) -> tuple[Figures, float]:
    """The beam of streams, which may search under another prior than that of the problem."""
    labels, seconds = searched(problem, order, width, prior)
    return problem.figures(problem.chain(labels)), seconds


def searched_under(problem: Problem) -> dict[str, Prior]:
    """That of the problem, and the uniform process, under which large clusters draw no more."""
    return {"p(z)": problem.prior, "uniform process": Uniform(1.0)}


# ---------------------------------------------------------------- handwritten digits

SUBSETS = {
    3_000: (300, "11", "0.204", NONE),
    12_000: (300, "21", "0.802", NONE),
    60_000: (100, "27", "3.96", "900"),
}
"""Sweeps of Gibbs sampling; what the paper's search finds, and its seconds."""
CLUSTERS, SEEDS = 100, 5


def from_random(chain: Chain) -> None:
    """A start of many clusters."""
    random_clusters(chain, CLUSTERS)


def of_digits(count: int) -> list[tuple[str, ...]]:
    """Rows of the first so many digits."""
    problem = digits(count)
    sweeps, *paper = SUBSETS[count]
    warm(problem, Gibbs())
    greedy(Problem(problem.data.take(np.arange(20)), problem.likelihood, problem.prior), "given", 0, True)
    rows = list(searches(problem, SEEDS, dict.fromkeys(ORDERS, tuple(paper))))
    shuffled = [order_of(problem.chain(seed=seed), "random") for seed in range(SEEDS)]
    for name, prior in searched_under(problem).items():
        runs = [by_beams(problem, order, 16, prior) for order in shuffled]
        rows.append(Row(f"beam 16, {name}, random", runs))
    runs = [refined(problem, from_random, Gibbs(), sweeps, seed) for seed in range(3)]
    rows.append(Row(f"Gibbs, {sweeps} sweeps from {CLUSTERS} clusters", runs))
    return [row.cells() for row in rows]


def handwritten() -> Result:
    """Search and Gibbs sampling in MNIST, and the mean images of the clusters that search finds."""
    counts = sorted(SUBSETS, reverse=True)
    tables = dict(zip(counts, on_all_cores(of_digits, counts), strict=True))
    chain = digits(counts[0]).chain()
    sequential(chain, order="descending", count_prior=True)
    with np.load(data_file("mnist.npz")) as file:
        images = file["x_train"][: counts[0]]
    sizes = np.bincount(chain.labels)
    picture = Figure(figsize=(11, 5), layout="constrained")
    panels = picture.subplots(-(-len(sizes) // 12), 12).flat
    for panel, k in zip(panels, np.argsort(-sizes), strict=False):
        panel.imshow(images[chain.labels == k].mean(axis=0), cmap="gray_r")
        panel.set_title(f"{sizes[k]:,}", fontsize=8)
    for panel in picture.axes:
        panel.set_axis_off()
    shown = [Table(COLUMNS, tables[count], f"{count:,} digits") for count in sorted(counts)]
    return Result(shown, picture)


# ---------------------------------------------------------------- papers of NIPS

PAPER = {
    "ascending": ("14", "2.4407", "21"),
    "descending": (NONE, "2.4740", NONE),
    "random": (NONE, "2.4489", NONE),
}
STARTS = {"one cluster": one_cluster, "all apart": singletons}
LISTED, LARGEST = 12, 8


def from_fifty(chain: Chain) -> None:
    """A start of fifty clusters."""
    random_clusters(chain, 50)


def of_papers(part: str) -> list[tuple[str, ...]]:
    """Rows of the methods that are named."""
    problem = nips()
    warm(problem, Gibbs(), split_merge())
    greedy(problem, "ascending")
    rows: list[Row] = []
    if part == "search":
        for name, start in STARTS.items():
            chain = problem.chain()
            start(chain)
            rows.append(Row(name, [(problem.figures(chain), 0.0)]))
        rows += searches(problem, 10, PAPER)
        order = order_of(problem.chain(), "ascending")
        for width in (4, 16, 64):
            for name, prior in searched_under(problem).items():
                runs = [by_beams(problem, order, width, prior)]
                rows.append(Row(f"beam {width}, {name}, ascending", runs))
    else:
        moves: dict[str, tuple[Callable[[], Move], str]] = {
            "Gibbs": (Gibbs, "3.2"),
            "Gibbs, split-merge": (split_merge, "3.0"),
        }
        make, paper = moves[part]
        runs = [refined(problem, from_fifty, make(), 60, seed) for seed in range(5)]
        rows.append(Row(f"{part}, 60 sweeps from 50 clusters", runs, (NONE, paper, NONE)))
    return [row.cells() for row in rows]


def papers() -> Result:
    """Search and samplers in NIPS 1-12, and the words of the largest clusters that search finds."""
    parts = on_all_cores(of_papers, ("Gibbs, split-merge", "Gibbs", "search"))
    rows = [row for part in reversed(parts) for row in part]
    problem = nips()
    chain = problem.chain()
    sequential(chain, order="ascending", count_prior=True)
    words = data_file("nips12.vocab.txt").read_text().split()[FIRST_WORD:]
    data, sizes = problem.data, np.bincount(chain.labels)
    counts = np.zeros((len(sizes), int(data.words.max()) + 1))
    np.add.at(counts, (chain.labels[data.rows], data.words), data.counts)
    usual = counts.sum(axis=0) / counts.sum()
    listed = []
    for k in np.argsort(-sizes)[:LARGEST]:
        share = counts[k] / counts[k].sum()
        surprise = share * np.log(np.maximum(share, 1e-300) / usual)
        listed.append((int(sizes[k]), ", ".join(words[w] for w in np.argsort(-surprise)[:LISTED])))
    title = "Words that tell the largest clusters of the search by eq. 2, ascending, from all papers"
    return Result([Table(COLUMNS, rows), Table(("papers", "words"), listed, title)])


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("artificial", "section 4.1", artificial),
    Experiment("digits", "figure 3", handwritten),
    Experiment("nips", "table 1", papers),
)
