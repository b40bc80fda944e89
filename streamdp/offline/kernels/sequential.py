"""One record after the other, each to a cluster of those before it, once and for all.

By draw from the prior predictive, or greedily to the best, which is a beam of one hypothesis. A greedy
pass may take the prior to a power (the temper), or count clusterings by their sizes alone.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.allocation import Allocation, enter, leave, take_slot
from streamdp.offline.kernels.clusters import score
from streamdp.offline.kernels.links import Links, link_weight
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.store import Store
from streamdp.offline.kernels.weights import Weights

PLAIN, COUNTED, LINKED = range(3)


@kernel
def _log_weights(
    store: Store, allocation: Allocation, prior: Weights, links: Links, of_size: np.ndarray, mode: int, i: int
) -> float:
    """Fill ``totals`` with the log weight of each active slot; returns that of a new one."""
    n, out = allocation.counters.active, allocation.totals
    if mode == LINKED:
        for j in range(n):
            links.total[allocation.active[j]] = 0.0
        for j in range(links.reach[i], i):
            links.total[allocation.labels[j]] += link_weight(links, i, j)
        for j in range(n):
            out[j] = math.log(links.total[allocation.active[j]])
        return math.log(links.concentration)
    for j in range(n):
        size = store.size[allocation.active[j]]
        out[j] = prior.join[size]
        if mode == COUNTED:
            out[j] += math.log(of_size[size] / ((size + 1.0) * (of_size[size + 1] + 1.0)))
    new = prior.found[n]
    return new - math.log(of_size[1] + 1.0) if mode == COUNTED else new


@entry
def assign(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    links: Links,
    of_size: np.ndarray,
    mode: int,
    temper: float,
    greedy: bool,
    random: np.ndarray,
    order: np.ndarray,
    first: int,
    last: int,
) -> int:
    """Assign records ``order[first .. last - 1]``; returns where it stopped for want of a free slot.

    ``of_size[n]`` counts the clusters of n records. LINKED needs the records in their own order.
    """
    weights, totals = allocation.weights, allocation.totals
    for p in range(first, last):
        if allocation.counters.free == 0:
            return p
        i, n = order[p], allocation.counters.active
        new = _log_weights(store, allocation, prior, links, of_size, mode, i)
        score(store, i, allocation.active, n, weights)
        for j in range(n):
            weights[j] += temper * totals[j]
        weights[n] = store.fresh[i] + temper * new
        best = n
        if greedy:
            for j in range(n):
                if weights[j] > weights[best]:
                    best = j
        else:
            best = draw_log(random, weights, n + 1, totals)
        slot = allocation.active[best] if best < n else take_slot(allocation)
        size = store.size[slot]
        if size > 0:
            of_size[size] -= 1
        of_size[size + 1] += 1
        enter(store, allocation, i, slot)
    return last


@entry
def conditionals(
    store: Store,
    allocation: Allocation,
    prior: Weights,
    links: Links,
    mode: int,
    probability: np.ndarray,
    of_new: np.ndarray,
    log_predictive: np.ndarray,
) -> None:
    """Given where all others are: how sure each record's cluster is, and a new one; log p(x_i | them)."""
    weights, totals = allocation.weights, allocation.totals
    for i in range(allocation.labels.shape[0]):
        old = leave(store, allocation, i)
        n = allocation.counters.active
        new = _log_weights(store, allocation, prior, links, allocation.labels, mode, i)
        score(store, i, allocation.active, n, weights)
        totals[n], weights[n] = new, store.fresh[i]
        own = allocation.where[old] if store.size[old] > 0 else n
        if totals[own] == -math.inf:
            totals[own] = new  # all others are later: the record has founded its cluster
        peak, heaviest = -math.inf, -math.inf
        for j in range(n + 1):
            peak = max(peak, weights[j] + totals[j])
            heaviest = max(heaviest, totals[j])
        mass, norm = 0.0, 0.0
        for j in range(n + 1):
            mass += math.exp(weights[j] + totals[j] - peak)
            norm += math.exp(totals[j] - heaviest)
        probability[i] = math.exp(weights[own] + totals[own] - peak) / mass
        of_new[i] = math.exp(weights[n] + totals[n] - peak) / mass
        log_predictive[i] = math.log(mass) + peak - math.log(norm) - heaviest
        enter(store, allocation, i, allocation.active[own] if own < n else take_slot(allocation))
