"""All numba settings in one place: how functions become kernels.

Kernels allocate nothing, so numba's reference counting is switched off: with tuples of many arrays it
would cost most of the run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import is_
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable, typeof_impl

from streamdp.kernels.cache import KernelCache, cache_folder
from streamdp.kernels.compiler import InnerCompiler, quickly
from streamdp.kernels.held import Held, form_of
from streamdp.kernels.prebuilt import settle

F = TypeVar("F", bound=Callable[..., Any])

# Any: some of what is used here is missing from numba's own stubs
_njit: Any = numba.njit
_typeof: Any = numba.typeof
_unliteral: Any = types.unliteral
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_INNER: dict[str, Any] = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": InnerCompiler,
    **_OPTIONS,
}
settle()


def kernel(function: F) -> F:
    """Compile a function that only other kernels call.

    There is no wrapper that takes Python objects: a call from Python raises TypeError.
    """
    return _inner(function)


def constant_kernel(function: F) -> F:
    """A kernel that is compiled once more for each constant that it is called with, as it is quicker then."""
    return _inner(function, by_constant=True)


def sum_kernel(function: F) -> F:
    """A kernel whose sums may be taken in any order, so that they are vectorised.

    Only for sums of finite numbers.
    """
    return _inner(function, forceinline=True, fastmath={"reassoc", "contract"})


def _inner(function: F, **options: Any) -> F:
    found: Any = Inner(function, {**options, **_INNER})
    return found


class Inner:
    """A function that other kernels call, and Python must not: there is no machine code to be called.

    numba learns of it when the first of those kernels is compiled. Where all come from the cache it never
    does: that would be a sixth of what it takes to start.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse: a TypeError in place of a crash."""
        raise TypeError(
            f"{self.py_func.__name__} is a @kernel, which only kernels call: for Python make an @entry that "
            "calls it; make it @shared where it takes and returns numbers; or call its py_func"
        )

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function: once for all numbers, where it would again for each constant."""
        options = {**self.options}
        by_constant = options.pop("by_constant", False)
        made = _njit(**options)(self.py_func)
        if by_constant:
            return made
        template = made.get_call_template
        made.get_call_template = lambda given, named: template(
            tuple(map(_unliteral, given)), {name: _unliteral(each) for name, each in named.items()}
        )
        return made


@typeof_impl.register(Inner)
def _typeof_inner(value: Inner, _: Any) -> Any:
    return types.Dispatcher(value.dispatcher)


def shared(function: F) -> F:
    """A function of scalars that kernels and Python call alike."""
    both: F = register_jitable(forceinline=True, **_OPTIONS)(function)
    return both


class Generic:
    """A function of kernels with an implementation for each type of its first argument.

    The first argument is a named tuple, or the empty array that stands for a part that is absent; what a
    class has no implementation of is that of the class it is derived from, and then what was declared, unless
    that raises NotImplementedError. Which implementation is meant is settled when the caller is compiled, so
    that a kernel holds the code of one prior and one family only. Called from Python, the implementation runs
    as it is written.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self._implementations: dict[type, Callable[..., Any]] = {}
        self._default = None if "NotImplementedError" in function.__code__.co_names else function
        options: Any = _INNER
        overload(self, jit_options=options, strict=False)(self._for_types)

    def of(self, *classes: type) -> Callable[[F], F]:
        """Register the implementation for one class of named tuples, or for several; or for arrays."""

        def register(function: F) -> F:
            for each in classes:
                if each in self._implementations:
                    raise ValueError(f"{self.__name__} is implemented for {each.__name__} already")
                self._implementations[each] = function
            return function

        return register

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run the implementation for the first argument."""
        found = self.implementation(type(first))
        if found is None:
            raise TypeError(f"{self.__name__} is not implemented for {type(first).__name__}")
        return found(first, *rest)

    def _for_types(self, *arguments: Any) -> Callable[..., Any] | None:
        return self.implementation(getattr(arguments[0], "instance_class", np.ndarray))

    def implementation(self, kind: type) -> Callable[..., Any] | None:
        """That for a class, else for the nearest that it is derived from; None where there is none."""
        known = (self._implementations[each] for each in kind.__mro__ if each in self._implementations)
        return next(known, self._default)


class Entry:
    """A kernel that Python calls, cached where a folder can be written.

    Tuples of arrays may be given as what they are, or as :class:`~streamdp.kernels.held.Held`. They are laid
    out anew where they are not those of the last call, which are kept alive for that.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._compiled: Any = None
        self._last: tuple[Held, ...] = ()
        self._found: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for arguments of these types."""
        known = {id(each.value): each for each in self._last}
        laid_out = tuple(
            known.get(id(each)) or Held(each) if isinstance(each, tuple) else each for each in arguments
        )
        self._last = tuple(each for each in laid_out if isinstance(each, Held))
        return self.of(*laid_out)(*laid_out)

    def of(self, *arguments: Any) -> Callable[..., Any]:
        """The kernel for arguments of the types of these; no types are looked at when it is called."""
        form = tuple(map(form_of, arguments))
        found = self._found.get(form)
        if found is None:
            dispatcher = self.dispatcher()
            kinds = tuple(_typeof(each) for each in arguments)
            with quickly():
                dispatcher.compile(kinds)
            found = self._found[form] = dispatcher.overloads[kinds].entry_point
        return found

    def dispatcher(self) -> Any:
        """What numba makes of the function; its cache is looked into when it is compiled."""
        if self._compiled is None:
            self._compiled = _njit(no_cfunc_wrapper=True, **_OPTIONS)(self._function)
            self._compiled._cache = KernelCache(self._function, cache_folder())  # noqa: SLF001 - no other way
        return self._compiled


class Bound:
    """An entry whose first arguments last: they are laid out, and its machine code looked up, once.

    The other arguments must be of the same types at every call: nothing looks at them.
    """

    def __init__(self, entry: Any) -> None:
        self._entry: Entry = entry
        self._held: list[Held] = []
        self._lasting: tuple[Any, ...] | None = None
        self._run: Callable[..., Any] = entry

    def __call__(self, lasting: tuple[Any, ...], *rest: Any) -> None:
        """Run it; ``lasting`` are tuples, which are laid out anew where they are not the same as before."""
        last = self._lasting
        if last is not lasting and (last is None or not all(map(is_, last, lasting))):
            self._held, self._lasting = self._laid_out(lasting), lasting
            self._run = functools.partial(self._entry.of(*self._held, *rest), *self._held)
        self._run(*rest)

    def once(self, lasting: tuple[Any, ...], *rest: Any) -> Callable[[], None]:
        """A call with these arguments, to be made again as long as none of them is replaced."""
        held = self._laid_out(lasting)
        return functools.partial(self._entry.of(*held, *rest), *held, *rest)

    def _laid_out(self, lasting: tuple[Any, ...]) -> list[Held]:
        old = {id(each.value): each for each in self._held}
        return [old.get(id(value)) or Held(value) for value in lasting]


def generic(function: Callable[..., Any]) -> Generic:
    """Declare a function that each prior, or each family, implements for itself."""
    return Generic(function)


def entry(function: F) -> F:
    """Compile a kernel that Python calls."""
    compiled: Any = Entry(function)
    return compiled
