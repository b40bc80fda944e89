"""Of a finite set: how chains went, and which records are together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamdp.plots.data import Floats
from streamdp.plots.style import COLOURS, axes_or_new, head, name_of, style


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
