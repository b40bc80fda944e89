"""Clusters of binary vectors and of vectors of counts, dimensions independent."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.kernels.normals import dot
from streamdp.offline.kernels.store import Store, Tables


@kernel
def derive_bernoulli(store: Store, slot: int) -> None:
    """The predictive of a slot: a constant and the log odds of each feature."""
    clusters, tables = store.clusters, store.tables
    n, constant = clusters.size[slot], 0.0
    for d in range(clusters.sums.shape[1]):
        yes, no = tables.first[d] + clusters.sums[slot, d], tables.second[d] + n - clusters.sums[slot, d]
        log_no = math.log(no)
        clusters.location[slot, d] = math.log(yes) - log_no
        constant += log_no - math.log(yes + no)
    clusters.constant[slot] = constant


@kernel
def score_bernoulli(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a binary vector for the first n slots."""
    clusters, x = store.clusters, store.records.vectors[i]
    for j in range(n):
        out[j] = clusters.constant[slots[j]] + dot(clusters.location[slots[j]], x)


@kernel
def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def join_bernoulli(store: Store, a: int, b: int) -> float:
    """log H of the binary vectors of two slots together."""
    clusters, tables = store.clusters, store.tables
    n, total = clusters.size[a] + clusters.size[b], 0.0
    for d in range(clusters.sums.shape[1]):
        ones = clusters.sums[a, d] + clusters.sums[b, d]
        prior_a, prior_b = tables.first[d], tables.second[d]
        total += _log_beta(prior_a + ones, prior_b + n - ones) - _log_beta(prior_a, prior_b)
    return total


@kernel
def derive_poisson(store: Store, slot: int) -> None:
    """The part of a slot's predictive that no count enters."""
    clusters, tables = store.clusters, store.tables
    n, constant = clusters.size[slot], 0.0
    for d in range(clusters.sums.shape[1]):
        rate = tables.second[d] + n
        constant -= (tables.first[d] + clusters.sums[slot, d]) * math.log1p(1.0 / rate)
    clusters.constant[slot] = constant


@kernel
def _log_rising(a: float, n: float) -> float:
    """log Gamma(a + n) - log Gamma(a)."""
    if n > 12.0:
        return math.lgamma(a + n) - math.lgamma(a)
    product = 1.0
    for j in range(int(n)):
        product *= a + j
    return math.log(product)


@kernel
def _poisson(store: Store, k: int, i: int) -> float:
    clusters, tables, x = store.clusters, store.tables, store.records.vectors[i]
    # the sum of log x! is kept where other kinds keep the squared length
    total = clusters.constant[k] - store.records.squares[i]
    n = clusters.size[k]
    for d in range(x.shape[0]):
        if x[d] > 0.0:
            total += _log_rising(tables.first[d] + clusters.sums[k, d], x[d])
            total -= x[d] * math.log(tables.second[d] + n + 1.0)
    return total


@kernel
def score_poisson(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a vector of counts for the first n slots."""
    for j in range(n):
        out[j] = _poisson(store, slots[j], i)


@kernel
def _log_gamma_marginal(tables: Tables, d: int, total: float, n: int) -> float:
    a, b = tables.first[d], tables.second[d]
    return math.lgamma(a + total) - math.lgamma(a) + a * math.log(b) - (a + total) * math.log(b + n)


@kernel
def join_poisson(store: Store, a: int, b: int) -> float:
    """log H of the vectors of counts of two slots together."""
    clusters, tables = store.clusters, store.tables
    n = clusters.size[a] + clusters.size[b]
    total = -clusters.total[a] - clusters.total[b]
    for d in range(clusters.sums.shape[1]):
        total += _log_gamma_marginal(tables, d, clusters.sums[a, d] + clusters.sums[b, d], n)
    return total
