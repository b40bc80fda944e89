"""Arrays as plain values that msgpack can hold."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np

from streamdp.kernels.rows import Counters

Packed = tuple[Any, list[int], memoryview]

T = TypeVar("T")


def pack(array: np.ndarray) -> Packed:
    """(dtype, shape, little-endian bytes); the dtype of rows as pairs of name and type.

    The bytes are the array's own where they can be: to be encoded before it changes.
    """
    ordered = np.ascontiguousarray(array)
    if ordered.dtype.byteorder == ">":
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"))
    kind: Any = ordered.dtype.str if ordered.dtype.names is None else ordered.dtype.descr
    return kind, list(array.shape), ordered.reshape(-1).view(np.uint8).data


def unpack(packed: Any) -> np.ndarray:
    """The inverse of :func:`pack`, as a writable array of native byte order."""
    kind, shape, data = packed
    dtype = np.dtype(kind if isinstance(kind, str) else [(name, of) for name, of in kind])
    array = np.frombuffer(data, dtype).reshape(shape)
    found = array.astype(array.dtype.newbyteorder("="), copy=True)
    return found.view(Counters) if dtype.names and not shape else found


def pack_all(found: Any) -> Any:
    """Arrays in a mapping, and in mappings within it, packed; what else there is as it is."""
    if isinstance(found, dict):
        return {name: pack_all(value) for name, value in found.items()}
    return pack(found) if isinstance(found, np.ndarray) else found


def unpack_all(stored: Any) -> Any:
    """The inverse of :func:`pack_all`."""
    if isinstance(stored, dict):
        return {name: unpack_all(value) for name, value in stored.items()}
    return unpack(stored) if isinstance(stored, list) else stored


def encoded(stored: Any) -> bytes:
    """What is stored as msgpack: plain values, structs and named tuples of them, and arrays."""
    return msgspec.msgpack.encode(stored, enc_hook=_pack_array)


def as_type(stored: Any, kind: type[T]) -> T:
    """What was :func:`encoded`, once it is plain values again, as what it was.

    Raises msgspec.ValidationError where it is of another type, or is refused as it is made.
    """
    return msgspec.convert(stored, kind, dec_hook=lambda _, packed: unpack(packed))


def _pack_array(found: Any) -> Packed:
    if not isinstance(found, np.ndarray):
        raise TypeError(f"{type(found).__name__} cannot be stored")
    return pack(found)
