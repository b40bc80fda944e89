"""How well a clustering foretells records that it has not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamdp.likelihoods import Likelihood
from streamdp.offline.chain import Chain
from streamdp.offline.exchangeable import weight_tables, weights_of
from streamdp.offline.kernels.allocation import leave_all
from streamdp.offline.kernels.held_out import evaluate_left_to_right
from streamdp.offline.kernels.rng import new_random
from streamdp.offline.prepare import Data
from streamdp.priors import Uniform
from streamdp.priors.base import Prior


def left_to_right(
    train: Data,
    labels: np.ndarray,
    test: Data,
    likelihood: Likelihood[Any, Any],
    prior: Prior,
    *,
    particles: int = 20,
    resample: bool = True,
    seed: int = 0,
    base: np.ndarray | None = None,
) -> np.ndarray:
    """log P(x_d | x_<d, train) of every test record, shape (D,), in nats; their sum is the evaluation.

    The clusters of the training records are given; those of earlier test records are drawn anew before
    each record, in every particle (Wallach, Murray, Salakhutdinov and Mimno 2009, algorithm 3).
    ``ValueError`` for a prior that is not served.

    Parameters
    ----------
    train, labels
        Clustered records, and the cluster of each, shape (N,).
    test
        Records to come, in their order.
    likelihood, prior
        The model: an exchangeable prior, or the uniform process without ``resample``.
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
    if prior.exchangeable:
        weights = weights_of(prior, data.size)
    elif isinstance(prior, Uniform) and not resample:
        weights = weight_tables(prior, data.size)
    else:
        raise ValueError(
            "held-out evaluation is for exchangeable priors, and for the uniform process without resampling"
        )
    anywhere = np.full(test.size, labels[0] if len(labels) else 0)  # they leave before anything is asked
    chain = Chain(data, likelihood, prior, np.concatenate([labels, anywhere]), seed=seed, base=base)
    leave_all(chain.store, chain.allocation, train.size)
    random = new_random(seed)
    logs = np.zeros((particles, test.size))
    for p in range(particles):
        state = np.array([train.size])
        while not evaluate_left_to_right(
            chain.store, chain.allocation, weights, random, train.size, resample, logs[p], state
        ):
            chain.more_room()
    if resample:
        return _log_mean(logs)
    return np.diff(_log_mean(np.cumsum(logs, axis=1)), prepend=0.0)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """Log of the mean of exp(logs) over its rows, shape (D,)."""
    peak = logs.max(axis=0)
    return np.asarray(peak + np.log(np.exp(logs - peak).mean(axis=0)))
