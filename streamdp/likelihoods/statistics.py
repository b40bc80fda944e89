"""Sufficient statistics of the records of one cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class WordStatistics:
    """Word counts; ``counts`` never holds a word whose count is 0.

    Parameters
    ----------
    counts
        Tokens of every word (n_kw).
    tokens
        Their sum (n_k).
    records
        How many records have been counted.
    """

    counts: dict[int, int] = field(default_factory=dict)
    tokens: int = 0
    records: int = 0

    @property
    def types(self) -> int:
        """How many distinct words there are (T_k)."""
        return len(self.counts)


@dataclass(slots=True)
class VectorStatistics:
    """Count, mean and spread of vectors; with forgetting, each is discounted.

    Parameters
    ----------
    count
        How many vectors (an integer unless old ones are discounted).
    mean
        Their mean, of shape (D,); zero for none.
    spread
        Sum of squared deviations from the mean in each dimension, of shape (D,).
    largest
        Bound of the absolute values that have joined since there was no vector: what rounding errors are
        measured by. Without it, the bound that mean and spread give.
    """

    count: float
    mean: np.ndarray
    spread: np.ndarray
    largest: float = 0.0

    def __post_init__(self) -> None:
        if self.largest == 0.0:
            self.largest = float((np.abs(self.mean) + np.sqrt(self.spread)).max())


@dataclass(slots=True)
class MatrixStatistics(VectorStatistics):
    """Count, mean and scatter matrix of vectors, and the posterior scale that follows from them.

    Parameters
    ----------
    count, mean, spread, largest
        See :class:`VectorStatistics`.
    scatter
        Sum of the outer products of the deviations from the mean, of shape (D, D); its diagonal is
        ``spread``.
    factor
        Lower Cholesky factor of the posterior scale Psi_n, of shape (D, D).
    downdates
        How many records have left since the factor was last computed from the scatter.
    """

    scatter: np.ndarray = field(kw_only=True)
    factor: np.ndarray = field(kw_only=True)
    downdates: int = field(default=0, kw_only=True)


@dataclass(slots=True)
class SumStatistics:
    """Count and sums of vectors.

    Parameters
    ----------
    count
        How many vectors.
    sums
        Their sum, of shape (D,); ``GammaPoisson`` holds the sum of log x! as one more number.
    rest
        What rounding has cut off the sums, in the same shape: without it, much that joined and left
        again would leave a trace.
    """

    count: int
    sums: np.ndarray
    rest: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """The sums to the last digit."""
        total: np.ndarray = self.sums + self.rest
        return total

    def move(self, amount: np.ndarray) -> None:
        """Add to the sums (Knuth 1997, section 4.2.2, theorem B)."""
        sums = self.sums + amount
        moved = sums - self.sums
        self.rest += (self.sums - (sums - moved)) + (amount - moved)
        self.sums = sums
