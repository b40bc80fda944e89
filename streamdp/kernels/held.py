"""Arguments of kernels, laid out in memory once: a call hands over one address in place of many arrays.

numba takes apart every array of every argument at each call, from Python and between kernels, in code that
it makes for each of them: for the state of a beam that is 15 microseconds a call, and half of what there is
to compile. Here a tuple of arrays is written down as kernels read it, and kernels hand its address to each
other: each reads the fields that it needs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from struct import Struct
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

LEADING = 2
"""Words before the data of an array that say who owns it: nobody, since kernels count no references."""

_NOBODY = (0,) * LEADING

_ADDRESS = ir.IntType(8).as_pointer()

_TOLD_APART = 0x1 | 0x2 | 0x100 | 0x400
"""Flags of arrays of which a type follows: contiguous in rows and in columns, aligned, writeable."""

_forms: dict[Any, tuple[Struct, HeldType]] = {}
"""By what a type follows from: how values of it are written, and the type. Both take long to find out."""


class Held:
    """A tuple of arrays and numbers, tuples of such among them, as kernels read it.

    It holds what it was made of; numbers are copied, so that it is made anew where one changes.

    Parameters
    ----------
    value
        A tuple. TypeError where it holds anything else than arrays, tuples and numbers.
    """

    __slots__ = ("_written", "address", "kind", "value")

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value = value
        form = form_of(value)
        found = _forms.get(form)
        if found is None:
            found = _forms[form] = _written(_stored(value)), HeldType(numba.typeof(value))
        layout, self.kind = found
        numbers: list[Any] = []
        _list(value, numbers)
        self._written = np.empty(layout.size, np.uint8)
        layout.pack_into(self._written.data, 0, *numbers)
        self.address = _address_of(self._written)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is laid out anew: it is of other arrays."""
        return Held, (self.value,)


def form_of(value: Any) -> Any:
    """What the type of a value follows from."""
    if isinstance(value, Held):
        return Held, id(value.kind)  # which lasts, and is one for all of a form
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & _TOLD_APART
    if isinstance(value, tuple):
        return type(value), *map(form_of, value)
    return type(value)


def _stored(value: Any) -> Any:
    """The type that numpy has for how a value lies in memory, as numba's data models have it."""
    if isinstance(value, np.ndarray):
        return np.dtype((np.int64, LEADING + 3 + 2 * value.ndim))
    if isinstance(value, tuple):
        return np.dtype([(f"f{i}", _stored(each)) for i, each in enumerate(value)], align=True)
    if not isinstance(value, bool | int | float):
        raise TypeError(f"kernels are given arrays and numbers, not {type(value).__name__}")
    return np.array(value).dtype


def _written(stored: np.dtype[Any]) -> Struct:
    """The same as a format of numbers, one after the other."""
    parts, end = [], 0
    for at, code, size in _codes(stored, 0):
        parts.append(f"{at - end}x{code}")
        end = at + size
    return Struct(f"={''.join(parts)}{stored.itemsize - end}x")


def _codes(stored: np.dtype[Any], at: int) -> Iterator[tuple[int, str, int]]:
    """Where the numbers of a type are, what they are, and how many bytes they take."""
    if stored.fields is not None:
        for part, begin, *_ in stored.fields.values():
            yield from _codes(part, at + begin)
    elif stored.subdtype is not None:
        yield at, f"{stored.shape[0]}q", stored.itemsize
    else:
        yield at, {"b": "?", "i": "q", "f": "d"}[stored.kind], stored.itemsize


def _place_of(array: np.ndarray) -> int:
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


_PROBE = np.zeros(1)
_IS_FIRST = _place_of(_PROBE) == _PROBE.ctypes.data


def _address_of(array: np.ndarray) -> int:
    """Where its data lies.

    numpy's C API has that first, behind what all objects have: to read it there takes a tenth of the time.
    """
    return _place_of(array) if _IS_FIRST else array.ctypes.data


def _list(value: Any, numbers: list[Any]) -> None:
    """Append what is written there."""
    if isinstance(value, np.ndarray):
        numbers += (*_NOBODY, value.size, value.itemsize, _address_of(value), *value.shape, *value.strides)
    elif isinstance(value, tuple):
        for each in value:
            _list(each, numbers)
    else:
        numbers.append(value)


class HeldType(types.Type):
    """The type of a tuple that is read where it lies."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(f"Held({value})")

    @property
    def key(self) -> Any:
        """What it is told apart by: two classes may have one name. numba has one object for each type."""
        return id(self.value)

    @property
    def instance_class(self) -> type:
        """The class of the named tuple, as numba has it of named tuples."""
        found: type = self.value.instance_class
        return found


@register_model(HeldType)
class _HeldModel(models.PrimitiveModel):
    """An address."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _ADDRESS)


@typeof_impl.register(Held)
def _typeof(held: Held, context: Any) -> Any:
    return held.kind


@unbox(HeldType)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(native)


@infer_getattr
class _Fields(AttributeTemplate):
    """Named tuples inside of named tuples are held as well; all else is what it is."""

    key = HeldType

    def generic_resolve(self, held: HeldType, name: str) -> Any:  # type: ignore[override]
        """The type of a field; None where there is none of that name."""
        if name not in held.value.fields:
            return None
        kind = held.value[held.value.fields.index(name)]
        if isinstance(kind, types.BaseNamedTuple):
            return HeldType(kind)
        return kind.dtype if _is_row(kind) else kind


@lower_getattr_generic(HeldType)
def _read(context: Any, builder: Any, held: HeldType, address: Any, name: str) -> Any:
    index = held.value.fields.index(name)
    kind, model = held.value[index], context.data_model_manager[held.value]
    whole = builder.bitcast(address, model.get_data_type().as_pointer())
    place = cgutils.gep_inbounds(builder, whole, 0, index)
    if isinstance(kind, types.BaseNamedTuple):
        return builder.bitcast(place, _ADDRESS)
    if _is_row(kind):
        at = _data_of(context, builder, kind, place)
        return builder.bitcast(at, context.get_value_type(kind.dtype))
    if isinstance(kind, types.Array):
        return _read_array(context, builder, kind, place)
    if isinstance(kind, types.Number | types.Boolean):
        return context.data_model_manager[kind].from_data(builder, _lasting(builder, place))
    return context.data_model_manager[kind].load_from_data_pointer(builder, place)


def _is_row(kind: Any) -> bool:
    """Whether it is one row of named numbers (``Counters``): kernels read the fields, not an array."""
    return isinstance(kind, types.Array) and kind.ndim == 0 and isinstance(kind.dtype, types.Record)


def _data_of(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Where the numbers of an array lie."""
    index = context.data_model_manager[kind].get_field_position("data")
    return _lasting(builder, cgutils.gep_inbounds(builder, place, 0, index))


def _read_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """An array that nobody owns; what follows from its type is not read."""
    model, axes = context.data_model_manager[kind], range(kind.ndim)
    made = cgutils.create_struct_proxy(kind)(context, builder)

    def stored(name: str, *axis: int) -> Any:
        index = model.get_field_position(name)
        return _lasting(builder, cgutils.gep_inbounds(builder, place, 0, index, *axis))

    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    plain = kind.ndim == 1 and kind.layout == "C"
    shape = [stored("shape", axis) for axis in axes]
    made.meminfo, made.parent = (ir.Constant(each.type, None) for each in (made.meminfo, made.parent))
    made.data, made.itemsize = stored("data"), size
    made.nitems = shape[0] if plain else stored("nitems")
    made.shape = cgutils.pack_array(builder, shape)
    strides = [size] if plain else [stored("strides", axis) for axis in axes]
    made.strides = cgutils.pack_array(builder, strides)
    return made._getvalue()  # noqa: SLF001 - there is no other way to ask


def _lasting(builder: Any, place: Any) -> Any:
    """Load what no kernel ever writes, so that it need not be read again after one has written elsewhere."""
    found = builder.load(place)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found
