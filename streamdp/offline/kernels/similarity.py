"""How often records are together, and the descent to a clustering of low expected loss.

Labels are numbers below N, of int64; a similarity matrix is float64[N, N], symmetric, ones on the diagonal.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry


@entry
def count_together(labels: np.ndarray, order: np.ndarray, place: np.ndarray, similarity: np.ndarray) -> None:
    """Fill ``similarity``, zeros before, with the share of the draws in which two records are together.

    ``labels`` are any integers, a draw a row; a row of ``order`` lists the records by label, and then as
    they come, and ``place`` says where in it each record is.
    """
    n_draws, n = labels.shape
    for i in range(n):
        similarity[i, i] = 1.0
        for s in range(n_draws):
            for p in range(place[s, i] + 1, n):
                if labels[s, order[s, p]] != labels[s, i]:
                    break
                similarity[i, order[s, p]] += 1.0
        for j in range(i + 1, n):
            similarity[i, j] /= n_draws
            similarity[j, i] = similarity[i, j]


@entry
def sum_inside(labels: np.ndarray, order: np.ndarray, similarity: np.ndarray, inside: np.ndarray) -> None:
    """Fill ``inside`` with each record's sum of similarities to its cluster, the record itself included.

    ``order`` lists the records by label, and then as they come.
    """
    n = labels.shape[0]
    inside[:] = 1.0
    for p in range(n):
        i = order[p]
        for q in range(p + 1, n):
            j = order[q]
            if labels[j] != labels[i]:
                break
            inside[i] += similarity[i, j]
            inside[j] += similarity[i, j]


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

    ``sizes`` (int64[N], by label) and ``inside`` (float64[N], by record, see `sum_inside`) follow.
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
