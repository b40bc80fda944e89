"""Clusters of vectors under normal distributions with a covariance of their own.

A slot holds the sum of its vectors and the lower Cholesky factor of Psi_n, which a record updates or
downdates in O(D^2). Vectors come less the prior mean.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.kernels.store import Store, Tables

KAPPA, DEGREES = range(2)


@kernel
def _update(factor: np.ndarray, v: np.ndarray, sign: float) -> None:
    """Make L the factor of L L' + sign v v'; v is used up (Golub and Van Loan, section 6.5.4)."""
    size = v.shape[0]
    for c in range(size):
        pivot = factor[c, c]
        # rounding can take a downdate past zero only where the record was all there was
        r = math.sqrt(max(pivot * pivot + sign * v[c] * v[c], 1e-300))
        cosine, sine = r / pivot, v[c] / pivot
        factor[c, c] = r
        for d in range(c + 1, size):
            factor[d, c] = (factor[d, c] + sign * sine * v[d]) / cosine
            v[d] = cosine * v[d] - sine * factor[d, c]


@kernel
def log_determinant(factor: np.ndarray) -> float:
    """log |L L'|."""
    total = 0.0
    for d in range(factor.shape[0]):
        total += math.log(factor[d, d])
    return 2.0 * total


@kernel
def _multigamma(dimension: int, degrees: float) -> float:
    """log Gamma_D(degrees / 2) without its power of pi."""
    total = 0.0
    for d in range(dimension):
        total += math.lgamma(0.5 * (degrees - d))
    return total


@kernel
def _log_h(tables: Tables, dimension: int, n: int, log_prior: float, log_posterior: float) -> float:
    """log H of n vectors from log |Psi| and log |Psi_n| (Murphy 2007, section 8)."""
    kappa, degrees = tables.floats[KAPPA], tables.floats[DEGREES]
    return (
        -0.5 * n * dimension * math.log(math.pi)
        + _multigamma(dimension, degrees + n)
        - _multigamma(dimension, degrees)
        + 0.5 * degrees * log_prior
        - 0.5 * (degrees + n) * log_posterior
        - 0.5 * dimension * math.log1p(n / kappa)
    )


@kernel
def derive_wishart(store: Store, slot: int) -> None:
    """log H and the constants of the predictive of a slot."""
    clusters, tables = store.clusters, store.tables
    dimension, n = clusters.sums.shape[1], clusters.size[slot]
    kappa_n, degrees = tables.floats[KAPPA] + n, tables.floats[DEGREES] + n
    log_posterior = log_determinant(clusters.factor[slot])
    clusters.log_h[slot] = _log_h(tables, dimension, n, log_determinant(tables.factor), log_posterior)
    clusters.constant[slot] = (
        -0.5 * dimension * math.log(math.pi)
        + math.lgamma(0.5 * (degrees + 1.0))
        - math.lgamma(0.5 * (degrees + 1.0 - dimension))
        - 0.5 * log_posterior
        - 0.5 * dimension * math.log1p(1.0 / kappa_n)
    )
    clusters.power[slot] = 0.5 * (degrees + 1.0)
    clusters.weight[slot] = kappa_n / (kappa_n + 1.0)


@kernel
def move_wishart(store: Store, slot: int, i: int, sign: int) -> None:
    """Let a vector join (sign 1) or leave (-1); ``size`` is still that of before."""
    clusters, tables, x, v = store.clusters, store.tables, store.records.vectors[i], store.scratch.vector
    without = clusters.size[slot] if sign > 0 else clusters.size[slot] - 1
    kappa_n = tables.floats[KAPPA] + without
    root = math.sqrt(kappa_n / (kappa_n + 1.0))
    for d in range(x.shape[0]):
        if sign < 0:
            clusters.sums[slot, d] -= x[d]
        v[d] = root * (x[d] - clusters.sums[slot, d] / kappa_n)
        if sign > 0:
            clusters.sums[slot, d] += x[d]
    _update(clusters.factor[slot], v, float(sign))


@kernel
def score_wishart(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x | S) of a vector for the first n slots: a multivariate Student t."""
    clusters, x, v = store.clusters, store.records.vectors[i], store.scratch.vector
    dimension, kappa = x.shape[0], store.tables.floats[KAPPA]
    for j in range(n):
        k = slots[j]
        factor, kappa_n = clusters.factor[k], kappa + clusters.size[k]
        length = 0.0
        for d in range(dimension):
            value = x[d] - clusters.sums[k, d] / kappa_n
            for c in range(d):
                value -= factor[d, c] * v[c]
            v[d] = value / factor[d, d]
            length += v[d] * v[d]
        out[j] = clusters.constant[k] - clusters.power[k] * math.log1p(clusters.weight[k] * length)


@kernel
def _cholesky(m: np.ndarray) -> None:
    """Replace the lower half of a matrix by its Cholesky factor."""
    for c in range(m.shape[0]):
        for d in range(c, m.shape[0]):
            value = m[d, c]
            for e in range(c):
                value -= m[d, e] * m[c, e]
            m[d, c] = value / m[c, c] if d > c else math.sqrt(value)


@kernel
def join_wishart(store: Store, a: int, b: int) -> float:
    """log H of the vectors of two slots together: Psi_n of the union from both factors, O(D^3)."""
    clusters, tables, m = store.clusters, store.tables, store.scratch.matrix
    dimension, kappa = clusters.sums.shape[1], tables.floats[KAPPA]
    n_a, n_b = clusters.size[a], clusters.size[b]
    s_a, s_b = clusters.sums[a], clusters.sums[b]
    f_a, f_b, f_0 = clusters.factor[a], clusters.factor[b], tables.factor
    n = n_a + n_b
    for d in range(dimension):
        for c in range(d + 1):
            # sums of squares of both, Psi counted once: Psi_n = Psi + sum x x' - s s' / (kappa + n)
            value = s_a[d] * s_a[c] / (kappa + n_a) + s_b[d] * s_b[c] / (kappa + n_b)
            value -= (s_a[d] + s_b[d]) * (s_a[c] + s_b[c]) / (kappa + n)
            for e in range(c + 1):
                value += f_a[d, e] * f_a[c, e] + f_b[d, e] * f_b[c, e] - f_0[d, e] * f_0[c, e]
            m[d, c] = value
    _cholesky(m)
    return _log_h(tables, dimension, n, log_determinant(f_0), log_determinant(m))
