"""Vectors around unknown means, with unknown covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from streamdp.likelihoods.cholesky import factorise, log_determinant, rank_one, solve_lower
from streamdp.likelihoods.statistics import MatrixStatistics, VectorStatistics
from streamdp.likelihoods.sums import log_gamma
from streamdp.likelihoods.vectors import TOLERANCE, PerDimension, VectorFamily
from streamdp.priors.base import positive

Matrix: TypeAlias = PerDimension | tuple[tuple[float, ...], ...]
"""A multiple of the identity, a diagonal, or the rows."""


@dataclass(frozen=True, kw_only=True)
class NormalInverseWishart(VectorFamily):
    """A cluster has a mean and a full covariance matrix of its own.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.VectorFamily`.
    kappa
        How many records the prior mean counts for, > 0: small when means lie far apart.
    degrees
        nu of the inverse Wishart prior of the covariance, > D - 1: how many records it counts for. None:
        D + 2.
    scale
        Psi of that prior, symmetric and positive definite, in the square of the data's unit: a number
        times the identity, one number for each dimension, or D rows of D numbers. The covariance is
        expected to be Psi / (nu - D - 1).

    Notes
    -----
    Murphy 2007, section 9 (section 8 for the same prior of the precision matrix). With
    kappa_n = kappa + n, nu_n = nu + n and m_n the posterior mean, a record adds
    kappa_n / (kappa_n + 1) (x - m_n)(x - m_n)' to the posterior scale Psi_n, of which the Cholesky factor
    is kept, so that a record costs O(D^2); O(D^3) when old ones are being forgotten.
    """

    kappa: float = 0.1
    degrees: float | None = None
    scale: Matrix = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kappa", self.kappa)
        least = self.dimension - 1
        if self.degrees is not None and not least < self.degrees < math.inf:
            raise ValueError(f"degrees must be a number above dimension - 1 = {least}, not {self.degrees!r}")
        object.__setattr__(self, "scale", self._checked_scale())

    def _checked_scale(self) -> Matrix:
        size, value = self.dimension, self.scale
        try:
            values = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape not in ((), (size,), (size, size)):
            raise ValueError(f"scale must be one number, {size} of them or {size} rows, not {value!r}")
        if values.ndim < 2:
            if not (np.isfinite(values) & (values > 0.0)).all():
                raise ValueError(f"scale must be positive and finite, not {value!r}")
            return float(values) if values.ndim == 0 else tuple(values.tolist())
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
        return values if values.ndim == 2 else np.diag(self._full(values))

    @cached_property
    def _prior_factor(self) -> np.ndarray:
        return np.linalg.cholesky(self.prior_scale)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Raise ``ValueError``: the stream's kernels do not know the family."""
        raise ValueError(f"the stream's beam does not serve {type(self).__name__} yet: use `streamdp fit`")

    def empty(self) -> MatrixStatistics:
        """Statistics of no record."""
        nothing, size = super().empty(), self.dimension
        return MatrixStatistics(
            nothing.count,
            nothing.mean,
            nothing.spread,
            scatter=np.zeros((size, size)),
            factor=self._prior_factor.copy(),
        )

    def add(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Let a vector join; what was there before is discounted by ``forget``, the prior is not."""
        held, vector = _matrix(statistics), self._vector(x)
        gap, kept = vector - held.mean, self.forget * held.count
        kappa_n, surprise = self.kappa + held.count, vector - self._location(held)
        super().add(held, vector)
        held.scatter *= self.forget
        held.scatter += kept / held.count * np.outer(gap, gap)
        if self.forget == 1.0:
            rank_one(held.factor, math.sqrt(kappa_n / (kappa_n + 1.0)) * surprise, 1.0)
        else:
            self._factorise(held)

    def remove(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Take a vector out that had joined.

        ``ValueError`` when there is none, when it lies so far away that it cannot have joined, or when
        old vectors are being forgotten. After D removals the factor is computed anew, so that rounding
        errors do not add up.
        """
        self._need_memory("remove")
        held, vector = _matrix(statistics), self._vector(x)
        gap = vector - held.mean
        share = held.count / (held.count - 1.0) if held.count > 1.0 else 0.0
        square = float(gap @ gap)
        if share * square**2 > gap @ held.scatter @ gap + TOLERANCE * held.largest**2 * square:
            raise ValueError("cannot remove a vector that is not in the cluster")
        super().remove(held, vector)
        held.downdates += 1
        if held.count <= 1.0:
            held.scatter[:] = 0.0
            self._factorise(held)
            return
        held.scatter -= share * np.outer(gap, gap)
        kappa_n = self.kappa + held.count
        step = math.sqrt(kappa_n / (kappa_n + 1.0)) * (vector - self._location(held))
        if held.downdates >= self.dimension or not rank_one(held.factor, step, -1.0):
            self._factorise(held)

    def merge(self, statistics: VectorStatistics, other: VectorStatistics) -> None:
        """Let all vectors of another cluster join, in O(D^3)."""
        self._need_memory("merge")
        held, new = _matrix(statistics), _matrix(other)
        if new.count == 0.0:
            return
        gap = new.mean - held.mean
        weight = held.count * new.count / (held.count + new.count)
        super().merge(held, new)
        held.scatter += new.scatter + weight * np.outer(gap, gap)
        self._factorise(held)

    def log_marginal(self, statistics: VectorStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats; ``ValueError`` when old ones are being forgotten."""
        self._need_memory("compute a log marginal")
        held, n, nu = _matrix(statistics), statistics.count, self.nu
        total = nu * log_determinant(self._prior_factor) - (nu + n) * log_determinant(held.factor)
        total -= self.dimension * (n * math.log(math.pi) + math.log1p(n / self.kappa))
        halves = 0.5 * (nu - np.arange(self.dimension))
        return 0.5 * total + log_gamma(halves + 0.5 * n) - log_gamma(halves)

    def log_predictive(self, statistics: VectorStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats: Student's t with nu_n - D + 1 degrees of freedom."""
        held, size = _matrix(statistics), self.dimension
        kappa_n, nu_n = self.kappa + held.count, self.nu + held.count
        deviation = solve_lower(held.factor, self._vector(x) - self._location(held))
        square = kappa_n / (kappa_n + 1.0) * float(deviation @ deviation)
        peak = math.lgamma(0.5 * (nu_n + 1.0)) - math.lgamma(0.5 * (nu_n + 1.0 - size))
        peak -= 0.5 * size * math.log(math.pi * (kappa_n + 1.0) / kappa_n)
        return peak - 0.5 * log_determinant(held.factor) - 0.5 * (nu_n + 1.0) * math.log1p(square)

    def _location(self, statistics: VectorStatistics) -> np.ndarray:
        """m_n, the posterior mean."""
        prior, n = self._full(self.mean), statistics.count
        gap: np.ndarray = statistics.mean - prior
        return prior + n / (self.kappa + n) * gap

    def _factorise(self, held: MatrixStatistics) -> None:
        """Psi_n = Psi + scatter + kappa n / (kappa + n) (mean - m0)(mean - m0)'."""
        n, gap = held.count, held.mean - self._full(self.mean)
        pull = self.kappa * n / (self.kappa + n) * np.outer(gap, gap)
        held.factor[:] = factorise(self.prior_scale + held.scatter + pull, self.prior_scale)
        held.downdates = 0


def _matrix(statistics: VectorStatistics) -> MatrixStatistics:
    if not isinstance(statistics, MatrixStatistics):
        raise TypeError(f"the statistics must be MatrixStatistics, not {type(statistics).__name__}")
    return statistics
