"""The predictive of many clusters of vectors at once, where a family can tell from afar which have no say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import generic
from streamdp.likelihoods.vectors import predictive


class Rows(NamedTuple):
    """Statistics of many clusters, settled, and which of them can be joined."""

    block: np.ndarray  # float64[S, width]
    coarse: np.ndarray  # float32[S, coarse width] what the family looks at first, of its own making
    product: np.ndarray  # float64[S] scratch space
    open: np.ndarray  # int64[S] 1 where a cluster can be joined
    column: np.ndarray  # int64[S] below 0 where every hypothesis can join it
    high: int  # rows from there on are not in use


class Asked(NamedTuple):
    """A record whose predictive is asked of many clusters."""

    x: np.ndarray  # float64[D]
    single: np.ndarray  # float32[coarse width] room for the record in single precision
    own: float
    floor: float  # nats; the predictive of a new cluster where every hypothesis may found one, else -inf
    margin: float  # nats; a cluster that is so far below what every hypothesis can have has no say


@generic
def coarsen(family: Any, row: np.ndarray, coarse: np.ndarray) -> None:
    """Bring up to date what is looked at first, after the row has been settled; nothing for most families."""


@generic
def score_rows(family: Any, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    """log H(x | S) of every row that can be joined, in nats, or -inf where it is certain to have no say."""


@coarsen.otherwise
def _nothing_coarse(family: Any, row: np.ndarray, coarse: np.ndarray) -> None:
    pass


@score_rows.otherwise
def _score_each(family: Any, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    for s in range(rows.high):
        if rows.open[s] == 1:
            out[s] = predictive(family, rows.block[s], asked.x, asked.own)
