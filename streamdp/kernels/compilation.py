"""Which kernels are being compiled, and for how long: shown to people, and left out of time budgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numba.core import event

from streamdp.kernels.prebuilt import mismatch

MOMENT = 0.5
"""Seconds of compiling that pass in silence."""

EVERY = 10.0
"""Seconds of compiling between two messages where no line can move."""


class Compiling(NamedTuple):
    """A compilation under way.

    Attributes
    ----------
    kernel
        What Python called.
    functions, seconds
        Functions compiled and seconds spent since the process began, for kernels before this one too: neither
        ever decreases.
    """

    kernel: str
    functions: int
    seconds: float

    def __str__(self) -> str:
        """``advance, 143 functions, 12 s``."""
        return f"{self.kernel}, {self.functions} functions, {self.seconds:.0f} s"


_thread = threading.local()


class _Watch(event.Listener):
    """Counts compilations inside one another, and in several threads, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._kernel = ""
        self._functions = 0
        self._began = 0.0
        self._spent = 0.0
        self.begun: list[Callable[[], None]] = []

    def on_start(self, event: Any) -> None:
        self.begin(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        self.end(1)

    def begin(self, kernel: str) -> None:
        if getattr(_thread, "beside", False):
            return
        with self._lock:
            self._depth += 1
            first = self._depth == 1
            if first:
                self._kernel = kernel
                self._began = time.monotonic()
        if first:
            for hear in self.begun:
                hear()

    def end(self, functions: int) -> None:
        if getattr(_thread, "beside", False):
            return
        with self._lock:
            self._depth -= 1
            self._functions += functions
            if self._depth == 0:
                self._spent += time.monotonic() - self._began

    def now(self) -> Compiling | None:
        with self._lock:
            if self._depth == 0:
                return None
            spent = self._spent + time.monotonic() - self._began
            return Compiling(self._kernel, self._functions, spent)

    def working_time(self) -> float:
        with self._lock:
            at = time.monotonic() if self._depth == 0 else self._began
            return at - self._spent


class _Inside(event.Listener):
    """Counts the CPU seconds of each thread within numba, where kernels are compiled or loaded."""

    def on_start(self, event: Any) -> None:
        depth = getattr(_thread, "depth", 0)
        if depth == 0:
            _thread.entered = time.thread_time()
        _thread.depth = depth + 1

    def on_end(self, event: Any) -> None:
        _thread.depth -= 1
        if _thread.depth == 0:
            _thread.inside = getattr(_thread, "inside", 0.0) + time.thread_time() - _thread.entered


_watch = _Watch()
_register: Any = event.register
_register("numba:compile", _watch)
_register("numba:compiler_lock", _Inside())


def compiling() -> Compiling | None:
    """What is being compiled just now; None where nothing is."""
    return _watch.now()


@contextmanager
def elsewhere(kernel: str) -> Iterator[None]:
    """While it lasts, another process compiles a kernel for this one, which waits."""
    _watch.begin(kernel)
    try:
        yield
    finally:
        _watch.end(0)


@contextmanager
def beside() -> Iterator[None]:
    """While it lasts, nobody waits for what this thread compiles: it is not reported."""
    _thread.beside = True
    try:
        yield
    finally:
        _thread.beside = False


def announce(say: Callable[[str], None]) -> None:
    """Log that kernels are being compiled if it takes longer than MOMENT, and how far it is every EVERY."""
    lock = threading.Lock()
    due, telling = MOMENT, False

    def tell() -> None:
        nonlocal due, telling
        while True:
            time.sleep(MOMENT / 2)
            with lock:
                now = compiling()
                if now is None:
                    telling = False
                    return
                if now.seconds >= due:
                    say(first_message() if due == MOMENT else f"compiling the kernels: {now} so far")
                    due = now.seconds + EVERY

    def begun() -> None:
        nonlocal telling
        with lock:
            if telling:
                return
            telling = True
        threading.Thread(target=tell, daemon=True).start()

    _watch.begun.append(begun)


def first_message() -> str:
    """That kernels are being compiled, and why where a wheel has brought some that do not serve."""
    why = mismatch()
    return "compiling the kernels for this prior and likelihood: about half a minute, only this once" + (
        f" (those of the wheel are {why})" if why else ""
    )


def working_time() -> float:
    """A clock in seconds that stands still while kernels are compiled."""
    return _watch.working_time()


def working_cpu() -> float:
    """A clock of this thread's CPU seconds that stands still while it compiles or loads kernels."""
    return time.thread_time() - getattr(_thread, "inside", 0.0)
