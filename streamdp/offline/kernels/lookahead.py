"""Look-aheads that depend on the clusters: what the remaining records are expected to add to log p(x | z)."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.kernels.clusters import add_to_group, copies_in_group, score, score_group
from streamdp.offline.kernels.store import Store


@kernel
def _log_sum(values: np.ndarray, terms: np.ndarray, n: int) -> float:
    """log of the sum of exp(values + terms) over the first n."""
    peak = -math.inf
    for k in range(n):
        peak = max(peak, values[k] + terms[k])
    total = 0.0
    for k in range(n):
        total += math.exp(values[k] + terms[k] - peak)
    return peak + math.log(total)


@kernel
def predictive(
    store: Store,
    order: np.ndarray,
    depth: int,
    slots: np.ndarray,
    clusters: int,
    weights: np.ndarray,
    out: np.ndarray,
) -> float:
    """Feng et al., eq. 3: records from the depth-th on, each in a cluster by the log weights of the first."""
    for k in range(clusters + 1):
        out[k] = 0.0
    norm = _log_sum(weights, out, clusters + 1)
    total = 0.0
    for place in range(depth, order.shape[0]):
        i = order[place]
        score(store, i, slots, clusters, out)
        out[clusters] = store.fresh[i]
        total += _log_sum(weights, out, clusters + 1) - norm
    return total


@kernel
def replica(
    store: Store,
    order: np.ndarray,
    depth: int,
    slots: np.ndarray,
    clusters: int,
    before: np.ndarray,
    out: np.ndarray,
) -> float:
    """Daume 2007, section 3.3: each of the R remaining records where R - 1 copies of it have gone before.

    It goes where it then does best: into a cluster, or a new one.
    """
    total, left = 0.0, order.shape[0] - depth
    for place in range(depth, order.shape[0]):
        i = order[place]
        copies_in_group(store, i, left - 1)
        best = -score_group(store, slots, clusters, before)
        add_to_group(store, i)
        best += score_group(store, slots, clusters, out)
        for k in range(clusters):
            best = max(best, out[k] - before[k])
        total += best
    return total
