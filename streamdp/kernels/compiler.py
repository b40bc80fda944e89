"""How kernels become machine code. This is the only module that has numba compile, and it is loaded for that.

numba optimises every function, with all that it calls, and emits machine code for it, before the next one
may call it; in a chain of functions that is work for nothing for all but the last. Here a function is
lowered, and its code kept to be linked into its callers: only an entry, with what it calls, is optimised and
emitted. This uses numba's own way to change its pipeline (``pipeline_class``): fewer passes, and a library
that ends differently.
"""

from __future__ import annotations

import gc
import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import (
    base,
    cgutils,
    codegen,
    postproc,
    transforms,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.types import functions
from numba.extending import overload, register_jitable

from streamdp.kernels.compilation import count_function
from streamdp.kernels.held_type import ADDRESS, HeldType, array_of, memory_of
from streamdp.kernels.machine import MachineCode
from streamdp.kernels.prebuilt import cpu


@contextmanager
def quickly() -> Iterator[None]:
    """While it lasts, numba leaves out what takes it a third of its time, and changes nothing.

    No garbage is looked for: most of what a compiler makes lasts until it is done. What an operator makes of
    types, and the size of a type, are looked up once. Nobody is told of each lock of LLVM. SciPy's BLAS is
    looked for when one of its functions is compiled, not when numba begins: that would import SciPy.
    """
    ours: tuple[tuple[Any, str, Any], ...] = (
        (functions.BaseFunction, "get_call_type", _call_type),
        (base.BaseContext, "get_abi_sizeof", _size),
        (postproc.PostProcessor, "run", _processed),
        (importlib.import_module("numba.np.linalg"), "ensure_blas", lambda: None),
        (llvm.ffi.lib._lock, "_cblist", []),  # noqa: SLF001 - who is told of it is kept nowhere else
    )
    with global_compiler_lock:
        collects, own = gc.isenabled(), [getattr(owner, name) for owner, name, _ in ours]
        gc.disable()
        try:
            for owner, name, quick in ours:
                setattr(owner, name, quick)
            yield
        finally:
            for (owner, name, _), before in zip(ours, own, strict=True):
                setattr(owner, name, before)
            if collects:
                gc.enable()


_own_call_type = functions.BaseFunction.get_call_type
_own_size = base.BaseContext.get_abi_sizeof
_calls: dict[Any, Any] = {}
_sizes: dict[int, tuple[Any, int]] = {}


def _call_type(function: Any, context: Any, given: Any, named: Any) -> Any:
    if named or not isinstance(function.typing_key, (BuiltinFunctionType, type)):
        return _own_call_type(function, context, given, named)
    if (function, given) not in _calls:
        _calls[function, given] = _own_call_type(function, context, given, named)
    return _calls[function, given]


def _size(context: Any, kind: Any) -> int:
    if id(kind) not in _sizes:
        _sizes[id(kind)] = kind, _own_size(context, kind)
    return _sizes[id(kind)][1]


def _processed(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What numba does ten times for a function; how long variables live is not asked, as none are freed."""
    found = processor.func_ir
    found.blocks = transforms.canonicalize_cfg(found.blocks)
    found.variable_lifetime = postproc.VariableLifetime(found.blocks)
    found.generator_info = None


def _optimiser(generator: Any, level: int) -> Any:
    """LLVM's passes of a level, for the CPU that code is made for."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization, tuning.slp_vectorization = True, False
    return llvm.create_pass_builder(generator._tm, tuning)  # noqa: SLF001 - numba has no other way


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

    def add_llvm_module(self, ll_module: Any) -> None:
        """Take code, made short by quick passes: it is optimised where it is linked."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001 - as numba's own libraries do
        optimiser = _optimiser(self._codegen, 1)
        passes = optimiser.getFunctionPassManager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, optimiser)
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        """Link nothing, optimise nothing, emit nothing."""
        self._raise_if_finalized()
        self._finalized = True
        count_function()

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is no machine code."""
        self._ensure_finalized()
        return 0


class _EntryLibrary(codegen.JITCodeLibrary):
    """Code that is optimised and emitted, and linked elsewhere."""

    def finalize(self) -> None:
        """Link all that is called, each library once, and optimise it."""
        callers: list[Any] = [self]
        for caller in callers:
            callers += (each for each in caller._linking_libraries if each not in callers)  # noqa: SLF001 - as above
        for each in callers[1:]:
            module = each._get_module_for_linking()  # noqa: SLF001 - as above
            self._final_module.link_in(module, preserve=True)
        optimiser = _optimiser(self._codegen, 3)
        optimiser.getModulePassManager().run(self._final_module, optimiser)
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != self.name:
                function.linkage = "internal"
        self._finalized = True

    def machine_code(self) -> MachineCode:
        """An object file, and what it calls that is not in it."""
        called = (each.name for each in self._final_module.functions if each.is_declaration)
        needs = [name for name in called if not name.startswith("llvm.")]
        emitted = self._codegen._tm.emit_object(self._final_module)  # noqa: SLF001 - it alone knows how
        return MachineCode(self.name, emitted, needs)


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


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    untyped_passes.DeadBranchPrune,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
"""Of numba's passes those that kernels need: they have no closures, ``with``, loops over literals, or
operations with whole arrays."""


class InnerCompiler(CompilerBase):
    """numba's own passes, fewer of them, and a library of the inner kind."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Settings(flags), local)

    def define_pipelines(self) -> list[Any]:
        """One pipeline, for code that goes to a library of the inner kind."""
        state = self.state
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        passes = PassManager("kernel")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
INNER: dict[str, Any] = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": InnerCompiler,
    **_OPTIONS,
}
"""How numba compiles a function of kernels. They allocate nothing, so references are not counted: with tuples
of many arrays that would cost most of the run time."""

_njit: Any = numba.njit
_unliteral: Any = types.unliteral


def dispatcher_of(function: Callable[..., Any], *, by_constant: bool = False, **options: Any) -> Any:
    """What numba makes of a function: once for all numbers, or once more for each constant."""
    made = _njit(**options, **INNER)(function)
    if not by_constant:
        template = made.get_call_template
        made.get_call_template = lambda given, named: template(
            tuple(map(_unliteral, given)), {name: _unliteral(each) for name, each in named.items()}
        )
    return made


def tell_of(declared: Iterable[Any]) -> None:
    """Let numba know of functions of scalars, and of generic functions, that kernels may call."""
    options: Any = INNER
    for each in declared:
        if hasattr(each, "implementation_for"):
            overload(each, jit_options=options, strict=False)(each.implementation_for)
        else:
            register_jitable(forceinline=True, **INNER)(each)


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> MachineCode:
    """The machine code of an entry for arguments of the types of these.

    It is a function for Python, as extension modules have them. It takes the parts of arguments, as ``held``
    gives them.

    Parameters
    ----------
    function
        The entry, as it is written.
    arguments
        What it is called with.
    name
        What the machine code is called, among all that is linked into a process.
    """
    config: Any = numba.config
    config.CPU_NAME, config.CPU_FEATURES = cpu()  # without effect once something has been compiled
    kinds = tuple(map(numba.typeof, arguments))
    with quickly():
        dispatcher = dispatcher_of(function)
        dispatcher.compile(kinds)
        lowered = dispatcher.overloads[kinds]
        library = _EntryLibrary(lowered.target_context.codegen(), name)
        library.add_ir_module(_for_python(lowered, kinds, name, library))
        library.add_linking_library(lowered.library)
        library.finalize()
        return library.machine_code()


def _for_python(lowered: Any, kinds: tuple[Any, ...], name: str, library: Any) -> ir.Module:
    """A function that takes objects of Python, and calls the one that was lowered while other threads run."""
    context, description = lowered.target_context, lowered.fndesc
    module = library.create_ir_module(name)
    whole, number = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(ADDRESS, [ADDRESS, ADDRESS.as_pointer(), whole])
    builder = ir.IRBuilder(ir.Function(module, kind, name).append_basic_block())

    def call(of: str, result: Any, *given: Any) -> Any:
        kind = ir.FunctionType(result, [each.type for each in given])
        return builder.call(cgutils.get_or_insert_function(module, kind, of), given)

    def value_of(kind: Any, objects: Iterator[Any]) -> Any:
        if isinstance(kind, types.BaseTuple):
            of: Any = kind
            return context.make_tuple(builder, kind, [value_of(each, objects) for each in of])
        found = next(objects)
        if isinstance(kind, HeldType):
            return memory_of(builder, found)
        if isinstance(kind, types.Array):
            return array_of(context, builder, kind, found)
        if isinstance(kind, types.Float):
            return call("PyFloat_AsDouble", ir.DoubleType(), found)
        if isinstance(kind, types.Boolean):
            return builder.trunc(call("PyObject_IsTrue", number, found), ir.IntType(1))
        return builder.trunc(call("PyLong_AsLongLong", whole, found), context.get_value_type(kind))

    nothing = ir.Constant(ADDRESS, None)
    given = builder.function.args[1]
    objects = (builder.load(cgutils.gep_inbounds(builder, given, i)) for i in itertools.count())
    values = [value_of(kind, objects) for kind in kinds]
    with builder.if_then(cgutils.is_not_null(builder, call("PyErr_Occurred", ADDRESS)), likely=False):
        builder.ret(nothing)
    thread = call("PyEval_SaveThread", ADDRESS)
    callee = context.declare_function(module, description)
    status, result = context.call_conv.call_function(
        builder, callee, description.restype, description.argtypes, values
    )
    call("PyEval_RestoreThread", ir.VoidType(), thread)
    with builder.if_then(status.is_error, likely=False):
        error = cgutils.add_global_variable(module, ADDRESS, "PyExc_RuntimeError")
        error.linkage = "external"
        said = context.insert_const_string(module, "a kernel failed")
        call("PyErr_SetString", ir.VoidType(), builder.load(error), said)
        builder.ret(nothing)
    if description.restype == types.none:
        made = call("Py_BuildValue", ADDRESS, context.insert_const_string(module, ""))
    elif isinstance(description.restype, types.Float):
        made = call("PyFloat_FromDouble", ADDRESS, result)
    elif isinstance(description.restype, types.Boolean):
        made = call("PyBool_FromLong", ADDRESS, builder.zext(result, whole))
    else:
        made = call("PyLong_FromLongLong", ADDRESS, builder.sext(result, whole))
    builder.ret(made)
    return module
