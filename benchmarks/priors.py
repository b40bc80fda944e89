"""What each prior does to a stream: the pictures and the table of docs/priors.md.

python -m benchmarks.priors docs/pictures
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.drifting import DemoRecord, demo_stream
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

RECORDS, SEED = 5_000, 0
TRUTH = "stories"
COLOURS = {
    "crp": "tab:blue",
    "pitman-yor": "tab:orange",
    "uniform": "tab:green",
    "distance-dependent": "tab:red",
    "distance-dependent, window of 400": "tab:purple",
    TRUTH: "black",
}
RUNS: dict[str, Settings] = {
    "crp": Settings(prior="crp"),
    "pitman-yor": Settings(prior="pitman-yor"),
    "uniform": Settings(prior="uniform"),
    "distance-dependent": Settings(),
    "crp, concentration 60": Settings(prior="crp", concentration=60),
    "pitman-yor, concentration 60": Settings(prior="pitman-yor", concentration=60),
    "uniform, concentration 60": Settings(prior="uniform", concentration=60),
    "distance-dependent, concentration 1": Settings(concentration=1),
    "distance-dependent, window of 400": Settings(decay="window", decay_scale=400),
    "distance-dependent, decay_scale 50": Settings(decay_scale=50),
    "distance-dependent, decay_scale 2000": Settings(decay_scale=2_000),
}
"""The four priors with their defaults, and what else the table compares."""


class Run(NamedTuple):
    """What a stream came to under one prior."""

    founded: np.ndarray  # clusters announced so far, by record
    live: np.ndarray  # clusters that may still grow, by record
    labels: list[int]  # the newest of every record
    nmi: float


def clustered(settings: Settings, stream: Sequence[DemoRecord]) -> Run:
    """The stream, record by record, through an engine."""
    engine = Engine(settings, with_events=True)
    founded, live, newest = [], [], [0] * len(stream)
    labels: set[int] = set()
    alive = 0

    def take(answers: Answers) -> None:
        nonlocal alive
        for line in answers.lines:
            if isinstance(line, Assignment):
                newest[line.seq] = line.cluster
                labels.add(line.cluster)
        alive += sum(1 if event.event in ("born", "split") else -1 for event in answers.events)

    for i, item in enumerate(stream):
        take(engine.advance([Record(item.text, {"line": i + 1}, item.time, item.id)]))
        founded.append(len(labels))
        live.append(alive)
    take(engine.finish())
    nmi = agreement(newest, [int(item.topic.split()[0]) for item in stream]).nmi
    return Run(np.array(founded), np.array(live), newest, nmi)


def told(stream: Sequence[DemoRecord]) -> tuple[np.ndarray, np.ndarray]:
    """Stories that have begun, and stories that are still running, by record."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for i, item in enumerate(stream):
        first.setdefault(item.topic, i)
        last[item.topic] = i
    begun, running = np.zeros(len(stream), int), np.zeros(len(stream) + 1, int)
    for topic, i in first.items():
        begun[i] += 1
        running[i] += 1
        running[last[topic] + 1] -= 1
    return begun.cumsum(), running[:-1].cumsum()


def seated(weights: Callable[[list[int]], list[float]], n: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Records dealt out by a prior alone: clusters so far, and sizes in the end. Nothing is read of them."""
    rng = random.Random(seed)
    sizes: list[int] = []
    clusters = np.zeros(n, int)
    for i in range(n):
        (k,) = rng.choices(range(len(sizes) + 1), weights(sizes))
        if k == len(sizes):
            sizes.append(0)
        sizes[k] += 1
        clusters[i] = len(sizes)
    return clusters, sorted(sizes, reverse=True)


def decaying(n: int, seed: int, concentration: float, scale: float) -> tuple[np.ndarray, list[int]]:
    """The same under the distance-dependent prior with an exponential decay by records."""
    rng = random.Random(seed)
    sizes: list[int] = []
    weights: list[float] = []
    clusters = np.zeros(n, int)
    for i in range(n):
        weights = [weight * np.exp(-1.0 / scale) for weight in weights]
        (k,) = rng.choices(range(len(sizes) + 1), [*weights, concentration])
        if k == len(sizes):
            sizes.append(0)
            weights.append(0.0)
        sizes[k] += 1
        weights[k] += 1.0
        clusters[i] = len(sizes)
    return clusters, sorted(sizes, reverse=True)


def framed(axes: Axes, x: str, y: str, title: str) -> None:
    """Labels of one picture's axes."""
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def ranked(axes: Axes, sizes: Sequence[int], name: str, **style: Any) -> None:
    """Sizes of clusters from the largest to the smallest."""
    axes.plot(np.arange(1, len(sizes) + 1), sizes, label=name, **style)


def saved(figure: Figure, folder: Path, name: str) -> None:
    """Write a picture without the date, so that the same numbers give the same bytes."""
    figure.tight_layout()
    figure.savefig(folder / name, dpi=90, metadata={"Software": None})
    plt.close(figure)


def alone(folder: Path) -> None:
    """Draws from the priors, with no record read."""
    a, n = 10.0, 2_000
    draws = {
        "crp": seated(lambda sizes: [*map(float, sizes), a], n, SEED),
        "pitman-yor": seated(lambda sizes: [*(size - 0.5 for size in sizes), a + 0.5 * len(sizes)], n, SEED),
        "uniform": seated(lambda sizes: [*(1.0 for _ in sizes), a], n, SEED),
        "distance-dependent": decaying(n, SEED, a, 200.0),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for name, (clusters, sizes) in draws.items():
        left.plot(np.arange(1, n + 1), clusters, label=name, color=COLOURS[name])
        ranked(right, sizes, name, color=COLOURS[name])
    framed(left, "records", "clusters so far", "number of clusters")
    framed(right, "cluster, by size", "records", f"sizes after {n:,} records")
    right.set(xscale="log", yscale="log")
    left.legend(fontsize=8, frameon=False)
    saved(figure, folder, "priors-alone.png")


def drawn(folder: Path, runs: dict[str, Run], stream: Sequence[DemoRecord]) -> None:
    """Numbers and sizes of clusters that the engine finds."""
    begun, running = told(stream)
    names = list(COLOURS)[:-1]
    at = np.arange(1, len(stream) + 1)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6))
    for name in names:
        left.plot(at, runs[name].founded, label=name, color=COLOURS[name])
        middle.plot(at, runs[name].live, color=COLOURS[name])
        sizes = sorted(Counter(runs[name].labels).values(), reverse=True)
        ranked(right, sizes, name, color=COLOURS[name])
    left.plot(at, begun, label=TRUTH, color=COLOURS[TRUTH], linestyle=":")
    middle.plot(at, running, color=COLOURS[TRUTH], linestyle=":")
    sizes = sorted(Counter(item.topic for item in stream).values(), reverse=True)
    ranked(right, sizes, TRUTH, color=COLOURS[TRUTH], linestyle=":")
    framed(left, "records", "clusters", "announced so far")
    framed(middle, "records", "clusters", "live: may still grow")
    framed(right, "cluster, by size", "records", "sizes in the end")
    right.set(xscale="log", yscale="log")
    right.legend(fontsize=8, frameon=False, loc="lower left")
    saved(figure, folder, "priors-found.png")


def main(folder: Path) -> None:
    """Draw the pictures, print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    alone(folder)
    stream = list(demo_stream(RECORDS, SEED))
    runs = {}
    print("| prior | clusters in the end | of one record | largest | live in the end | NMI |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, settings in RUNS.items():
        runs[name] = run = clustered(settings, stream)
        sizes = Counter(run.labels).values()
        ones = sum(size == 1 for size in sizes)
        print(
            f"| {name} | {len(sizes)} | {ones} | {max(sizes)} | {run.live[-1]} | {run.nmi:.3f} |", flush=True
        )
    begun, _ = told(stream)
    true = Counter(item.topic for item in stream).values()
    ones = sum(size == 1 for size in true)
    print(f"| *the true {TRUTH}* | {begun[-1]} | {ones} | {max(true)} | | |")
    drawn(folder, runs, stream)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
