"""Wallach, Jensen, Dicker and Heller 2010, An alternative prior process."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import gammaln
from scipy.stats import chi2

from benchmarks.papers.figures import Experiment, Result, Table, difference, interval, on_all_cores
from benchmarks.papers.problems import data_file
from benchmarks.priors import framed
from benchmarks.workloads import documents
from streamdp.likelihoods import HierarchicalDirichlet
from streamdp.offline.chain import Chain
from streamdp.offline.held_out import left_to_right
from streamdp.offline.hyper import Hyper
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs
from streamdp.offline.schedule import Budget, Hybrid, run
from streamdp.offline.starts import sequential
from streamdp.priors import CRP, PitmanYor, Uniform
from streamdp.priors.base import Prior

SWEEPS = 40
"""Of Gibbs sampling, after each of which the two concentrations of the words are drawn."""

# ---------------------------------------------------------------- how many clusters, and of what sizes

DISCOUNT = 0.5
RECORDS, DRAWS = 10_000, 200
PROCESSES: dict[str, Callable[[float], Prior]] = {
    "Dirichlet": CRP,
    "Pitman-Yor": lambda theta: PitmanYor(discount=DISCOUNT, concentration=theta),
    "uniform": Uniform,
}


def drawn(case: tuple[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Clusters after each record, shape (N, draws), and how many of each size in the end, (N + 2, draws)."""
    name, theta = case
    rng, tables = np.random.default_rng(0), PROCESSES[name](theta).tables(RECORDS)
    join, found = np.exp(tables.join), np.exp(tables.found)
    join[0] = 0.0
    sizes, clusters = np.zeros((DRAWS, 64), np.int64), np.zeros(DRAWS, np.int64)
    counts, each = np.empty((RECORDS, DRAWS), np.int64), np.arange(DRAWS)
    for i in range(RECORDS):
        if clusters.max() + 1 >= sizes.shape[1]:
            sizes = np.hstack([sizes, np.zeros_like(sizes)])
        weights = join[sizes[:, : clusters.max() + 1]]
        weights[each, clusters] = found[clusters]
        sums = weights.cumsum(axis=1)
        chosen = (sums <= (rng.random(DRAWS) * sums[:, -1])[:, None]).sum(axis=1)
        sizes[each, chosen] += 1
        clusters += chosen == clusters
        counts[i] = clusters
    return counts, np.array([np.bincount(row, minlength=RECORDS + 2) for row in sizes]).T


def expected(name: str, theta: float, n: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Asymptotes of the mean number of clusters of n records, and of those of a size in the end."""
    if name == "Dirichlet":
        return theta * np.log(n), theta / size
    if name == "uniform":  # up to the size that it hardly reaches
        edge = math.sqrt(2.0 * RECORDS / theta)
        return np.sqrt(2.0 * theta * n), np.where(size <= edge, theta, np.nan)
    scale = math.exp(math.lgamma(1.0 + theta) - math.lgamma(theta + DISCOUNT))
    share = scale * RECORDS**DISCOUNT / math.gamma(1.0 - DISCOUNT)
    return scale / DISCOUNT * n**DISCOUNT, share * np.exp(gammaln(size - DISCOUNT) - gammaln(size + 1.0))


def growth() -> Result:
    """Mean number of clusters by records, and of each size, with their asymptotes."""
    thetas = (1.0, 3.0, 10.0, 30.0, 100.0)
    cases = [(name, theta) for theta in thetas for name in PROCESSES]
    found = dict(zip(cases, on_all_cores(drawn, cases), strict=True))
    figure, panels = plt.subplots(2, len(thetas), figsize=(16, 6), sharey="row")
    at = np.unique(np.geomspace(10, RECORDS, 60).astype(int))
    edges = np.unique(np.geomspace(1, RECORDS + 1, 25).astype(int))
    rows: list[tuple[object, ...]] = []
    for (name, theta), (counts, sizes) in found.items():
        above, below = panels[:, thetas.index(theta)]
        of_all, of_size = expected(name, theta, at.astype(float), edges[:-1].astype(float))
        (line,) = above.loglog(at, counts.mean(axis=1)[at - 1], label=name)
        above.loglog(at, of_all, "--", color=line.get_color())
        mean = np.add.reduceat(sizes.mean(axis=1), edges)[:-1] / np.diff(edges)
        below.loglog(edges[:-1][mean > 0], mean[mean > 0], ".", color=line.get_color())
        below.loglog(edges[:-1], of_size, "--", color=line.get_color())
        shown = interval(counts[-1], 1), f"{of_all[-1]:,.1f}", interval(sizes[1], 1), f"{of_size[0]:,.1f}"
        rows.append((f"{theta:g}", name, *shown, "-"))
        framed(above, "records", "clusters", f"concentration {theta:g}")
        framed(below, "size", "clusters of that size", "")
    panels[1, 0].set_ylim(1e-4, None)
    panels[0, 0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    columns = "concentration", "process", f"clusters of {RECORDS:,} records", "paper's asymptote"
    return Result([Table((*columns, "clusters of one record", "paper's asymptote", "paper"), rows)], figure)


# ---------------------------------------------------------------- short texts under equations 12 to 17

SETS = {"stories": (300, 60), "titles": (600, 120)}
"""Texts that are clustered, and texts held out."""
MOST_WORDS = 60
CONCENTRATIONS = "document_beta", "base_concentration"
BETA_0 = 0.1
"""The paper's beta_0 / V: added to the count of every word in the base measure."""


@cache
def texts(name: str) -> tuple[Data, int]:
    """Bags of words: Reuters' stories, as long as an abstract, or titles of NIPS; and how many words."""
    path = data_file("nips12.npz" if name == "titles" else "reuters21578.jsonl.gz")
    stories = name == "stories"
    given = [d.text for d in documents("reuters21578")] if stories else np.load(path)["title"].tolist()
    split = [re.findall("[a-z]{3,}", text.lower()) for text in given]
    frequency = Counter(word for words in split for word in set(words))
    kept = sorted(word for word, n in frequency.items() if 3 <= n <= len(split) / 10)
    numbers = {word: i for i, word in enumerate(kept)}
    bags = [Counter([numbers[w] for w in words if w in numbers][:MOST_WORDS]) for words in split]
    pairs = [(np.array([*bag]), np.array([*bag.values()])) for bag in bags if bag.total() >= 3]
    return Data.of_words(pairs), len(kept)


def clustered(name: str, prior: Prior, seed: int, shuffle: int) -> tuple[Chain, Data]:
    """A chain over texts in a random order, after its sweeps; and texts held out."""
    data, vocabulary = texts(name)
    size, tests = SETS[name]
    order = np.random.default_rng(shuffle).permutation(data.size)[: size + tests]
    train = data.take(order[:size])
    base = np.bincount(train.words, train.counts, vocabulary) + BETA_0
    family = HierarchicalDirichlet(100.0, 20.0, base=tuple((base / base.sum()).tolist()))
    chain, hyper = Chain(train, family, prior, seed=seed), Hyper(CONCENTRATIONS, rate=0.01)
    sequential(chain)
    run(chain, Hybrid([Gibbs(), hyper]), Budget(SWEEPS))
    return chain, data.take(order[size:])


# ---------------------------------------------------------------- the order of records

ORDERS, PARTITIONS = 5_000, 20
ORDER_THETAS = 1.0, 10.0, 100.0, 1000.0


def reordered(case: tuple[float, int]) -> tuple[int, np.ndarray]:
    """The clusters that a chain ends with, and log p(z) of its partition in random orders of the records."""
    theta, seed = case
    chain, _ = clustered("stories", Uniform(theta), seed, 0)
    rng, labels, logs = np.random.default_rng(seed), chain.labels, np.empty(ORDERS)
    for i in range(ORDERS):
        first = np.unique(rng.permutation(labels), return_index=True)[1]
        logs[i] = Uniform(theta).log_founded(np.sort(first), len(labels))
    return chain.clusters, logs


def deviation(values: np.ndarray) -> str:
    """The standard deviation of independent values, and its 95 % interval as of a normal distribution."""
    n, found = len(values), float(values.std(ddof=1))
    low, high = (found * math.sqrt((n - 1) / chi2.ppf(share, n - 1)) for share in (0.975, 0.025))
    return f"{found:.1f} ({low:.1f} to {high:.1f})"


def orders() -> Result:
    """How log p(z) varies between orders of a partition, and between partitions."""
    cases = [(theta, seed) for theta in ORDER_THETAS for seed in range(PARTITIONS)]
    found = dict(zip(cases, on_all_cores(reordered, cases), strict=True))
    rows: list[tuple[object, ...]] = []
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for theta in ORDER_THETAS:
        clusters, logs = zip(*(found[theta, seed] for seed in range(PARTITIONS)), strict=True)
        within, means = np.std(logs, axis=1, ddof=1), np.mean(logs, axis=1)
        rows.append((f"{theta:g}", interval(clusters, 1), interval(within, 2), deviation(means), "-"))
        axes.loglog([theta] * PARTITIONS, within, "o", color="C0", alpha=0.4)
        axes.loglog(theta, means.std(ddof=1), "s", color="C1")
    title = f"log p(z): circles, {ORDERS:,} orders of a partition; squares, {PARTITIONS} partitions"
    framed(axes, "concentration", "standard deviation, nats", title)
    figure.tight_layout()
    columns = "concentration", "clusters", "sd between orders", "sd between partitions", "paper"
    return Result([Table(columns, rows)], figure)


# ---------------------------------------------------------------- texts held out

THETAS = 0.1, 1.0, 10.0, 100.0, 1000.0
COMPARED: dict[str, Callable[[float], Prior]] = {"Dirichlet": CRP, "uniform": Uniform}
PERMUTATIONS, PARTICLES = 10, 5
COLUMNS = "concentration", *COMPARED, "uniform less Dirichlet", *(f"clusters, {p}" for p in COMPARED), "paper"


def predicted(case: tuple[str, str, float, int]) -> tuple[float, int]:
    """Nats a token of texts held out, and the clusters of those before them."""
    name, process, theta, seed = case
    prior = COMPARED[process](theta)
    chain, test = clustered(name, prior, seed, seed)
    given = chain.data, chain.labels, test, chain.likelihood, prior
    logs = left_to_right(*given, particles=PARTICLES, seed=seed)
    return float(logs.sum() / test.counts.sum()), chain.clusters


def held_out() -> Result:
    """Log probability of texts held out, and clusters, under two processes."""
    keys = [(name, process, theta) for name in SETS for theta in THETAS for process in COMPARED]
    cases = [(*key, seed) for key in keys for seed in range(PERMUTATIONS)]
    found = np.array(on_all_cores(predicted, cases)).reshape(len(keys), PERMUTATIONS, 2)
    by_key, tables = dict(zip(keys, found, strict=True)), []
    figure, panels = plt.subplots(2, 2, figsize=(10, 7))
    for name, (left, right) in zip(SETS, panels, strict=True):
        rows: list[tuple[object, ...]] = []
        for theta in THETAS:
            (a, k), (b, m) = by_key[name, "Dirichlet", theta].T, by_key[name, "uniform", theta].T
            shown = interval(a, 3), interval(b, 3), difference(b, a, 4), interval(k, 1), interval(m, 1)
            rows.append((f"{theta:g}", *shown, "-"))
        a, b = (max((by_key[name, p, theta][:, 0] for theta in THETAS), key=np.mean) for p in COMPARED)
        rows.append(("the best of each", interval(a, 3), interval(b, 3), difference(b, a, 4), "", "", "-"))
        for process in COMPARED:
            logs, clusters = np.array([by_key[name, process, theta].mean(axis=0) for theta in THETAS]).T
            left.semilogx(THETAS, logs, "o-", label=process)
            right.loglog(THETAS, clusters, "o-", label=process)
        framed(left, "concentration", "nats a token", f"{SETS[name][1]} {name} held out")
        framed(right, "concentration", "clusters", f"of {SETS[name][0]} {name}")
        tables.append(Table(COLUMNS, rows, f"{name.capitalize()}, nats a token"))
    panels[0, 0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return Result(tables, figure)


EXPERIMENTS = (
    Experiment("growth", "figures 1 and 2", growth),
    Experiment("orders", "figure 3", orders),
    Experiment("held_out", "figure 4", held_out),
)
