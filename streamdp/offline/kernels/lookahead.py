"""Look-aheads that depend on the clusters: what the remaining records are expected to add to log p(x | z)."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import inlined, kernel, routine
from streamdp.offline.kernels.family import add_to_group, empty_group, score, score_group
from streamdp.offline.kernels.store import BAG_TOKENS, BAG_TYPES, FIRST_VECTOR, GAMMA, GROUP, WISHART, Store


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


@routine
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
        out[clusters] = store.tables.fresh[i]
        total += _log_sum(weights, out, clusters + 1) - norm
    return total


@inlined
def _make_copies(store: Store, i: int, n: int) -> None:
    """Let the group be n copies of a record."""
    clusters, scratch, kind = store.clusters, store.scratch, store.tables.kind[0]
    empty_group(store)
    if n == 0:
        return
    add_to_group(store, i)
    if kind == WISHART:
        for _ in range(n - 1):
            add_to_group(store, i)
    elif kind < FIRST_VECTOR:
        for j in range(scratch.meta[BAG_TYPES]):
            scratch.bag[scratch.bag_words[j]] *= n
        scratch.meta[BAG_TOKENS] *= n
    else:
        clusters.size[GROUP] = n
        clusters.total[GROUP] *= n
        if kind != GAMMA:
            for d in range(clusters.sums.shape[1]):
                clusters.sums[GROUP, d] *= n


@routine
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
        _make_copies(store, i, left - 1)
        best = -score_group(store, slots, clusters, before)
        add_to_group(store, i)
        best += score_group(store, slots, clusters, out)
        for k in range(clusters):
            best = max(best, out[k] - before[k])
        total += best
    return total
