"""How novel records are over time, how sure their answers, and how often those are changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.plots.clock import Clock
from streamdp.plots.data import Answered, Floats
from streamdp.plots.style import COLOURS, axes_or_new, head

PER_BIN = 40
"""Records in a bin, on average, as far as there are so many."""

BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[5], COLOURS[2]


def bin_edges(answered: Answered, most: int = 80) -> tuple[Clock, Floats, Floats]:
    """The clock, where the records stand, and bins wide enough that each has some to sum up."""
    clock = Clock.of(answered)
    at = clock.values(answered.seq, answered.time)
    return clock, at, clock.edges(at, int(np.clip(len(at) // PER_BIN, 1, most)))


def by_bin(at: Floats, values: Floats, edges: Floats, quantiles: tuple[float, ...]) -> Floats:
    """Quantiles of the values that are known, in each bin, shape (len(quantiles), bins); nan for none."""
    known = ~np.isnan(values)
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    found = np.full((len(quantiles), len(edges) - 1), np.nan)
    for b in np.unique(place[known]).tolist():
        found[:, b] = np.quantile(values[known & (place == b)], quantiles)
    return found


def share(at: Floats, values: Floats, edges: Floats) -> Floats:
    """Means of the values that are known, in each bin, shape (bins,); nan for none."""
    known = ~np.isnan(values)
    count = np.histogram(at[known], edges)[0]
    total = np.histogram(at[known], edges, weights=values[known])[0]
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _middle(clock: Clock, edges: Floats) -> Floats:
    return clock.on_axis(0.5 * (edges[1:] + edges[:-1]))


def novelty(answered: Answered, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw the novelty of every record, its median and spread over time; returns the axes."""
    axes = axes_or_new(ax)
    clock, at, edges = bin_edges(answered)
    low, median, high = by_bin(at, answered.novelty, edges, (0.1, 0.5, 0.9))
    x, middle = clock.on_axis(at), _middle(clock, edges)
    old = ~answered.new
    axes.plot(x[old], answered.novelty[old], ".", ms=3.5, color="#777777", alpha=0.5, mew=0, label="record")
    axes.plot(
        x[~old], answered.novelty[~old], "^", ms=5, color=ORANGE, mew=0, alpha=0.8, label="founds a cluster"
    )
    axes.fill_between(middle, low, high, color=BLUE, alpha=0.2, lw=0, label="8 of 10 records")
    axes.plot(middle, median, "o-", ms=2.5, lw=1.8, color=BLUE, label="median")
    axes.set_ylabel("novelty (nats by token\nor dimension)")
    axes.margins(x=0.01)
    clock.dress(axes)
    head(axes, title or f"How novel {len(answered):,} records are", legend=True)
    return axes


def new_clusters(answered: Answered, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw the mean probability of a new cluster, and the share of founders; returns the axes."""
    axes = axes_or_new(ax)
    clock, at, edges = bin_edges(answered)
    middle = _middle(clock, edges)
    expected = share(at, answered.new_probability, edges)
    axes.plot(middle, expected, "-", lw=1.8, color=BLUE, label="mean probability of a new cluster")
    founders = share(at, answered.new.astype(float), edges)
    axes.plot(middle, founders, "--", lw=1.5, color=ORANGE, label="share of founders")
    _shares(axes, clock, f"of the records\nin {clock.width(edges)}", expected, founders)
    head(axes, title or "New clusters", legend=True)
    return axes


def sureness(answered: Answered, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw how probable the announced clusters are, by the beam's competing clusterings; returns the axes."""
    axes = axes_or_new(ax)
    clock, at, edges = bin_edges(answered)
    middle = _middle(clock, edges)
    revised = bool((answered.revision > 0).any())
    if revised and not np.isnan(answered.first_probability).all():
        first = share(at, answered.first_probability, edges)
        axes.plot(middle, first, "--", lw=1.5, color=ORANGE, label="mean, as first announced")
    now = share(at, answered.probability, edges)
    axes.plot(middle, now, "-", lw=1.8, color=BLUE, label="mean, newest" if revised else "mean")
    (low,) = by_bin(at, answered.probability, edges, (0.1,))
    axes.plot(middle, low, ":", lw=1.8, color=GREEN, label="one in ten is less sure")
    _shares(axes, clock, "probability of the\nannounced cluster")
    head(axes, title or f"How sure the answers to {len(answered):,} records are", legend=True)
    return axes


def revisions(answered: Answered, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw the share of records whose answer was changed later; returns the axes."""
    axes = axes_or_new(ax)
    clock, at, edges = bin_edges(answered)
    changed = (answered.revision > 0).astype(float)
    shares = share(at, changed, edges)
    axes.stairs(shares, clock.on_axis(edges), fill=True, color=GREEN, alpha=0.8)
    _shares(axes, clock, f"of the records\nin {clock.width(edges)}", shares)
    head(axes, title or f"Answers changed later: {int(changed.sum()):,} of {len(answered):,}")
    return axes


def _shares(axes: Any, clock: Clock, name: str, *small: Floats) -> None:
    """A vertical axis of shares: up to 1, or up to the largest of values that may be small."""
    from matplotlib.ticker import PercentFormatter

    known = [value for values in small for value in values.tolist() if value == value]
    axes.set_ylim(0.0, min(max([0.05, *(1.15 * value for value in known)]), 1.02) if small else 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.margins(x=0.01)
    axes.set_ylabel(name)
    clock.dress(axes)
