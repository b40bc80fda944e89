"""Unit vectors, such as embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from streamdp.kernels.checks import not_negative, positive
from streamdp.kernels.jit import kernel, sum_kernel
from streamdp.likelihoods.base import EVENLY, Moments
from streamdp.likelihoods.bessel import log_vmf_normaliser
from streamdp.likelihoods.rows import Row, add_exactly, dot, squared_length
from streamdp.likelihoods.vectors import (
    TOLERANCE,
    Asked,
    Rows,
    VectorFamily,
    add,
    coarsen,
    log_marginal,
    merge,
    own,
    predictive,
    remove,
    score_rows,
    settle,
)

ROW = Row("count", "length", "along", "log_h", "total[d]", "rest[d]")
COUNT, LENGTH, ALONG, LOG_H, SUMS = ROW
"""``length`` is the squared length of the sum, ``along`` its product with the prior mean, ``rest`` what
rounding has cut off it."""

BLUR = 1e-4
"""Error, in lengths of a sum, that its product with a record may have in single precision; and, in parts of
its size, that what is derived from it may have."""

NEGLIGIBLE = 40.0
"""Nats below the best concentration of a cluster at which another one adds nothing to a double."""


class VonMisesFisherTerms(NamedTuple):
    """What the kernels read: concentrations and their log normalisers, the prior's, the prior mean.

    Rows hold log H as it is where the power is 1.
    """

    grid: np.ndarray
    normalisers: np.ndarray
    mean_concentration: float
    log_start: float
    mean: np.ndarray
    power: float


@kernel
def _log_normaliser(dimension: int, k: float) -> float:
    return log_vmf_normaliser(dimension, k)


@kernel
def _square(family: VonMisesFisherTerms, g: int, length: float, along: float) -> float:
    """|kappa s + c0 m0|^2 of the g-th concentration."""
    kappa, c0 = family.grid[g], family.mean_concentration
    return max(kappa * kappa * length + 2.0 * kappa * c0 * along + c0 * c0, 0.0)


@kernel
def _log_h_under(family: VonMisesFisherTerms, g: int, n: float, length: float, along: float) -> float:
    """log H of n vectors under the g-th concentration alone."""
    resultant = math.sqrt(_square(family, g, length, along))
    end = _log_normaliser(family.mean.shape[0], resultant)
    return n * family.normalisers[g] + family.log_start - end


@kernel
def _count_in(total: float, peak: float, value: float) -> tuple[float, float]:
    """Add exp(``value``) to ``total`` times exp(``peak``)."""
    if value > peak:
        return total * math.exp(peak - value) + 1.0, value
    return total + math.exp(value - peak), peak


@kernel
def _log_h(family: VonMisesFisherTerms, n: float, length: float, along: float) -> float:
    """log H of n vectors from the squared length of their sum and its product with the prior mean."""
    if n == 0.0:
        return 0.0
    total, peak = 0.0, -math.inf
    for g in range(family.grid.shape[0]):
        total, peak = _count_in(total, peak, _log_h_under(family, g, n, length, along))
    return peak + math.log(total / family.grid.shape[0])


@coarsen.of(VonMisesFisherTerms)
def _coarsen(family: VonMisesFisherTerms, row: np.ndarray, coarse: np.ndarray) -> None:
    """The sum; and a line over the record's product with it, above the predictive under each concentration.

    -log C_D(r) is concave in r^2, its derivative I_{D/2}(r) / (2 r I_{D/2-1}(r)) = C_D(r) / (4 pi C_{D+2}(r))
    falling in r; and r^2 is linear in the product. So the tangent at a right angle to the sum, where most
    records of other clusters are, is never below it.
    """
    dimension = family.mean.shape[0]
    sums = row[SUMS : SUMS + dimension]
    for d in range(dimension):
        coarse[d] = sums[d]
    for g in range(family.grid.shape[0]):
        kappa = family.grid[g]
        r = math.sqrt(_square(family, g, row[LENGTH] + 1.0, row[ALONG]))
        end = _log_normaliser(dimension, r)
        rise = math.exp(end - _log_normaliser(dimension + 2, r)) / (4.0 * math.pi)
        slope = 2.0 * kappa * kappa * rise
        level = (row[COUNT] + 1.0) * family.normalisers[g] + family.log_start - end - row[LOG_H]
        level += slope * BLUR * (1.0 + math.sqrt(row[LENGTH])) + BLUR * abs(level)
        coarse[dimension + 2 * g], coarse[dimension + 2 * g + 1] = level, slope


@sum_kernel
def _single_product(a: np.ndarray, b: np.ndarray, size: int) -> float:
    total = np.float32(0.0)
    for d in range(size):
        total += a[d] * b[d]
    return np.float64(total)


@kernel
def _prepare(family: VonMisesFisherTerms, asked: Asked) -> float:
    """The record in single precision, behind it by how much each line is shifted; its product with m0."""
    dimension, lean = family.mean.shape[0], 0.0
    if family.mean_concentration > 0.0:
        lean = dot(family.mean, 0, asked.x)
    for d in range(dimension):
        asked.single[d] = asked.x[d]
    for g in range(family.grid.shape[0]):
        asked.single[dimension + g] = family.mean_concentration / family.grid[g] * lean
    return lean


@kernel
def _height(
    family: VonMisesFisherTerms, coarse: np.ndarray, single: np.ndarray, g: int, product: float
) -> float:
    """What the predictive is not above under the g-th concentration; of the record's product with the sum."""
    dimension = family.mean.shape[0]
    lines, shifts = coarse[dimension:], single[dimension:]
    return lines[2 * g] + lines[2 * g + 1] * (product + shifts[g])


@kernel
def _near(family: VonMisesFisherTerms, rows: Rows, s: int, asked: Asked, lean: float) -> float:
    """log H(x | S), without the concentrations that their lines show to be negligible."""
    row, coarse, product = rows.block[s], rows.coarse[s], rows.product[s]
    n, along = row[COUNT] + 1.0, row[ALONG] + lean
    length = row[LENGTH] + 2.0 * dot(row, SUMS, asked.x) + asked.own
    total, peak = 0.0, -math.inf
    for g in range(family.grid.shape[0]):
        if _height(family, coarse, asked.single, g, product) >= peak - NEGLIGIBLE:
            value = _log_h_under(family, g, n, length, along) - row[LOG_H]
            total, peak = _count_in(total, peak, value)
    return peak + math.log(total / family.grid.shape[0])


@own.of(VonMisesFisherTerms)
def _own(family: VonMisesFisherTerms, x: np.ndarray) -> float:
    # the squared length: one, but for the precision that records are kept in
    return squared_length(x)


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


@sum_kernel
def _measured(sums: np.ndarray, rests: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """The squared length of a sum that comes in two parts, and its product with the prior mean."""
    length, along = 0.0, 0.0
    for d in range(mean.shape[0]):
        total = sums[d] + rests[d]
        length += total * total
        along += total * mean[d]
    return length, along


@settle.of(VonMisesFisherTerms)
def _settle(family: VonMisesFisherTerms, row: np.ndarray) -> None:
    end = SUMS + family.mean.shape[0]
    row[LENGTH], row[ALONG] = _measured(row[SUMS:end], row[end:], family.mean)
    row[LOG_H] = _log_h(family, row[COUNT], row[LENGTH], row[ALONG])


@predictive.of(VonMisesFisherTerms)
def _predictive(family: VonMisesFisherTerms, row: np.ndarray, x: np.ndarray, own: float) -> float:
    length = row[LENGTH] + 2.0 * dot(row, SUMS, x) + own
    along = row[ALONG]
    if family.mean_concentration > 0.0:
        along += dot(family.mean, 0, x)
    return family.power * (_log_h(family, row[COUNT] + 1.0, length, along) - row[LOG_H])


@score_rows.of(VonMisesFisherTerms)
def _score_rows(family: VonMisesFisherTerms, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    dimension, lean = family.mean.shape[0], _prepare(family, asked)
    first, highest = -1, -math.inf
    for s in range(rows.high):
        if rows.open[s] != 1:
            continue
        rows.product[s] = _single_product(rows.coarse[s], asked.single, dimension)
        out[s] = -math.inf
        for g in range(family.grid.shape[0]):
            out[s] = max(out[s], _height(family, rows.coarse[s], asked.single, g, rows.product[s]))
        if rows.column[s] < 0 and out[s] > highest:
            first, highest = s, out[s]
    best = -math.inf
    if first >= 0:
        best = _near(family, rows, first, asked, lean)
    least = max(asked.floor / family.power, best) - asked.margin / family.power
    for s in range(rows.high):
        if rows.open[s] == 1 and s != first:
            out[s] = -math.inf if out[s] < least else family.power * _near(family, rows, s, asked, lean)
    if first >= 0:
        out[first] = family.power * best


@log_marginal.of(VonMisesFisherTerms)
def _log_marginal(family: VonMisesFisherTerms, row: np.ndarray) -> float:
    return family.power * row[LOG_H]


UNIT = 1e-3
"""How far the length of a unit vector may be from one."""

GRID = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Concentrations by default, in D: vectors at cosines of about .4, .6, .8, .9 and .94 to their mean."""

LEARNED = (0.25, 0.5, 1.0, 2.0)
"""Concentrations that are learned, in that of nearest neighbours: those are nearer than two members of a
cluster are on average, so most of it is downwards."""

LEAST_SPREAD, MOST_SPREAD = 0.02, 0.95
"""Limits of 1 - R^2 of neighbours: vectors that are repeated must not make all others strangers."""

MOST_COMMON = 0.9
"""R of the clusters' directions at most, so that a warm-up of one cluster leaves room for others."""

EVEN = 0.98
"""Share of the dimensions in which vectors differ from neighbours from which on that counts as all."""

ALIKE, APART = 0.65, 0.25
"""The median cosine of all, as a share of that of neighbours, above which most vectors are of one cluster;
and how much less concentrated the directions of clusters are then than it says."""

WIDE, LEAST = 0.25, 0.7
"""Share of the concentration of neighbours that clusters have where these differ unevenly, or are alike; and
that concentration at least, in D."""

POWER, NUMBERS = 0.2, 50.0
"""Power of H at least where they differ unevenly, and the numbers that a vector counts for at least."""


def concentration_of(dimension: int, resultant: float) -> float:
    """kappa of a von Mises-Fisher distribution whose mean has the length R in [0, 1).

    Near the maximum of the likelihood (Banerjee et al. 2005, equation 4.4): R (D - R^2) / (1 - R^2).
    """
    return resultant * (dimension - resultant**2) / (1.0 - resultant**2)


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
    power
        Power of H, > 0. Below 1 a vector counts for fewer independent numbers than it has.
    relative
        Whether densities are multiples of that of the uniform distribution, which says nothing.

    Examples
    --------
    >>> family = VonMisesFisher(2)
    >>> round(family.log_marginal([[0.6, 0.8], [0.8, 0.6]]), 4)
    -2.5192

    Notes
    -----
    H = (C_D(kappa)^n C_D(c0) / C_D(|kappa s + c0 m0|))^power of n records of sum s, with C_D of
    :func:`~streamdp.likelihoods.bessel.log_vmf_normaliser` (Gopal and Yang 2014, with the mean direction
    integrated out); over several concentrations, the mean before it is raised to the power.
    """

    concentration: float | tuple[float, ...] | None = None
    mean: tuple[float, ...] | None = None
    mean_concentration: float = 0.0
    power: float = 1.0
    relative: bool = field(default=False, repr=False)

    row = ROW
    settings = {}  # noqa: RUF012
    of_texts = True
    learned = ("concentration", "mean_concentration")
    dtype = np.float32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension < 2:
            raise ValueError(f"dimension must be at least 2, not {self.dimension}")
        value = self.concentration
        values = np.asarray(np.multiply(GRID, self.dimension) if value is None else value, dtype=np.float64)
        if values.ndim > 1 or not values.size or not (np.isfinite(values) & (values > 0.0)).all():
            raise ValueError(f"concentration must be one or several positive numbers, not {value!r}")
        fixed = float(values) if values.ndim == 0 else tuple(values.tolist())
        object.__setattr__(self, "concentration", fixed)
        object.__setattr__(self, "power", positive("power", self.power))
        c0 = not_negative("mean_concentration", self.mean_concentration)
        if self.mean is not None:
            mean = np.asarray(self.mean, dtype=np.float64)
            if mean.shape != (self.dimension,) or not abs(float(np.linalg.norm(mean)) - 1.0) <= UNIT:
                raise ValueError(f"mean must be {self.dimension} numbers of length one, not {self.mean!r}")
            object.__setattr__(self, "mean", tuple(mean.tolist()))
        elif c0 > 0.0:
            raise ValueError("mean_concentration needs a mean")

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """Concentrations as neighbours suggest, around what all vectors have in common.

        Half the mean square of the differences between neighbours is 1 - R^2, with R the length of the mean
        of a cluster as close as they are: a quarter of its kappa, half of it, that and twice that are the
        concentrations. The cosine that vectors of different clusters have is R^2 times that of the clusters'
        directions: c0 follows, around the direction of the mean of all. Where nothing varies there is
        nothing to learn.

        That is right where vectors lie evenly on all sides of their cluster's direction. Embeddings do not:
        their clusters have clusters in them, and they have fewer independent numbers than dimensions. So
        there clusters are wide, and H has a power. They are wide, too, where most vectors are of one.
        """
        dimension, within = len(moments.mean), moments.within
        resultant = float(np.sqrt(np.square(moments.mean).sum()))
        if resultant > 1.0 - TOLERANCE:
            return cls(dimension, **given)
        spread = float(np.trace(within) if within.ndim == 2 else within.sum())
        together = 1.0 - min(max(spread, LEAST_SPREAD), MOST_SPREAD)
        kappa = concentration_of(dimension, math.sqrt(together))
        learned: dict[str, Any] = {"concentration": tuple(factor * kappa for factor in LEARNED)}
        common, median, share, _ = moments.directions.tolist()
        alike = dimension >= EVENLY and median > ALIKE * together
        if share < EVEN or alike:
            learned["concentration"] = max(WIDE * kappa, LEAST * dimension)
        if share < EVEN:
            learned["power"] = min(max(POWER, NUMBERS / dimension), 1.0)
        if common > 0.0 and resultant > TOLERANCE:
            learned["mean"] = tuple((moments.mean / resultant).tolist())
            around = min(math.sqrt(common / together), MOST_COMMON)
            learned["mean_concentration"] = (APART if alike else 1.0) * concentration_of(dimension, around)
        return cls(dimension, **{**learned, **given})

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """Vectors of length one; ValueError where one is further than 0.001 from that."""
        lengths = np.sqrt(np.einsum("nd,nd->n", values, values, dtype=np.float64))
        if (off := np.abs(lengths - 1.0)).max(initial=0.0) > UNIT:
            length = lengths[int(off.argmax())]
            size, hint = values.shape[1], "normalise makes it one"
            raise ValueError(f"a record is {size} numbers of length one, not of {length:.6g} ({hint})")
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
        uniform = log_vmf_normaliser(size, 0.0) if self.relative else 0.0
        normalisers = np.array([log_vmf_normaliser(size, kappa) - uniform for kappa in grid.tolist()])
        start, power = log_vmf_normaliser(size, c0), float(self.power)
        return VonMisesFisherTerms(grid, normalisers, c0, start, self.direction, power)

    @property
    def coarse(self) -> int:
        """The sum in single precision, and for each concentration a line, two numbers."""
        return self.dimension + 2 * len(self.concentrations)

    def centre(self, row: np.ndarray) -> np.ndarray:
        """The mean direction."""
        total = row[self.parts["total"]]
        return np.asarray(total / max(float(np.linalg.norm(total)), 1e-300))

    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """log C_D(kappa) + kappa |x|, at the best of the concentrations."""
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        found = (self._terms.normalisers + np.outer(lengths, self.concentrations)).max(axis=1)
        return np.asarray(self.power * found)
