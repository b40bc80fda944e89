"""What is being compiled and for how long: for people to read, and so that no budget pays for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numba.core import event

MOMENT = 0.5
"""Seconds that a compilation may take in silence."""


class Compiling(NamedTuple):
    """A compilation under way: the kernel that Python called, functions of it done, seconds so far."""

    kernel: str
    functions: int
    seconds: float


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
                self._functions = 0
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
            return Compiling(self._kernel, self._functions, time.monotonic() - self._began)

    def working_time(self) -> float:
        with self._lock:
            at = time.monotonic() if self._depth == 0 else self._began
            return at - self._spent


_watch = _Watch()
_register: Any = event.register
_register("numba:compile", _watch)


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


def on_compilation(hear: Callable[[], None]) -> None:
    """Have a function called whenever a compilation begins."""
    _watch.begun.append(hear)


def announce(say: Callable[[str], None]) -> None:
    """Log once that kernels are being compiled, if it takes longer than MOMENT."""
    logged = threading.Event()

    def tell() -> None:
        if compiling() is not None and not logged.is_set():
            logged.set()
            say("compiling the kernels for this prior and likelihood: about half a minute, only this once")

    def begun() -> None:
        timer = threading.Timer(MOMENT, tell)
        timer.daemon = True
        timer.start()

    on_compilation(begun)


def working_time() -> float:
    """A clock in seconds that stands still while kernels are compiled."""
    return _watch.working_time()
