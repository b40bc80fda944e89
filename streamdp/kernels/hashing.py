"""Hashes of bytes, one byte after the other (Fowler, Noll and Vo's, FNV-1a of 64 bits)."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel

EMPTY = np.uint64(0xCBF29CE484222325)
"""The hash of no bytes."""

_PRIME = np.uint64(0x100000001B3)


@kernel
def mix(code: np.uint64, byte: np.uint8) -> np.uint64:
    """The hash with one byte more."""
    mixed: np.uint64 = (code ^ np.uint64(byte)) * _PRIME
    return mixed
