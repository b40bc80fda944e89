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
