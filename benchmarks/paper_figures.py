"""Figures of the papers, computed by streamdp: a picture and a table each.

python -m benchmarks.paper_figures FIGURE FOLDER

Wallach, Jensen, Dicker and Heller 2010: ``growth`` (figures 1 and 2), ``orders`` (3), ``held_out`` (4).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.papers.problems import Problem, nips
from benchmarks.priors import framed, saved
from benchmarks.workloads import show
from streamdp.offline.held_out import left_to_right
from streamdp.offline.samplers import Gibbs
from streamdp.offline.schedule import Budget, run
from streamdp.priors import CRP, PitmanYor, Uniform
from streamdp.priors.base import Prior

Rows = list[tuple[object, ...]]

# ---------------------------------------------------------------- how many clusters, and of what sizes

DISCOUNT = 0.5
CONCENTRATIONS = (1.0, 10.0, 100.0)
RECORDS, DRAWS = 10_000, 20


def three(theta: float) -> dict[str, Prior]:
    """The processes that the paper compares, with one concentration."""
    return {
        "Dirichlet": CRP(theta),
        "Pitman-Yor": PitmanYor(discount=DISCOUNT, concentration=theta),
        "uniform": Uniform(theta),
    }


def drawn(prior: Prior, n: int, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters after each of n records, shape (n, draws), and sizes in the end, shape (draws, most)."""
    rng = np.random.default_rng(seed)
    tables = prior.tables(n)
    join, found = np.exp(tables.join), np.exp(tables.found)
    join[0] = 0.0
    sizes, clusters = np.zeros((draws, 64), np.int64), np.zeros(draws, np.int64)
    counts, each = np.empty((n, draws), np.int64), np.arange(draws)
    for i in range(n):
        if clusters.max() + 1 >= sizes.shape[1]:
            sizes = np.hstack([sizes, np.zeros_like(sizes)])
        weights = join[sizes]
        weights[each, clusters] = found[clusters]
        sums = weights.cumsum(axis=1)
        chosen = (sums <= (rng.random(draws) * sums[:, -1])[:, None]).sum(axis=1)
        sizes[each, chosen] += 1
        clusters += chosen == clusters
        counts[i] = clusters
    return counts, sizes


def clusters_expected(name: str, theta: float, n: np.ndarray) -> np.ndarray:
    """The asymptote of the mean number of clusters."""
    if name == "Dirichlet":
        return np.asarray(theta * np.log(n))
    if name == "uniform":
        return np.asarray(np.sqrt(2.0 * theta * n))
    scale = math.exp(math.lgamma(1.0 + theta) - math.lgamma(theta + DISCOUNT)) / DISCOUNT
    return np.asarray(scale * n**DISCOUNT)


def sizes_expected(name: str, theta: float, n: int, size: np.ndarray) -> np.ndarray:
    """The asymptote of the mean number of clusters of a size; under the uniform process up to its edge."""
    if name == "Dirichlet":
        return theta / size
    if name == "uniform":
        return np.where(size <= math.sqrt(2.0 * n / theta), theta, np.nan)
    shares = [math.exp(math.lgamma(m - DISCOUNT) - math.lgamma(m + 1.0)) for m in size.tolist()]
    scale = math.exp(math.lgamma(1.0 + theta) - math.lgamma(theta + DISCOUNT) - math.lgamma(1.0 - DISCOUNT))
    return np.asarray(scale * n**DISCOUNT * np.array(shares))


def growth(folder: Path) -> None:
    """Figures 1 and 2: mean number of clusters by records, and of each size, with their asymptotes."""
    figure, panels = plt.subplots(2, len(CONCENTRATIONS), figsize=(12, 7))
    rows: Rows = []
    at = np.unique(np.geomspace(10, RECORDS, 60).astype(int))
    edges = np.unique(np.geomspace(1, RECORDS, 25).astype(int))
    for column, theta in enumerate(CONCENTRATIONS):
        above, below = panels[:, column]
        for name, prior in three(theta).items():
            counts, sizes = drawn(prior, RECORDS, DRAWS, seed=column)
            mean = counts.mean(axis=1)
            (line,) = above.loglog(at, mean[at - 1], label=name)
            above.loglog(at, clusters_expected(name, theta, at.astype(float)), "--", color=line.get_color())
            held = np.histogram(sizes[sizes > 0], np.append(edges, RECORDS + 1))[0] / DRAWS
            held = held / np.diff(np.append(edges, RECORDS + 1))
            below.loglog(edges[held > 0], held[held > 0], ".", color=line.get_color())
            m = edges.astype(float)
            below.loglog(m, sizes_expected(name, theta, RECORDS, m), "--", color=line.get_color())
            last = float(clusters_expected(name, theta, np.array([float(RECORDS)]))[0])
            small = float((sizes[sizes > 0] == 1).sum()) / DRAWS
            expected = float(sizes_expected(name, theta, RECORDS, np.array([1.0]))[0])
            rows.append((theta, name, f"{mean[-1]:.1f}", f"{last:.1f}", f"{small:.1f}", f"{expected:.1f}"))
        framed(above, "records", "clusters", f"concentration {theta:g}")
        framed(below, "size", "clusters of that size", "")
        below.set_ylim(1e-4, None)
    panels[0, 0].legend(fontsize=8, frameon=False)
    saved(figure, folder, "papers-growth.png")
    columns = "concentration", "process", "clusters", "asymptote", "of one record", "asymptote"
    show(f"{RECORDS:,} records, mean of {DRAWS} draws", columns, rows)


# ---------------------------------------------------------------- the order of records


def sampled(problem: Problem, sweeps: int, seed: int) -> np.ndarray:
    """The last of so many sweeps of Gibbs sampling, from one cluster."""
    chain = problem.chain(seed=seed)
    run(chain, Gibbs(), Budget(sweeps))
    return chain.labels.copy()


def shuffled(prior: Prior, labels: np.ndarray, rng: np.random.Generator) -> float:
    """log p(z) of a partition in a random order of the records."""
    return prior.log_probability(rng.permutation(labels).tolist())


def orders(folder: Path, sweeps: int, chains: int = 5, orderings: int = 500) -> None:
    """Figure 3: how log p(z) varies between orderings of a partition, and between partitions.

    The partitions are draws given 1,740 papers of NIPS, a chain each; the paper has patents.
    """
    papers, rng, rows = nips(), np.random.default_rng(0), list[tuple[object, ...]]()
    thetas = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
    between_orders, between_partitions = [], []
    for theta in thetas:
        prior = Uniform(theta)
        found = [sampled(replace(papers, prior=prior), sweeps, seed) for seed in range(chains)]
        logs = np.array([[shuffled(prior, z, rng) for _ in range(orderings)] for z in found])
        between_orders.append(float(np.mean(logs.std(axis=1))))
        between_partitions.append(float(logs.mean(axis=1).std(ddof=1)))
        clusters = float(np.mean([z.max() + 1 for z in found]))
        rows.append((theta, f"{clusters:.0f}", f"{between_orders[-1]:.1f}", f"{between_partitions[-1]:.1f}"))
    figure, axes = plt.subplots(figsize=(6, 3.6))
    axes.loglog(thetas, between_orders, "o-", label="between orderings of a partition")
    axes.loglog(thetas, between_partitions, "s--", label="between partitions of five chains")
    framed(axes, "concentration", "standard deviation, nats", "log p(z) under the uniform process")
    axes.legend(fontsize=8, frameon=False)
    saved(figure, folder, "papers-orders.png")
    columns = "concentration", "clusters", "sd between orderings", "sd between partitions"
    show(f"{chains} chains of {sweeps} sweeps, {orderings} orderings each", columns, rows)


def held_out(folder: Path, sweeps: int, permutations: int = 20, papers: int = 400, tests: int = 50) -> None:
    """Figure 4: log probability of papers held out, and clusters, under two processes."""
    whole = nips()
    thetas = (0.1, 1.0, 10.0, 100.0, 1000.0)
    kinds: dict[str, Callable[[float], Prior]] = {"Dirichlet": CRP, "uniform": Uniform}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    rows: Rows = []
    for name, kind in kinds.items():
        means, spreads, clusters = [], [], []
        for theta in thetas:
            logs, numbers = [], []
            for seed in range(permutations):
                order = np.random.default_rng(seed).permutation(whole.data.size)[: papers + tests]
                train, test = whole.data.take(order[:papers]), whole.data.take(order[papers:])
                problem = Problem(train, whole.likelihood, kind(theta))
                labels = sampled(problem, sweeps, seed)
                given = train, labels, test, problem.likelihood, problem.prior
                found = left_to_right(*given, particles=1, resample=False, seed=seed)
                assert test.counts is not None
                logs.append(float(found.sum()) / float(test.counts.sum()))
                numbers.append(int(labels.max()) + 1)
            means.append(float(np.mean(logs)))
            spreads.append(float(np.std(logs, ddof=1)))
            clusters.append(float(np.mean(numbers)))
            rows.append((name, theta, f"{means[-1]:.4f}", f"{spreads[-1]:.4f}", f"{clusters[-1]:.1f}"))
        left.errorbar(thetas, means, spreads, marker="o", capsize=2, label=name)
        right.loglog(thetas, clusters, "o-", label=name)
    left.set_xscale("log")
    framed(left, "concentration", "log probability a token, nats", f"{tests} papers held out")
    framed(right, "concentration", "clusters", f"of {papers} papers")
    left.legend(fontsize=8, frameon=False)
    saved(figure, folder, "papers-held-out.png")
    columns = "process", "concentration", "log probability a token", "sd of permutations", "clusters"
    show(f"{permutations} permutations, {sweeps} sweeps", columns, rows)


FIGURES = {f.__name__: f for f in (growth, orders, held_out)}


def main() -> None:
    """Draw one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sweeps", type=int, default=50, help="of Gibbs sampling, in orders and held_out")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sampled = options.figure in ("orders", "held_out")
    FIGURES[options.figure](options.folder, **({"sweeps": options.sweeps} if sampled else {}))


if __name__ == "__main__":
    main()
