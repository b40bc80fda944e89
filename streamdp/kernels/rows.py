"""Arrays of a state as data: what each holds, which sizes it follows, and how it begins and grows.

A state is a named tuple of arrays, and of such tuples. The annotation of a field says what kind of array it
is (:func:`ints`, :func:`reals`, :func:`rows`, ...) and by the names of which sizes it is measured.
:func:`made` makes the arrays of a class, :func:`grown` makes those larger that follow a size.

Numbers that stand alone are one row of named fields (:class:`Counters`), for Python and kernels alike.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

INTEGER, REAL = "i8", "f8"

T = TypeVar("T", bound=tuple[Any, ...])


class Counters(np.ndarray):
    """One row of named numbers: ``counters.used`` reads and writes a field, in Python as in kernels."""

    def __getattr__(self, name: str) -> Any:
        """The value of a field, as a number of its own."""
        if name in (self.dtype.names or ()):
            return self[name][()]
        raise AttributeError(f"there is no counter {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field."""
        self[name] = value

    def clear(self) -> None:
        """Set all to zero."""
        self[...] = 0


def _property(name: str) -> property:
    """A field as an attribute of counters: found at once, where ``__getattr__`` is asked last."""

    def get(counters: Counters) -> Any:
        try:
            return counters[name][()]
        except ValueError:
            raise AttributeError(f"there is no counter {name!r}") from None

    def put(counters: Counters, value: Any) -> None:
        counters[name] = value

    return property(get, put)


def row_type(integers: str = "", reals: str = "") -> np.dtype[Any]:
    """The type of rows with these fields, named with spaces between."""
    return np.dtype([(name, INTEGER) for name in integers.split()] + [(name, REAL) for name in reals.split()])


def new_rows(count: int, kind: np.dtype[Any], **fills: float) -> np.ndarray:
    """Rows of zeros, but for the fields given."""
    found = np.zeros(count, kind)
    _fill(found, fills)
    return found


def new_counters(kind: type, **values: float) -> Counters:
    """The counters that a named tuple declares, before anything is counted but what is given."""
    declared = fields_of(kind)["counters"]
    return _counters(declared.kind, {**declared.fill, **values})


def _counters(kind: np.dtype[Any], fills: Any) -> Counters:
    for name in kind.names or ():
        if name not in Counters.__dict__:
            setattr(Counters, name, _property(name))
    found = np.zeros((), kind).view(Counters)
    _fill(found, fills)
    return found


def _fill(array: np.ndarray, fill: Any) -> None:
    if isinstance(fill, Mapping):
        for name, value in fill.items():
            array[name] = value
    elif fill != 0:
        array[...] = fill


# ---------------------------------------------------------------- declarations


class Field(NamedTuple):
    """An array of a state.

    ``dims`` are the lengths of its axes, as numbers or names of sizes; ``fill`` is what new places hold, of
    rows by field; ``chain`` is how the free places are chained: from ``counters.free`` on by this field of
    the rows, or by the array itself where that is "".
    """

    kind: Any
    dims: tuple[int | str, ...]
    fill: Any = 0
    chain: str | None = None


def ints(*dims: int | str, fill: int = 0, chain: str | None = None) -> Field:
    """Whole numbers: int64."""
    return Field(np.int64, dims, fill, chain)


def reals(*dims: int | str, fill: float = 0.0) -> Field:
    """Numbers: float64."""
    return Field(np.float64, dims, fill)


def of(kind: Any, *dims: int | str) -> Field:
    """Numbers of another type."""
    return Field(kind, dims)


def rows(kind: np.dtype[Any], *dims: int | str, chain: str | None = None, **fills: float) -> Field:
    """Rows of named fields; ``fills`` are what new ones hold, zero where not given."""
    return Field(kind, dims, fills, chain)


def one(integers: str = "", reals: str = "", **fills: float) -> Field:
    """One row of named numbers: :class:`Counters`."""
    return Field(row_type(integers, reals), (), fills)


@functools.cache
def fields_of(kind: type) -> dict[str, Any]:
    """What the fields of a named tuple are: a :class:`Field`, the class of a tuple, or None for anything
    else.
    """
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        declared = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Field)), None)
        nested = hint if isinstance(hint, type) and hasattr(hint, "_fields") else None
        found[name] = declared or nested
    return found


def made(kind: type[T], sizes: Mapping[str, int], /, **given: Any) -> T:
    """The arrays of a named tuple; fields that declare no array are ``given``."""
    values = dict(given)
    for name, field in fields_of(kind).items():
        if name not in values:
            values[name] = _new(field, sizes) if isinstance(field, Field) else made(field, sizes)
    for name, field in fields_of(kind).items():
        if isinstance(field, Field) and field.chain is not None:
            chain = values[name][field.chain] if field.chain else values[name]
            chain[:] = np.arange(1, len(chain) + 1)
            chain[-1] = -1
    return kind(**values)


def _new(field: Field, sizes: Mapping[str, int]) -> np.ndarray:
    if not field.dims:
        return _counters(field.kind, field.fill)
    found = np.zeros([sizes[dim] if isinstance(dim, str) else dim for dim in field.dims], field.kind)
    _fill(found, field.fill)
    return found


def grown(value: T, name: str, size: int) -> T:
    """A tuple whose arrays that follow the size of this name are longer, the others the same."""
    changed: dict[str, Any] = {}
    for part, field in zip(value._fields, value, strict=True):  # type: ignore[attr-defined]
        declared = fields_of(type(value))[part]
        if isinstance(declared, Field):
            if name in declared.dims:
                changed[part] = _longer(field, declared, name, size)
                if declared.chain is not None:
                    counters: Any = value.counters  # type: ignore[attr-defined]
                    chain = changed[part][declared.chain] if declared.chain else changed[part]
                    counters.free = _longer_chain(chain, len(field), int(counters.free))
        elif hasattr(field, "_fields"):
            larger = grown(field, name, size)
            if larger is not field:
                changed[part] = larger
    return value._replace(**changed) if changed else value  # type: ignore[attr-defined]


def _longer(array: np.ndarray, field: Field, name: str, size: int) -> np.ndarray:
    larger = np.zeros(
        [size if dim == name else n for n, dim in zip(array.shape, field.dims, strict=True)], field.kind
    )
    _fill(larger, field.fill)
    larger[tuple(slice(n) for n in array.shape)] = array
    return larger


def _longer_chain(chain: np.ndarray, size: int, free: int) -> int:
    """Put the places from ``size`` of before on before the free ones, in order; returns the first of them."""
    chain[size:] = np.arange(size + 1, len(chain) + 1)
    chain[-1] = free
    return size


# ---------------------------------------------------------------- arrays that are no part of a state


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << max(int(n) - 1, 0).bit_length()


def longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with ``size`` entries along the first axis, the new ones of zeros."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
