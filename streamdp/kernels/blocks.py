"""Blocks of doubling size inside one flat array: growing lists without an object each.

An arena is a payload array and an ``int64`` header: ``header[0]`` is the first never-used offset, ``header[1
+ j]`` is 1 + the offset of the first free block of ``4 << j`` entries, 0 where there is none. A free block
keeps in its first entry what the header said before.

A list is a row with the ``start`` of its block and the size index ``block``, -1 where it has none yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import ints

SIZES = 40


HEADER = ints(1 + SIZES)
"""The header of an arena."""


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
    if header[1 + j] > 0:
        offset = header[1 + j] - 1
        header[1 + j] = np.int64(payload[offset])
        return offset
    offset = header[0]
    header[0] = offset + (4 << j)
    return offset


@kernel
def release(header: np.ndarray, payload: np.ndarray, offset: int, j: int) -> None:
    """Give a block back."""
    payload[offset] = header[1 + j]
    header[1 + j] = offset + 1


@kernel
def append_room(header: np.ndarray, payloads: Any, lists: np.ndarray, i: int, length: int) -> int:
    """Offset for one more entry of a list of that length; the list moves where its block is full.

    ``payloads`` are the arrays that the list's entries stand in, side by side; the first is the arena's.
    """
    row = lists[i]
    j = row.block
    if j < 0:
        row.start = allocate(header, payloads[0], 0)
        row.block = 0
    elif length == (4 << j):
        old, new = row.start, allocate(header, payloads[0], j + 1)
        for payload in payloads:
            for k in range(length):
                payload[new + k] = payload[old + k]
        release(header, payloads[0], old, j)
        row.start = new
        row.block = j + 1
    return row.start + length


@kernel
def shrink_list(header: np.ndarray, payloads: Any, lists: np.ndarray, i: int, length: int) -> None:
    """Move a list that fills no more than an eighth of its block to one of a quarter, where there is room."""
    row = lists[i]
    j = row.block - 2
    if j < 0 or 8 * length > (4 << row.block):
        return
    if header[1 + j] == 0 and header[0] + (4 << j) > payloads[0].shape[0]:
        return
    old, new = row.start, allocate(header, payloads[0], j)
    for payload in payloads:
        for k in range(length):
            payload[new + k] = payload[old + k]
    release(header, payloads[0], old, row.block)
    row.start = new
    row.block = j


@kernel
def drop_list(header: np.ndarray, payload: np.ndarray, lists: np.ndarray, i: int) -> None:
    """Give a list's block back, if it has one."""
    row = lists[i]
    if row.block >= 0:
        release(header, payload, row.start, row.block)
        row.block = -1


def places_of(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places of lists, one list after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.repeat(starts - before, lengths) + np.arange(lengths.sum()))


def blocks_for(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Blocks of an arena for lists of these lengths: starts, size indices (-1: none), and the end of the
    last.
    """
    block = np.ceil(np.log2(np.maximum(lengths, 1) / 4.0)).clip(0).astype(np.int64)
    room = np.where(lengths > 0, np.int64(4) << block, 0)
    return np.cumsum(room) - room, np.where(lengths > 0, block, -1), int(room.sum())
