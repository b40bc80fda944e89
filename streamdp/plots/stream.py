"""How many records clusters have over time, as a streamgraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.answers.listing import about
from streamdp.plots.data import Answered, Floats, Ints
from streamdp.plots.style import Clock, Style, axes_or_new, name_of, styles_of
from streamdp.records import ClusterSummary

LATELY = 1000
"""Records that are called recent."""

GROWING = 4
"""Of the clusters of a picture, so many may be there because they grow."""

BINS = 120
"""Over a stream, where there are records enough."""


def names_of(clusters: Iterable[ClusterSummary]) -> dict[int, str]:
    """What clusters are about by their top words."""
    return {c.cluster: about(c, 4) for c in clusters if c.words}


def prominent(answered: Answered, most: int = 12) -> list[int]:
    """The largest clusters and, a third of them at most, the fastest growing; the oldest first.

    Growth is how many more of the last 1,000 records a cluster has than of the 1,000 before.
    """
    labels = answered.cluster[answered.cluster >= 0].tolist()
    sizes = Counter(labels)
    ranked = sorted(sizes, key=lambda c: (-sizes[c], c))
    lately = min(LATELY, len(labels) // 2)
    more = Counter(labels[len(labels) - lately :])
    more.subtract(labels[len(labels) - 2 * lately : len(labels) - lately])
    growing = sorted((c for c in more if more[c] > 0 and sizes[c] > 1), key=lambda c: (-more[c], c))
    chosen = growing[: min(GROWING, most // 3)]
    return sorted({*chosen, *[c for c in ranked if c not in chosen][: most - len(chosen)]})


@dataclass(frozen=True, eq=False)
class Stack:
    """Records by cluster and time.

    Parameters
    ----------
    clusters
        Labels of the rows, the oldest first.
    edges
        Of the bins, in seconds or numbers of records, shape (bins + 1,).
    counts
        Records, shape (clusters + 1, bins); the last row has those of all other clusters.
    clock
        What the edges mean.
    found
        How many clusters there are in all.
    """

    clusters: list[int]
    edges: Floats
    counts: Ints
    clock: Clock
    found: int


def stack(answered: Answered, clusters: Collection[int] | None = None, bins: int | None = None) -> Stack:
    """Count the records of these clusters, or of the prominent ones, in bins of time (up to 120)."""
    chosen = sorted(prominent(answered) if clusters is None else clusters)
    clock = Clock.of(answered)
    at = clock.values(answered.seq, answered.time)
    edges = clock.edges(at, int(np.clip(len(at) // 5, 2, BINS)) if bins is None else bins)
    rows = [np.histogram(at[answered.cluster == c], edges)[0] for c in chosen]
    others = np.histogram(at, edges)[0] - np.sum(rows, axis=0, dtype=np.int64)
    found = len(np.unique(answered.cluster[answered.cluster >= 0]))
    return Stack(chosen, edges, np.array([*rows, others], np.int64), clock, found)


def smoothed(counts: Floats | Ints, width: float) -> Floats:
    """Weighted means over neighbouring bins, weights Gaussian with that deviation in bins; 0: as they are."""
    if width <= 0.0 or counts.shape[1] < 3:
        return np.asarray(counts, float)
    reach = min(int(4 * width), (counts.shape[1] - 1) // 2)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    there = np.convolve(np.ones(counts.shape[1]), kernel, "same")
    return np.array([np.convolve(row, kernel, "same") / there for row in counts])


def streamgraph(
    data: Stack,
    names: Mapping[int, str] | None = None,
    ax: Any = None,
    *,
    smooth: float = 1.5,
    title: str | None = None,
) -> Any:
    """Draw a band for each cluster, as thick as it has records, and list them; returns the axes.

    Parameters
    ----------
    data
        Counts, as :func:`stack` makes them.
    names
        What clusters are about.
    ax
        Where to draw; None: a new figure.
    smooth
        Deviation of the Gaussian that smooths the bands, in bins; 0: the counts themselves.
    title
        None: what is counted.
    """
    axes = axes_or_new(ax)
    names, looks = names or {}, styles_of(data.clusters)
    single = data.counts.shape[1] == 1
    middle = data.clock.on_axis(data.edges if single else 0.5 * (data.edges[1:] + data.edges[:-1]))
    order = [len(data.clusters), *range(len(data.clusters))]  # the others below all
    heights = smoothed(data.counts, smooth)[order]
    heights = np.repeat(heights, 2, axis=1) if single else heights
    shown = [Style(), *[looks[c] for c in data.clusters]]
    bands = axes.stackplot(middle, heights, baseline="wiggle", colors=[s.colour for s in shown])
    for band, look in zip(bands, shown, strict=True):
        band.set(hatch=look.hatch, edgecolor="white", linewidth=0.4)
    axes.margins(x=0.0)
    data.clock.dress(axes)
    _scale(axes, heights, data.clock.width(data.edges))
    totals = data.counts.sum(axis=1)
    counted = f"{totals.sum():,} records in {data.found:,} clusters"
    axes.set_title(title or f"{counted}; in colour those that are largest or grow fastest", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    entries = [f"{name_of(c, names, 22)} ({n:,})" for c, n in zip(data.clusters, totals, strict=False)]
    entries.insert(0, f"{data.found - len(data.clusters):,} others ({totals[-1]:,})")
    handles = list(zip(bands, entries, strict=True))[::-1]
    if not totals[-1]:
        handles.pop()
    axes.legend(
        [band for band, _ in handles],
        [entry for _, entry in handles],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        title="cluster (records)",
        alignment="left",
        frameon=False,
    )
    return axes


def _scale(axes: Any, heights: Floats, width: str) -> None:
    """Instead of an axis, whose zero would mean nothing: a bar as long as so many records are thick."""
    low, high = axes.get_ylim()
    length = max(float(heights.sum(axis=0).max()) / 2, 1e-9)
    unit = 10.0 ** np.floor(np.log10(length))
    length = float(unit * max(step for step in (1, 2, 5) if step * unit <= length * (1 + 1e-9)))
    axes.set_yticks([low, low + length], ["0", f"{length:g}"])
    axes.set_ylim(low, high)
    axes.spines["left"].set_bounds(low, low + length)
    axes.set_ylabel(f"records in {width}\n(thickness of a band)", loc="bottom")
