"""The most that a record can add to log p(x | z), whatever cluster it joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.likelihoods import Likelihood, VectorFamily, WordFamily
from streamdp.offline.kernels.store import WordStore


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
    if isinstance(store, WordStore):
        assert isinstance(likelihood, WordFamily)
        found = _words(store) + _tokens(store) * likelihood.mass_beyond_one(store.terms)
        return np.asarray(found[order])
    assert isinstance(likelihood, VectorFamily)
    return likelihood.upper_bounds(store.vectors[order])


def _tokens(store: WordStore) -> np.ndarray:
    return np.asarray(np.diff(np.append(0.0, np.cumsum(store.counts))[store.offsets]))


def _words(store: WordStore) -> np.ndarray:
    """sum_w c_w log(c_w / |x|), the multinomial density at its own frequencies.

    It holds under a Pitman-Yor process with one table per word, too. H(S) is there the mean, over the
    random weights of endlessly many tables and their words, of the sum over choices of a table for each
    word of S of the product of the tables' weights, each to the power of the word's tokens. The tokens of
    x multiply a choice by the weights of its tables and of those chosen for new words, to the power of
    c_w; summed over the new choices that is at most the product of theta_w^c_w, theta_w being the weight
    of all tables of the word. These add up to one, so H(S + x) <= H(S) max prod theta_w^c_w.

    A base measure that sums to more than one multiplies the probability of a token by at most its sum.
    """
    lengths = np.diff(store.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    terms = store.counts * np.log(store.counts / _tokens(store)[rows])
    return np.bincount(rows, weights=terms, minlength=len(lengths))
