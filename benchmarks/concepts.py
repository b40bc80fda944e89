"""The pictures of docs/concepts.md, each computed by what it shows.

python -m benchmarks.concepts docs/pictures
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.drifting import demo_stream
from benchmarks.priors import framed, saved
from streamdp.engine import Engine
from streamdp.likelihoods import Gaussian
from streamdp.priors import CRP
from streamdp.records import Assignment, Final, Record
from streamdp.settings import Settings

COLOURS = plt.get_cmap("tab10")(np.arange(10))
MODEL = Gaussian(dimension=1, variance=0.25, mean_variance=9.0)
PRIOR = CRP(0.5)


def flow(n: int, seed: int) -> np.ndarray:
    """Points of two groups that stand still, one that wanders and, from the middle on, a fourth."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        share = i / n
        centres = [(-4.0, 0.0), (4.0, 3.0), (-3.0 + 8.0 * share, -5.0)] + (
            [(0.0, 6.0)] if share > 0.5 else []
        )
        rows.append(rng.normal(centres[rng.integers(len(centres))], 0.7))
    return np.array(rows)


def clusters(folder: Path) -> None:
    """A stream of points at three moments, in the colours of the labels that the engine gave."""
    points = flow(1200, 1)
    engine = Engine(Settings())
    labels: dict[int, int] = {}
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.3), sharex=True, sharey=True)
    for panel, (start, end) in zip(panels, ((0, 400), (400, 800), (800, 1200)), strict=True):
        records = [Record(points[i].tolist(), {"line": i + 1}) for i in range(start, end)]
        for line in engine.advance(records).lines:
            if isinstance(line, Assignment):
                labels[line.seq] = line.cluster
        shown = [COLOURS[labels[i] % len(COLOURS)] for i in range(start, end)]
        panel.scatter(*points[start:end].T, c=shown, s=7)
        found = len({labels[i] for i in range(start, end)})
        framed(panel, "", "", f"records {start:,} to {end - 1:,}: {found} clusters")
    saved(figure, folder, "clusters.png")


def predictive(folder: Path) -> None:
    """Prior weight times posterior predictive of two clusters and of a new one, along a line."""
    members: dict[str, Sequence[float]] = {
        "cluster A (9 records)": np.linspace(-2.9, -1.2, 9).tolist(),
        "cluster B (3 records)": [0.8, 1.2, 1.9],
    }
    line = np.linspace(-6, 6, 400)
    figure, axes = plt.subplots(figsize=(7, 3.2))
    weights = {name: float(len(rows)) for name, rows in members.items()} | {
        "a new cluster": PRIOR.concentration
    }
    for colour, (name, weight) in zip(COLOURS, weights.items(), strict=False):
        held = [[x] for x in members.get(name, ())]
        density = np.exp([MODEL.log_marginal([*held, [x]]) - MODEL.log_marginal(held) for x in line])
        axes.fill_between(
            line, weight / sum(weights.values()) * density, alpha=0.35, color=colour, label=name
        )
        axes.plot(
            members.get(name, ()), [1.5e-4] * len(members.get(name, ())), "|", color=colour, markersize=9
        )
    axes.set(yscale="log", ylim=(1e-4, 1.0), xlim=(-6, 6))
    framed(axes, "value of the next record", "weight x density", "who would have the next record?")
    axes.legend(fontsize=8, frameon=False)
    saved(figure, folder, "predictive.png")


def log_joint(values: Sequence[float], labels: Sequence[int]) -> float:
    """log p(z, x) of numbers in clusters."""
    total = PRIOR.log_probability(labels)
    for k in set(labels):
        total += MODEL.log_marginal([[x] for x, label in zip(values, labels, strict=False) if label == k])
    return float(total)


def beams(values: Sequence[float], width: int) -> Iterator[list[tuple[tuple[int, ...], float]]]:
    """The best clusterings after every number, and their shares of what the beam holds."""
    held: list[tuple[int, ...]] = [()]
    for i in range(len(values)):
        children = [(*z, k) for z in held for k in range(max(z, default=-1) + 2)]
        scored = sorted(((log_joint(values[: i + 1], z), z) for z in children), reverse=True)[:width]
        held = [z for _, z in scored]
        masses = [math.exp(score - scored[0][0]) for score, _ in scored]
        yield [(z, mass / sum(masses)) for z, mass in zip(held, masses, strict=True)]


def beam(folder: Path) -> None:
    """Three clusterings of seven numbers, as a beam of width 3 holds them from record to record."""
    values = [0.0, 1.6, 0.1, 1.5, 0.9, 1.7, -0.1]
    steps = list(beams(values, 3))
    figure, panels = plt.subplots(1, 4, figsize=(11, 2.6), sharex=True)
    for panel, n in zip(panels, (2, 4, 5, 7), strict=True):
        for row, (labels, share) in enumerate(steps[n - 1]):
            panel.hlines(-row, -0.5, 2.0, color="0.9", zorder=0)
            panel.scatter(values[:n], [-row] * n, c=[COLOURS[k] for k in labels], s=60)
            panel.text(2.15, -row, f"{share:.0%}", va="center", fontsize=9)
        panel.scatter(values[n - 1], -len(steps[n - 1]) + 0.35, marker="^", color="black", s=25)
        panel.set(ylim=(-2.9, 0.6), yticks=[], xlim=(-0.5, 2.9), xticks=[0, 1, 2])
        framed(panel, "", "", f"after {n} records")
        panel.spines["left"].set_visible(False)
    saved(figure, folder, "beam.png")


def revisions(folder: Path) -> None:
    """Records of the demo stream whose answer was changed, and how far finality follows the stream."""
    stream = [Record(item.text, {"line": i}, item.time) for i, item in enumerate(demo_stream(8_000, 0))]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2))
    for name, settings in {
        "second looks (default)": Settings(),
        "second_look 0": Settings(second_look=0),
    }.items():
        engine = Engine(settings)
        seen, final, changed = [0], [0], []
        for start in range(0, len(stream), 100):
            answers = engine.advance(stream[start : start + 100])
            for line in answers.lines:
                if isinstance(line, Final):
                    seen.append(engine.seq)
                    final.append(line.final_through)
                elif line.revision:
                    changed.append((line.seq, engine.seq))
        right.plot([*seen, len(stream)], [*final, final[-1]], drawstyle="steps-post", label=name)
        if settings.second_look:
            left.scatter(*np.array(changed).T, s=4, color="tab:red")
            left.plot([0, len(stream)], [0, len(stream)], color="0.7", linewidth=1)
            framed(left, "record", "records seen when it was changed", f"{len(changed)} revisions")
    right.plot([0, len(stream)], [0, len(stream)], color="0.7", linewidth=1)
    framed(right, "records seen", "final through record", "finality")
    right.legend(fontsize=8, frameon=False)
    saved(figure, folder, "revisions.png")


def watermark(folder: Path) -> None:
    """Records that arrive out of order, and the time that is waited for."""
    rng = np.random.default_rng(4)
    times = np.arange(60) * 1.0
    delays = rng.exponential(3.0, len(times))
    arrival = np.argsort(times + delays, kind="stable")
    lateness = 8.0
    newest = np.maximum.accumulate(times[arrival])
    mark = np.concatenate([[-np.inf], newest[:-1] - lateness])
    late = times[arrival] < mark
    figure, axes = plt.subplots(figsize=(7, 3.2))
    at = np.arange(len(times))
    axes.step(at[1:], mark[1:], where="mid", color="0.5", label="watermark: newest time less max_lateness")
    axes.scatter(at[~late], times[arrival][~late], s=12, label="put in order")
    axes.scatter(at[late], times[arrival][late], s=25, color="tab:red", label="late: placed as they come")
    framed(axes, "order of arrival", "event time, s", f"max_lateness {lateness:.0f} s")
    axes.legend(fontsize=8, frameon=False)
    saved(figure, folder, "watermark.png")


def main(folder: Path) -> None:
    """Draw them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in (clusters, predictive, beam, revisions, watermark):
        picture(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
