"""How functions become kernels: what is declared here is compiled when it is first needed, if at all.

numba is not imported before: machine code that was kept, or came with a wheel, needs none of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Self, TypeVar

import numpy as np

from streamdp.kernels.cache import code_for
from streamdp.kernels.held import Held, form_of, parts_of
from streamdp.kernels.machine import MachineCode, Run

F = TypeVar("F", bound=Callable[..., Any])

_declared: list[Any] = []
"""Functions of scalars and generic functions that numba has not been told of yet."""


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
    found: Any = Inner(function, options)
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
        """What numba makes of the function."""
        from streamdp.kernels.compiler import dispatcher_of

        return dispatcher_of(self.py_func, **self.options)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for where a kernel names it."""
        from numba.core import types

        return types.Dispatcher(self.dispatcher)


def shared(function: F) -> F:
    """A function of scalars that kernels and Python call alike."""
    _declared.append(function)
    return function


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
        _declared.append(self)

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

    def implementation_for(self, *arguments: Any) -> Callable[..., Any] | None:
        """That for arguments of these types of numba."""
        return self.implementation(getattr(arguments[0], "instance_class", np.ndarray))

    def implementation(self, kind: type) -> Callable[..., Any] | None:
        """That for a class, else for the nearest that it is derived from; None where there is none."""
        known = (self._implementations[each] for each in kind.__mro__ if each in self._implementations)
        return next(known, self._default)


class Entry:
    """A kernel that Python calls, kept where a folder can be written.

    Tuples of arrays may be given as what they are, or as :class:`~streamdp.kernels.held.Held`. They are laid
    out anew where they are not those of the last call, which are kept alive for that.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._last: list[Held] = []
        self._found: dict[Any, Run] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for arguments of these types."""
        given = _laid_out(arguments, self._last)
        self._last = [each for each in given if isinstance(each, Held)]
        return self.of(*given)(*parts_of(given))

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself: copies of a stream run the same machine code."""
        return self

    def of(self, *arguments: Any) -> Run:
        """The machine code for arguments of the types of these, to be called with their parts."""
        form = tuple(map(form_of, arguments))
        found = self._found.get(form)
        if found is None:
            found = self._found[form] = code_for(self._function, arguments, _compiled)
        return found


def _compiled(function: Callable[..., Any], arguments: tuple[Any, ...], name: str) -> MachineCode:
    from streamdp.kernels import compiler

    compiler.tell_of(_declared)
    _declared.clear()
    return compiler.compiled(function, arguments, name)


class Bound:
    """An entry whose first arguments last: they are laid out, and its machine code looked up, once.

    The other arguments must be of the same types at every call: nothing looks at them.
    """

    def __init__(self, entry: Any) -> None:
        self._entry: Entry = entry
        self._held: list[Held] = []
        self._lasting: tuple[Any, ...] | None = None
        self._run: Callable[..., Any] = entry
        self._nested = False

    def __call__(self, lasting: tuple[Any, ...], *rest: Any) -> None:
        """Run it; ``lasting`` are tuples, which are laid out anew where they are not the same as before."""
        last = self._lasting
        if last is not lasting and (last is None or not all(map(is_, last, lasting))):
            self._held, self._lasting = _laid_out(lasting, self._held), lasting
            self._run = functools.partial(self._entry.of(*self._held, *rest), *parts_of(self._held))
            self._nested = any(isinstance(each, tuple) for each in rest)
        self._run(*parts_of(rest) if self._nested else rest)

    def once(self, lasting: tuple[Any, ...], *rest: Any) -> Again:
        """A call with these arguments, to be made again as long as none of them is replaced."""
        return Again(self._entry, (*_laid_out(lasting, self._held), *rest))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has arguments of its own."""
        return Bound, (self._entry,)


class Again:
    """A call of an entry with the same arguments, again and again."""

    __slots__ = ("_arguments", "_entry", "_run")

    def __init__(self, entry: Entry, arguments: tuple[Any, ...]) -> None:
        self._entry, self._arguments = entry, arguments
        self._run = functools.partial(entry.of(*arguments), *parts_of(arguments))

    def __call__(self) -> Any:
        """Run it."""
        return self._run()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has arguments of its own."""
        return Again, (self._entry, self._arguments)


def _laid_out(arguments: tuple[Any, ...], before: Sequence[Held]) -> list[Any]:
    """Arguments with tuples among them laid out, where that was not done before."""
    known = {id(each.value): each for each in before}
    return [known.get(id(each)) or Held(each) if isinstance(each, tuple) else each for each in arguments]


def generic(function: Callable[..., Any]) -> Generic:
    """Declare a function that each prior, or each family, implements for itself."""
    return Generic(function)


def entry(function: F) -> F:
    """Compile a kernel that Python calls."""
    compiled: Any = Entry(function)
    return compiled
