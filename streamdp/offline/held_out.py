"""Held-out evaluation: the probability of unseen records, by left-to-right sampling.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from streamdp.kernels.jit import entry
from streamdp.likelihoods import Likelihood
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.allocation import Allocation, enter, leave_all, take_slot
from streamdp.offline.kernels.rng import draw_log
from streamdp.offline.kernels.store import Store, score
from streamdp.offline.prepare import Data
from streamdp.offline.samplers.gibbs import Gibbs, sweep
from streamdp.priors.base import Prior, Weights


@entry
def place(store: Store, allocation: Allocation, prior: Weights, random: np.ndarray, i: int) -> float:
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


def left_to_right(
    train: Data,
    labels: np.ndarray,
    test: Data,
    likelihood: Likelihood,
    prior: Prior,
    *,
    particles: int = 20,
    resample: bool = True,
    seed: int = 0,
    base: np.ndarray | None = None,
) -> np.ndarray:
    """log P(x_d | x_<d, train) of every test record, shape (D,), in nats; their sum is the evaluation.

    The clusters of the training records are given; those of earlier test records are drawn anew before
    each record, in every particle (Wallach, Murray, Salakhutdinov and Mimno 2009, algorithm 3): given the
    order of those so far under the uniform process (Wallach, Jensen, Dicker and Heller 2010, eq. 18).
    ``ValueError`` for a prior that is not served.

    Parameters
    ----------
    train, labels
        Clustered records, and the cluster of each, shape (N,).
    test
        Records to come, in their order.
    likelihood, prior
        The model: an exchangeable prior, or the uniform process.
    particles
        Over how many draws probabilities are averaged.
    resample
        False: earlier records stay where they were put before later ones were known, O(D) instead of O(D^2).
        So a particle counts by how well it has foretold them, the product of its predictives (sequential
        importance sampling; Doucet, Godsill and Andrieu 2000): the product of all estimates is unbiased,
        but over long tests few particles have all the weight.
    seed, base
        As for :class:`~streamdp.offline.chain.Chain`.
    """
    if particles < 1:
        raise ValueError(f"particles must be at least 1, not {particles}")
    data = replace(Data.concatenate([train, test]), times=None)
    if not Gibbs.serves(prior):
        raise ValueError(f"held-out evaluation is for {Gibbs.needs}, not for {type(prior).__name__}")
    weights = prior.tables(data.size)
    anywhere = np.full(test.size, labels[0] if len(labels) else 0)  # they leave before anything is asked
    chain = Chain(data, likelihood, prior, np.concatenate([labels, anywhere]), seed=seed, base=base)
    leave_all(chain.store, chain.allocation, train.size)
    logs = np.zeros((particles, test.size))
    for p in range(particles):
        for i in range(train.size, data.size):
            if resample:
                sweep(chain, np.arange(train.size, i), i)
            chain.more_room()
            logs[p, i - train.size] = place(chain.store, chain.allocation, weights, chain.random, i)
        leave_all(chain.store, chain.allocation, train.size)
    if resample:
        return _log_mean(logs)
    return np.diff(_log_mean(np.cumsum(logs, axis=1)), prepend=0.0)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """Log of the mean of exp(logs) over its rows, shape (D,)."""
    peak = logs.max(axis=0)
    return np.asarray(peak + np.log(np.exp(logs - peak).mean(axis=0)))
