"""The sequential distance-dependent CRP over any distances (Blei and Frazier 2011; Feng et al. 2015)."""

from __future__ import annotations

import math

import numpy as np

from streamdp.priors import DistanceDependent
from streamdp.priors.base import Prior

MOST = 20_000


def link_weights_of(prior: Prior, distances: np.ndarray, n: int) -> np.ndarray:
    """f(distance) of each record to each earlier one, shape (N, N), 0 above the diagonal and on it.

    ``ValueError`` where the prior does not measure distances or these are none.
    """
    if not isinstance(prior, DistanceDependent):
        raise ValueError(f"distances are for the distance-dependent prior, not for {type(prior).__name__}")
    if distances.shape != (n, n):
        raise ValueError(f"distances must have shape ({n}, {n}), not {distances.shape}")
    if n > MOST:
        raise ValueError(f"distances between more than {MOST:,} records take too much memory")
    lower = np.tril(np.asarray(distances, np.float64), -1)
    if not (np.isfinite(lower).all() and (lower >= 0.0).all()):
        raise ValueError("distances must be finite and at least 0")
    return np.tril(prior.decay(lower), -1)


def log_probability_by_weights(prior: Prior, labels: np.ndarray, link_weights: np.ndarray) -> float:
    """log p(z) under these link_weights, in nats, the links summed out."""
    assert isinstance(prior, DistanceDependent)
    together = labels[:, np.newaxis] == labels[np.newaxis, :]
    chosen = np.where(together, link_weights, 0.0).sum(axis=1)
    founds = np.tril(together, -1).sum(axis=1) == 0
    chosen[founds] = prior.concentration
    if (chosen == 0.0).any():
        return -math.inf
    return float(np.log(chosen).sum() - np.log(prior.concentration + link_weights.sum(axis=1)).sum())
