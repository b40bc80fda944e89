"""Gibbs sampling, one record at a time (Neal 2000, algorithm 3).

For exchangeable priors: they enter as ``Weights``.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, inlined
from streamdp.offline.kernels.clusters import score
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.roster import ACTIVE, FREE, JOINT, Roster, enter, leave, take_slot
from streamdp.offline.kernels.store import Store
from streamdp.offline.kernels.weights import Weights


@inlined
def choose(store: Store, roster: Roster, random: np.ndarray, i: int, old: int) -> int:
    """Draw an active slot or a new one by ``roster.weights`` and let record i enter it.

    ``old`` is the slot that the record has left; the log joint follows. Returns the slot.
    """
    n, weights = roster.meta[ACTIVE], roster.weights
    before = weights[roster.where[old]] if store.size[old] > 0 else weights[n]
    j = draw_log(random, weights, n + 1, roster.totals)
    roster.sums[JOINT] += weights[j] - before
    slot = roster.active[j] if j < n else take_slot(roster)
    enter(store, roster, i, slot)
    return slot


@inlined
def gibbs_step(store: Store, roster: Roster, prior: Weights, random: np.ndarray, i: int) -> None:
    """Draw the cluster of one record given all others."""
    old = leave(store, roster, i)
    n, weights = roster.meta[ACTIVE], roster.weights
    score(store, i, roster.active, n, weights)
    for j in range(n):
        weights[j] += prior.join[store.size[roster.active[j]]]
    weights[n] = store.fresh[i] + prior.found[n]
    choose(store, roster, random, i, old)


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
