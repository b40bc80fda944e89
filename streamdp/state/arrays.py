"""Arrays as plain values that msgpack can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

Packed = tuple[str, list[int], bytes]


def pack(array: np.ndarray) -> Packed:
    """(dtype, shape, little-endian bytes)."""
    ordered = np.ascontiguousarray(array)
    if ordered.dtype.byteorder == ">":
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"))
    return ordered.dtype.str, list(array.shape), ordered.tobytes()


def unpack(packed: Any) -> np.ndarray:
    """The inverse of :func:`pack`, as a writable array of native byte order."""
    dtype, shape, data = packed
    array = np.frombuffer(data, dtype).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="), copy=True)
