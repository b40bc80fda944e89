"""Arrays of a stored state, checked before kernels use them: damaged bytes must not crash a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamdp.kernels.rows import Counters, new_counters
from streamdp.safe_files import physical_memory

RECORDS = 1 << 53
"""More than any stream has; times on a clock of records are doubles."""

MOST = 1 << 24
"""Places that an array may have room for."""

PLACE = 256
"""Bytes of a place at most, in all arrays together that have as many."""


class UnsoundError(ValueError):
    """What was stored is not what streamdp stores; the message says what of it."""


def require(holds: Any, what: str) -> None:
    """Raise UnsoundError unless something holds."""
    if not holds:
        raise UnsoundError(what)


def within(values: np.ndarray, low: float, high: float, what: str) -> None:
    """All values are at least ``low`` and below ``high``."""
    require(values.size == 0 or (values.min() >= low and values.max() < high), f"{what} out of range")


def finite(values: np.ndarray, what: str) -> None:
    """All values are finite numbers."""
    require(np.isfinite(values).all(), f"{what} not finite")


def plain_counters(counters: Counters) -> dict[str, int | float]:
    """Counters as plain numbers by name."""
    return {name: counters[name].item() for name in counters.dtype.names or ()}


def counters_of(kind: type, stored: Mapping[str, Any]) -> Counters:
    """The counters that a named tuple declares, from plain numbers; what is not stored begins as declared."""
    found = new_counters(kind)
    for name in found.dtype.names or ():
        if name in stored:
            value, expected = stored[name], type(found[name].item())
            require(type(value) is expected and -(1 << 62) < value < 1 << 62, f"{name} is out of range")
            setattr(found, name, value)
    return found


def narrow(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the narrowest signed type that holds them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (kind for kind in (np.int8, np.int16, np.int32) if np.iinfo(kind).min <= low)
    return values.astype(next((kind for kind in kinds if high <= np.iinfo(kind).max), np.int64))


def ints_of(facts: Mapping[str, Any], name: str, low: int, high: int, count: int | None = None) -> np.ndarray:
    """Whole numbers in a range, as many as there are to be; int64."""
    found = facts[name]
    require(isinstance(found, np.ndarray) and found.dtype.kind == "i", f"{name} of another type")
    require(
        found.ndim == 1 and len(found) == (len(found) if count is None else count),
        f"{name} of another length",
    )
    within(found, low, high, name)
    return np.asarray(found.astype(np.int64))


def reals_of(facts: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """Finite numbers of a shape, None for any length; float64."""
    found = facts[name]
    require(isinstance(found, np.ndarray) and found.dtype == np.float64, f"{name} of another type")
    alike = found.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    require(alike, f"{name} of another length")
    finite(found, name)
    return np.asarray(found)


def length_of(facts: Mapping[str, Any], name: str, least: int) -> int:
    """How long arrays are that follow a size: a power of two."""
    size = facts[name]
    require(type(size) is int and least <= size <= MOST and size & (size - 1) == 0, f"{name} out of range")
    room = f"{name}: there is room for {size}, which takes more than half of this machine's memory"
    require(size * PLACE <= physical_memory() // 2, room)
    return int(size)


def inverse(places: np.ndarray, size: int) -> np.ndarray:
    """By place, which it is among these; -1 where it is none."""
    found = np.full(size, -1)
    found[places] = np.arange(len(places))
    return found


def runs(after: np.ndarray, first: int) -> np.ndarray:
    """A chain of places as rows of a place and how many come one after the other from there on."""
    found, following = [], after.tolist()
    while first >= 0:
        found.append(first)
        first = following[first]
    order = np.array(found, np.int64)
    begins = np.flatnonzero(np.diff(order, prepend=-2) != 1)
    return narrow(np.stack([order[begins], np.diff(begins, append=len(order))], axis=1))


def chain_of_runs(after: np.ndarray, runs: np.ndarray, places: np.ndarray) -> int:
    """Chain free places as runs say, which have each of them once; returns the first."""
    require(isinstance(runs, np.ndarray) and runs.dtype.kind == "i", "free places of another type")
    require(runs.ndim == 2 and runs.shape[1] == 2, "free places of another shape")
    begin, length = runs.astype(np.int64).T
    within(length, 1, len(places) + 1, "a run of free places")
    require(length.sum() == len(places), "a place that is free is missing")
    order = np.repeat(begin - np.cumsum(length) + length, length) + np.arange(length.sum())
    require(np.array_equal(np.sort(order), places), "other places are free")
    if len(order):
        after[order[:-1]], after[order[-1]] = order[1:], -1
    return int(order[0]) if len(order) else -1
