"""Curves over time of novelty, sureness and revisions; traces, sizes and similarity of a finite set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamdp.plots.data import Answered, Floats
from streamdp.plots.style import COLOURS, INK, Clock, axes_or_new, head, name_of, style

MOST_BINS = 80
PER_BIN = 40
"""Records in a bin, on average, as far as there are so many."""

BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[5], COLOURS[2]


def bin_edges(answered: Answered) -> tuple[Clock, Floats, Floats]:
    """The clock, the places of the records, and bins wide enough that each has some to sum up."""
    clock = Clock.of(answered)
    at = clock.values(answered.seq, answered.time)
    return clock, at, clock.edges(at, int(np.clip(len(at) // PER_BIN, 1, MOST_BINS)))


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


def trace(
    seconds: Sequence[ArrayLike],
    values: Sequence[ArrayLike],
    quantity: str,
    ax: Any = None,
    *,
    title: str | None = None,
) -> Any:
    """Draw how a quantity went in each chain, after so many seconds; returns the axes."""
    from matplotlib.ticker import FuncFormatter

    axes = axes_or_new(ax)
    for number, (when, what) in enumerate(zip(seconds, values, strict=True)):
        look = style(number)
        dash = style(len(COLOURS) * number).dash
        axes.plot(when, what, color=look.colour, ls=dash, lw=1.3, label=f"chain {number}")
    axes.set_ylabel(quantity)
    axes.set_xlabel("seconds of sampling")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    several = 1 < len(seconds) <= 8
    head(axes, title or quantity, legend=several)
    return axes


def largest(
    labels: ArrayLike,
    names: Mapping[int, str] | None = None,
    ax: Any = None,
    *,
    most: int = 20,
    title: str | None = None,
) -> Any:
    """Draw the sizes of the largest clusters as bars; returns the axes."""
    axes = axes_or_new(ax)
    found, counts = np.unique(np.asarray(labels), return_counts=True)
    order = np.lexsort((found, -counts))[:most]
    bars = axes.barh(np.arange(len(order)), counts[order], color=COLOURS[0])
    axes.bar_label(bars, [f"{n:,}" for n in counts[order]], padding=3, fontsize=9, color=INK)
    axes.set_yticks(np.arange(len(order)), [name_of(c, names or {}, 32) for c in found[order].tolist()])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.1)
    axes.set_xlabel("records")
    head(axes, title or f"The {len(order)} largest of {len(found):,} clusters")
    return axes


def sizes(labels: ArrayLike, ax: Any = None, *, title: str | None = None) -> Any:
    """Draw the sizes of all clusters by rank, on logarithmic scales; returns the axes."""
    from matplotlib.ticker import FuncFormatter

    axes = axes_or_new(ax)
    counts = np.sort(np.unique(np.asarray(labels), return_counts=True)[1])[::-1]
    axes.loglog(np.arange(1, len(counts) + 1), counts, "o-", ms=3.5, lw=0.8, color=COLOURS[0])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}" if n >= 1 else ""))
        axis.set_minor_formatter(FuncFormatter(lambda n, _: ""))
    axes.set_xlabel("rank of the cluster by size")
    axes.set_ylabel("records")
    axes.grid(True, which="major", color="#DDDDDD", lw=0.6)
    head(axes, title or f"All sizes: {counts.sum():,} records")
    return axes


def similarity(
    matrix: Floats,
    labels: ArrayLike,
    names: Mapping[int, str] | None = None,
    ax: Any = None,
    *,
    title: str | None = None,
) -> Any:
    """Draw in which share of the draws records are together; returns the axes.

    Parameters
    ----------
    matrix
        Shape (n, n), records in the order of their clusters.
    labels
        The cluster of each, shape (n,), ascending or in blocks.
    names
        What clusters are about; those that have room for it bear it.
    """
    axes = axes_or_new(ax)
    image = axes.imshow(matrix, vmin=0.0, vmax=1.0, cmap="cividis", interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="share of the draws in which two records are together")
    given = np.asarray(labels)
    starts = np.flatnonzero(np.diff(given, prepend=given[:1] - 1))
    ends = np.append(starts[1:], len(given))
    room = max(len(given) // 32, 1)
    wide = [(s, e) for s, e in zip(starts.tolist(), ends.tolist(), strict=True) if e - s >= room]
    axes.set_yticks(
        [(s + e - 1) / 2 for s, e in wide], [name_of(int(given[s]), names or {}, 32) for s, _ in wide]
    )
    axes.set_xticks([])
    axes.set_xlabel(f"{len(given):,} records by cluster")
    axes.set_ylabel("cluster")
    axes.spines[["left", "bottom"]].set_visible(False)
    head(axes, title or "Which records are together")
    return axes
