"""Binary vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamdp.kernels.checks import PerDimension
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.rows import Row, dot
from streamdp.likelihoods.vectors import VectorFamily, add, log_marginal, merge, predictive, remove, settle

ROW = Row("count", "log_h", "constant", "total[d]", "log_odds[d]")
COUNT, LOG_H, CONSTANT, ONES = ROW


class BetaBernoulliTerms(NamedTuple):
    """What the kernels read: the prior's ones and zeros in each dimension."""

    a: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class BetaBernoulli(VectorFamily):
    """A cluster has a probability of 1 of its own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension
        D, an integer >= 1; a record is D numbers, each 0 or 1.
    a, b
        Of the beta prior of the probabilities, > 0: how many ones and zeros it counts for. Each a number,
        or one for each dimension.

    Examples
    --------
    >>> family = BetaBernoulli(2)
    >>> round(family.log_marginal([[1.0, 0.0], [1.0, 0.0]]), 4)
    -2.1972

    Notes
    -----
    H = prod_d B(a_d + s_d, b_d + n - s_d) / B(a_d, b_d) of n records with s_d ones (Gelman et al. 2013,
    section 2.4).
    """

    a: PerDimension = 1.0
    b: PerDimension = 1.0

    row = ROW
    _kind = BetaBernoulliTerms
    _by_dimension = ("a", "b")
    settings = {}  # noqa: RUF012
    needs_moments = False

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """ValueError where a number is neither 0 nor 1."""
        if not ((values == 0.0) | (values == 1.0)).all():
            raise ValueError(f"a record is {values.shape[1]} numbers, each 0 or 1")
        return values

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Each feature beside all records before that agree in it, and no others."""
        a, b = self._full(self.a), self._full(self.b)
        ones = np.cumsum(rows, axis=0) - rows
        zeros = np.arange(len(rows))[:, None] - ones
        agree = np.where(rows == 1.0, (a + ones) / (a + b + ones), (b + zeros) / (a + b + zeros))
        return np.asarray(np.log(agree).sum(axis=1))


@kernel
def _gain(family: BetaBernoulliTerms, row: np.ndarray, x: np.ndarray) -> float:
    """log H(x | S) from the statistics alone."""
    n, total = row[COUNT], 0.0
    for d in range(x.shape[0]):
        a, b, ones = family.a[d], family.b[d], row[ONES + d]
        share = a + ones if x[d] == 1.0 else b + n - ones
        total += math.log(share / (a + b + n))
    return total


@add.of(BetaBernoulliTerms)
def _add(family: BetaBernoulliTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    row[LOG_H] += _gain(family, row, x)
    for d in range(x.shape[0]):
        row[ONES + d] += x[d]
    row[COUNT] += 1.0


@remove.of(BetaBernoulliTerms)
def _remove(family: BetaBernoulliTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    for d in range(x.shape[0]):
        row[ONES + d] -= x[d]
    row[COUNT] -= 1.0
    row[LOG_H] -= _gain(family, row, x)


@kernel
def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@merge.of(BetaBernoulliTerms)
def _merge(family: BetaBernoulliTerms, row: np.ndarray, other: np.ndarray) -> None:
    row[COUNT] += other[COUNT]
    total = 0.0
    for d in range(family.a.shape[0]):
        row[ONES + d] += other[ONES + d]
        a, b, ones = family.a[d], family.b[d], row[ONES + d]
        total += _log_beta(a + ones, b + row[COUNT] - ones) - _log_beta(a, b)
    row[LOG_H] = total


@settle.of(BetaBernoulliTerms)
def _settle(family: BetaBernoulliTerms, row: np.ndarray) -> None:
    dimension, n, constant = family.a.shape[0], row[COUNT], 0.0
    for d in range(dimension):
        yes, no = family.a[d] + row[ONES + d], family.b[d] + n - row[ONES + d]
        log_no = math.log(no)
        row[ONES + dimension + d] = math.log(yes) - log_no
        constant += log_no - math.log(yes + no)
    row[CONSTANT] = constant


@predictive.of(BetaBernoulliTerms)
def _predictive(family: BetaBernoulliTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    # (a + s) / (a + b + n) for a one
    odds: float = dot(row, ONES + x.shape[0], x)
    return row[CONSTANT] + odds


@log_marginal.of(BetaBernoulliTerms)
def _log_marginal(family: BetaBernoulliTerms, row: np.ndarray) -> float:
    return row[LOG_H]
