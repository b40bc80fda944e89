"""What the families over vectors share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import numpy as np

from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.statistics import VectorStatistics

PerDimension: TypeAlias = float | tuple[float, ...]
"""One number for all dimensions, or one for each."""

TOLERANCE = 1e-6
"""Share of the largest square by which rounding may have blurred a spread."""


@dataclass(frozen=True)
class VectorFamily(Likelihood[VectorStatistics, np.ndarray]):
    """Count, mean and spread of vectors.

    Parameters
    ----------
    dimension
        D, an integer >= 1.
    mean
        Prior mean of the clusters' means: a number, or one for each dimension.
    forget
        Factor on a cluster's statistics per record of its own, in (0, 1]: the weight of its records
        halves with about every 0.69 / (1 - forget) that join, so that its parameters may move. Below 1 an
        approximation (a power prior: Ibrahim and Chen 2000) under which the order of a cluster's
        records matters, so that they cannot be removed, merged or given a log marginal.
    """

    dimension: int
    _: KW_ONLY
    mean: PerDimension = 0.0
    forget: float = 1.0

    sparse = False

    def __post_init__(self) -> None:
        size = self.dimension
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"dimension must be an integer of at least 1, not {size!r}")
        self._fix("mean", self.mean)
        if not 0.0 < self.forget <= 1.0:
            raise ValueError(f"forget must be above 0 and at most 1, not {self.forget!r}")

    def _fix(self, name: str, value: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """Store a parameter as a number or a tuple; return it for every dimension."""
        values = np.asarray(value, dtype=np.float64)
        if values.shape not in ((), (self.dimension,)):
            raise ValueError(f"{name} must be one number or {self.dimension} of them, not {value!r}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, not {value!r}")
        object.__setattr__(self, name, float(values) if values.ndim == 0 else tuple(values.tolist()))
        return self._full(value)

    def _full(self, value: float | Sequence[float] | np.ndarray) -> np.ndarray:
        return np.full(self.dimension, value, dtype=np.float64)

    def empty(self) -> VectorStatistics:
        """Statistics of no record."""
        return VectorStatistics(0.0, np.zeros(self.dimension), np.zeros(self.dimension))

    def add(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Let a vector join; what was there before is discounted by ``forget`` (Welford 1962)."""
        vector = self._vector(x)
        gap = vector - statistics.mean
        statistics.largest = max(statistics.largest, float(np.abs(vector).max()))
        kept = self.forget * statistics.count
        statistics.count = kept + 1.0
        statistics.mean += gap / statistics.count
        statistics.spread *= self.forget
        statistics.spread += kept / statistics.count * gap * gap

    def remove(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Take a vector out that had joined.

        ``ValueError`` when there is none, when it lies so far away that it cannot have joined, or when
        old vectors are being forgotten.
        """
        self._need_memory("remove")
        vector = self._vector(x)
        left = statistics.count - 1.0
        if left < 0.0:
            raise ValueError("cannot remove a vector: the cluster is empty")
        gap = vector - statistics.mean
        share = (statistics.count / left if left else 1.0) * gap * gap
        if (share > statistics.spread + TOLERANCE * statistics.largest**2).any():
            raise ValueError("cannot remove a vector that is not in the cluster")
        statistics.count = left
        if left == 0.0:
            statistics.mean[:] = 0.0
            statistics.spread[:] = 0.0
            statistics.largest = 0.0
            return
        statistics.mean -= gap / left
        np.maximum(statistics.spread - share, 0.0, out=statistics.spread)
        if left == 1.0:
            statistics.spread[:] = 0.0

    def merge(self, statistics: VectorStatistics, other: VectorStatistics) -> None:
        """Let all vectors of another cluster join (Chan, Golub and LeVeque 1983)."""
        self._need_memory("merge")
        if other.count == 0.0:
            return
        total = statistics.count + other.count
        gap = other.mean - statistics.mean
        statistics.spread += other.spread + statistics.count * other.count / total * gap * gap
        statistics.mean += other.count / total * gap
        statistics.count = total
        statistics.largest = max(statistics.largest, other.largest)

    def _need_memory(self, what: str) -> None:
        if self.forget < 1.0:
            raise ValueError(f"cannot {what} with forget = {self.forget}: it depends on the records' order")

    def _vector(self, x: np.ndarray) -> np.ndarray:
        vector = np.asarray(x, dtype=np.float64)
        if vector.shape != (self.dimension,) or not np.isfinite(vector).all():
            raise ValueError(f"a record is {self.dimension} finite numbers, not {x!r}")
        return vector
