"""Arguments of kernels, laid out in memory once: a call hands over one address in place of many arrays.

numba takes apart every array of every argument at each call, in code that it makes for each kernel: for the
state of a beam that is 15 microseconds a call, and a third of the time to compile. Here a tuple of arrays
is written down as kernels read it, and read from there by the kernel itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

LEADING = 2
"""Words before the data of an array that say who owns it: nobody, since kernels count no references."""


class Held:
    """A tuple of arrays and numbers, tuples of such among them, as kernels read it.

    It holds what it was made of; numbers are copied, so that it is made anew where one changes.

    Parameters
    ----------
    value
        A tuple. TypeError where it holds anything else than arrays, tuples and numbers.
    """

    __slots__ = ("__dict__", "address", "value")

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value = value
        kind, plain = _layout(value)
        self.__dict__["written"] = written = np.array(plain, kind)
        self.address: int = written.ctypes.data

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is laid out anew: it is of other arrays."""
        return Held, (self.value,)

    @cached_property
    def kind(self) -> Any:
        """Its type, as numba has it."""
        return HeldType(numba.typeof(self.value))


def _layout(value: Any) -> tuple[Any, Any]:
    """How a value lies in memory, as numba's data models have it, and what is written there."""
    if isinstance(value, np.ndarray):
        fields = [
            value.size,
            value.itemsize,
            value.__array_interface__["data"][0],
            *value.shape,
            *value.strides,
        ]
        return np.dtype((np.int64, LEADING + len(fields))), [0] * LEADING + fields
    if isinstance(value, tuple):
        parts = [_layout(each) for each in value]
        kind = np.dtype([(f"f{i}", part[0]) for i, part in enumerate(parts)], align=True)
        return kind, tuple(part[1] for part in parts)
    if not isinstance(value, bool | int | float):
        raise TypeError(f"kernels are given arrays and numbers, not {type(value).__name__}")
    return np.array(value).dtype, value


class HeldType(types.Type):
    """The type of a value that lies at an address."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(f"Held({value})")


@register_model(HeldType)
class _HeldModel(models.PrimitiveModel):
    """An address."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))


@typeof_impl.register(Held)
def _typeof(held: Held, context: Any) -> Any:
    return held.kind


@unbox(HeldType)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_ulonglong(address)
    c.pyapi.decref(address)
    return NativeValue(native)


@intrinsic
def opened(context: Any, value: Any) -> Any:
    """What is held; anything else as it is."""
    if not isinstance(value, HeldType):
        return value(value), lambda context, builder, signature, arguments: arguments[0]

    def read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        model = context.data_model_manager[value.value]
        place = builder.inttoptr(arguments[0], model.get_data_type().as_pointer())
        return model.load_from_data_pointer(builder, place)

    return value.value(value), read
