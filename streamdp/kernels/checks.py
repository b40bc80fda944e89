"""Checks of parameters: each returns what is to be kept, or raises ``ValueError`` in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

PerDimension: TypeAlias = float | tuple[float, ...]
"""One number for all dimensions, or one for each."""


def positive(name: str, value: float) -> float:
    """A positive finite number."""
    if not (0.0 < value < math.inf):
        raise ValueError(f"{name} must be a positive number, not {value!r}")
    return float(value)


def not_negative(name: str, value: float) -> float:
    """A finite number of at least 0."""
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must be zero or a positive number, not {value!r}")
    return float(value)


def discount_in_range(name: str, value: float) -> float:
    """A discount: 0 <= d < 1."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, not {value!r}")
    return float(value)


def whole(name: str, value: int) -> int:
    """An integer of at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
    return int(value)


def whole_or_none(name: str, value: int | None) -> None:
    """An integer of at least 1, or None."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, or None, not {value!r}")


def per_dimension(
    name: str, value: float | Sequence[float] | np.ndarray, size: int, *, positive: bool = False
) -> PerDimension:
    """A finite number, or a finite number for each of ``size`` dimensions."""
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise ValueError(f"{name} must be one number or {size} of them, not {value!r}")
    if not np.isfinite(values).all() or (positive and not (values > 0.0).all()):
        raise ValueError(f"{name} must be {'positive and ' * positive}finite, not {value!r}")
    return float(values) if values.ndim == 0 else tuple(values.tolist())


positive_per_dimension = partial(per_dimension, positive=True)
"""A positive finite number, or one for each of so many dimensions."""
