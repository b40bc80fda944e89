"""Vectors around unknown means, with unknown variances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.kernels.checks import PerDimension, positive
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import NOTHING, RECORDS, STRENGTHS, WITHIN, Moments, variances
from streamdp.likelihoods.rows import Row
from streamdp.likelihoods.vectors import NormalFamily, add, log_marginal, merge, predictive, remove, settle

ROW = Row(
    "count", "constant", "power", "log_precision", "mean[d]", "spread[d]", "location[d]", "precision[d]"
)
COUNT, CONSTANT, POWER, LOG_PRECISION, MEAN = ROW

CHUNK = 16
"""Factors that are multiplied before a logarithm is taken."""


class NormalInverseGammaTerms(NamedTuple):
    """What the kernels read."""

    kappa: float
    shape: float
    forget: float
    power: float
    mean: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NormalInverseGamma(NormalFamily):
    """A cluster has a mean and a variance of its own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.NormalFamily`.
    kappa
        How many records the prior mean counts for, > 0: small when means lie far apart.
    shape
        a of the inverse gamma prior of the variances, > 0: it counts for 2a records.
    scale
        b of that prior, > 0, in the square of the data's unit: a number, or one for each dimension. The
        variance is expected to be b / (a - 1).
    power
        Power of H, in (0, 1]. Below 1 a vector counts for fewer independent numbers than it has.

    Examples
    --------
    >>> family = NormalInverseGamma(2)
    >>> round(family.log_marginal([[3.0, 4.0], [3.0, 4.5]]), 4)
    -8.3651

    Notes
    -----
    Murphy 2007, section 6 for the conjugate pair, in each dimension.
    """

    kappa: float = 0.1
    shape: float = 2.0
    scale: PerDimension = 1.0
    power: float = 1.0

    row = ROW
    _kind = NormalInverseGammaTerms
    _by_dimension = ("scale",)
    settings = {"kappa": "kappa", "shape": "shape", "scale": "scale", "forget": "forget"}  # noqa: RUF012
    drawn = ("kappa", "shape")
    learned = ("shape", "scale")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kappa", self.kappa)
        positive("shape", self.shape)
        positive("power", self.power)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """The variances that neighbours suggest, as if of 20 records; b / (a - 1) is what is expected."""
        shape = given.get("shape", 1.0 + 0.5 * RECORDS)
        scale = tuple((max(shape - 1.0, 0.5) * variances(moments.within)).tolist())
        numbers = {"forget": 0.99, "power": float(moments.directions[3])}
        found = {"kappa": WITHIN, "shape": shape, "scale": scale, **numbers}
        return cls(dimension=len(moments.mean), mean=tuple(moments.mean.tolist()), **{**found, **given})

    @property
    def within(self) -> np.ndarray:
        """The expected variances, b / (a - 1)."""
        return self._full(self.scale) / max(0.5 * self.strength, 0.5)

    @property
    def strength(self) -> float:
        """2 (a - 1)."""
        return 2.0 * (self.shape - 1.0)

    def scatters(self, rows: np.ndarray) -> np.ndarray:
        """Sums of squares about the means, shape (K, D)."""
        return rows[:, self.parts["spread"]]

    def suggested(self, rows: np.ndarray, least: np.ndarray = NOTHING) -> Sequence[Self]:
        """The pooled variances of the clusters found, as if few records had said so, or many."""
        scale = self.pooled(rows, least)
        if scale is None:
            return ()
        half = [0.5 * r for r in STRENGTHS]
        return [replace(self, shape=1.0 + h, scale=tuple((h * scale).tolist())) for h in half]

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """The peak of Student's t with a_n and kappa_n of all records before; and b, since b_n >= b."""
        peaks = np.empty(len(rows))
        for n in range(len(rows)):
            a, kappa = self.shape + 0.5 * n, self.kappa + n
            peaks[n] = math.lgamma(a + 0.5) - math.lgamma(a)
            peaks[n] += 0.5 * math.log(kappa / (2.0 * math.pi * (kappa + 1.0)))
        return np.asarray(self.power * (self.dimension * peaks - 0.5 * np.log(self._full(self.scale)).sum()))


@kernel
def _statistics(row: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Means, and sums of squared deviations."""
    return row[MEAN : MEAN + dimension], row[MEAN + dimension : MEAN + 2 * dimension]


@add.of(NormalInverseGammaTerms)
def _add(family: NormalInverseGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    mean, spread = _statistics(row, x.shape[0])
    kept = family.forget * row[COUNT]
    total = kept + 1.0
    for d in range(x.shape[0]):
        gap = x[d] - mean[d]
        mean[d] += gap / total
        spread[d] = family.forget * spread[d] + kept / total * gap * gap
    row[COUNT] = total


@remove.of(NormalInverseGammaTerms)
def _remove(family: NormalInverseGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    mean, spread = _statistics(row, x.shape[0])
    count = row[COUNT]
    left = count - 1.0
    for d in range(x.shape[0]):
        gap = x[d] - mean[d]
        mean[d] -= gap / left
        rest = spread[d] - count / left * gap * gap
        spread[d] = max(rest, 0.0) if left > 1.0 else 0.0
    row[COUNT] = left


@merge.of(NormalInverseGammaTerms)
def _merge(family: NormalInverseGammaTerms, row: np.ndarray, other: np.ndarray) -> None:
    # Chan, Golub and LeVeque 1983
    dimension = family.mean.shape[0]
    n, m = row[COUNT], other[COUNT]
    if m > 0.0:
        for d in range(MEAN, MEAN + dimension):
            gap = other[d] - row[d]
            row[d] += m / (n + m) * gap
            row[dimension + d] += other[dimension + d] + n * m / (n + m) * gap * gap
        row[COUNT] = n + m


@settle.of(NormalInverseGammaTerms)
def _settle(family: NormalInverseGammaTerms, row: np.ndarray) -> None:
    dimension = family.mean.shape[0]
    n, kappa, shape = row[COUNT], family.kappa, family.shape + 0.5 * row[COUNT]
    kappa_n = kappa + n
    mean, spread = _statistics(row, dimension)
    location = row[MEAN + 2 * dimension : MEAN + 3 * dimension]
    precision = row[MEAN + 3 * dimension : MEAN + 4 * dimension]
    log_precision = 0.0
    for d in range(dimension):
        gap = mean[d] - family.mean[d]
        b = family.scale[d] + 0.5 * spread[d] + 0.5 * kappa * n / kappa_n * gap * gap
        location[d] = family.mean[d] + n / kappa_n * gap
        precision[d] = kappa_n / (2.0 * b * (kappa_n + 1.0))
        log_precision += math.log(precision[d])
    per = math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * math.log(math.pi)
    row[POWER] = shape + 0.5
    row[CONSTANT] = dimension * per + 0.5 * log_precision
    row[LOG_PRECISION] = log_precision


@kernel
def _factor(location: np.ndarray, precision: np.ndarray, x: np.ndarray, d: int) -> float:
    gap = x[d] - location[d]
    return 1.0 + precision[d] * gap * gap


@predictive.of(NormalInverseGammaTerms)
def _predictive(family: NormalInverseGammaTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    # Student's t in every dimension; four chains of products, so that the processor need not wait for one
    dimension = x.shape[0]
    location = row[MEAN + 2 * dimension : MEAN + 3 * dimension]
    precision = row[MEAN + 3 * dimension : MEAN + 4 * dimension]
    total, a, b, c, e = 0.0, 1.0, 1.0, 1.0, 1.0
    d = 0
    while d + 4 <= dimension:
        a *= _factor(location, precision, x, d)
        b *= _factor(location, precision, x, d + 1)
        c *= _factor(location, precision, x, d + 2)
        e *= _factor(location, precision, x, d + 3)
        d += 4
        if d % CHUNK == 0:
            total += math.log((a * b) * (c * e))
            a, b, c, e = 1.0, 1.0, 1.0, 1.0
    while d < dimension:
        a *= _factor(location, precision, x, d)
        d += 1
    return family.power * (row[CONSTANT] - row[POWER] * (total + math.log((a * b) * (c * e))))


@log_marginal.of(NormalInverseGammaTerms)
def _log_marginal(family: NormalInverseGammaTerms, row: np.ndarray) -> float:
    dimension = family.mean.shape[0]
    n, a, kappa_n = row[COUNT], family.shape, family.kappa + row[COUNT]
    a_n = a + 0.5 * n
    per = math.lgamma(a_n) - math.lgamma(a) - 0.5 * n * math.log(2.0 * math.pi)
    per -= 0.5 * math.log1p(n / family.kappa)
    log_b = 0.0
    for d in range(dimension):
        log_b += math.log(family.scale[d])
    log_b_n = dimension * math.log(kappa_n / (2.0 * (kappa_n + 1.0))) - row[LOG_PRECISION]
    return family.power * (dimension * per + a * log_b - a_n * log_b_n)
