"""Blocks of doubling size inside one flat array: growing lists without an object each.

An arena is a payload array and an ``int64`` header: ``header[0]`` is the first never-used offset,
``header[1 + j]`` the head of the free list of blocks of ``4 << j`` entries, -1 where it is empty.
A free block keeps the offset of the next free one in its first entry.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel

SIZES = 40


def new_header() -> np.ndarray:
    """The header of an empty arena."""
    header = np.full(1 + SIZES, -1, np.int64)
    header[0] = 0
    return header


@kernel
def size_index(entries: int) -> int:
    """The index of the smallest block size that holds ``entries``."""
    j = 0
    while (4 << j) < entries:
        j += 1
    return j


@kernel
def allocate(header: np.ndarray, payload: np.ndarray, j: int) -> int:
    """Offset of a block of ``4 << j`` entries; the caller has made sure that there is room."""
    offset = header[1 + j]
    if offset >= 0:
        header[1 + j] = np.int64(payload[offset])
        return offset
    offset = header[0]
    header[0] = offset + (4 << j)
    return offset


@kernel
def release(header: np.ndarray, payload: np.ndarray, offset: int, j: int) -> None:
    """Give a block back."""
    payload[offset] = header[1 + j]
    header[1 + j] = offset
