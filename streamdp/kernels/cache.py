"""Where compiled kernels are kept, and where they are found.

What is compiled is kept under ``STREAMDP_CACHE_DIR`` (default: the user's cache folder), in a folder named
after the sources of all kernels: a change of any of them compiles anew. What is compiled for a family or a
prior from outside the package depends on its source, too. A wheel may bring kernels along, under the same
names. Neither paths nor times of files matter, so a folder may be copied to another machine.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import marshal
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from streamdp.kernels.held import HeldType
from streamdp.kernels.turn import Turn

PACKAGE = Path(__file__).resolve().parents[1]
PREBUILT = PACKAGE / "prebuilt"
"""Kernels that a wheel has brought along; there is no such folder in a clone."""

_FOLDERS = ("kernels", "priors", "likelihoods", "beam", "lines", "encode/kernels", "offline/kernels")
_BUILD = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
_log = logging.getLogger("streamdp")

foreign: dict[tuple[str, str], bytes] = {}
"""Sources outside the package that implement generic functions, by module and file.

The module counts as well: numba finds the classes of what it has cached by the names of their modules.
"""
_meddling: set[tuple[str, str]] = set()
"""Those of them that implement something for the package's own classes, or for all."""


def note_source(function: Callable[..., Any], classes: tuple[type, ...]) -> None:
    """Note a function that kernels call for these classes (none: for all), where it is from outside."""
    code = function.__code__
    place = function.__module__, code.co_filename
    if _is_own(function):
        return
    if not classes or any(map(_is_own, classes)):
        _meddling.add(place)
    if place in foreign:
        return
    try:
        foreign[place] = "".join(inspect.findsource(function)[0]).encode()
    except OSError:  # typed at a prompt
        foreign[place] = code.co_code


def _is_own(made: Callable[..., Any]) -> bool:
    """Whether a function or a class is the package's."""
    return made.__module__.partition(".")[0] == __package__.partition(".")[0]


def _foreign_digest(signature: Iterable[Any]) -> bytes:
    """Of the sources outside the package, where what has such arguments may depend on them."""
    if not _meddling and all(map(_is_own, _classes(signature))):
        return b""
    digest = hashlib.sha256()
    for place in sorted(foreign):
        digest.update(place[0].encode() + foreign[place])
    return digest.digest()


def _classes(kinds: Iterable[Any]) -> Iterator[type]:
    """The classes of named tuples among types, and within them."""
    for kind in kinds:
        whole: Any = kind.value if isinstance(kind, HeldType) else kind
        own = getattr(whole, "instance_class", None)
        if own is not None:
            yield own
        if hasattr(whole, "__iter__"):
            yield from _classes(whole)


@functools.cache
def folder_name() -> str:
    """The name of the folder of what is compiled from the package's sources."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for source in sorted((PACKAGE / folder).glob("*.py")):
            digest.update(source.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


def cache_folder() -> Path | None:
    """A writable folder for compiled kernels, or None (which is said once)."""
    base = os.environ.get("STREAMDP_CACHE_DIR")
    shared = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "streamdp"
    return _writable(Path(base) if base else shared, folder_name())


@functools.cache
def _writable(base: Path, name: str) -> Path | None:
    try:
        (base / name).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=base / name).close()
    except OSError as error:
        _say_once(f"no writable cache folder ({error})")
        return None
    return base / name


@functools.cache
def _say_once(why: str) -> None:
    _log.warning(
        "%s: what a wheel did not bring along is compiled anew in every process; "
        "set STREAMDP_CACHE_DIR to a writable folder",
        why,
    )


class KernelCache(_Cache):
    """The compiled forms of one kernel, a file for each combination of types and CPU.

    Parameters
    ----------
    function
        The kernel as it is written.
    writable
        The folder that new ones are written to; None: they are not kept.
    """

    def __init__(self, function: Callable[..., Any], writable: Path | None) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._code = b"" if _is_own(function) else marshal.dumps(function.__code__)
        self._writable = writable
        self._turn = None if writable is None else Turn(writable)
        self._folders = [folder for folder in (writable, PREBUILT / folder_name()) if folder is not None]

    @property
    def cache_path(self) -> str | None:
        """The folder that new ones are written to."""
        return None if self._writable is None else str(self._writable)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types; None where it is not found, or not whole."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        payload = self._find(key)
        if payload is None and self._turn is not None and self._turn.take(self._file(key)):
            payload = self._find(key)
        if payload is None:
            return None
        self._end_turn()
        return CompileResult._rebuild(target_context, *payload)  # noqa: SLF001 - as numba's own cache does

    def _find(self, key: tuple[Any, ...]) -> Any:
        for folder in self._folders:
            found = _read(folder / self._file(key))
            if found is not None and found[0] == key:
                return found[1]
        return None

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.end()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what has been compiled for these types."""
        if self._writable is None:
            return
        key = self._key(sig, data.codegen)
        payload = dumps((key, data._reduce()))  # noqa: SLF001
        try:
            _write(self._writable / self._file(key), payload)
        except OSError as error:
            _say_once(f"compiled kernels could not be written ({error})")
        self._end_turn()

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), _BUILD, self._code + _foreign_digest(sig)

    def _file(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"

    def enable(self) -> None:
        """Nothing: it is never off."""

    def disable(self) -> None:
        """Nothing: it is never off."""

    def flush(self) -> None:
        """Nothing: there is no index."""


def _read(path: Path) -> Any:
    """What a file holds; None where there is none, or not all of it."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    digest, payload = written[:32], written[32:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    return pickle.loads(payload)


def _write(path: Path, payload: bytes) -> None:
    """Write a file at once, so that no other process reads a part of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        fresh.write_bytes(hashlib.sha256(payload).digest() + payload)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
