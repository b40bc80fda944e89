"""Gibbs sampling, one record at a time (Neal 2000, algorithm 3).

For exchangeable priors: they enter as ``Weights``.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.allocation import Allocation, enter, leave, take_slot
from streamdp.offline.kernels.clusters import score
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.store import Store
from streamdp.offline.kernels.weights import Weights


@kernel
def choose(store: Store, allocation: Allocation, random: np.ndarray, i: int, old: int) -> int:
    """Draw an active slot or a new one by ``allocation.weights`` and let record i enter it.

    ``old`` is the slot that the record has left; the log joint follows. Returns the slot.
    """
    n, weights = allocation.counters.active, allocation.weights
    before = weights[allocation.where[old]] if store.size[old] > 0 else weights[n]
    j = draw_log(random, weights, n + 1, allocation.totals)
    allocation.counters.joint += weights[j] - before
    slot = allocation.active[j] if j < n else take_slot(allocation)
    enter(store, allocation, i, slot)
    return slot


@kernel
def gibbs_step(store: Store, allocation: Allocation, prior: Weights, random: np.ndarray, i: int) -> None:
    """Draw the cluster of one record given all others."""
    old = leave(store, allocation, i)
    n, weights = allocation.counters.active, allocation.weights
    score(store, i, allocation.active, n, weights)
    for j in range(n):
        weights[j] += prior.join[store.size[allocation.active[j]]]
    weights[n] = store.fresh[i] + prior.found[n]
    choose(store, allocation, random, i, old)


@entry
def gibbs_sweep(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    random: np.ndarray,
    order: np.ndarray,
    first: int,
    last: int,
) -> int:
    """Draw records ``order[first .. last - 1]`` anew; returns where it stopped for want of a free slot."""
    for p in range(first, last):
        if allocation.counters.free == 0:
            return p
        gibbs_step(store, allocation, prior, random, order[p])
    return last
