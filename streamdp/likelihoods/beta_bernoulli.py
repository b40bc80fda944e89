"""Binary vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.likelihoods.statistics import SumStatistics
from streamdp.likelihoods.sums import SumFamily, log_gamma
from streamdp.likelihoods.vectors import PerDimension


@dataclass(frozen=True)
class BetaBernoulli(SumFamily):
    """A cluster has a probability of 1 of its own in every dimension; dimensions are independent.

    Parameters
    ----------
    dimension
        D, an integer >= 1; a record is D numbers, each 0 or 1.
    a, b
        Of the beta prior of the probabilities, > 0: how many ones and zeros it counts for. Each a number,
        or one for each dimension.

    Notes
    -----
    H = prod_d B(a_d + s_d, b_d + n - s_d) / B(a_d, b_d) of n records with s_d ones (Gelman et al. 2013,
    section 2.4).
    """

    a: PerDimension = 1.0
    b: PerDimension = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("a", self.a)
        self._positive("b", self.b)

    def log_marginal(self, statistics: SumStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats."""
        a, b, n, ones = self._full(self.a), self._full(self.b), statistics.count, statistics.total
        total = log_gamma(a + ones) - log_gamma(a) + log_gamma(b + (n - ones)) - log_gamma(b)
        return total - (log_gamma(a + b + n) - log_gamma(a + b))

    def log_predictive(self, statistics: SumStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats: (a + s) / (a + b + n) for a one."""
        vector, n, ones = self._summand(x), statistics.count, statistics.total
        yes, no = self._full(self.a) + ones, self._full(self.b) + (n - ones)
        return float((np.log(np.where(vector == 1.0, yes, no)) - np.log(yes + no)).sum())

    def _summand(self, x: np.ndarray) -> np.ndarray:
        vector = self._vector(x)
        if not ((vector == 0.0) | (vector == 1.0)).all():
            raise ValueError(f"a record is {self.dimension} numbers, each 0 or 1, not {x!r}")
        return vector

    def _possible(self, count: int, total: np.ndarray) -> bool:
        return bool(((total >= 0.0) & (total <= count)).all())
