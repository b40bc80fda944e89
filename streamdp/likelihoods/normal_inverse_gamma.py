"""Vectors around unknown means, with unknown variances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.statistics import VectorStatistics
from streamdp.likelihoods.vectors import PerDimension, VectorFamily
from streamdp.priors.base import positive


@dataclass(frozen=True, kw_only=True)
class NormalInverseGamma(VectorFamily):
    """A cluster has a mean and a variance of its own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.VectorFamily`.
    kappa
        How many records the prior mean counts for, > 0: small when means lie far apart.
    shape
        a of the inverse gamma prior of the variances, > 0: it counts for 2a records.
    scale
        b of that prior, > 0, in the square of the data's unit: a number, or one for each dimension. The
        variance is expected to be b / (a - 1).

    Notes
    -----
    Murphy 2007, section 6 for the conjugate pair, in each dimension.
    """

    kappa: float = 0.1
    shape: float = 2.0
    scale: PerDimension = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kappa", self.kappa)
        positive("shape", self.shape)
        if not (self._fix("scale", self.scale) > 0.0).all():
            raise ValueError(f"scale must be positive, not {self.scale!r}")

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them; mean and scale are arrays of ``Model``."""
        ints[model.FAMILY] = model.NORMAL_INVERSE_GAMMA
        floats[model.KAPPA] = self.kappa
        floats[model.SHAPE] = self.shape
        floats[model.FORGET] = self.forget
        return {"location": self._full(self.mean), "scale": self._full(self.scale)}

    def log_marginal(self, statistics: VectorStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats; ``ValueError`` when old ones are being forgotten."""
        self._need_memory("compute a log marginal")
        n, a = statistics.count, self.shape
        a_n, prior_scale = a + 0.5 * n, self._full(self.scale)
        per = math.lgamma(a_n) - math.lgamma(a) - 0.5 * n * math.log(2.0 * math.pi)
        per -= 0.5 * math.log1p(n / self.kappa)
        scales = a * np.log(prior_scale) - a_n * np.log(self._posterior_scale(statistics))
        return self.dimension * per + float(scales.sum())

    def log_predictive(self, statistics: VectorStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats: Student's t with 2 a_n degrees of freedom in every dimension."""
        n = statistics.count
        kappa_n, a_n = self.kappa + n, self.shape + 0.5 * n
        prior = self._full(self.mean)
        gap = self._vector(x) - (prior + n / kappa_n * (statistics.mean - prior))
        precision = kappa_n / (2.0 * (kappa_n + 1.0) * self._posterior_scale(statistics))
        per = math.lgamma(a_n + 0.5) - math.lgamma(a_n) - 0.5 * math.log(math.pi)
        shape = 0.5 * np.log(precision) - (a_n + 0.5) * np.log1p(precision * gap * gap)
        return self.dimension * per + float(shape.sum())

    def _posterior_scale(self, statistics: VectorStatistics) -> np.ndarray:
        """b_n = b + spread / 2 + kappa n (mean - m0)^2 / (2 (kappa + n))."""
        n = statistics.count
        gap = statistics.mean - self._full(self.mean)
        squares: np.ndarray = statistics.spread + self.kappa * n / (self.kappa + n) * gap * gap
        return self._full(self.scale) + 0.5 * squares
