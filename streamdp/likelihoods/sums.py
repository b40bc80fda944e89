"""What the families share whose statistics are sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.statistics import SumStatistics


@dataclass(frozen=True)
class SumFamily(Likelihood[SumStatistics, np.ndarray]):
    """Count and sums of vectors.

    Parameters
    ----------
    dimension
        D, an integer >= 1.
    """

    dimension: int

    sparse = False

    def __post_init__(self) -> None:
        size = self.dimension
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"dimension must be an integer of at least 1, not {size!r}")

    def _positive(self, name: str, value: float | Sequence[float] | np.ndarray) -> None:
        """Store a positive parameter as a number or a tuple."""
        values = np.asarray(value, dtype=np.float64)
        if values.shape not in ((), (self.dimension,)):
            raise ValueError(f"{name} must be one number or {self.dimension} of them, not {value!r}")
        if not (np.isfinite(values) & (values > 0.0)).all():
            raise ValueError(f"{name} must be positive and finite, not {value!r}")
        object.__setattr__(self, name, float(values) if values.ndim == 0 else tuple(values.tolist()))

    def _full(self, value: float | Sequence[float]) -> np.ndarray:
        return np.full(self.dimension, value, dtype=np.float64)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> dict[str, np.ndarray]:
        """Raise ``ValueError``: the stream's kernels do not know the family."""
        raise ValueError(f"the stream's beam does not serve {type(self).__name__} yet: use `streamdp fit`")

    @abstractmethod
    def _summand(self, x: np.ndarray) -> np.ndarray:
        """What a record adds to the sums; ``ValueError`` when it is none."""

    @abstractmethod
    def _possible(self, count: int, total: np.ndarray) -> bool:
        """Whether this many records may have this sum."""

    def empty(self) -> SumStatistics:
        """Statistics of no record."""
        return SumStatistics(0, np.zeros(self.dimension), np.zeros(self.dimension))

    def add(self, statistics: SumStatistics, x: np.ndarray) -> None:
        """Let a vector join."""
        statistics.move(self._summand(x))
        statistics.count += 1

    def remove(self, statistics: SumStatistics, x: np.ndarray) -> None:
        """Take a vector out that had joined; ``ValueError`` when the sums show that it cannot have."""
        summand, left = self._summand(x), statistics.count - 1
        if left < 0:
            raise ValueError("cannot remove a vector: the cluster is empty")
        if not self._possible(left, statistics.total - summand):
            raise ValueError("cannot remove a vector that is not in the cluster")
        statistics.move(-summand)
        statistics.count = left
        if left == 0:
            statistics.sums[:] = 0.0
            statistics.rest[:] = 0.0

    def merge(self, statistics: SumStatistics, other: SumStatistics) -> None:
        """Let all vectors of another cluster join."""
        statistics.move(other.sums)
        statistics.rest += other.rest
        statistics.count += other.count

    def _vector(self, x: np.ndarray) -> np.ndarray:
        vector = np.asarray(x, dtype=np.float64)
        if vector.shape != (self.dimension,) or not np.isfinite(vector).all():
            raise ValueError(f"a record is {self.dimension} finite numbers, not {x!r}")
        return vector


def log_gamma(values: np.ndarray) -> float:
    """The sum of log Gamma."""
    return math.fsum(map(math.lgamma, values.tolist()))
