"""Gibbs sampling, one record at a time (Neal 2000, algorithm 3).

For exchangeable priors: they enter as ``Weights``.
"""

from __future__ import annotations

import numpy as np

from streamdp.offline.kernels.family import score
from streamdp.offline.kernels.jit import entry, kernel
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.roster import ACTIVE, FREE, JOINT, Roster, enter, leave, take_slot
from streamdp.offline.kernels.store import Store
from streamdp.offline.kernels.weights import Weights


@kernel
def gibbs_step(store: Store, roster: Roster, prior: Weights, random: np.ndarray, i: int) -> None:
    """Draw the cluster of one record given all others."""
    clusters = store.clusters
    old = roster.labels[i]
    with_it, size = clusters.log_h[old], clusters.size[old] - 1
    leave(store, roster, i)
    n = roster.meta[ACTIVE]
    if size > 0:
        roster.sums[JOINT] -= with_it - clusters.log_h[old] + prior.join[size]
    else:
        roster.sums[JOINT] -= with_it + prior.found[n]
    weights = roster.weights
    score(store, i, roster.active, n, weights)
    for j in range(n):
        weights[j] += prior.join[clusters.size[roster.active[j]]]
    weights[n] = store.tables.fresh[i] + prior.found[n]
    j = draw_log(random, weights, n + 1, roster.totals)
    roster.sums[JOINT] += weights[j]
    enter(store, roster, i, roster.active[j] if j < n else take_slot(roster))


@entry
def gibbs_sweep(
    store: Store,
    roster: Roster,
    prior: Weights,
    random: np.ndarray,
    order: np.ndarray,
    first: int,
    last: int,
) -> int:
    """Draw records ``order[first .. last - 1]`` anew; returns where it stopped for want of a free slot."""
    for p in range(first, last):
        if roster.meta[FREE] == 0:
            return p
        gibbs_step(store, roster, prior, random, order[p])
    return last
