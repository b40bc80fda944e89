"""Arrays of rows with named fields, and making arrays larger.

What is cold stands in rows: one array of a structured type for all fields, of integers of one width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

INTEGER, REAL = "i8", "f8"


def row_type(integers: str = "", reals: str = "") -> np.dtype[Any]:
    """The type of rows with these fields, named with spaces between."""
    return np.dtype([(name, INTEGER) for name in integers.split()] + [(name, REAL) for name in reals.split()])


def new_rows(count: int, kind: np.dtype[Any], **fills: float) -> np.ndarray:
    """Rows of zeros, but for the fields given."""
    rows = np.zeros(count, kind)
    for name, value in fills.items():
        rows[name] = value
    return rows


def free_chain(start: int, stop: int) -> np.ndarray:
    """Next-pointers that chain ``start .. stop - 1`` into a free list."""
    chain = np.arange(start + 1, stop + 1)
    chain[-1] = -1
    return chain


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << max(int(n) - 1, 0).bit_length()


def longer(array: np.ndarray, size: int, fill: float = 0) -> np.ndarray:
    """A copy whose last axis is ``size`` long."""
    larger = np.full((*array.shape[:-1], size), fill, array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger


def taller(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with ``size`` rows, the new ones of zeros."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


def longer_rows(rows: np.ndarray, size: int, **fills: float) -> np.ndarray:
    """A copy with ``size`` rows, the new ones as of :func:`new_rows`."""
    larger = new_rows(size, rows.dtype, **fills)
    larger[: rows.shape[0]] = rows
    return larger


def longer_chain(chain: np.ndarray, size: int, free: int) -> int:
    """Put the places from ``size`` of before on before the free ones, in order; returns the first of them.

    ``chain`` is already as long as it shall be; ``size`` is how long it was, ``free`` the first free place.
    """
    chain[size:] = np.arange(size + 1, chain.shape[0] + 1)
    chain[-1] = free
    return size
