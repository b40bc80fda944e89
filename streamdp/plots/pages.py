"""Whole pictures of 1200 x 700 pixels: what is drawn of a stream, and of a finite set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.answers.listing import about
from streamdp.offline.fit import Fit
from streamdp.offline.similarity import similarity_matrix
from streamdp.plots import curves
from streamdp.plots.data import Answered
from streamdp.plots.stream import stack, streamgraph
from streamdp.plots.style import DPI, SIZE, look
from streamdp.records import ClusterSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_STREAM = ("streamgraph",)
OF_FIT = ("trace", "similarity")

MOST_SIMILAR = 2_000
"""Records in a picture of similarities; a larger set is thinned out."""


def names_of(clusters: Iterable[ClusterSummary]) -> dict[int, str]:
    """What clusters are about by their top words."""
    return {c.cluster: about(c, 4) for c in clusters if c.words}


def _figure(rows: int = 1) -> tuple[Figure, Any]:
    """A figure without pyplot, which would keep it, and open a window where there are some."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=SIZE, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    return figure, figure.subplots(rows, sharex=True)


def of_stream(answered: Answered, names: Mapping[int, str]) -> Iterator[tuple[str, Figure]]:
    """The picture of a stream, with its name."""
    with look():
        figure, axes = _figure()
        streamgraph(stack(answered), names, axes)
        yield "streamgraph", figure


def of_fit(fit: Fit) -> Iterator[tuple[str, Figure]]:
    """Pictures of a finite set by their names: traces where there were chains, similarity where draws."""
    labels = fit.labels
    with look():
        if fit.traces:
            figure, (top, bottom) = _figure(2)
            seconds = [t.seconds for t in fit.traces]
            chains = f"{len(fit.traces)} chain{'s' if len(fit.traces) > 1 else ''}"
            joint = f"Log joint, {chains} over {len(labels):,} records"
            curves.trace(seconds, [t.log_joint for t in fit.traces], "log joint (nats)", top, title=joint)
            top.set_xlabel("")
            count = [t.clusters for t in fit.traces]
            curves.trace(seconds, count, "clusters", bottom, title="Number of clusters")
            yield "trace", figure
        if len(fit.draws) > 1:
            step = -(-len(labels) // MOST_SIMILAR)
            largest_first = np.lexsort((labels, -np.bincount(labels)[labels]))
            chosen = largest_first[::step]
            matrix = similarity_matrix(np.array(fit.draws)[:, chosen])
            figure, axes = _figure()
            title = f"Which records are together in {len(fit.draws):,} draws"
            curves.similarity(matrix, labels[chosen], names_of(fit.clusters()), axes, title=title)
            yield "similarity", figure
