"""Vectors around unknown means, with a known variance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.kernels.checks import positive
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.base import NOTHING, WITHIN, Moments
from streamdp.likelihoods.rows import Row, squared_distance
from streamdp.likelihoods.vectors import NormalFamily, add, log_marginal, merge, predictive, remove, settle

ROW = Row("count", "spread", "constant", "power", "mean[d]", "location[d]")
COUNT, SPREAD, CONSTANT, POWER, MEAN = ROW


KNOWN = 1e9
"""Records that a known variance counts for."""


class GaussianTerms(NamedTuple):
    """What the kernels read."""

    variance: float
    mean_variance: float
    forget: float
    mean: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Gaussian(NormalFamily):
    """A cluster is a normal distribution with a mean of its own and the same variance s2 as all others.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.NormalFamily`.
    variance
        s2 of every dimension within a cluster, in the square of the data's unit, > 0.
    mean_variance
        v0, prior variance of a cluster's mean in every dimension, > 0.

    Examples
    --------
    >>> family = Gaussian(2, mean_variance=9.0)
    >>> round(family.log_marginal([[3.0, 4.0], [3.0, 4.5]]), 4)
    -8.107

    Notes
    -----
    Murphy 2007, sections 2 and 7; Daume 2007 clusters with it.
    """

    variance: float = 1.0
    mean_variance: float = 1.0

    row = ROW
    _kind = GaussianTerms
    settings = {"variance": "variance", "mean_variance": "mean_variance", "forget": "forget"}  # noqa: RUF012
    drawn = ("variance", "mean_variance")
    learned = ("variance",)
    enough = ("variance",)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("variance", self.variance)
        positive("mean_variance", self.mean_variance)

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """A fifth of the variance within a cluster, all of it between the means."""
        typical = float(moments.variance.mean())
        found = {"variance": WITHIN * typical, "mean_variance": typical}
        return cls(dimension=len(moments.mean), mean=tuple(moments.mean.tolist()), **{**found, **given})

    def suggested(self, rows: np.ndarray, least: np.ndarray = NOTHING) -> Sequence[Self]:
        """The pooled variance of the clusters found."""
        scale = self.pooled(rows, least)
        return () if scale is None else [replace(self, variance=float(scale.mean()))]

    @property
    def within(self) -> np.ndarray:
        """The variance in every dimension."""
        return np.full(self.dimension, self.variance)

    @property
    def strength(self) -> float:
        """More than there are records: it is known."""
        return KNOWN

    def scatters(self, rows: np.ndarray) -> np.ndarray:
        """Sums of squares about the means, shape (K, D): as much in every dimension."""
        spread = rows[:, self.parts["spread"], np.newaxis] / self.dimension
        return np.broadcast_to(spread, (len(rows), self.dimension))

    def loosened(self, share: float) -> Self:
        """The variance of the means is larger."""
        return replace(self, mean_variance=self.mean_variance / share)

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """The peak with variance s2 + v, v that of the mean of a cluster of all records before."""
        s2, v0 = self.variance, self.mean_variance
        variance = s2 + 1.0 / (1.0 / v0 + np.arange(len(rows)) / s2)
        return np.asarray(-0.5 * self.dimension * np.log(2.0 * np.pi * variance))


@kernel
def _pull(row: np.ndarray, x: np.ndarray, steps: float) -> float:
    """Move the mean one of so many steps to a vector; returns its squared distance from before."""
    total = 0.0
    for d in range(x.shape[0]):
        gap = x[d] - row[MEAN + d]
        row[MEAN + d] += gap / steps
        total += gap * gap
    return total


@add.of(GaussianTerms)
def _add(family: GaussianTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    kept = family.forget * row[COUNT]
    total = kept + 1.0
    row[SPREAD] = family.forget * row[SPREAD] + kept / total * _pull(row, x, total)
    row[COUNT] = total


@remove.of(GaussianTerms)
def _remove(family: GaussianTerms, row: np.ndarray, x: np.ndarray, own: float) -> None:
    count = row[COUNT]
    left = count - 1.0
    row[SPREAD] = max(row[SPREAD] - count / left * _pull(row, x, -left), 0.0)
    row[COUNT] = left
    if left == 1.0:
        row[SPREAD] = 0.0


@merge.of(GaussianTerms)
def _merge(family: GaussianTerms, row: np.ndarray, other: np.ndarray) -> None:
    # Chan, Golub and LeVeque 1983
    n, m = row[COUNT], other[COUNT]
    if m > 0.0:
        gaps = _pull(row, other[MEAN : MEAN + family.mean.shape[0]], (n + m) / m)
        row[SPREAD] += other[SPREAD] + n * m / (n + m) * gaps
        row[COUNT] = n + m


@settle.of(GaussianTerms)
def _settle(family: GaussianTerms, row: np.ndarray) -> None:
    n, s2, v0 = row[COUNT], family.variance, family.mean_variance
    dimension = family.mean.shape[0]
    v = 1.0 / (1.0 / v0 + n / s2)
    mean, location = row[MEAN : MEAN + dimension], row[MEAN + dimension : MEAN + 2 * dimension]
    for d in range(dimension):
        location[d] = v * (family.mean[d] / v0 + n * mean[d] / s2)
    row[POWER] = 0.5 / (v + s2)
    row[CONSTANT] = -0.5 * dimension * math.log(2.0 * math.pi * (v + s2))


@predictive.of(GaussianTerms)
def _predictive(family: GaussianTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    square: float = squared_distance(row, MEAN + x.shape[0], x)
    return row[CONSTANT] - row[POWER] * square


@log_marginal.of(GaussianTerms)
def _log_marginal(family: GaussianTerms, row: np.ndarray) -> float:
    n, s2, v0 = row[COUNT], family.variance, family.mean_variance
    gap: float = squared_distance(row, MEAN, family.mean)
    normaliser = n * math.log(2.0 * math.pi * s2) + math.log1p(n * v0 / s2)
    quadratic = row[SPREAD] / s2 + n * gap / (s2 + n * v0)
    return -0.5 * (family.mean.shape[0] * normaliser + quadratic)
