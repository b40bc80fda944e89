"""NIPS 1-12 under Daume's model: search in one pass, plain and tempered, and refinement by samplers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from statistics import mean, median, stdev

import numpy as np

from benchmarks.papers.problems import (
    Figures,
    Problem,
    allocated,
    greedy,
    millions,
    nips,
    permuted,
    refined,
    searched,
    split_merge,
    verdict,
    warm,
)
from benchmarks.workloads import show
from streamdp.beam.data.state import MAX_SLACK
from streamdp.offline.chain import Chain
from streamdp.offline.samplers import Gibbs, Move
from streamdp.offline.starts import one_cluster, order_of, random_clusters, singletons

PAPER = {"ascending": "2.4407", "random": "2.4489", "descending": "2.4740"}
"""NLL in millions of nats of Daume's search, which took 21 s; ascending, it found 14 clusters."""
TEMPERS = (0.0, 0.25, 0.5, 0.75)
PLAIN = {1: None, 4: None, 16: 2.433e6, 64: 2.431e6}
"""Widths of the beam and the most that the plain one's J is to be."""
SHUFFLED = (1, 4, 16)
SWEEPS, CLUSTERS = 60, 50
REFINED = 2.355e6
MOVES: dict[str, Callable[[], Move]] = {
    "Gibbs": Gibbs,
    "Gibbs, permutations by projection": lambda: permuted("projection-pair"),
    "Gibbs, split-merge": split_merge,
    "Gibbs, sequentially allocated": allocated,
}
Row = tuple[object, ...]


def row(
    name: str, f: Figures, seconds: float, paper: str = "", goal: str = "", met: bool | None = None
) -> Row:
    """A line of the first table."""
    cells = (millions(f.loss), millions(f.objective), f"{seconds:.3f}" if seconds else "")
    return (name, f.clusters, *cells, paper, goal, verdict(met))


def passes(problem: Problem) -> Iterator[Row]:
    """The trivial clusterings, and greedy search in several orders."""
    chain = problem.chain()
    for name, start, goal in (("one cluster", one_cluster, 2.686394), ("singletons", singletons, 2.760539)):
        start(chain)
        f = problem.figures(chain)
        yield row(name, f, 0.0, goal=f"{goal:.6f}", met=abs(f.loss - 1e6 * goal) < 1.0)
    up, seconds = greedy(problem, "ascending")
    met = 13 <= up.clusters <= 15 and abs(up.loss / 2.4398e6 - 1) <= 1e-3
    yield row("greedy, ascending", up, seconds, PAPER["ascending"], "2.4398 +- 0.1 %, K 13-15", met)
    runs = [greedy(problem, "random", seed) for seed in range(10)]
    losses = [f.loss for f, _ in runs]
    typical = Figures(
        round(median(f.clusters for f, _ in runs)), mean(losses), mean(f.objective for f, _ in runs)
    )
    down, down_seconds = greedy(problem, "descending")
    name = f"greedy, random (10: sd {stdev(losses):,.0f})"
    met = up.loss < typical.loss < down.loss
    yield row(name, typical, median(s for _, s in runs), PAPER["random"], "between its neighbours", met)
    yield row("greedy, descending", down, down_seconds, PAPER["descending"])
    counted, seconds = greedy(problem, "ascending", count_prior=True)
    yield row("greedy, ascending, count prior", counted, seconds, PAPER["ascending"])


def objective(
    problem: Problem, order: np.ndarray, width: int, temper: float, slack: float
) -> tuple[float, float]:
    """J of a beam's answer, and its CPU seconds."""
    labels, seconds = searched(problem, order, width, temper, slack)
    return problem.figures(problem.chain(labels)).objective, seconds


def beams(problem: Problem, slack: float) -> Iterator[Row]:
    """Beams in ascending order by width: J plain and tempered, and what the best temper gains."""
    order = order_of(problem.chain(), "ascending")
    for width, goal in PLAIN.items():
        plain, seconds = objective(problem, order, width, 1.0, slack)
        found = [objective(problem, order, width, temper, slack) for temper in TEMPERS]
        best = int(np.argmin([j for j, _ in found]))
        yield (
            f"beam {width}",
            millions(plain),
            "" if goal is None else f"{goal / 1e6:.3f}",
            verdict(None if goal is None else plain <= goal),
            *(millions(j) for j, _ in found),
            TEMPERS[best],
            round(plain - found[best][0]),
            f"{seconds:.2f}",
            f"{found[best][1]:.2f}",
        )


def orders(problem: Problem, count: int, slack: float) -> Iterator[Row]:
    """Beams in random orders: the mean J of the plain one, and what each temper gains on average."""
    shuffled = [np.random.default_rng(seed).permutation(problem.data.size) for seed in range(count)]
    for width in SHUFFLED:
        plain = np.array([objective(problem, order, width, 1.0, slack)[0] for order in shuffled])
        cells = []
        for temper in TEMPERS:
            found = np.array([objective(problem, order, width, temper, slack)[0] for order in shuffled])
            gain = plain - found
            error = gain.std(ddof=1) / count**0.5
            cells.append(f"{gain.mean():,.0f} +- {error:,.0f} ({int((gain > 0).sum())})")
        yield (f"beam {width}", millions(plain.mean()), *cells)


def samplers(problem: Problem, seeds: int) -> Iterator[Row]:
    """Refinement from random clusters."""

    def start(chain: Chain) -> None:
        random_clusters(chain, CLUSTERS)

    for name, make in MOVES.items():
        runs = [refined(problem, start, make(), SWEEPS, seed) for seed in range(seeds)]
        found = sorted((f for f, _ in runs), key=lambda f: f.objective)
        middle = found[len(found) // 2]
        yield (
            name,
            middle.clusters,
            millions(middle.loss),
            millions(middle.objective),
            millions(found[0].objective),
            verdict(middle.objective <= REFINED),
            f"{median(s for _, s in runs):.1f}",
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs of each sampler, of which the median counts"
    )
    parser.add_argument("--orders", type=int, default=10, help="random orders of the beams")
    parser.add_argument("--slack", type=float, default=MAX_SLACK, help="of the beams, in nats")
    options = parser.parse_args()
    problem = nips()
    warm(problem, *(make() for make in MOVES.values()))
    greedy(problem, "ascending")
    show(
        "NIPS 1-12, one pass: NLL and J = NLL - log p(z) in millions of nats; the paper's search took 21 s",
        ("", "K", "NLL", "J", "CPU s", "paper", "goal for NLL", "met"),
        passes(problem),
    )
    show(
        "Beams in ascending order: J by temper; by how many nats the best temper beats the plain beam",
        ("", "plain", "goal", "met", *map(str, TEMPERS), "best", "gain", "CPU s", "best's"),
        beams(problem, options.slack),
    )
    show(
        f"Beams in {options.orders} random orders: J of the plain; mean gain of each temper (in how many)",
        ("", "plain", *map(str, TEMPERS)),
        orders(problem, options.orders, options.slack),
    )
    show(
        f"{SWEEPS} sweeps from {CLUSTERS} random clusters: the median J of {options.seeds} runs, the best J",
        ("", "K", "NLL", "J", "best J", f"J <= {REFINED / 1e6:.3f}", "CPU s"),
        samplers(problem, options.seeds),
    )


if __name__ == "__main__":
    main()
