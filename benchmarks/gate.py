"""How often ``streamdp gate`` fails a log in which nothing was changed, and what it finds of what is planted.

``python -m benchmarks.gate`` cuts each of the thirteen logs at ../shared/data/logs at random: a baseline and,
right behind it, a stretch that is judged by it. Each log is clustered once, and its labels are cut. The
constant ``CAUTION`` is chosen on twelve logs and judged on the thirteenth: the least of those tried with
which the twelve fail as often as the rate says at most, else the largest. ``mixed`` is the same with the
lines in random order, so that nothing changes indeed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks.diffs import engine_of, texts_of
from benchmarks.log_lines import LATER, SETS
from benchmarks.workloads import show
from streamdp.story import stretches
from streamdp.story.stretches import Departures, chances

CAUTIONS = (1.4, 2.0, 2.8, 4.0)

LENGTHS = (25, 50, 100, 200)
"""Lines that are judged."""

RATE = 0.01

PLANTED = 1 << 30
"""A label that no template has."""


def labels_of(name: str) -> np.ndarray:
    """The label of each line of a set, as its template is called at the end."""
    engine = engine_of([(0.0, text) for text in texts_of(name)], dated=False)
    return engine.lately()[0]


def cuts(labels: np.ndarray, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Baselines of 200 lines or more, four times what is judged at least; and the lines behind each."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        length = int(draw.choice(LENGTHS))
        size = int(draw.integers(max(stretches.FEWEST * length, 200), len(labels) - length + 1))
        begin = int(draw.integers(0, len(labels) - length - size + 1))
        yield np.split(labels[begin : begin + size + length], [size])


def found_in(baseline: np.ndarray, judged: np.ndarray) -> Departures:
    """The least chance of each kind."""
    names, which = np.unique(np.append(baseline, judged), return_inverse=True)
    counts = np.zeros((len(names), len(baseline)))
    counts[which[: len(baseline)], np.arange(len(baseline))] = 1.0
    own = np.bincount(which[len(baseline) :], minlength=len(names)).astype(float)
    return Departures(*(each.min() for each in chances(counts, own)[0]))


def unseen(baseline: np.ndarray, judged: np.ndarray) -> float:
    """The largest share of the judged lines that a template has which the baseline never had."""
    names, counts = np.unique(judged, return_counts=True)
    return float(counts[~np.isin(names, baseline)].max(initial=0)) / len(judged)


def planted(kind: str, baseline: np.ndarray, judged: np.ndarray, draw: np.random.Generator) -> None:
    """Plant a template: a fifth of the judged lines; ten times its share of .03; none of its share of .1."""
    before, after = {"new": (0.0, 0.2), "surged": (0.03, 0.3), "gone": (0.1, 0.0)}[kind]
    baseline[draw.random(len(baseline)) < before] = PLANTED
    judged[draw.random(len(judged)) < after] = PLANTED


def measured(sets: dict[str, np.ndarray], count: int, caution: float) -> dict[str, dict[str, np.ndarray]]:
    """By log: which kinds fail in each cut, in order and mixed; and whether what is planted is found."""
    stretches.CAUTION = caution
    found = {}
    for name, labels in sets.items():
        draw, rows = np.random.default_rng(1), dict[str, list[object]]()
        for baseline, judged in cuts(labels, count, 0):
            mixed = draw.permutation(np.concatenate([baseline, judged]))
            rows.setdefault("in order", []).append(found_in(baseline, judged))
            rows.setdefault("mixed", []).append(found_in(*np.split(mixed, [len(baseline)])))
            for kind in Departures._fields:
                pair = baseline.copy(), judged.copy()
                planted(kind, *pair, draw)
                rows.setdefault(kind, []).append([getattr(found_in(*pair), kind)])
        found[name] = {what: np.array(each) <= RATE / 3 for what, each in rows.items()}
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=200, help="cuts of each log")
    options = parser.parse_args()
    sets = {name: labels_of(name) for name in SETS + LATER}
    by_caution = {caution: measured(sets, options.cuts, caution) for caution in CAUTIONS}
    fails = {
        caution: {name: own["in order"].any(axis=1).mean() for name, own in each.items()}
        for caution, each in by_caution.items()
    }
    rows = []
    for name in sets:
        others = {caution: np.mean([each[n] for n in sets if n != name]) for caution, each in fails.items()}
        caution = next((caution for caution in CAUTIONS if others[caution] <= RATE), CAUTIONS[-1])
        own = by_caution[caution][name]
        shares = [fails[caution][name], *own["in order"].mean(axis=0), own["mixed"].any(axis=1).mean()]
        powers = [f"{own[kind].mean():.2f}" for kind in Departures._fields]
        rows.append((name, caution, *(f"{share:.3f}" for share in shares), *powers))
    heads = ("log", "caution", "fails", "new", "surged", "gone", "mixed", "finds new", "surged", "gone")
    show(f"{options.cuts} cuts of each log, at a rate of {RATE:g}", heads, rows)
    means = [
        (caution, f"{np.mean(list(each.values())):.4f}", f"{max(each.values()):.3f}")
        for caution, each in fails.items()
    ]
    shares = {
        name: np.array([unseen(*cut) for cut in cuts(own, options.cuts, 0)]) for name, own in sets.items()
    }
    rows = [
        (name, *(f"{(each >= least).mean():.3f}" for least in (0.05, 0.2))) for name, each in shares.items()
    ]
    show("cuts with a new template of so many lines, where nothing was planted", ("log", ".05", ".2"), rows)
    show("by caution, all logs", ("caution", "fails", "most of a log"), means)


if __name__ == "__main__":
    main()
