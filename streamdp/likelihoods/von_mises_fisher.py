"""Unit vectors, such as embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from streamdp.kernels.checks import not_negative
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.bessel import log_vmf_normaliser
from streamdp.likelihoods.directions import ROW, VonMisesFisherTerms
from streamdp.likelihoods.vectors import TOLERANCE, VectorFamily

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

    Examples
    --------
    >>> family = VonMisesFisher(2)
    >>> round(family.log_marginal([[0.6, 0.8], [0.8, 0.6]]), 4)
    -2.5192

    Notes
    -----
    H = C_D(kappa)^n C_D(c0) / C_D(|kappa s + c0 m0|) of n records of sum s, with C_D of
    :func:`~streamdp.likelihoods.bessel.log_vmf_normaliser` (Gopal and Yang 2014, with the mean direction
    integrated out); the mean of H over several concentrations.
    """

    concentration: float | tuple[float, ...] | None = None
    mean: tuple[float, ...] | None = None
    mean_concentration: float = 0.0

    row = ROW
    settings = {}  # noqa: RUF012
    of_texts = True
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
        """Concentrations as neighbours suggest, around what all vectors have in common.

        Half the mean square of the differences between neighbours is 1 - R^2, with R the length of the mean
        of a cluster as close as they are: a quarter of its kappa, half of it, that and twice that are the
        concentrations. The cosine that vectors of different clusters have is R^2 times that of the clusters'
        directions: c0 follows, around the direction of the mean of all. Where nothing varies there is
        nothing to learn.
        """
        dimension, within = len(moments.mean), moments.within
        resultant = float(np.sqrt(np.square(moments.mean).sum()))
        if resultant > 1.0 - TOLERANCE:
            return cls(dimension, **given)
        spread = float(np.trace(within) if within.ndim == 2 else within.sum())
        together = 1.0 - min(max(spread, LEAST_SPREAD), MOST_SPREAD)
        kappa = concentration_of(dimension, math.sqrt(together))
        learned: dict[str, Any] = {"concentration": tuple(factor * kappa for factor in LEARNED)}
        common = float(moments.common)
        if common > 0.0 and resultant > TOLERANCE:
            learned["mean"] = tuple((moments.mean / resultant).tolist())
            around = min(math.sqrt(common / together), MOST_COMMON)
            learned["mean_concentration"] = concentration_of(dimension, around)
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
        normalisers = np.array([log_vmf_normaliser(size, kappa) for kappa in grid.tolist()])
        return VonMisesFisherTerms(grid, normalisers, c0, log_vmf_normaliser(size, c0), self.direction)

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
        return np.asarray((self._terms.normalisers + np.outer(lengths, self.concentrations)).max(axis=1))
