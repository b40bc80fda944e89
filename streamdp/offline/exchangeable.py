"""Exchangeable priors as tables of weights."""

from __future__ import annotations

import numpy as np

from streamdp.offline.kernels.weights import Weights
from streamdp.priors.base import Prior, found_weight, join_weight


def weights_of(prior: Prior, n: int) -> Weights:
    """The tables of a prior for N = ``n`` records. ``ValueError`` where it is not exchangeable."""
    if not prior.exchangeable:
        raise ValueError(f"{type(prior).__name__} is not exchangeable")
    return weight_tables(prior, n)


def weight_tables(prior: Prior, n: int) -> Weights:
    """The tables of a prior whose weights depend on sizes; what they say of a whole clustering holds only
    where it is exchangeable."""
    terms, sizes = prior.terms(), np.arange(n + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        join = np.log(np.maximum(join_weight(terms, sizes) + 0.0 * sizes, 0.0))
        found = np.log(np.maximum(found_weight(terms, sizes) + 0.0 * sizes, 0.0))
    grown = np.zeros(n + 1)
    np.cumsum(join[1:n], out=grown[2:])
    # the sum of all weights: as exchangeable as the rest, it is the same for one cluster of all records
    total = np.array([found_weight(terms, 0.0)] + [0.0] * (n - 1))
    total[1:] = join_weight(terms, sizes[1:n]) + found_weight(terms, 1.0)
    return Weights(join, grown, found, np.array([np.log(total).sum()]))


def log_prior(weights: Weights, sizes: np.ndarray) -> float:
    """log p(z) of a clustering with clusters of these sizes, in nats."""
    return float(weights.found[: len(sizes)].sum() + weights.grown[sizes].sum() - weights.norm[0])
