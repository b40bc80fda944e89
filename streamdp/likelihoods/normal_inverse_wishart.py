"""Vectors around unknown means, with unknown covariances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from streamdp.kernels.checks import PerDimension, positive, positive_per_dimension
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import NOTHING, RECORDS, STRENGTHS, WITHIN, Moments
from streamdp.likelihoods.rows import Row, solve, update_factor
from streamdp.likelihoods.vectors import (
    Asked,
    NormalFamily,
    Rows,
    add,
    log_marginal,
    merge,
    predictive,
    remove,
    score_rows,
    settle,
)

Matrix: TypeAlias = PerDimension | tuple[tuple[float, ...], ...]
"""A multiple of the identity, a diagonal, or the rows."""

ROW = Row(
    "count",
    "downdates",
    "log_determinant",
    "constant",
    "power",
    "weight",
    "mean[d]",
    "location[d]",
    "scatter[d,d]",
    "factor[d,d]",
)
COUNT, DOWNDATES, LOG_DETERMINANT, CONSTANT, POWER, WEIGHT, MEAN = ROW
"""``downdates`` are records that left since the factor was computed, that of Psi_n, by rows as the scatter
is; constant, power, weight and location are of the predictive."""

LEAST = 0.1
"""The least share of the determinant that a downdate may leave without losing digits."""

FAR = 700.0
"""From there on an exponential is no double."""


class NormalInverseWishartTerms(NamedTuple):
    """What the kernels read, and scratch of theirs."""

    kappa: float
    degrees: float
    forget: float
    log_prior: float
    mean: np.ndarray
    scale: np.ndarray
    factor: np.ndarray
    scratch: np.ndarray


@dataclass(frozen=True, kw_only=True)
class NormalInverseWishart(NormalFamily):
    """A cluster has a mean and a full covariance matrix of its own.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.NormalFamily`.
    kappa
        How many records the prior mean counts for, > 0: small when means lie far apart.
    degrees
        nu of the inverse Wishart prior of the covariance, > D - 1: how many records it counts for. None:
        D + 2.
    scale
        Psi of that prior, symmetric and positive definite, in the square of the data's unit: a number
        times the identity, one number for each dimension, or D rows of D numbers. The covariance is
        expected to be Psi / (nu - D - 1).

    Examples
    --------
    >>> family = NormalInverseWishart(2)
    >>> round(family.log_marginal([[3.0, 4.0], [3.0, 4.5]]), 4)
    -8.2479

    Notes
    -----
    Murphy 2007, section 9 (section 8 for the same prior of the precision matrix). With
    kappa_n = kappa + n, nu_n = nu + n and m_n the posterior mean, a record adds
    kappa_n / (kappa_n + 1) (x - m_n)(x - m_n)' to the posterior scale Psi_n, of which the Cholesky factor
    is kept, so that a record costs O(D^2); O(D^3) where old ones are being forgotten.
    """

    kappa: float = 0.1
    degrees: float | None = None
    scale: Matrix = 1.0

    row = ROW
    settings = {"kappa": "kappa", "scale": "scale", "forget": "forget"}  # noqa: RUF012
    drawn = ("kappa",)
    learned = ("scale", "degrees")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kappa", self.kappa)
        least = self.dimension - 1
        if self.degrees is not None and not least < self.degrees < math.inf:
            raise ValueError(f"degrees must be a number above dimension - 1 = {least}, not {self.degrees!r}")
        object.__setattr__(self, "scale", self._checked_scale())

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """The covariance that neighbours suggest, as if of 20 records; of one, where ``scale`` is given."""
        dimension, found = len(moments.mean), {"kappa": WITHIN, "forget": 0.99, **given}
        if "scale" not in given:
            scale = moments.within if moments.within.ndim == 2 else np.diag(moments.within)
            found["scale"] = tuple(map(tuple, (RECORDS * scale).tolist()))
            found["degrees"] = dimension + 1.0 + RECORDS
        return cls(dimension=dimension, mean=tuple(moments.mean.tolist()), **found)

    def _checked_scale(self) -> Matrix:
        size, value = self.dimension, self.scale
        try:
            values = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape not in ((), (size,), (size, size)):
            raise ValueError(f"scale must be one number, {size} of them or {size} rows, not {value!r}")
        if values.ndim < 2:
            return positive_per_dimension("scale", values, size)
        if not np.isfinite(values).all() or np.abs(values - values.T).max() > 1e-9 * np.abs(values).max():
            raise ValueError(f"scale must be symmetric and finite, not {value!r}")
        try:
            np.linalg.cholesky(values)
        except np.linalg.LinAlgError:
            raise ValueError(f"scale must be positive definite, not {value!r}") from None
        return tuple(map(tuple, values.tolist()))

    @property
    def nu(self) -> float:
        """The degrees of freedom, also where they are left to the default."""
        return self.dimension + 2.0 if self.degrees is None else self.degrees

    @cached_property
    def prior_scale(self) -> np.ndarray:
        """Psi, of shape (D, D)."""
        values = np.asarray(self.scale)
        return values if values.ndim == 2 else np.diag(np.full(self.dimension, values, dtype=np.float64))

    @property
    def within(self) -> np.ndarray:
        """The expected covariance, Psi / (nu - D - 1); of less than a record, Psi."""
        return self.prior_scale / max(self.strength, 1.0)

    @property
    def strength(self) -> float:
        """nu - D - 1."""
        return self.nu - self.dimension - 1.0

    def scatters(self, rows: np.ndarray) -> np.ndarray:
        """Sums of squares and products about the means, shape (K, D, D)."""
        return rows[:, self.parts["scatter"]].reshape(-1, self.dimension, self.dimension)

    def suggested(self, rows: np.ndarray, least: np.ndarray = NOTHING) -> Sequence[Self]:
        """The pooled covariance of the clusters found, as if few records had said so, or many."""
        size = self.dimension
        scale = self.pooled(rows, least)
        if scale is None:
            return ()
        return [
            replace(self, degrees=size + 1.0 + r, scale=tuple(map(tuple, (r * scale).tolist())))
            for r in STRENGTHS
        ]

    def terms(self) -> NormalInverseWishartTerms:
        """What the kernels read."""
        factor = np.linalg.cholesky(self.prior_scale)
        return NormalInverseWishartTerms(
            float(self.kappa),
            float(self.nu),
            float(self.forget),
            2.0 * float(np.log(np.diagonal(factor)).sum()),
            self._full(self.mean),
            np.ascontiguousarray(self.prior_scale.reshape(-1)),
            np.ascontiguousarray(factor.reshape(-1)),
            np.zeros(self.dimension),
        )

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """The peak of the predictive with nu_n and kappa_n; and |Psi|, since |Psi_n| >= |Psi|."""
        d, peaks = self.dimension, np.empty(len(rows))
        for n in range(len(rows)):
            nu, kappa = self.nu + n, self.kappa + n
            peaks[n] = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * (nu + 1.0 - d))
            peaks[n] -= 0.5 * d * math.log(math.pi * (kappa + 1.0) / kappa)
        return np.asarray(peaks - 0.5 * np.linalg.slogdet(self.prior_scale)[1])


@kernel
def _factorise(family: NormalInverseWishartTerms, row: np.ndarray) -> None:
    """Compute the factor of Psi_n = Psi + scatter + kappa n / (kappa + n) (mean - m0)(mean - m0)'.

    Psi_n exceeds Psi by a positive semidefinite matrix, so that none of its pivots is below Psi's; where
    rounding has broken this, they are raised.
    """
    size, n = family.mean.shape[0], row[COUNT]
    scatter = MEAN + 2 * size
    at = scatter + size * size
    pull = family.kappa * n / (family.kappa + n)
    for c in range(size):
        for d in range(c, size):
            value = family.scale[d * size + c] + row[scatter + d * size + c]
            value += pull * (row[MEAN + d] - family.mean[d]) * (row[MEAN + c] - family.mean[c])
            for e in range(c):
                value -= row[at + d * size + e] * row[at + c * size + e]
            if d == c:
                least = family.factor[c * size + c]
                row[at + c * size + c] = math.sqrt(max(value, least * least))
            else:
                row[at + d * size + c] = value / row[at + c * size + c]
    row[DOWNDATES] = 0.0


@kernel
def _surprise(family: NormalInverseWishartTerms, row: np.ndarray, x: np.ndarray) -> None:
    """Fill the scratch with sqrt(kappa_n / (kappa_n + 1)) (x - m_n)."""
    n, kappa = row[COUNT], family.kappa
    root = math.sqrt((kappa + n) / (kappa + n + 1.0))
    for d in range(x.shape[0]):
        prior = family.mean[d]
        family.scratch[d] = root * (x[d] - prior - n / (kappa + n) * (row[MEAN + d] - prior))


@add.of(NormalInverseWishartTerms)
def _add(family: NormalInverseWishartTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    size = x.shape[0]
    scatter = MEAN + 2 * size
    _surprise(family, row, x)
    kept = family.forget * row[COUNT]
    total = kept + 1.0
    for d in range(size):
        for c in range(size):
            gaps = (x[d] - row[MEAN + d]) * (x[c] - row[MEAN + c])
            place = scatter + d * size + c
            row[place] = family.forget * row[place] + kept / total * gaps
    for d in range(size):
        row[MEAN + d] += (x[d] - row[MEAN + d]) / total
    row[COUNT] = total
    if family.forget == 1.0:
        update_factor(row, scatter + size * size, family.scratch, 1.0)
    else:
        _factorise(family, row)


@remove.of(NormalInverseWishartTerms)
def _remove(family: NormalInverseWishartTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    size = x.shape[0]
    scatter = MEAN + 2 * size
    factor = scatter + size * size
    count = row[COUNT]
    left = count - 1.0
    for d in range(size):
        for c in range(size):
            gaps = (x[d] - row[MEAN + d]) * (x[c] - row[MEAN + c])
            row[scatter + d * size + c] -= count / left * gaps
            if left == 1.0:
                row[scatter + d * size + c] = 0.0
    for d in range(size):
        row[MEAN + d] -= (x[d] - row[MEAN + d]) / left
    row[COUNT] = left
    row[DOWNDATES] += 1.0
    _surprise(family, row, x)
    # so that rounding errors do not add up, and none is made that cannot be mended
    if row[DOWNDATES] >= size or left == 1.0 or 1.0 - solve(row, factor, family.scratch, math.inf) < LEAST:
        _factorise(family, row)
    else:
        _surprise(family, row, x)
        update_factor(row, factor, family.scratch, -1.0)


@merge.of(NormalInverseWishartTerms)
def _merge(family: NormalInverseWishartTerms, row: np.ndarray, other: np.ndarray) -> None:
    # Chan, Golub and LeVeque 1983
    size = family.mean.shape[0]
    scatter = MEAN + 2 * size
    n, m = row[COUNT], other[COUNT]
    if m == 0.0:
        return
    for d in range(size):
        for c in range(size):
            gaps = (other[MEAN + d] - row[MEAN + d]) * (other[MEAN + c] - row[MEAN + c])
            row[scatter + d * size + c] += other[scatter + d * size + c] + n * m / (n + m) * gaps
    for d in range(size):
        row[MEAN + d] += m / (n + m) * (other[MEAN + d] - row[MEAN + d])
    row[COUNT] = n + m
    _factorise(family, row)


@settle.of(NormalInverseWishartTerms)
def _settle(family: NormalInverseWishartTerms, row: np.ndarray) -> None:
    size, n = family.mean.shape[0], row[COUNT]
    kappa_n, degrees = family.kappa + n, family.degrees + n
    at = MEAN + 2 * size + size * size
    if n == 0.0:
        for j in range(size * size):
            row[at + j] = family.factor[j]
    log_determinant = 0.0
    for d in range(size):
        prior = family.mean[d]
        row[MEAN + size + d] = prior + n / kappa_n * (row[MEAN + d] - prior)
        log_determinant += 2.0 * math.log(row[at + d * size + d])
    row[LOG_DETERMINANT] = log_determinant
    row[CONSTANT] = (
        -0.5 * size * math.log(math.pi)
        + math.lgamma(0.5 * (degrees + 1.0))
        - math.lgamma(0.5 * (degrees + 1.0 - size))
        - 0.5 * log_determinant
        - 0.5 * size * math.log1p(1.0 / kappa_n)
    )
    row[POWER] = 0.5 * (degrees + 1.0)
    row[WEIGHT] = kappa_n / (kappa_n + 1.0)


@predictive.of(NormalInverseWishartTerms)
def _predictive(family: NormalInverseWishartTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    return _log_density(family, row, x, -math.inf)


@kernel
def _log_density(family: NormalInverseWishartTerms, row: np.ndarray, x: np.ndarray, least: float) -> float:
    """That of a multivariate Student t with nu_n - D + 1 degrees of freedom; -inf if below ``least``."""
    size, room = x.shape[0], (row[CONSTANT] - least) / row[POWER]
    if room < 0.0:
        return -math.inf
    for d in range(size):
        family.scratch[d] = x[d] - row[MEAN + size + d]
    most = math.expm1(room) / row[WEIGHT] if room < FAR else math.inf
    square = solve(row, MEAN + 2 * size + size * size, family.scratch, most)
    return row[CONSTANT] - row[POWER] * math.log1p(row[WEIGHT] * square)


@score_rows.of(NormalInverseWishartTerms)
def _score_rows(family: NormalInverseWishartTerms, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    for s in range(rows.high):
        if rows.open[s] == 1:
            out[s] = _log_density(family, rows.block[s], asked.x, asked.floor - asked.margin)


@kernel
def _multigamma(dimension: int, degrees: float) -> float:
    """log Gamma_D(degrees / 2) without its power of pi."""
    total = 0.0
    for d in range(dimension):
        total += math.lgamma(0.5 * (degrees - d))
    return total


@log_marginal.of(NormalInverseWishartTerms)
def _log_marginal(family: NormalInverseWishartTerms, row: np.ndarray) -> float:
    size, n, degrees = family.mean.shape[0], row[COUNT], family.degrees
    return (
        -0.5 * n * size * math.log(math.pi)
        + _multigamma(size, degrees + n)
        - _multigamma(size, degrees)
        + 0.5 * degrees * family.log_prior
        - 0.5 * (degrees + n) * row[LOG_DETERMINANT]
        - 0.5 * size * math.log1p(n / family.kappa)
    )
