"""Which concentration and scale suit a clustering: slopes of log p(z) under an exponential decay."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry

PLACE, WEIGHT, SPREAD = range(3)
"""Of a cluster at its latest record: where that lies, W = sum of f over the members, sum of f * distance."""


class Slopes(NamedTuple):
    """Of log p(z) by the logarithms of the two parameters, in nats; and how sharply each is known.

    ``counted`` is the number of records that log p(z) is of, and a sharpness the sum of the squares of
    their slopes (an estimate of the Fisher information).
    """

    concentration: float
    scale: float
    sharpness_concentration: float
    sharpness_scale: float
    counted: int


@entry
def _climb(
    codes: np.ndarray,
    founds: np.ndarray,
    positions: np.ndarray,
    start: int,
    concentration: float,
    scale: float,
    clusters: np.ndarray,
    out: np.ndarray,
) -> None:
    total, spread, before = 0.0, 0.0, positions[0]
    for i in range(codes.shape[0]):
        here = positions[i]
        gap = here - before
        fade = exp(-gap / scale)
        spread, total, before = fade * (spread + gap * total), fade * total, here
        cluster = clusters[codes[i]]
        own, own_spread = cluster[WEIGHT], 0.0
        if own > 0.0:
            gap = here - cluster[PLACE]
            fade = exp(-gap / scale)
            own, own_spread = fade * own, fade * (cluster[SPREAD] + gap * own)
        if i >= start and (founds[i] or own > 0.0):
            norm = concentration + total
            by_concentration = (1.0 if founds[i] else 0.0) - concentration / norm
            by_scale = ((0.0 if founds[i] else own_spread / own) - spread / norm) / scale
            out[0] += by_concentration
            out[1] += by_scale
            out[2] += by_concentration * by_concentration
            out[3] += by_scale * by_scale
            out[4] += 1.0
        cluster[PLACE], cluster[WEIGHT], cluster[SPREAD] = here, own + 1.0, own_spread
        total += 1.0


def slopes(
    labels: np.ndarray,
    founds: np.ndarray,
    positions: np.ndarray,
    start: int,
    concentration: float,
    scale: float,
) -> Slopes:
    """How log p(z) of some records changes with the parameters.

    Parameters
    ----------
    labels
        The cluster of every record, int64[n].
    founds
        Whether it founded its cluster, bool[n]. The first of a cluster that founded none is the first that
        is known of it, and does not count.
    positions
        In the unit of distance, non-decreasing, float64[n].
    start
        Records before it do not count: they are what those after them link to.
    concentration, scale
        Of the prior, > 0.
    """
    names, codes = np.unique(labels, return_inverse=True)
    out = np.zeros(5)
    clusters = np.zeros((len(names), 3))
    _climb(codes, founds, positions, start, float(concentration), float(scale), clusters, out)
    return Slopes(float(out[0]), float(out[1]), float(out[2]), float(out[3]), int(out[4]))
