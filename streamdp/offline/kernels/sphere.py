"""Clusters of unit vectors under von Mises-Fisher distributions, the mean direction integrated out."""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods import bessel
from streamdp.offline.kernels.normals import dot
from streamdp.offline.kernels.store import Store, Tables

MEAN_CONCENTRATION = 0
_log_iv = kernel(bessel.log_iv)


@kernel
def _log_normaliser(dimension: int, k: float) -> float:
    """log C_D(k) (Mardia and Jupp 2000, section 9.3.2)."""
    order = 0.5 * dimension - 1.0
    if k < 1e-12:
        return math.lgamma(0.5 * dimension) - math.log(2.0) - 0.5 * dimension * math.log(math.pi)
    return order * math.log(k) - 0.5 * dimension * math.log(2.0 * math.pi) - _log_iv(order, k)


@kernel
def _log_h(tables: Tables, dimension: int, n: int, length: float, along: float) -> float:
    """log H of n vectors from the squared length of their sum and its product with the prior mean."""
    if n == 0:
        return 0.0
    c0 = tables.floats[MEAN_CONCENTRATION]
    total, peak = 0.0, -math.inf
    for g in range(tables.grid.shape[0]):
        kappa = tables.grid[g]
        resultant = math.sqrt(max(kappa * kappa * length + 2.0 * kappa * c0 * along + c0 * c0, 0.0))
        value = n * tables.second[g] + tables.first[0] - _log_normaliser(dimension, resultant)
        if value > peak:
            total = total * math.exp(peak - value) + 1.0
            peak = value
        else:
            total += math.exp(value - peak)
    return peak + math.log(total / tables.grid.shape[0])


@kernel
def normalisers(tables: Tables, dimension: int) -> None:
    """Fill ``first`` with log C_D of the prior, ``second`` with that of each concentration."""
    tables.first[0] = _log_normaliser(dimension, tables.floats[MEAN_CONCENTRATION])
    for g in range(tables.grid.shape[0]):
        tables.second[g] = _log_normaliser(dimension, tables.grid[g])


@kernel
def derive_sphere(store: Store, slot: int) -> None:
    """log H of a slot; ``weight`` is the squared length of its sum."""
    clusters = store.clusters
    clusters.weight[slot] = dot(clusters.sums[slot], clusters.sums[slot])
    clusters.log_h[slot] = _log_h(
        store.tables,
        clusters.sums.shape[1],
        clusters.size[slot],
        clusters.weight[slot],
        clusters.total[slot],
    )


@kernel
def score_sphere(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a unit vector for the first n slots."""
    clusters, x, along = store.clusters, store.records.vectors[i], store.records.along[i]
    for j in range(n):
        k = slots[j]
        length = clusters.weight[k] + 2.0 * dot(clusters.sums[k], x) + store.records.squares[i]
        after = _log_h(store.tables, x.shape[0], clusters.size[k] + 1, length, clusters.total[k] + along)
        out[j] = after - clusters.log_h[k]


@kernel
def join_sphere(store: Store, a: int, b: int) -> float:
    """log H of the unit vectors of two slots together."""
    clusters = store.clusters
    length = clusters.weight[a] + clusters.weight[b] + 2.0 * dot(clusters.sums[a], clusters.sums[b])
    n, along = clusters.size[a] + clusters.size[b], clusters.total[a] + clusters.total[b]
    return _log_h(store.tables, clusters.sums.shape[1], n, length, along)
