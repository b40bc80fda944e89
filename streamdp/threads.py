"""One thread at a time: the lock of an engine or an estimator, also across a fork."""

from __future__ import annotations

import copy
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from inspect import isfunction
from typing import Any

PATIENCE = 60.0
"""Seconds that a fork waits for calls that other threads have begun."""

_STATES = ("__reduce__", "__getstate__")
_owners: weakref.WeakValueDictionary[int, OneThreadAtATime] = weakref.WeakValueDictionary()
_forking = threading.Lock()
_acquired: list[Any] = []


def _alone(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def waiting(self: Any, *given: Any, **named: Any) -> Any:
        with self._lock:
            return method(self, *given, **named)

    return waiting


class OneThreadAtATime:
    """Public methods and properties of classes derived from it wait while another thread is inside of one.

    Kernels run without Python's lock and write to scratch space of the object, also where they only predict.
    The lock belongs to no state: a copy has its own. Methods named in ``but`` take it themselves, which is
    quicker.
    """

    def __init_subclass__(cls, but: tuple[str, ...] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, member in [*vars(cls).items()]:
            if name in but or (name.startswith("_") and name not in _STATES):
                continue
            if isfunction(member):
                setattr(cls, name, _alone(member))
            elif isinstance(member, property):
                ask, change = (each and _alone(each) for each in (member.fget, member.fset))
                setattr(cls, name, property(ask, change, doc=member.__doc__))

    @functools.cached_property
    def _lock(self) -> Any:
        lock = vars(self).setdefault("_lock", threading.RLock())  # one, whichever thread comes first
        _owners[id(self)] = self
        return lock

    def __getstate__(self) -> Any:
        """All but the lock, as it is between two calls."""
        with self._lock:
            state: Any = super().__getstate__()
            return copy.deepcopy({name: each for name, each in state.items() if name != "_lock"})


def share_lock(owner: OneThreadAtATime, part: OneThreadAtATime) -> None:
    """Let one object wait for calls of another, of which it is a part."""
    _owners[id(part)] = part
    vars(part)["_lock"] = owner._lock  # noqa: SLF001


class _CutShort:
    """In the place of a lock that a thread held when this process was forked without that thread."""

    def __enter__(self) -> None:
        raise RuntimeError(
            "another thread was changing this when the process was forked: load it from a state, or a file"
        )

    def __exit__(self, *_: object) -> None:
        pass

    def acquire(self, timeout: float) -> bool:
        """Nobody acquires it, in a child's child neither."""
        return False


def _before_fork() -> None:
    """Wait until no other thread is inside of a call, so that the child finds no half of a change."""
    _forking.acquire()
    until = time.monotonic() + PATIENCE
    locks = {vars(owner)["_lock"] for ref in _owners.valuerefs() if (owner := ref()) is not None}
    _acquired[:] = [lock for lock in locks if lock.acquire(timeout=max(until - time.monotonic(), 0.0))]


def _after_fork() -> None:
    for lock in _acquired:
        lock.release()
    _acquired.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    for ref in _owners.valuerefs():
        owner = ref()
        if owner is not None and vars(owner)["_lock"] not in _acquired:
            vars(owner)["_lock"] = _CutShort()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
