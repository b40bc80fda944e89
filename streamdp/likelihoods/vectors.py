"""What the families over vectors share: one row of statistics a cluster, and kernels on rows.

A family's file holds a named tuple of what its kernels read (its terms) and implements for it the functions
below. ``row`` is the block of statistics of one cluster, float64 of the width that the family states; it
holds sufficient statistics, and what follows from them for the predictive. ``own`` is what of a record
depends on no cluster.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from streamdp.kernels.checks import PerDimension, per_dimension, positive_per_dimension, whole
from streamdp.kernels.jit import entry, generic, kernel
from streamdp.kernels.sound import UnsoundError, require
from streamdp.likelihoods.base import NOTHING, Likelihood, Moments, pooled
from streamdp.likelihoods.rows import Row as Row
from streamdp.likelihoods.rows import clear_row

TOLERANCE = 1e-6
"""Share of the largest square by which rounding may have blurred a spread."""


@generic
def own(family: Any, x: np.ndarray) -> float:
    """What of a record depends on no cluster, worked out once; 0 for most families."""
    return 0.0


@generic
def add(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> None:
    """Let a record join the statistics; to be settled before anything is asked."""
    raise NotImplementedError


@generic
def remove(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> None:
    """Take a record out of the statistics that had joined, not the last; to be settled."""
    raise NotImplementedError


@generic
def merge(family: Any, row: np.ndarray, other: np.ndarray) -> None:
    """Let all records of another row join the statistics; to be settled."""
    raise NotImplementedError


@generic
def settle(family: Any, row: np.ndarray) -> None:
    """Bring up to date what follows from the statistics; of a row of zeros, too."""
    raise NotImplementedError


@generic
def predictive(family: Any, row: np.ndarray, x: np.ndarray, own: float) -> float:
    """log H(x | S) in nats; the row is settled."""
    raise NotImplementedError


@generic
def log_marginal(family: Any, row: np.ndarray) -> float:
    """log H(S) in nats; the row is settled."""
    raise NotImplementedError


@kernel
def has_vector(x: np.ndarray) -> bool:
    """Whether this is a vector, or a row, and not the absence of one: NaN."""
    return x[0] == x[0]


@kernel
def log_marginal_of_both(family: Any, row: np.ndarray, other: np.ndarray, union: np.ndarray) -> float:
    """log H of all records of two rows, in nats; ``union`` becomes their row."""
    for j in range(union.shape[0]):
        union[j] = row[j]
    merge(family, union, other)
    settle(family, union)
    return log_marginal(family, union)


@kernel
def clear(family: Any, row: np.ndarray) -> None:
    """Make a row that of an empty cluster, settled."""
    clear_row(row)
    settle(family, row)


@kernel
def rebase(family: Any, row: np.ndarray, scratch: np.ndarray) -> None:
    """Settle a row that was settled under other parameters."""
    clear(family, scratch)
    merge(family, scratch, row)
    settle(family, scratch)
    for j in range(row.shape[0]):
        row[j] = scratch[j]


class Rows(NamedTuple):
    """Statistics of many clusters, settled, and which of them can be joined."""

    block: np.ndarray  # float64[S, width]
    coarse: np.ndarray  # float32[S, coarse width] what the family looks at first, of its own making
    product: np.ndarray  # float64[S] scratch space
    open: np.ndarray  # int64[S] 1 where a cluster can be joined
    column: np.ndarray  # int64[S] below 0 where every hypothesis can join it
    high: int  # rows from there on are not in use


class Asked(NamedTuple):
    """A record whose predictive is asked of many clusters."""

    x: np.ndarray  # float64[D]
    single: np.ndarray  # float32[coarse width] room for the record in single precision
    own: float
    floor: float  # nats; the predictive of a new cluster where every hypothesis may found one, else -inf
    margin: float  # nats; a cluster that is so far below what every hypothesis can have has no say


@generic
def coarsen(family: Any, row: np.ndarray, coarse: np.ndarray) -> None:
    """Bring up to date what is looked at first, after the row has been settled; nothing for most families."""


@generic
def score_rows(family: Any, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    """log H(x | S) of every row that can be joined, in nats, or -inf where it is certain to have no say."""
    for s in range(rows.high):
        if rows.open[s] == 1:
            out[s] = predictive(family, rows.block[s], asked.x, asked.own)


@entry
def clear_entry(family: Any, row: np.ndarray) -> None:
    """An empty cluster, settled."""
    clear(family, row)


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
def leave_out(family: Any, rows: np.ndarray, vectors: np.ndarray, gains: np.ndarray) -> None:
    """Take each vector out of the row that holds it: what it adds to log H there, beside what it has alone.

    NaN, of a record without a vector, stays out.
    """
    for i in range(rows.shape[0]):
        row, x = rows[i], vectors[i]
        if has_vector(x):
            both, alone = log_marginal(family, row), own(family, x)
            remove(family, row, x, alone)
            settle(family, row)
            gains[i] = both - log_marginal(family, row)
            clear(family, row)
            gains[i] -= predictive(family, row, x, alone)


@entry
def coarsen_rows(family: Any, block: np.ndarray, coarse: np.ndarray) -> None:
    """What ``score_rows`` looks at first, of every row."""
    for s in range(block.shape[0]):
        coarsen(family, block[s], coarse[s])


@entry
def log_marginal_entry(family: Any, row: np.ndarray) -> float:
    """log H(S)."""
    return log_marginal(family, row)


def _plain(value: np.ndarray) -> Any:
    """A number, numbers, or rows of them, as parameters are given."""
    return (
        tuple(map(tuple, value.tolist()))
        if value.ndim == 2
        else float(value)
        if not value.ndim
        else tuple(value)
    )


@dataclass(frozen=True)
class VectorFamily(Likelihood):
    """Vectors of one length.

    Parameters
    ----------
    dimension
        D, an integer >= 1.
    """

    dimension: int

    sparse = False
    row: ClassVar[Row]
    """How the statistics of a cluster are laid out."""

    _kind: ClassVar[Any]
    """The class of the terms, where they are parameters of the family under the same names."""

    _by_dimension: ClassVar[tuple[str, ...]] = ()
    """Parameters that are positive: one number, or one for each dimension."""

    dtype: ClassVar[type] = np.float64
    """In which precision offline passes keep records."""

    needs_moments: ClassVar[bool] = True
    """Whether automatic parameters follow from the moments of the records."""

    enough: ClassVar[tuple[str, ...]] = ()
    """Settings of which any, where it is given, makes a warm-up needless."""

    power = 1.0
    """Power of H: below 1 a vector counts for fewer independent numbers than it has."""

    tells_apart: ClassVar[bool] = False
    """Whether it tells how far means are apart, in units of the variance, as :class:`NormalFamily` does."""

    learned: ClassVar[tuple[str, ...]] = ()
    """Parameters that follow the clusters found where none of them is given; none: all stay."""

    def __post_init__(self) -> None:
        whole("dimension", self.dimension)
        for name in self._by_dimension:
            value = positive_per_dimension(name, getattr(self, name), self.dimension)
            object.__setattr__(self, name, value)

    def terms(self) -> Any:
        """What the kernels read."""
        values = ((name, getattr(self, name)) for name in self._kind._fields)
        each = (*self._by_dimension, "mean")
        return self._kind(*(self._full(value) if name in each else float(value) for name, value in values))

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """The family with these parameters; by default, the others as they are."""
        return cls(len(moments.mean), **given)

    @property
    def vector(self) -> Self:
        """Itself: a record is a vector."""
        return self

    @property
    def width(self) -> int:
        """Numbers in a row of statistics."""
        return self.row.width(self.dimension)

    @property
    def parts(self) -> Mapping[str, Any]:
        """The parts of a row by name, and where they stand."""
        return self.row.parts(self.dimension)

    @property
    def coarse(self) -> int:
        """Numbers of a cluster that are looked at first (:class:`Rows`); none for most families."""
        return 0

    def centre(self, row: np.ndarray) -> np.ndarray:
        """Where a cluster lies, shape (D,), for reports. The mean of its records, from ``total``."""
        return np.asarray(row[self.parts["total"]] / max(row[self.parts["count"]], 1.0))

    @property
    def within(self) -> np.ndarray:
        """The spread expected within a cluster, shape (D,) or (D, D); of some families in any unit."""
        return np.ones(self.dimension)

    def suggested(self, rows: np.ndarray, least: np.ndarray = NOTHING) -> Sequence[Self]:
        """Families, with other ``learned`` parameters, that clusters suggest; their records choose one.

        ``rows`` are the statistics of the clusters, shape (K, width), with nothing forgotten; ``least`` is
        the least variance for values being few, shape (D,). ``self`` is the family that the first records
        suggested.
        """
        return ()

    @property
    def lasting(self) -> Self:
        """The family as it is where nothing is forgotten."""
        return self

    def loosened(self, share: float) -> Self:
        """The family where the prior mean of a cluster counts for a share of its records, if it has one."""
        return self

    def with_learned(self, values: Mapping[str, np.ndarray]) -> Self:
        """The family with these ``learned`` parameters, each an array. Raises UnsoundError."""
        require(values.keys() == set(self.learned), "parameters of another family")
        try:
            return replace(self, **{name: _plain(value) for name, value in values.items()})
        except (TypeError, ValueError) as error:
            raise UnsoundError(f"a learned parameter: {error}") from error

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

    @property
    def reads_all(self) -> bool:
        """Whether vectors are read as they are."""
        return getattr(self.read, "__func__", None) is vars(VectorFamily)["read"].__func__

    @cached_property
    def _terms(self) -> Any:
        return self.terms()

    def empty_row(self) -> np.ndarray:
        """The statistics of a cluster without records."""
        row = np.zeros(self.width)
        clear_entry(self._terms, row)
        return row

    def log_marginal(self, records: Sequence[Any], base: Any = None) -> float:
        """log H of records as one cluster, in nats; ``ValueError`` where one is none."""
        row = self.empty_row()
        for x in records:
            add_entry(self._terms, row, self._vector(x))
        return float(log_marginal_entry(self._terms, row))

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
        records matters, so that samplers refuse it.
    """

    _: KW_ONLY
    mean: PerDimension = 0.0
    forget: float = 1.0

    tells_apart = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mean", per_dimension("mean", self.mean, self.dimension))
        if not 0.0 < self.forget <= 1.0:
            raise ValueError(f"forget must be above 0 and at most 1, not {self.forget!r}")

    def loosened(self, share: float) -> Self:
        """Kappa, or what stands for it, is a share of what it was."""
        family: Any = self
        return cast(Self, replace(family, kappa=share * family.kappa))

    @property
    def lasting(self) -> Self:
        """The family with ``forget`` 1."""
        return replace(self, forget=1.0)

    def squared_gaps(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Squared distances of the means of each pair of clusters, in units of their variance, shape (P,).

        Those of Mahalanobis under the covariance of both, with what is expected of it. What chance puts
        between two means, and one standard deviation of that more, is left out.
        """
        parts, size = self.parts, self.dimension
        n, m = rows[:, parts["count"]], others[:, parts["count"]]
        gaps = rows[:, parts["mean"]] - others[:, parts["mean"]]
        within, records = self.within, self.strength
        spread = self.scatters(rows) + self.scatters(others) + records * within
        freedom = np.maximum(n + m + records - 2.0, 1.0)
        if within.ndim == 2:
            squares = (gaps * np.linalg.solve(spread, gaps[..., np.newaxis])[..., 0]).sum(axis=1)
            squares *= np.maximum(freedom - size - 1.0, 1.0)
        else:
            squares = (gaps**2 / spread).sum(axis=1) * freedom
        chance = (size + math.sqrt(2.0 * size)) * (1.0 / n + 1.0 / m)
        return np.asarray(np.maximum(squares - chance, 0.0))

    def pooled(self, rows: np.ndarray, least: np.ndarray) -> np.ndarray | None:
        """The covariance within clusters that those of ``rows`` show; ``within`` is what was expected."""
        return pooled(rows[:, self.parts["count"]], self.scatters(rows), self.within, least)

    def scatters(self, rows: np.ndarray) -> np.ndarray:
        """Sums of squares and products about the means, (K, D, D), or of squares alone, (K, D)."""
        raise NotImplementedError

    @property
    def strength(self) -> float:
        """How many records the expected spread within a cluster counts for."""
        raise NotImplementedError

    def centre(self, row: np.ndarray) -> np.ndarray:
        """The mean of the cluster's vectors."""
        return np.array(row[self.parts["mean"]])
