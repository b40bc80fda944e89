"""Machine code of kernels: linked into this process by LLVM, and called. No compiler is needed for that."""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import msgspec


class MachineCode(msgspec.Struct, frozen=True, array_like=True):
    """What a kernel is compiled to.

    Attributes
    ----------
    name
        The function that is called.
    code
        An object file of this platform.
    needs
        Functions of libraries that it calls.
    """

    name: str
    code: bytes
    needs: list[str]


Run = Callable[..., Any]
"""A function in C, as extension modules have them. It looks at no types; other threads run while it does."""

_FASTCALL = 0x80
"""How Python hands arguments over to it: one after the other (``METH_FASTCALL``)."""


class _Method(ctypes.Structure):
    """What Python knows of a function in C (``PyMethodDef``)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.c_void_p]
_methods: list[_Method] = []
"""All that were made: Python does not copy them."""


def linked(found: MachineCode, called: str) -> Run:
    """Link machine code into this process, as a function that Python calls by a name."""
    engine = _engine()  # which has LLVM look for symbols in this process
    if not all(map(llvm.address_of_symbol, found.needs)):
        importlib.import_module("numba")  # which brings along what the C library has not
    engine.add_object_file(llvm.ObjectFileRef.from_data(found.code))
    engine.finalize_object()
    method = _Method(called.encode(), engine.get_function_address(found.name), _FASTCALL, None)
    _methods.append(method)
    run: Run = _new(ctypes.byref(method), None, None)
    return run


@functools.cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    apart = platform.machine() in ("aarch64", "arm64")  # where LLVM itself may put code too far from data
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=apart)
