"""Vectors of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.likelihoods.statistics import SumStatistics
from streamdp.likelihoods.sums import SumFamily, log_gamma
from streamdp.likelihoods.vectors import TOLERANCE, PerDimension


@dataclass(frozen=True)
class GammaPoisson(SumFamily):
    """Counts are Poisson, with a rate of the cluster's own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension
        D, an integer >= 1; a record is D whole numbers >= 0.
    shape, rate
        a and b of the gamma prior of the rates, > 0, which are expected to be a / b: the prior counts for
        b records. Each a number, or one for each dimension.

    Notes
    -----
    H = prod_d b^a Gamma(a + s_d) / (Gamma(a) (b + n)^(a + s_d)) / prod_i x_id! of n records of sum s
    (Gelman et al. 2013, section 2.6).
    """

    shape: PerDimension = 1.0
    rate: PerDimension = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("shape", self.shape)
        self._positive("rate", self.rate)

    def empty(self) -> SumStatistics:
        """Statistics of no record; the last of the sums is that of log x!."""
        return SumStatistics(0, np.zeros(self.dimension + 1), np.zeros(self.dimension + 1))

    def log_marginal(self, statistics: SumStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats."""
        a, b, n = self._full(self.shape), self._full(self.rate), statistics.count
        sums, log_factorials = statistics.total[:-1], float(statistics.total[-1])
        powers = float((a * np.log1p(n / b) + sums * np.log(b + n)).sum())
        return log_gamma(a + sums) - log_gamma(a) - powers - log_factorials

    def log_predictive(self, statistics: SumStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats: negative binomial in every dimension."""
        vector, b_n = self._counts(x), self._full(self.rate) + statistics.count
        a_n = self._full(self.shape) + statistics.total[:-1]
        powers = float((a_n * np.log1p(1.0 / b_n) + vector * np.log1p(b_n)).sum())
        some = vector > 0.0
        a_n, vector = a_n[some], vector[some]
        return log_gamma(a_n + vector) - log_gamma(a_n) - log_gamma(vector + 1.0) - powers

    def _counts(self, x: np.ndarray) -> np.ndarray:
        vector = self._vector(x)
        if not ((vector >= 0.0) & (vector == np.floor(vector))).all():
            raise ValueError(f"a record is {self.dimension} whole numbers of at least 0, not {x!r}")
        return vector

    def _summand(self, x: np.ndarray) -> np.ndarray:
        vector = self._counts(x)
        return np.append(vector, log_gamma(vector[vector > 1.0] + 1.0))

    def _possible(self, count: int, total: np.ndarray) -> bool:
        sums, log_factorials = total[:-1], float(total[-1])
        if (sums < 0.0).any() or (count == 0 and sums.any()):
            return False
        # the factorials are least when the counts are even, most when one record has them all
        most = log_gamma(sums + 1.0)
        least = count * log_gamma(sums / count + 1.0) if count else 0.0
        slack = TOLERANCE * (1.0 + most)
        return least - slack <= log_factorials <= most + slack
