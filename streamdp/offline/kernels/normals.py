"""Clusters of vectors under normal distributions whose dimensions are independent.

Known variance: the statistics are the sum and the squared lengths. Unknown: mean and squared
deviations in each dimension (Welford 1962). Vectors come less the prior mean.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel, sum_kernel
from streamdp.offline.kernels.store import Clusters, Store, Tables

VARIANCE, MEAN_VARIANCE = range(2)
KAPPA, SHAPE = range(2)
CHUNK = 16
"""Factors that are multiplied before a logarithm is taken."""


@sum_kernel
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Sum of products."""
    total = 0.0
    for d in range(a.shape[0]):
        total += a[d] * b[d]
    return total


@kernel
def _gaussian_log_h(tables: Tables, dimension: int, n: int, squares: float, length: float) -> float:
    """log H of n vectors: sum of squared lengths, squared length of the sum (Murphy 2007, section 2)."""
    s2, v0 = tables.floats[VARIANCE], tables.floats[MEAN_VARIANCE]
    v = 1.0 / (1.0 / v0 + n / s2)
    return (
        -0.5 * dimension * (n * math.log(2.0 * math.pi * s2) - math.log(v / v0))
        - 0.5 * squares / s2
        + 0.5 * v * length / (s2 * s2)
    )


@kernel
def derive_gaussian(store: Store, slot: int) -> None:
    """log H and predictive of a slot from its sums."""
    clusters, tables = store.clusters, store.tables
    dimension, n = clusters.sums.shape[1], clusters.size[slot]
    s2, v0 = tables.floats[VARIANCE], tables.floats[MEAN_VARIANCE]
    length = dot(clusters.sums[slot], clusters.sums[slot])
    v = 1.0 / (1.0 / v0 + n / s2)
    share = v / s2
    power = 0.5 / (v + s2)
    clusters.log_h[slot] = _gaussian_log_h(tables, dimension, n, clusters.total[slot], length)
    clusters.power[slot] = power
    clusters.weight[slot] = 2.0 * share * power
    clusters.constant[slot] = (
        -0.5 * dimension * math.log(2.0 * math.pi * (v + s2)) - power * share * share * length
    )


@kernel
def score_gaussian(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a vector for the first n slots."""
    clusters, x, square = store.clusters, store.records.vectors[i], store.records.squares[i]
    for j in range(n):
        k = slots[j]
        product = dot(clusters.sums[k], x)
        out[j] = clusters.constant[k] - clusters.power[k] * square + clusters.weight[k] * product


@kernel
def join_gaussian(store: Store, a: int, b: int) -> float:
    """log H of the vectors of two slots together."""
    clusters = store.clusters
    length = (
        dot(clusters.sums[a], clusters.sums[a])
        + 2.0 * dot(clusters.sums[a], clusters.sums[b])
        + dot(clusters.sums[b], clusters.sums[b])
    )
    n, squares = clusters.size[a] + clusters.size[b], clusters.total[a] + clusters.total[b]
    return _gaussian_log_h(store.tables, clusters.sums.shape[1], n, squares, length)


@kernel
def _gamma_log_h(tables: Tables, dimension: int, n: int, log_scale: float) -> float:
    """log H of n vectors; ``log_scale`` is the sum over dimensions of a log b - a_n log b_n."""
    a = tables.floats[SHAPE]
    per = math.lgamma(a + 0.5 * n) - math.lgamma(a) - 0.5 * n * math.log(2.0 * math.pi)
    return dimension * (per - 0.5 * math.log1p(n / tables.floats[KAPPA])) + log_scale


@kernel
def derive_gamma(store: Store, slot: int) -> None:
    """log H and predictive (a Student t in each dimension) of a slot (Murphy 2007, section 6)."""
    clusters, tables = store.clusters, store.tables
    dimension, n = clusters.sums.shape[1], clusters.size[slot]
    kappa, a = tables.floats[KAPPA], tables.floats[SHAPE]
    kappa_n, a_n = kappa + n, a + 0.5 * n
    logs, prior_logs = 0.0, 0.0
    for d in range(dimension):
        mean, b = clusters.sums[slot, d], tables.second[d]
        b_n = b + 0.5 * clusters.spread[slot, d] + 0.5 * kappa * n / kappa_n * mean * mean
        clusters.location[slot, d] = n / kappa_n * mean
        clusters.precision[slot, d] = kappa_n / (2.0 * b_n * (kappa_n + 1.0))
        logs += math.log(b_n)
        prior_logs += math.log(b)
    clusters.log_h[slot] = _gamma_log_h(tables, dimension, n, a * prior_logs - a_n * logs)
    per = math.lgamma(a_n + 0.5) - math.lgamma(a_n) - 0.5 * math.log(math.pi)
    per += 0.5 * math.log(kappa_n / (2.0 * (kappa_n + 1.0)))
    clusters.constant[slot] = dimension * per - 0.5 * logs
    clusters.power[slot] = a_n + 0.5


@kernel
def move_gamma(clusters: Clusters, slot: int, x: np.ndarray, sign: int) -> None:
    """Let a vector join (sign 1) or leave (-1); ``size`` is still that of before."""
    n = clusters.size[slot]
    after = n + sign
    for d in range(x.shape[0]):
        gap = x[d] - clusters.sums[slot, d]
        if after > 0:
            clusters.sums[slot, d] += sign * gap / after
            clusters.spread[slot, d] = max(clusters.spread[slot, d] + sign * n / after * gap * gap, 0.0)


@kernel
def score_gamma(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a vector for the first n slots."""
    clusters, x = store.clusters, store.records.vectors[i]
    dimension = x.shape[0]
    for j in range(n):
        k = slots[j]
        location, precision = clusters.location[k], clusters.precision[k]
        total, product = 0.0, 1.0
        for d in range(dimension):
            gap = x[d] - location[d]
            product *= 1.0 + precision[d] * gap * gap
            if d % CHUNK == CHUNK - 1:
                total += math.log(product)
                product = 1.0
        out[j] = clusters.constant[k] - clusters.power[k] * (total + math.log(product))


@kernel
def join_gamma(store: Store, a: int, b: int) -> float:
    """log H of the vectors of two slots together (Chan, Golub and LeVeque 1983)."""
    clusters, tables = store.clusters, store.tables
    dimension = clusters.sums.shape[1]
    kappa, shape = tables.floats[KAPPA], tables.floats[SHAPE]
    n_a, n_b = clusters.size[a], clusters.size[b]
    n = n_a + n_b
    logs = 0.0
    for d in range(dimension):
        gap = clusters.sums[b, d] - clusters.sums[a, d]
        mean = clusters.sums[a, d] + (n_b / n * gap if n > 0 else 0.0)
        spread = clusters.spread[a, d] + clusters.spread[b, d]
        if n > 0:
            spread += n_a * n_b / n * gap * gap
        b_n = tables.second[d] + 0.5 * spread + 0.5 * kappa * n / (kappa + n) * mean * mean
        logs += shape * math.log(tables.second[d]) - (shape + 0.5 * n) * math.log(b_n)
    return _gamma_log_h(tables, dimension, n, logs)
