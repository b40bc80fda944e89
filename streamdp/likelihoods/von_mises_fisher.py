"""Unit vectors, such as embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.checks import not_negative
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.bessel import log_vmf_normaliser
from streamdp.likelihoods.moments import add_exactly, dot, squared_length
from streamdp.likelihoods.vectors import (
    TOLERANCE,
    VectorFamily,
    VectorStatistics,
    add,
    log_marginal,
    merge,
    own,
    predictive,
    remove,
    settle,
)

UNIT = 1e-3
"""How far the length of a unit vector may be from one."""

GRID = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Concentrations by default, in D: vectors at cosines of about .4, .6, .8, .9 and .94 to their mean."""

COUNT, LENGTH, ALONG, LOG_H, SUMS = range(5)
"""A row: n, the squared length of the sum, its product with the prior mean, log H; then in each dimension the
sum, and what rounding has cut off it."""


class VonMisesFisherTerms(NamedTuple):
    """What the kernels read: concentrations and their log normalisers, the prior's, the prior mean."""

    grid: np.ndarray
    normalisers: np.ndarray
    mean_concentration: float
    log_start: float
    mean: np.ndarray


@dataclass(frozen=True)
class VonMisesFisher(VectorFamily):
    """A cluster is a von Mises-Fisher distribution with a mean direction of its own.

    Parameters
    ----------
    dimension
        D, an integer >= 2; a record is D numbers whose squares sum to one. A length within 0.001 of one is
        made one.
    concentration
        kappa of a cluster around its direction, > 0. Several numbers: each cluster has one of them, all
        equally likely a priori. None: D/2, D, 2D, 4D or 8D.
    mean
        m0, the direction that those of the clusters are drawn around: D numbers, of length one.
    mean_concentration
        c0, how closely, >= 0; 0 for directions that are uniform on the sphere, with or without a mean.

    Notes
    -----
    H = C_D(kappa)^n C_D(c0) / C_D(|kappa s + c0 m0|) of n records of sum s, with C_D of
    :func:`~streamdp.likelihoods.bessel.log_vmf_normaliser` (Gopal and Yang 2014, with the mean direction
    integrated out); the mean of H over several concentrations.
    """

    concentration: float | tuple[float, ...] | None = None
    mean: tuple[float, ...] | None = None
    mean_concentration: float = 0.0

    settings = {}  # noqa: RUF012
    needs_moments = False
    dtype = np.float32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension < 2:
            raise ValueError(f"dimension must be at least 2, not {self.dimension}")
        self._fix_concentration()
        c0 = not_negative("mean_concentration", self.mean_concentration)
        if self.mean is not None:
            mean = np.asarray(self.mean, dtype=np.float64)
            if mean.shape != (self.dimension,) or not abs(float(np.linalg.norm(mean)) - 1.0) <= UNIT:
                raise ValueError(f"mean must be {self.dimension} numbers of length one, not {self.mean!r}")
            object.__setattr__(self, "mean", tuple(mean.tolist()))
        elif c0 > 0.0:
            raise ValueError("mean_concentration needs a mean")

    def _fix_concentration(self) -> None:
        value = self.concentration
        values = np.asarray(np.multiply(GRID, self.dimension) if value is None else value, dtype=np.float64)
        if values.ndim > 1 or not values.size or not (np.isfinite(values) & (values > 0.0)).all():
            raise ValueError(f"concentration must be one or several positive numbers, not {value!r}")
        fixed = float(values) if values.ndim == 0 else tuple(values.tolist())
        object.__setattr__(self, "concentration", fixed)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """Any of five concentrations, and directions uniform on the sphere."""
        return cls(len(moments.mean), **given)

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """Vectors of length one; ValueError where one is further than 0.001 from that."""
        lengths = np.sqrt(np.einsum("nd,nd->n", values, values, dtype=np.float64))
        if (off := np.abs(lengths - 1.0)).max(initial=0.0) > UNIT:
            length = lengths[int(off.argmax())]
            raise ValueError(f"a record is {values.shape[1]} numbers of length one, not of {length:.6g}")
        return np.asarray(values / lengths[:, np.newaxis])

    @cached_property
    def concentrations(self) -> np.ndarray:
        """Every kappa that a cluster may have, of shape (G,)."""
        return np.atleast_1d(np.asarray(self.concentration, dtype=np.float64))

    @cached_property
    def direction(self) -> np.ndarray:
        """m0, of length one to the last digit; zero for none."""
        return np.zeros(self.dimension) if self.mean is None else self.read(np.array([self.mean]))[0]

    def terms(self) -> VonMisesFisherTerms:
        """What the kernels read."""
        size, grid, c0 = self.dimension, self.concentrations, float(self.mean_concentration)
        normalisers = np.array([log_vmf_normaliser(size, kappa) for kappa in grid.tolist()])
        return VonMisesFisherTerms(grid, normalisers, c0, log_vmf_normaliser(size, c0), self.direction)

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return SUMS + 2 * self.dimension

    @property
    def parts(self) -> Mapping[str, Any]:
        """The statistics of a row."""
        return {"count": COUNT, "total": slice(SUMS, SUMS + self.dimension)}

    def centre(self, row: np.ndarray) -> np.ndarray:
        """The mean direction."""
        total = row[SUMS : SUMS + self.dimension]
        return np.asarray(total / max(float(np.linalg.norm(total)), 1e-300))

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """log C_D(kappa) + kappa |x|, at the best of the concentrations."""
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        return np.asarray((self._terms.normalisers + np.outer(lengths, self.concentrations)).max(axis=1))

    def _may_leave(self, statistics: VectorStatistics, vector: np.ndarray) -> bool:
        length, count = float(np.linalg.norm(statistics["total"] - vector)), statistics.count - 1
        if count == 0:
            return length <= TOLERANCE
        return length <= count + TOLERANCE and (count != 1 or length >= 1.0 - TOLERANCE)


@kernel
def _log_h(family: VonMisesFisherTerms, n: float, length: float, along: float) -> float:
    """log H of n vectors from the squared length of their sum and its product with the prior mean."""
    if n == 0.0:
        return 0.0
    c0, dimension = family.mean_concentration, family.mean.shape[0]
    total, peak = 0.0, -math.inf
    for g in range(family.grid.shape[0]):
        kappa = family.grid[g]
        resultant = math.sqrt(max(kappa * kappa * length + 2.0 * kappa * c0 * along + c0 * c0, 0.0))
        value = n * family.normalisers[g] + family.log_start - log_vmf_normaliser(dimension, resultant)
        if value > peak:
            total = total * math.exp(peak - value) + 1.0
            peak = value
        else:
            total += math.exp(value - peak)
    return peak + math.log(total / family.grid.shape[0])


@own.of(VonMisesFisherTerms)
def _own(family: VonMisesFisherTerms, x: np.ndarray) -> float:
    # the squared length: one, but for the precision that records are kept in
    square: float = squared_length(x)
    return square


@add.of(VonMisesFisherTerms)
def _add(family: VonMisesFisherTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    for d in range(x.shape[0]):
        add_exactly(row, SUMS + d, SUMS + x.shape[0] + d, np.float64(x[d]))
    row[COUNT] += 1.0


@remove.of(VonMisesFisherTerms)
def _remove(family: VonMisesFisherTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    for d in range(x.shape[0]):
        add_exactly(row, SUMS + d, SUMS + x.shape[0] + d, -np.float64(x[d]))
    row[COUNT] -= 1.0


@merge.of(VonMisesFisherTerms)
def _merge(family: VonMisesFisherTerms, row: np.ndarray, other: np.ndarray) -> None:
    dimension = family.mean.shape[0]
    for d in range(SUMS, SUMS + dimension):
        add_exactly(row, d, dimension + d, other[d])
        row[dimension + d] += other[dimension + d]
    row[COUNT] += other[COUNT]


@settle.of(VonMisesFisherTerms)
def _settle(family: VonMisesFisherTerms, row: np.ndarray) -> None:
    dimension, length, along = family.mean.shape[0], 0.0, 0.0
    for d in range(dimension):
        total = row[SUMS + d] + row[SUMS + dimension + d]
        length += total * total
        along += total * family.mean[d]
    row[LENGTH], row[ALONG] = length, along
    row[LOG_H] = _log_h(family, row[COUNT], length, along)


@predictive.of(VonMisesFisherTerms)
def _predictive(family: VonMisesFisherTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    length = row[LENGTH] + 2.0 * dot(row, SUMS, x) + own
    along = row[ALONG]
    if family.mean_concentration > 0.0:
        along += dot(family.mean, 0, x)
    return _log_h(family, row[COUNT] + 1.0, length, along) - row[LOG_H]


@log_marginal.of(VonMisesFisherTerms)
def _log_marginal(family: VonMisesFisherTerms, row: np.ndarray) -> float:
    log_h: float = row[LOG_H]
    return log_h
