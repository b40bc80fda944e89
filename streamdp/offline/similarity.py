"""From draws of clusterings to one clustering: posterior similarity and expected losses.

Binder's (1978) loss is the number of pairs that one clustering has together and the other apart; the
variation of information (Meila 2007) is in nats, its expectation a bound (Wade & Ghahramani 2018,
"Bayesian cluster analysis", Bayesian Analysis 13(2)). Any integers serve as labels.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamdp.kernels.jit import entry
from streamdp.offline.chain import canonical


@entry
def sweep(
    labels: np.ndarray,
    similarity: np.ndarray,
    vi: bool,
    sizes: np.ndarray,
    inside: np.ndarray,
    near: np.ndarray,
    cost: np.ndarray,
) -> int:
    """Give each record in turn the label that costs least; returns how many have changed.

    ``sizes`` (int64[N], by label) and ``inside`` (float64[N], by record, see `_inside`) follow.
    ``near`` and ``cost`` (float64[N], by label) are scratch: similarity to the record, loss with it.
    """
    n, moved = labels.shape[0], 0
    for i in range(n):
        row, own = similarity[i], labels[i]
        sizes[own] -= 1
        near[:] = 0.0
        cost[:] = 0.0
        for j in range(n):
            if j != i and row[j] > 0.0:
                c = labels[j]
                near[c] += row[j]
                if c == own:
                    inside[j] -= row[j]
                if vi:
                    cost[c] -= 2.0 * math.log1p(row[j] / inside[j])
        best = 0
        for c in range(n):
            m = sizes[c]
            if not vi:
                cost[c] = m - 2.0 * near[c]
            elif m > 0:
                cost[c] += (m + 1) * math.log(m + 1) - m * math.log(m) - 2.0 * math.log1p(near[c])
            if cost[c] < cost[best]:
                best = c
        # a lead by rounding could move records in circles
        if cost[best] > cost[own] - 1e-12 * n:
            best = own
        for j in range(n):
            if labels[j] == best:
                inside[j] += row[j]
        labels[i] = best
        inside[i] = 1.0 + near[best]
        sizes[best] += 1
        moved += best != own
    return moved


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Loss = Literal["vi", "binder"]

LIMIT = 20_000  # records: a similarity matrix of 3.2 GB
AT_ONCE = 1_000  # records of a cluster that are counted together with all of it
DESCENTS = 10  # from draws; a single one often ends in a worse optimum


def similarity_matrix(draws: ArrayLike) -> Floats:
    """Share of the draws in which two records are together: symmetric, shape (N, N), ones on the diagonal.

    ``draws`` are labels of shape (S, N), a clustering of the N records a row. Raises ``ValueError`` for
    more than `LIMIT` records, since memory grows with N^2, or anything but integers of that shape.
    """
    labels = _checked(draws, "draws", ndim=2)
    n = labels.shape[1]
    if n > LIMIT:
        raise ValueError(f"{n} records are too many: the similarity matrix of {LIMIT} takes 3.2 GB")
    together = np.zeros((n, n))
    for drawn in labels:
        for members in clusters_of(drawn):
            for some in np.array_split(members, len(members) // AT_ONCE + 1):
                together[np.ix_(some, members)] += 1.0
    together /= len(labels)
    return together


def clusters_of(labels: Integers) -> list[Integers]:
    """The records of each cluster, in their order."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def point_estimate(similarity: Floats, draws: ArrayLike, loss: Loss = "vi") -> Integers:
    """The clustering of low expected loss, numbered by first appearance.

    Greedy descent from each of the ten best different ``draws``, labels of shape (S, N), from one
    cluster and from all singletons; the best end is taken, the first on ties. A sweep moves each record
    in turn to the cluster, or a new one, that lowers the loss most, in O(N); sweeps end when nothing
    moves. Deterministic, and never worse than a draw, though better clusterings may exist.
    Raises ``ValueError`` for another loss, and where shapes do not match.
    """
    if loss not in ("vi", "binder"):
        raise ValueError(f"loss must be 'vi' or 'binder', not {loss!r}")
    drawn = np.unique([canonical(draw) for draw in _checked(draws, "draws", ndim=2)], axis=0)
    ranked = sorted(drawn, key=lambda labels: _varying(labels, similarity, loss))
    starts = [*ranked[:DESCENTS], np.zeros_like(drawn[0]), np.arange(drawn.shape[1])]
    ends = [_descended(start, similarity, loss) for start in starts]
    return min(ends, key=lambda labels: _varying(labels, similarity, loss))


def _checked(values: ArrayLike, name: str, ndim: int) -> Integers:
    given = np.asarray(values)
    if given.ndim != ndim or not given.size or given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a {ndim}-dimensional array of integers, and not empty")
    return given.astype(np.int64)


def _varying(labels: Integers, similarity: Floats, loss: Loss) -> float:
    """The expected loss without the term that is the same for all labels.

    "binder": in pairs, the sum over i < j of abs(together_ij - s_ij), which is the mean over the draws.
    "vi": in nats, the mean over i of log n_i + log sum_j s_ij - 2 log sum_{j with i} s_ij, where n_i is the
    size of the cluster of i: Wade & Ghahramani's (2018) lower bound, by Jensen's inequality in the last term.
    """
    n = len(labels)
    if similarity.shape != (n, n):
        raise ValueError(f"clusterings of {n} records but a similarity matrix of shape {similarity.shape}")
    sizes, inside = np.bincount(labels)[labels], _inside(labels, similarity)
    if loss == "binder":
        return float(np.sum(sizes / 2 - inside))
    return float(np.mean(np.log(sizes) - 2 * np.log(inside)))


def _inside(labels: Integers, similarity: Floats) -> Floats:
    """For each record the sum of its similarities to the records of its cluster, itself included."""
    inside = np.ones(len(labels))
    for members in clusters_of(labels):
        for place, i in enumerate(members.tolist()):
            near = similarity[i, members]
            near[place] = 0.0
            inside[members] += near
    return inside


def _descended(start: Integers, similarity: Floats, loss: Loss) -> Integers:
    labels, n = start.copy(), len(start)
    near, cost = np.empty(n), np.empty(n)
    while True:
        sizes, inside = np.bincount(labels, minlength=n), _inside(labels, similarity)
        if not sweep(labels, similarity, loss == "vi", sizes, inside, near, cost):
            return canonical(labels)
