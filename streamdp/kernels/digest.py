"""What the machine code of an entry depends on, as a digest: all that its functions refer to.

The walk begins at the entry and follows every name that a function reads: kernels, functions of scalars,
constants, named tuples, and the implementations of generic functions for the classes that take part. A
change of any of them is noticed, wherever it stands, inside or outside the package. A change of anything
else, of a comment or of a docstring, is not.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_LIBRARIES = frozenset(sys.stdlib_module_names) | {"numpy", "numba", "llvmlite"}
"""Known by name: their versions are part of what a compiled kernel is found by."""


def digest_of(function: Callable[..., Any], classes: Iterable[type]) -> bytes:
    """A digest of what the machine code of a function depends on.

    Parameters
    ----------
    function
        The entry, as it is written.
    classes
        Named tuples among the types of its arguments, and within them.
    """
    walk = _Walk()
    for each in classes:
        walk.note(each)
    walk.note(function)
    walk.resolve()
    return walk.digest.digest()


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.functions: set[FunctionType] = set()
        self._seen: set[int] = set()
        self._waiting: list[FunctionType] = []
        self._classes: list[type] = [np.ndarray]
        self._generics: list[Any] = []
        self._resolved: set[tuple[int, int]] = set()

    def add(self, *parts: object) -> None:
        for part in parts:
            written = part if isinstance(part, bytes) else repr(part).encode()
            self.digest.update(len(written).to_bytes(8, "little") + written)

    def resolve(self) -> None:
        """Read the functions that wait, then the implementations of the classes met, until none is new."""
        while self._waiting or self._implementations():
            while self._waiting:
                digest, named = _read(self._waiting.pop())
                self.add(digest)
                for name, value in named:
                    self.add(name)
                    self.note(value)

    def _implementations(self) -> bool:
        """Note implementations that were not met yet; whether there were any to be read."""
        for generic in list(self._generics):
            for each in list(self._classes):
                if (id(generic), id(each)) not in self._resolved:
                    self._resolved.add((id(generic), id(each)))
                    implementation = generic.implementation(each)
                    if implementation is not None:
                        self.add(generic.__name__, each.__qualname__)
                        self.note(implementation)
        return bool(self._waiting)

    def note(self, value: Any) -> None:
        """Note what a name stands for."""
        if isinstance(value, FunctionType):
            self._note_function(value)
        elif hasattr(value, "py_func"):  # a kernel
            self.add([(name, _written(option)) for name, option in sorted(value.options.items())])
            self._note_function(value.py_func)
        elif hasattr(value, "implementation"):
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._generics.append(value)
        elif isinstance(value, type):
            self._note_class(value)
        elif isinstance(value, np.ndarray | np.generic):
            self.add(value.dtype.descr, value.shape, value.tobytes())
        elif isinstance(value, tuple | list):
            self.add(len(value))
            for each in value:
                self.note(each)
        elif isinstance(value, bool | int | float | complex | str | bytes | np.dtype | None):
            self.add(type(value).__name__, value)
        else:  # modules, whose attributes are noted, and what no kernel can use
            self.add(type(value).__name__)

    def _note_function(self, function: FunctionType) -> None:
        if function in self.functions:
            return
        self.functions.add(function)
        self.add(function.__module__, function.__qualname__)
        if not _is_library(function.__module__):
            self._waiting.append(function)

    def _note_class(self, noted: type) -> None:
        if id(noted) in self._seen:
            return
        self._seen.add(id(noted))
        self.add(noted.__module__, noted.__qualname__, getattr(noted, "_fields", ()))
        if hasattr(noted, "_fields"):
            self._classes.append(noted)


@functools.cache
def _read(function: FunctionType) -> tuple[bytes, tuple[tuple[str, Any], ...]]:
    """A digest of a function's own code, and the objects that its names stand for."""
    digest = hashlib.sha256()
    for part in _code(function.__code__, documented=function.__doc__ is not None):
        digest.update(part)
    digest.update(repr(function.__defaults__).encode())
    return digest.digest(), tuple(_named(function))


def _code(code: CodeType, *, documented: bool) -> Iterator[bytes]:
    """What a compiler reads of a function: neither lines nor the docstring."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    yield repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags)).encode()
    for constant in code.co_consts[1:] if documented else code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, documented=False)
        else:
            yield _written(constant).encode()


def _written(constant: object) -> str:
    """A constant, sets in an order that does not change from process to process."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, set | frozenset) else constant)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The objects outside of a function that its names may stand for."""
    names = list(dict.fromkeys(_names(function.__code__)))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType) and not _is_library(value.__name__):
            yield from ((f"{name}.{of}", getattr(value, of)) for of in names if hasattr(value, of))
    cells = function.__closure__ or ()
    yield from zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True)


def _is_library(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in _LIBRARIES
