"""How functions are compiled that only other kernels call: no machine code of their own.

numba optimises every function, with all that it calls, and emits machine code for it, before the next one
may call it; in a chain of functions that is work for nothing for all but the last. Here an inner function is
lowered, and its code kept to be linked into its callers: only what Python calls is optimised as a whole.

This uses numba's own way to change its pipeline (``pipeline_class``) with one pass more, which hands the
lowering a library that ends differently.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType
from typing import Any

from numba.core import base, codegen, event, typed_passes, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.types import functions


def leave_blas_for_later() -> None:
    """Let numba look for a BLAS when one of its functions is compiled, as it does anyway, and not before.

    When it begins to compile, it would import SciPy where that is installed, to see whether matrices can be
    multiplied: a third of a second, for functions that no kernel calls.
    """
    linalg: Any = importlib.import_module("numba.np.linalg")
    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look


@contextmanager
def quickly() -> Iterator[None]:
    """While it lasts, numba leaves out what takes it a fifth of its time, and changes nothing.

    No garbage is looked for: most of what a compiler makes lasts until it is done. What an operator makes of
    numbers, and the size of a type, are looked up once. Nobody is told of each lock of LLVM.
    """
    ours: tuple[tuple[Any, str, Any], ...] = (
        (functions.BaseFunction, "get_call_type", _call_type),
        (base.BaseContext, "get_abi_sizeof", _size),
        (event, "start_event", _started),
        (event, "end_event", _ended),
    )
    with global_compiler_lock:
        collects = gc.isenabled()
        gc.disable()
        try:
            for owner, name, quick in ours:
                setattr(owner, name, quick)
            yield
        finally:
            for (owner, name, _), own in zip(ours, _OWN, strict=True):
                setattr(owner, name, own)
            if collects:
                gc.enable()


_OWN = (
    functions.BaseFunction.get_call_type,
    base.BaseContext.get_abi_sizeof,
    event.start_event,
    event.end_event,
)
_calls: dict[Any, Any] = {}
_sizes: dict[int, tuple[Any, int]] = {}
_PLAIN = (types.Integer, types.Float, types.Boolean, types.IntegerLiteral)


def _call_type(function: Any, context: Any, given: Any, named: Any) -> Any:
    operator = isinstance(function.typing_key, BuiltinFunctionType)
    if named or not operator or not all(isinstance(each, _PLAIN) for each in given):
        return _OWN[0](function, context, given, named)
    if (function, given) not in _calls:
        _calls[function, given] = _OWN[0](function, context, given, named)
    return _calls[function, given]


def _size(context: Any, kind: Any) -> int:
    if id(kind) not in _sizes:
        _sizes[id(kind)] = kind, _OWN[1](context, kind)
    return _sizes[id(kind)][1]


def _started(kind: str, data: Any = None) -> None:
    if kind != _LOCK:
        _OWN[2](kind, data)


def _ended(kind: str, data: Any = None, exc_details: Any = None) -> None:
    if kind != _LOCK:
        _OWN[3](kind, data, exc_details)


_LOCK = "numba:llvm_lock"


class _Environments:
    """A code generator that has no place for the environments of functions without machine code."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the symbol is nowhere yet."""


class InnerLibrary(codegen.JITCodeLibrary):
    """Code that is linked into that of callers, and never called from outside."""

    @property
    def codegen(self) -> Any:
        """What made the library."""
        return _Environments(self._codegen)

    def finalize(self) -> None:
        """Link what is called; optimise nothing, emit nothing."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as numba's own libraries do
            module = library._get_module_for_linking()  # noqa: SLF001
            self._final_module.link_in(module, preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is no machine code."""
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=False, analysis_only=True)
class _ChooseLibrary(AnalysisPass):
    """Let a function be lowered into a library of the inner kind."""

    _name = "streamdp_choose_library"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set the library; nothing else changes."""
        generator = state.targetctx.codegen()
        state.library = InnerLibrary(generator, state.func_id.func_qualname)
        return False


class _Settings(Flags):
    """How to compile: numba compares it wherever it types a call, and would ask for each of 40 settings."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _NAMES

    def __eq__(self, other: object) -> bool:
        alike = isinstance(other, Flags) and self._values == other._values
        return alike or super().__eq__(other)


_NAMES = hash(Flags())
"""That of any: numba takes the names of the settings alone."""


class InnerCompiler(CompilerBase):
    """numba's own pipeline, but for the library."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Settings(flags), local)

    def define_pipelines(self) -> list[Any]:
        """One pipeline."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_ChooseLibrary, typed_passes.NopythonTypeInference)
        passes.finalize()
        return [passes]
