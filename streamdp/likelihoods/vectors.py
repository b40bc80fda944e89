"""What the families over vectors share: one row of statistics a cluster, and kernels on rows.

A family's file holds a named tuple of what its kernels read (its terms) and implements for it the functions
below. ``row`` is the block of statistics of one cluster, float64 of the width that the family states; it
holds sufficient statistics, and what follows from them for the predictive. ``own`` is what of a record
depends on no cluster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from streamdp.checks import PerDimension, per_dimension, whole
from streamdp.kernels.jit import entry, generic
from streamdp.likelihoods.base import Likelihood
from streamdp.likelihoods.moments import clear_row

TOLERANCE = 1e-6
"""Share of the largest square by which rounding may have blurred a spread."""


@generic
def own(family: Any, x: np.ndarray) -> float:
    """What of a record depends on no cluster, worked out once; 0 for most families."""
    raise NotImplementedError


@generic
def clear(family: Any, row: np.ndarray) -> None:
    """Make a row that of an empty cluster; zeros for most families."""


@generic
def add(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> None:
    """Let a record join the statistics; to be settled before anything is asked."""


@generic
def remove(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> None:
    """Take a record out of the statistics that had joined, not the last; to be settled."""


@generic
def merge(family: Any, row: np.ndarray, other: np.ndarray) -> None:
    """Let all records of another row join the statistics; to be settled."""


@generic
def settle(family: Any, row: np.ndarray) -> None:
    """Bring up to date what follows from the statistics."""


@generic
def predictive(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> float:
    """log H(x | S) in nats; the row is settled."""
    raise NotImplementedError


@generic
def log_marginal(family: Any, row: np.ndarray) -> float:
    """log H(S) in nats; the row is settled."""
    raise NotImplementedError


@clear.otherwise
def _zeros(family: Any, row: np.ndarray) -> None:
    clear_row(row)


@own.otherwise
def _nothing(family: Any, x: np.ndarray) -> float:
    return 0.0


@entry
def clear_entry(family: Any, row: np.ndarray) -> None:
    """An empty cluster, settled."""
    clear(family, row)
    settle(family, row)


@entry
def add_entry(family: Any, row: np.ndarray, x: np.ndarray) -> None:
    """Let a record join, and settle."""
    add(family, row, x, own(family, x))
    settle(family, row)


@entry
def remove_entry(family: Any, row: np.ndarray, x: np.ndarray) -> None:
    """Take a record out, not the last, and settle."""
    remove(family, row, x, own(family, x))
    settle(family, row)


@entry
def merge_entry(family: Any, row: np.ndarray, other: np.ndarray) -> None:
    """Let all records of another row join, and settle."""
    merge(family, row, other)
    settle(family, row)


@entry
def predictive_entry(family: Any, row: np.ndarray, x: np.ndarray) -> float:
    """log H(x | S)."""
    return predictive(family, row, x, own(family, x))


@entry
def log_marginal_entry(family: Any, row: np.ndarray) -> float:
    """log H(S)."""
    return log_marginal(family, row)


class VectorStatistics:
    """The row of one cluster, its parts by name, and how large its numbers have been.

    Parameters
    ----------
    row
        float64 of the family's width.
    parts
        Name of each statistic, and its place in the row.
    """

    def __init__(self, row: np.ndarray, parts: Mapping[str, Any]) -> None:
        self.row, self.parts, self.count, self.largest = row, parts, 0, 0.0

    def __getitem__(self, part: str) -> Any:
        """A statistic: a number, or an array of shape (D,)."""
        return self.row[self.parts[part]]


@dataclass(frozen=True)
class VectorFamily(Likelihood[VectorStatistics, np.ndarray]):
    """Vectors of one length.

    Parameters
    ----------
    dimension
        D, an integer >= 1.
    """

    dimension: int

    sparse = False
    dtype: ClassVar[type] = np.float64
    """In which precision offline passes keep records."""

    needs_moments: ClassVar[bool] = True
    """Whether automatic parameters follow from the moments of the records."""

    enough: ClassVar[tuple[str, ...]] = ()
    """Settings of which any, where it is given, makes a warm-up needless."""

    def __post_init__(self) -> None:
        whole("dimension", self.dimension)

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a row of statistics."""

    @property
    def coarse(self) -> int:
        """Numbers of a cluster that are looked at first (``likelihoods/rows.py``); none for most families."""
        return 0

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """The statistics of a row by name, and where they stand."""

    def centre(self, row: np.ndarray) -> np.ndarray:
        """Where a cluster lies, shape (D,): what is told of it. The mean of its records, from ``total``."""
        return np.asarray(row[self.parts["total"]] / max(row[self.parts["count"]], 1.0))

    @abstractmethod
    def upper_bounds(self, rows: np.ndarray) -> np.ndarray:
        """No less than log H(x | S) of each row, for any S of the rows before it, shape (N,).

        H(x | S) is a mean over the posterior of the parameters, so it is no more than the density of x at
        the best of them. Where that has no bound, it is no more than the peak of the predictive, which
        rises with the size of S and falls with its spread.
        """

    @classmethod
    def read(cls, values: np.ndarray) -> np.ndarray:
        """The records as the kernels take them, shape (N, D); ValueError for what is none."""
        return values

    @cached_property
    def _terms(self) -> Any:
        return self.terms()

    def empty(self) -> VectorStatistics:
        """Statistics of no record."""
        row = np.zeros(self.width)
        clear_entry(self._terms, row)
        return VectorStatistics(row, self.parts)

    def add(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Let a vector join."""
        vector = self._vector(x)
        add_entry(self._terms, self._row(statistics), vector)
        statistics.count += 1
        statistics.largest = max(statistics.largest, float(np.abs(vector).max()))

    def remove(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Take a vector out that had joined.

        ``ValueError`` where there is none, and where the statistics show that it cannot have joined.
        """
        vector = self._vector(x)
        if statistics.count < 1:
            raise ValueError("cannot remove a vector: the cluster is empty")
        if not self._may_leave(statistics, vector):
            raise ValueError("cannot remove a vector that is not in the cluster")
        statistics.count -= 1
        if statistics.count:
            remove_entry(self._terms, self._row(statistics), vector)
        else:
            clear_entry(self._terms, statistics.row)
            statistics.largest = 0.0

    def merge(self, statistics: VectorStatistics, other: VectorStatistics) -> None:
        """Let all vectors of another cluster join."""
        merge_entry(self._terms, self._row(statistics), self._row(other))
        statistics.count += other.count
        statistics.largest = max(statistics.largest, other.largest)

    def log_marginal(self, statistics: VectorStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats."""
        return float(log_marginal_entry(self._terms, self._row(statistics)))

    def log_predictive(self, statistics: VectorStatistics, x: np.ndarray, base: Any = None) -> float:
        """log H(x | S), in nats."""
        vector = self._vector(x)
        return float(predictive_entry(self._terms, self._row(statistics), vector))

    def _may_leave(self, statistics: VectorStatistics, vector: np.ndarray) -> bool:
        """Whether the statistics allow for the vector to be one of the cluster's."""
        return True

    def _row(self, statistics: VectorStatistics) -> np.ndarray:
        if statistics.row.shape != (self.width,):
            raise TypeError(f"the statistics are not those of {type(self).__name__}")
        return statistics.row

    def _full(self, value: PerDimension) -> np.ndarray:
        return np.full(self.dimension, value, dtype=np.float64)

    def _vector(self, x: np.ndarray) -> np.ndarray:
        vector = np.asarray(x, dtype=np.float64)
        if vector.shape != (self.dimension,) or not np.isfinite(vector).all():
            raise ValueError(f"a record is {self.dimension} finite numbers, not {x!r}")
        read = self.read(vector[np.newaxis])[0]
        return np.ascontiguousarray(read, np.float64)


@dataclass(frozen=True)
class NormalFamily(VectorFamily):
    """Vectors around a mean of the cluster's own.

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

    _: KW_ONLY
    mean: PerDimension = 0.0
    forget: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mean", per_dimension("mean", self.mean, self.dimension))
        if not 0.0 < self.forget <= 1.0:
            raise ValueError(f"forget must be above 0 and at most 1, not {self.forget!r}")

    def remove(self, statistics: VectorStatistics, x: np.ndarray) -> None:
        """Take a vector out that had joined.

        ``ValueError`` where there is none, where it lies so far away that it cannot have joined, and where
        old vectors are being forgotten.
        """
        self._need_memory("remove")
        super().remove(statistics, x)

    def merge(self, statistics: VectorStatistics, other: VectorStatistics) -> None:
        """Let all vectors of another cluster join; ``ValueError`` where old ones are being forgotten."""
        self._need_memory("merge")
        super().merge(statistics, other)

    def log_marginal(self, statistics: VectorStatistics, base: Any = None) -> float:
        """log H of the vectors of a cluster, in nats; ``ValueError`` where old ones are being forgotten."""
        self._need_memory("compute a log marginal")
        return super().log_marginal(statistics, base)

    def centre(self, row: np.ndarray) -> np.ndarray:
        """The mean of the cluster's vectors."""
        return np.array(row[self.parts["mean"]])

    def _may_leave(self, statistics: VectorStatistics, vector: np.ndarray) -> bool:
        gap = vector - statistics["mean"]
        left = statistics.count - 1.0
        share = np.asarray((statistics.count / left if left else 1.0) * gap * gap)
        spread = statistics["spread"]
        if np.ndim(spread) == 0:
            share = share.sum()
        return bool((share <= spread + TOLERANCE * statistics.largest**2).all())

    def _need_memory(self, what: str) -> None:
        if self.forget < 1.0:
            raise ValueError(f"cannot {what} with forget = {self.forget}: it depends on the records' order")
