"""Open addressing: which of the things that are numbered 0, 1, ... has given properties.

The things are a named tuple of arrays, of which ``table`` is the table: their numbers, -1 where none is, a
power of two long and at most half full. :func:`hash_of` is implemented for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.jit import generic, kernel


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
