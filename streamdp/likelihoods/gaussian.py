"""Vectors around unknown means, with a known variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.beam import model
from streamdp.likelihoods.statistics import VectorStatistics
from streamdp.likelihoods.vectors import VectorFamily
from streamdp.priors.base import positive


@dataclass(frozen=True, kw_only=True)
class Gaussian(VectorFamily):
    """A cluster is a normal distribution with a mean of its own and the same variance s2 as all others.

    Parameters
    ----------
    dimension, mean, forget
        See :class:`~streamdp.likelihoods.vectors.VectorFamily`.
    variance
        s2 of every dimension within a cluster, in the square of the data's unit, > 0.
    mean_variance
        v0, prior variance of a cluster's mean in every dimension, > 0.

    Notes
    -----
    Murphy 2007, sections 2 and 7; Daume 2007 clusters with it.
    """

    variance: float = 1.0
    mean_variance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("variance", self.variance)
        positive("mean_variance", self.mean_variance)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Write the parameters where the kernels read them; the prior mean is an array of ``Model``."""
        ints[model.FAMILY] = model.GAUSSIAN
        floats[model.VARIANCE] = self.variance
        floats[model.MEAN_VARIANCE] = self.mean_variance
        floats[model.FORGET] = self.forget
        return {"location": self._full(self.mean), "scale": np.ones(self.dimension)}

    def log_marginal(self, statistics: VectorStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats; ``ValueError`` when old ones are being forgotten."""
        self._need_memory("compute a log marginal")
        s2, v0, n = self.variance, self.mean_variance, statistics.count
        gap = statistics.mean - self._full(self.mean)
        quadratic = statistics.spread.sum() / s2 + n * (gap @ gap) / (s2 + n * v0)
        normaliser = n * math.log(2.0 * math.pi * s2) + math.log1p(n * v0 / s2)
        return -0.5 * (self.dimension * normaliser + float(quadratic))

    def log_predictive(self, statistics: VectorStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats: normal around the posterior mean."""
        s2, v0, n = self.variance, self.mean_variance, statistics.count
        prior = self._full(self.mean)
        centre = prior + n * v0 / (s2 + n * v0) * (statistics.mean - prior)
        variance = s2 + s2 * v0 / (s2 + n * v0)
        gap = self._vector(x) - centre
        return -0.5 * (self.dimension * math.log(2.0 * math.pi * variance) + float(gap @ gap) / variance)
