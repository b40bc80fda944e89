"""Where vectors lie and how far they spread: what automatic settings of their likelihoods follow from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEAST = 1e-6
"""Share of the mean variance that a dimension has at least: one that never varies must not divide by 0."""


class Moments(NamedTuple):
    """Mean and variance, each of shape (D,)."""

    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> Moments:
        """The moments of the rows; the variance is 1 where nothing varies at all."""
        variance = vectors.var(axis=0)
        typical = float(variance.mean())
        floor = LEAST * typical if typical > 0.0 else 1.0
        return cls(vectors.mean(axis=0), np.maximum(variance, floor))
