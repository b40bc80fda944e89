"""Vectors of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.kernels.checks import PerDimension
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.rows import Row, add_exactly
from streamdp.likelihoods.vectors import (
    VectorFamily,
    add,
    log_marginal,
    merge,
    own,
    predictive,
    remove,
    settle,
)

ROW = Row("count", "factorials", "rest", "constant", "total[d]", "log_rate[d]")
COUNT, FACTORIALS, REST, CONSTANT, SUMS = ROW
"""``factorials`` is the sum of log x! and ``rest`` what rounding has cut off it; ``log_rate``, log(b + n +
1), and the constant are of the predictive."""


class GammaPoissonTerms(NamedTuple):
    """What the kernels read: the prior's a and b in each dimension."""

    shape: np.ndarray
    rate: np.ndarray


@dataclass(frozen=True)
class GammaPoisson(VectorFamily):
    """Counts are Poisson, with a rate of the cluster's own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension
        D, an integer >= 1; a record is D whole numbers >= 0.
    shape, rate
        a and b of the gamma prior of the rates, > 0, which are expected to be a / b: the prior counts for
        b records. Each a number, or one for each dimension.

    Examples
    --------
    >>> family = GammaPoisson(2)
    >>> round(family.log_marginal([[4.0, 0.0], [5.0, 1.0]]), 4)
    -8.3471

    Notes
    -----
    H = prod_d b^a Gamma(a + s_d) / (Gamma(a) (b + n)^(a + s_d)) / prod_i x_id! of n records of sum s
    (Gelman et al. 2013, section 2.6).
    """

    shape: PerDimension = 1.0
    rate: PerDimension = 1.0

    row = ROW
    _kind = GammaPoissonTerms
    _by_dimension = ("shape", "rate")
    settings = {"shape": "shape"}  # noqa: RUF012
    drawn = ("shape",)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """Rates around the mean of all records."""
        rate = tuple((1.0 / np.maximum(moments.mean, 1e-3)).tolist())
        return cls(len(moments.mean), **{"rate": rate, **given})

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """ValueError where a number is no count."""
        if not (np.isfinite(values) & (values >= 0.0) & (values == np.floor(values))).all():
            raise ValueError(f"a record is {values.shape[1]} whole numbers of at least 0")
        return values

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """x log x - x - log x!, at the rate x."""
        factorials = [math.fsum(map(math.lgamma, (row + 1.0).tolist())) for row in rows]
        return np.asarray((rows * np.log(np.maximum(rows, 1.0)) - rows).sum(axis=1) - factorials)


@own.of(GammaPoissonTerms)
def _own(family: GammaPoissonTerms, x: np.ndarray) -> float:
    # the sum of log x!
    total = 0.0
    for d in range(x.shape[0]):
        if x[d] > 1.0:
            total += math.lgamma(x[d] + 1.0)
    return total


@add.of(GammaPoissonTerms)
def _add(family: GammaPoissonTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    for d in range(x.shape[0]):
        row[SUMS + d] += x[d]
    add_exactly(row, FACTORIALS, REST, own)
    row[COUNT] += 1.0


@remove.of(GammaPoissonTerms)
def _remove(family: GammaPoissonTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    for d in range(x.shape[0]):
        row[SUMS + d] -= x[d]
    add_exactly(row, FACTORIALS, REST, -own)
    row[COUNT] -= 1.0


@merge.of(GammaPoissonTerms)
def _merge(family: GammaPoissonTerms, row: np.ndarray, other: np.ndarray) -> None:
    for d in range(family.shape.shape[0]):
        row[SUMS + d] += other[SUMS + d]
    add_exactly(row, FACTORIALS, REST, other[FACTORIALS])
    row[REST] += other[REST]
    row[COUNT] += other[COUNT]


@settle.of(GammaPoissonTerms)
def _settle(family: GammaPoissonTerms, row: np.ndarray) -> None:
    dimension, n, constant = family.shape.shape[0], row[COUNT], 0.0
    for d in range(dimension):
        rate = family.rate[d] + n
        constant -= (family.shape[d] + row[SUMS + d]) * math.log1p(1.0 / rate)
        row[SUMS + dimension + d] = math.log(rate + 1.0)
    row[CONSTANT] = constant


@kernel
def _log_rising(a: float, n: float) -> float:
    """log Gamma(a + n) - log Gamma(a)."""
    if n > 12.0:
        return math.lgamma(a + n) - math.lgamma(a)
    product = 1.0
    for j in range(int(n)):
        product *= a + j
    return math.log(product)


@predictive.of(GammaPoissonTerms)
def _predictive(family: GammaPoissonTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    # negative binomial in every dimension
    dimension = x.shape[0]
    total = row[CONSTANT] - own
    for d in range(dimension):
        if x[d] > 0.0:
            total += _log_rising(family.shape[d] + row[SUMS + d], x[d])
            total -= x[d] * row[SUMS + dimension + d]
    return total


@log_marginal.of(GammaPoissonTerms)
def _log_marginal(family: GammaPoissonTerms, row: np.ndarray) -> float:
    n, total = row[COUNT], -(row[FACTORIALS] + row[REST])
    for d in range(family.shape.shape[0]):
        a, b, held = family.shape[d], family.rate[d], row[SUMS + d]
        total += math.lgamma(a + held) - math.lgamma(a)
        total -= a * math.log1p(n / b) + held * math.log(b + n)
    return total
