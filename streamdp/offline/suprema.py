"""The most that a record can add to log p(x | z), whatever cluster it joins.

H(x | S) is a mean over the posterior of the parameters, so it is no more than the density of x at the best
of them. Where that has no bound, as under an unknown variance, it is no more than the peak of the
predictive density, which rises with the size of S and falls with its spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from streamdp.likelihoods import HierarchicalDirichlet, HierarchicalPitmanYor, Likelihood
from streamdp.offline.kernels import normals, wishart
from streamdp.offline.kernels.store import (
    BERNOULLI,
    FIRST_VECTOR,
    GAMMA,
    GAUSSIAN,
    POISSON,
    SPHERE,
    WISHART,
    Records,
    Store,
    Tables,
)


def suprema(store: Store, order: np.ndarray, likelihood: Likelihood[Any, Any]) -> np.ndarray:
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
    kind = int(store.tables.kind[0])
    if kind < FIRST_VECTOR:
        found = _words(store.records) + _excess(store, likelihood)
        return np.asarray(found[order])
    return np.asarray(_OF_VECTORS[kind](store.records, store.tables, order))


def _tokens(records: Records) -> np.ndarray:
    return np.asarray(np.diff(np.append(0.0, np.cumsum(records.counts))[records.offsets]))


def _words(records: Records) -> np.ndarray:
    """sum_w c_w log(c_w / |x|), the multinomial density at its own frequencies.

    It holds under a Pitman-Yor process with one table per word, too. H(S) is there the mean, over the
    random weights of endlessly many tables and their words, of the sum over choices of a table for each
    word of S of the product of the tables' weights, each to the power of the word's tokens. The tokens of
    x multiply a choice by the weights of its tables and of those chosen for new words, to the power of
    c_w; summed over the new choices that is at most the product of theta_w^c_w, theta_w being the weight
    of all tables of the word. These add up to one, so H(S + x) <= H(S) max prod theta_w^c_w.
    """
    lengths = np.diff(records.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    terms = records.counts * np.log(records.counts / _tokens(records)[rows])
    return np.bincount(rows, weights=terms, minlength=len(lengths))


def _excess(store: Store, likelihood: Likelihood[Any, Any]) -> np.ndarray | float:
    """A base measure of total s > 1 multiplies the probability of a token by at most s."""
    mass = store.tables.mass
    match likelihood:
        case HierarchicalDirichlet():
            total = float(mass.sum()) / likelihood.base_concentration
        case HierarchicalPitmanYor():
            total = float(np.exp(mass).sum())
        case _:
            total = 1.0
    return _tokens(store.records) * math.log(max(total, 1.0))


def _gaussian(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """The peak with variance s2 + v, v that of the mean of a cluster of all records before."""
    s2, v0 = tables.floats[normals.VARIANCE], tables.floats[normals.MEAN_VARIANCE]
    variance = s2 + 1.0 / (1.0 / v0 + np.arange(len(order)) / s2)
    return -0.5 * records.vectors.shape[1] * np.log(2.0 * np.pi * variance)


def _gamma(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """The peak of Student's t with a_n and kappa_n of all records before; and b, since b_n >= b."""
    n = np.arange(len(order))
    a, kappa = tables.floats[normals.SHAPE] + 0.5 * n, tables.floats[normals.KAPPA] + n
    per = _log_gamma(a + 0.5) - _log_gamma(a) + 0.5 * np.log(kappa / (2.0 * np.pi * (kappa + 1.0)))
    return records.vectors.shape[1] * per - 0.5 * np.log(tables.second).sum()


def _wishart(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """The same with nu_n and kappa_n; and |Psi|, since |Psi_n| >= |Psi|."""
    n, d = np.arange(len(order)), records.vectors.shape[1]
    nu, kappa = tables.floats[wishart.DEGREES] + n, tables.floats[wishart.KAPPA] + n
    peak = _log_gamma(0.5 * (nu + 1.0)) - _log_gamma(0.5 * (nu + 1.0 - d))
    peak -= 0.5 * d * np.log(np.pi * (kappa + 1.0) / kappa)
    return peak - np.log(np.diagonal(tables.factor)).sum()


def _bernoulli(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """Each feature beside all records before that agree in it, and no others."""
    x, a, b = records.vectors[order], tables.first, tables.second
    ones = np.cumsum(x, axis=0) - x
    zeros = np.arange(len(x))[:, None] - ones
    agree = np.where(x == 1.0, (a + ones) / (a + b + ones), (b + zeros) / (a + b + zeros))
    return np.log(agree).sum(axis=1)


def _poisson(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """x log x - x - log x!, at the rate x."""
    x = records.vectors[order]
    return (x * np.log(np.maximum(x, 1.0)) - x).sum(axis=1) - records.squares[order]


def _sphere(records: Records, tables: Tables, order: np.ndarray) -> Any:
    """log C_D(kappa) + kappa |x|, at the best of the concentrations."""
    lengths = np.sqrt(records.squares[order])
    return (tables.second + np.outer(lengths, tables.grid)).max(axis=1)


def _log_gamma(values: np.ndarray) -> np.ndarray:
    return np.array([math.lgamma(v) for v in values.tolist()])


_OF_VECTORS: dict[int, Callable[[Records, Tables, np.ndarray], Any]] = {
    GAUSSIAN: _gaussian,
    GAMMA: _gamma,
    WISHART: _wishart,
    BERNOULLI: _bernoulli,
    POISSON: _poisson,
    SPHERE: _sphere,
}
