"""Gibbs sampling, one record at a time (Neal 2000, algorithm 3).

For exchangeable priors: they enter as ``Weights``.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.chain import Chain, Sampler
from streamdp.offline.kernels.allocation import Allocation, choose, leave
from streamdp.offline.kernels.store import Store, score
from streamdp.offline.samplers.uniform import sweep_in_order
from streamdp.priors.base import Prior, Weights
from streamdp.priors.kinds import by_order


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


def sweep(chain: Chain, order: np.ndarray) -> None:
    """Draw the clusters of some records anew, in this order, under an exchangeable prior."""
    assert chain.weights is not None
    done = 0
    while done < len(order):
        chain.more_room()
        done = gibbs_sweep(
            chain.store, chain.allocation, chain.weights, chain.random, order, done, len(order)
        )


class Gibbs(Sampler):
    """Draw the cluster of every record given all others, one by one (Neal 2000, algorithm 3).

    Under the uniform process given the order of the records (Wallach et al. 2010, eq. 18).

    Parameters
    ----------
    shuffled
        Visit the records in a new random order each time, rather than in theirs.
    """

    needs = "exchangeable priors and the uniform process"

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled

    @staticmethod
    def serves(prior: Prior) -> bool:
        """Where a record may move whatever the others do."""
        return prior.exchangeable or by_order(prior) is not None

    def round(self, chain: Chain) -> int:
        """One sweep over all records."""
        order = np.arange(chain.size)
        if self.shuffled:
            order = chain.generator().permutation(order)
        (sweep if chain.weights is not None else sweep_in_order)(chain, order)
        return chain.size
