"""Exchangeable priors as tables of weights."""

from __future__ import annotations

import numpy as np

from streamdp.offline.kernels.weights import Weights
from streamdp.priors import CRP, FiniteMixture, PitmanYor
from streamdp.priors.base import Prior


def weights_of(prior: Prior, n: int) -> Weights:
    """The tables of a prior for N = ``n`` records. ``ValueError`` where it is not exchangeable."""
    sizes = np.arange(n + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        match prior:
            case CRP():
                join, found = np.log(sizes), np.full(n + 1, np.log(prior.concentration))
                total = prior.concentration
            case PitmanYor():
                join = np.log(np.maximum(sizes - prior.discount, 0.0))
                found = np.log(prior.concentration + prior.discount * sizes)
                total = prior.concentration
            case FiniteMixture():
                join = np.log(sizes + prior.share)
                found = np.log(np.maximum(prior.components - sizes, 0.0) * prior.share)
                total = prior.concentration
            case _:
                raise ValueError(f"{type(prior).__name__} is not exchangeable")
    grown = np.zeros(n + 1)
    np.cumsum(join[1:n], out=grown[2:])
    return Weights(join, grown, found, np.array([np.log(total + np.arange(n)).sum()]))


def log_prior(weights: Weights, sizes: np.ndarray) -> float:
    """log p(z) of a clustering with clusters of these sizes, in nats."""
    return float(weights.found[: len(sizes)].sum() + weights.grown[sizes].sum() - weights.norm[0])
