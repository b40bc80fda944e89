"""Left-to-right evaluation of records that come after a clustered set (Wallach et al. 2009)."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.allocation import Allocation, enter, leave, take_slot
from streamdp.offline.kernels.clusters import score
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.store import Store
from streamdp.offline.kernels.weights import Weights

NEXT = 0


@kernel
def _place(store: Store, allocation: Allocation, prior: Weights, random: np.ndarray, i: int) -> float:
    """Draw the cluster of a record that is in none; log p(x_i | the records that are in one)."""
    n, weights = allocation.counters.active, allocation.weights
    score(store, i, allocation.active, n, weights)
    weights[n] = store.fresh[i]
    top, norm = -math.inf, 0.0
    for j in range(n + 1):
        share = prior.join[store.size[allocation.active[j]]] if j < n else prior.found[n]
        norm += math.exp(share)
        weights[j] += share
        top = max(top, weights[j])
    mass = 0.0
    for j in range(n + 1):
        mass += math.exp(weights[j] - top)
    j = draw_log(random, weights, n + 1, allocation.totals)
    enter(store, allocation, i, allocation.active[j] if j < n else take_slot(allocation))
    return math.log(mass) + top - math.log(norm)


@entry
def evaluate_left_to_right(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    random: np.ndarray,
    first: int,
    resample: bool,
    out: np.ndarray,
    state: np.ndarray,
) -> bool:
    """One particle: log p(x_i | earlier ones) of records ``first`` .. N - 1 into ``out``.

    False where a free slot is wanted first; ``state[NEXT]`` is the record to go on with.
    """
    n = allocation.labels.shape[0]
    while state[NEXT] < n:
        if allocation.counters.free < 1:
            return False
        i = state[NEXT]
        if resample:
            for earlier in range(first, i):
                leave(store, allocation, earlier)
                _place(store, allocation, prior, random, earlier)
        out[i - first] = _place(store, allocation, prior, random, i)
        state[NEXT] += 1
    for i in range(first, n):
        leave(store, allocation, i)
    return True
