"""What numba knows of arguments that are laid out in memory: their type, and how their fields are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import models, register_model

ADDRESS = ir.IntType(8).as_pointer()


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
        super().__init__(manager, kind, ADDRESS)


_types: dict[Any, HeldType] = {}


def type_of(layout: Any, value: tuple[Any, ...]) -> HeldType:
    """The type of tuples of a layout, of which one is given: found out once, as that takes long."""
    if layout not in _types:
        _types[layout] = HeldType(numba.typeof(value))
    return _types[layout]


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
        return builder.bitcast(place, ADDRESS)
    if not isinstance(kind, types.Array):
        return context.data_model_manager[kind].from_data(builder, _lasting(builder, place))
    model = context.data_model_manager[kind]

    def stored(name: str, *axis: int) -> Any:
        index = model.get_field_position(name)
        return _lasting(builder, cgutils.gep_inbounds(builder, place, 0, index, *axis))

    if _is_row(kind):
        return builder.bitcast(stored("data"), context.get_value_type(kind.dtype))
    return _array(context, builder, kind, stored)


def _is_row(kind: Any) -> bool:
    """Whether it is one row of named numbers (``Counters``): kernels read the fields, not an array."""
    return isinstance(kind, types.Array) and kind.ndim == 0 and isinstance(kind.dtype, types.Record)


def array_of(context: Any, builder: Any, kind: Any, found: Any) -> Any:
    """An array, of the object that Python has for it."""

    def stored(name: str, *axis: int) -> Any:
        at = _lasting(builder, _field(builder, found, name))
        return _lasting(builder, cgutils.gep_inbounds(builder, at, *axis)) if axis else at

    return _array(context, builder, kind, stored)


def memory_of(builder: Any, found: Any) -> Any:
    """Where the numbers of an array lie, of the object that Python has for it."""
    return _lasting(builder, _field(builder, found, "data"))


def _field(builder: Any, found: Any, name: str) -> Any:
    """A field in C of an array of numpy (``PyArrayObject_fields``)."""
    head, sizes = ir.ArrayType(ir.IntType(8), object.__basicsize__), ir.IntType(64).as_pointer()
    fields = ir.LiteralStructType([head, ADDRESS, ir.IntType(32), sizes, sizes])
    written = builder.bitcast(found, fields.as_pointer())
    return cgutils.gep_inbounds(builder, written, 0, {"data": 1, "shape": 3, "strides": 4}[name])


def _array(context: Any, builder: Any, kind: Any, stored: Callable[..., Any]) -> Any:
    """An array that nobody owns; what follows from its type is not read."""
    made = cgutils.create_struct_proxy(kind)(context, builder)
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape = [stored("shape", axis) for axis in range(kind.ndim)]
    plain = kind.ndim == 1 and kind.layout == "C"
    strides = [size] if plain else [stored("strides", axis) for axis in range(kind.ndim)]
    made.meminfo, made.parent = (ir.Constant(each.type, None) for each in (made.meminfo, made.parent))
    made.data, made.itemsize = builder.bitcast(stored("data"), made.data.type), size
    made.nitems = functools.reduce(builder.mul, shape, ir.Constant(size.type, 1))
    made.shape, made.strides = cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)
    return made._getvalue()  # noqa: SLF001 - there is no other way to ask


def _lasting(builder: Any, place: Any) -> Any:
    """Load what no kernel ever writes, so that it need not be read again after one has written elsewhere."""
    found = builder.load(place)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found
