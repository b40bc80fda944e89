"""Kernels of von Mises-Fisher: statistics of unit vectors, and the predictive of many clusters at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel, routine, sum_kernel
from streamdp.likelihoods.bessel import log_iv, log_vmf_normaliser
from streamdp.likelihoods.moments import add_exactly, dot, squared_length
from streamdp.likelihoods.vectors import (
    Asked,
    Rows,
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

COUNT, LENGTH, ALONG, LOG_H, SUMS = range(5)
"""A row: n, the squared length of the sum, its product with the prior mean, log H; then in each dimension the
sum, and what rounding has cut off it."""

BLUR = 1e-4
"""Error, in lengths of a sum, that its product with a record may have in single precision; and, in parts of
its size, that what is derived from it may have."""

NEGLIGIBLE = 40.0
"""Nats below the best concentration of a cluster at which another one adds nothing to a double."""


class VonMisesFisherTerms(NamedTuple):
    """What the kernels read: concentrations and their log normalisers, the prior's, the prior mean."""

    grid: np.ndarray
    normalisers: np.ndarray
    mean_concentration: float
    log_start: float
    mean: np.ndarray


@routine
def _log_normaliser(dimension: int, k: float) -> float:
    return log_vmf_normaliser(dimension, k)


@routine
def _mean_cosine(dimension: int, k: float) -> float:
    """A_D(k) = I_{D/2}(k) / I_{D/2-1}(k), the derivative of -log C_D (Mardia and Jupp 2000, 9.3.2); k > 0.

    The length of the mean of vectors of concentration k.
    """
    return math.exp(log_iv(0.5 * dimension, k) - log_iv(0.5 * dimension - 1.0, k))


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
def _log_h(family: VonMisesFisherTerms, n: float, length: float, along: float) -> float:
    """log H of n vectors from the squared length of their sum and its product with the prior mean."""
    if n == 0.0:
        return 0.0
    total, peak = 0.0, -math.inf
    for g in range(family.grid.shape[0]):
        value = _log_h_under(family, g, n, length, along)
        if value > peak:
            total = total * math.exp(peak - value) + 1.0
            peak = value
        else:
            total += math.exp(value - peak)
    return peak + math.log(total / family.grid.shape[0])


@coarsen.of(VonMisesFisherTerms)
def _coarsen(family: VonMisesFisherTerms, row: np.ndarray, coarse: np.ndarray) -> None:
    """The sum; and a line over the record's product with it, above the predictive under each concentration.

    -log C_D(r) is concave in r^2, A_D(r) / 2r being its derivative, which falls; and r^2 is linear in the
    product: so the tangent at a right angle to the sum, where most records of other clusters are, is never
    below it.
    """
    dimension = family.mean.shape[0]
    sums = row[SUMS : SUMS + dimension]
    for d in range(dimension):
        coarse[d] = sums[d]
    for g in range(family.grid.shape[0]):
        kappa = family.grid[g]
        right = _square(family, g, row[LENGTH] + 1.0, row[ALONG])
        square = max(right, 1e-12 * kappa * kappa)
        r = math.sqrt(square)
        rise = _mean_cosine(dimension, r) / (2.0 * r)
        slope = 2.0 * kappa * kappa * rise
        level = (row[COUNT] + 1.0) * family.normalisers[g] + family.log_start - row[LOG_H]
        level += rise * (right - square) - _log_normaliser(dimension, r)
        level += slope * BLUR * (1.0 + math.sqrt(row[LENGTH])) + BLUR * abs(level)
        coarse[dimension + 2 * g], coarse[dimension + 2 * g + 1] = level, slope


@sum_kernel
def _single_product(a: np.ndarray, b: np.ndarray, size: int) -> float:
    total = np.float32(0.0)
    for d in range(size):
        total += a[d] * b[d]
    return np.float64(total)


@kernel
def _near(
    family: VonMisesFisherTerms, row: np.ndarray, lines: np.ndarray, asked: Asked, product: float, lean: float
) -> float:
    """log H(x | S), without the concentrations that their lines show to be negligible."""
    grid, c0 = family.grid, family.mean_concentration
    n, along = row[COUNT] + 1.0, row[ALONG] + lean
    length = row[LENGTH] + 2.0 * dot(row, SUMS, asked.x) + asked.own
    total, peak = 0.0, -math.inf
    for g in range(grid.shape[0]):
        if lines[2 * g] + lines[2 * g + 1] * (product + c0 / grid[g] * lean) < peak - NEGLIGIBLE:
            continue
        value = _log_h_under(family, g, n, length, along) - row[LOG_H]
        if value > peak:
            total = total * math.exp(peak - value) + 1.0
            peak = value
        else:
            total += math.exp(value - peak)
    return peak + math.log(total / grid.shape[0])


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


@kernel
def _height(family: VonMisesFisherTerms, lines: np.ndarray, product: float, lean: float) -> float:
    """The highest of a cluster's lines, for products of a record with its sum and with the prior mean."""
    highest = -math.inf
    for g in range(family.grid.shape[0]):
        shift = family.mean_concentration / family.grid[g] * lean
        highest = max(highest, lines[2 * g] + lines[2 * g + 1] * (product + shift))
    return highest


@score_rows.of(VonMisesFisherTerms)
def _score_rows(family: VonMisesFisherTerms, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    dimension, lean = family.mean.shape[0], 0.0
    if family.mean_concentration > 0.0:
        lean = dot(family.mean, 0, asked.x)
    for d in range(dimension):
        asked.single[d] = asked.x[d]
    first, highest = -1, -math.inf
    for s in range(rows.high):
        if rows.open[s] == 1:
            coarse = rows.coarse[s]
            rows.product[s] = _single_product(coarse, asked.single, dimension)
            out[s] = _height(family, coarse[dimension:], rows.product[s], lean)
            if rows.column[s] < 0 and out[s] > highest:
                first, highest = s, out[s]
    least = asked.floor
    if first >= 0:
        lines = rows.coarse[first, dimension:]
        least = max(least, _near(family, rows.block[first], lines, asked, rows.product[first], lean))
    least -= asked.margin
    for s in range(rows.high):
        if rows.open[s] == 1:
            if out[s] < least:
                out[s] = -math.inf
            else:
                lines = rows.coarse[s, dimension:]
                out[s] = _near(family, rows.block[s], lines, asked, rows.product[s], lean)


@log_marginal.of(VonMisesFisherTerms)
def _log_marginal(family: VonMisesFisherTerms, row: np.ndarray) -> float:
    log_h: float = row[LOG_H]
    return log_h
