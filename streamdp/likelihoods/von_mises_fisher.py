"""Unit vectors, such as embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from streamdp.likelihoods.bessel import log_vmf_normaliser
from streamdp.likelihoods.statistics import SumStatistics
from streamdp.likelihoods.sums import SumFamily
from streamdp.likelihoods.vectors import TOLERANCE

UNIT = 1e-3
"""How far the length of a unit vector may be from one."""

GRID = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Concentrations by default, in D: vectors at cosines of about .4, .6, .8, .9 and .94 to their mean."""


@dataclass(frozen=True)
class VonMisesFisher(SumFamily):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension < 2:
            raise ValueError(f"dimension must be at least 2, not {self.dimension}")
        self._fix_concentration()
        c0 = self.mean_concentration
        if not 0.0 <= c0 < math.inf:
            raise ValueError(f"mean_concentration must be zero or a positive number, not {c0!r}")
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

    @cached_property
    def concentrations(self) -> np.ndarray:
        """Every kappa that a cluster may have, of shape (G,)."""
        return np.atleast_1d(np.asarray(self.concentration, dtype=np.float64))

    @cached_property
    def direction(self) -> np.ndarray:
        """m0, of length one to the last digit; zero for none."""
        return np.zeros(self.dimension) if self.mean is None else self._summand(np.array(self.mean))

    @cached_property
    def _log_normalisers(self) -> np.ndarray:
        return np.array([log_vmf_normaliser(self.dimension, kappa) for kappa in self.concentrations.tolist()])

    @cached_property
    def _log_start(self) -> np.ndarray:
        return self._log_c(np.zeros(self.dimension))

    def log_marginal(self, statistics: SumStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats."""
        found = self._log_h(statistics.count, statistics.total)
        return _log_sum(found) - math.log(len(found))

    def log_predictive(self, statistics: SumStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats; concentrations weigh as much as they explain of the cluster."""
        total = statistics.total
        found = self._log_h(statistics.count, total)
        found -= found.max()
        steps = self._log_normalisers + self._log_c(total) - self._log_c(total + self._summand(x))
        return _log_sum(found + steps) - _log_sum(found)

    def _log_h(self, count: int, total: np.ndarray) -> np.ndarray:
        """log H under each concentration."""
        found: np.ndarray = count * self._log_normalisers + (self._log_start - self._log_c(total))
        return found

    def _log_c(self, total: np.ndarray) -> np.ndarray:
        """log C_D(|kappa s + c0 m0|) for each concentration."""
        pulled = np.outer(self.concentrations, total) + self.mean_concentration * self.direction
        lengths = np.sqrt((pulled * pulled).sum(axis=1)).tolist()
        return np.array([log_vmf_normaliser(self.dimension, length) for length in lengths])

    def _summand(self, x: np.ndarray) -> np.ndarray:
        vector: np.ndarray = self._vector(x)
        length = float(np.linalg.norm(vector))
        if not abs(length - 1.0) <= UNIT:
            raise ValueError(f"a record is {self.dimension} numbers of length one, not of {length:.6g}")
        vector = vector / length
        return vector

    def _possible(self, count: int, total: np.ndarray) -> bool:
        length = float(np.linalg.norm(total))
        return length <= count + TOLERANCE and (count != 1 or length >= 1.0 - TOLERANCE)


def _log_sum(logarithms: np.ndarray) -> float:
    peak = float(logarithms.max())
    return peak + math.log(float(np.exp(logarithms - peak).sum()))
