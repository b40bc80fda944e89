"""Arguments of kernels, laid out in memory once: a call hands over one address in place of many arrays.

A tuple of arrays is written down as kernels read it, and kernels hand its address to each other: each reads
the fields that it needs. numba would take apart every array of every argument at each call, in code that it
makes for each of them: half of what there is to compile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from struct import Struct
from typing import Any

import numpy as np

LEADING = 2
"""Words before the data of an array that say who owns it: nobody, since kernels count no references."""

_NOBODY = (0,) * LEADING

_TOLD_APART = 0x1 | 0x2 | 0x100 | 0x400
"""Flags of arrays of which a type follows: contiguous in rows and in columns, aligned, writeable."""


class Layout:
    """How values of one form lie in memory; there is one layout for all of a form.

    Attributes
    ----------
    form
        What the types of the values follow from, as :func:`form_of` has it.
    struct
        The numbers of such a tuple, one after the other.
    """

    __slots__ = ("form", "struct")

    def __init__(self, form: Any, value: tuple[Any, ...]) -> None:
        self.form = form
        self.struct = Struct(_format_of(value))


_layouts: dict[Any, Layout] = {}


class Held:
    """A tuple of arrays and numbers, tuples of such among them, as kernels read it.

    It holds what it was made of; numbers are copied, so that it is made anew where one changes.

    Parameters
    ----------
    value
        A tuple. TypeError where it holds anything else than arrays, tuples and numbers.

    Attributes
    ----------
    memory
        (bytes,) where it is written down.
    """

    __slots__ = ("layout", "memory", "value")

    def __init__(self, value: tuple[Any, ...]) -> None:
        form = form_of(value)
        found = _layouts.get(form)
        if found is None:
            found = _layouts[form] = Layout(form, value)
        self.value, self.layout = value, found
        self.memory = np.empty(found.struct.size, np.uint8)
        numbers: list[Any] = []
        _list(value, numbers)
        found.struct.pack_into(self.memory.data, 0, *numbers)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for, where a kernel is compiled for it."""
        from streamdp.kernels.held_type import type_of

        return type_of(self.layout, self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is laid out anew: it is of other arrays."""
        return Held, (self.value,)


def form_of(value: Any) -> Any:
    """What the type of a value follows from."""
    if isinstance(value, Held):
        return value.layout
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & _TOLD_APART
    if isinstance(value, tuple):
        return type(value), *map(form_of, value)
    return type(value)


def _format_of(value: Any) -> str:
    """The numbers of a value, one after the other, as they lie in memory by numba's data models."""
    if isinstance(value, np.ndarray):
        return f"{LEADING + 3 + 2 * value.ndim}q"
    if isinstance(value, tuple):
        parts = "".join(map(_format_of, value))
        return (
            f"0q{parts}0q" if {*parts} & {"q", "d"} else parts
        )  # a tuple with words begins where a word may
    for kind, code in ((bool, "?"), (int, "q"), (float, "d")):
        if isinstance(value, kind):
            return code
    raise TypeError(f"kernels are given arrays and numbers, not {type(value).__name__}")


def _address_of(array: np.ndarray) -> int:
    """Where its data lies: the first field in C of an array of numpy, read in a tenth of the time."""
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


def _list(value: Any, numbers: list[Any]) -> None:
    """Append what is written there."""
    if isinstance(value, np.ndarray):
        numbers += (*_NOBODY, value.size, value.itemsize, _address_of(value), *value.shape, *value.strides)
    elif isinstance(value, tuple):
        for each in value:
            _list(each, numbers)
    else:
        numbers.append(value)


def parts_of(arguments: Iterable[Any]) -> list[Any]:
    """What kernels are called with: the memory of what is held, and the parts of other tuples one by one."""
    parts: list[Any] = []
    for each in arguments:
        if isinstance(each, tuple):
            parts += parts_of(each)
        else:
            parts.append(each.memory if isinstance(each, Held) else each)
    return parts
