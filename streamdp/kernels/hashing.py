"""Hashes of bytes, and tables of what has given properties.

Of bytes, one after the other: Fowler, Noll and Vo's, FNV-1a of 64 bits. Tables, by open addressing, are of
things that are numbered 0, 1, ...: a named tuple of arrays, of which ``table`` is the table: their numbers,
-1 where none is, a power of two long and at most half full. :func:`hash_of` is implemented for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.jit import generic, kernel

EMPTY = np.uint64(0xCBF29CE484222325)
"""The hash of no bytes."""

_PRIME = np.uint64(0x100000001B3)


@kernel
def mix(code: np.uint64, byte: np.uint8) -> np.uint64:
    """The hash with one byte more."""
    mixed: np.uint64 = (code ^ np.uint64(byte)) * _PRIME
    return mixed


@generic
def hash_of(things: Any, number: int) -> np.int64:
    """A hash of what a thing is found by, mixed in its lower bits."""
    raise NotImplementedError


@kernel
def put(things: Any, number: int) -> None:
    """Enter a thing."""
    mask = things.table.shape[0] - 1
    i = hash_of(things, number) & mask
    while things.table[i] >= 0:
        i = (i + 1) & mask
    things.table[i] = number


@kernel
def take(things: Any, number: int) -> None:
    """Take a thing out that is entered."""
    mask = things.table.shape[0] - 1
    i = hash_of(things, number) & mask
    while things.table[i] != number:
        i = (i + 1) & mask
    j = i
    while True:  # close the gap, so that later probes do not stop short
        j = (j + 1) & mask
        other = things.table[j]
        if other < 0:
            break
        home = hash_of(things, other) & mask
        if ((j - home) & mask) >= ((j - i) & mask):
            things.table[i] = other
            i = j
    things.table[i] = -1
