"""The most that a record can add to log p(x | z), whatever cluster it joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.likelihoods import BagFamily, Likelihood, VectorFamily


def upper_bounds(store: Any, order: np.ndarray, likelihood: Likelihood[Any, Any]) -> np.ndarray:
    """For each record no less than log H(x | S) for any S of the records before it, in the order given.

    Parameters
    ----------
    store
        The records; ``prepare`` has been through it.
    order
        The records in the order they are placed in.
    likelihood
        That of the store.
    """
    if isinstance(likelihood, VectorFamily):
        return likelihood.upper_bounds(store.vectors[order])
    assert isinstance(likelihood, BagFamily)
    found = likelihood.upper_bounds(store.terms, store.offsets, store.words, store.counts)
    return np.asarray(found[order])
