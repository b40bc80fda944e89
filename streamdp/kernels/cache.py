"""Where compiled kernels are kept, and where they are found.

They are kept under ``STREAMDP_CACHE_DIR`` (default: the user's cache folder). The name of a file holds a
digest of all that the kernel depends on (see ``digest``): a change of any of it compiles that kernel anew,
and no other. A wheel may bring kernels along, under the same names (see ``prebuilt``). Neither paths nor
times of files matter, so a folder may be copied to another machine. Files are compressed, to a tenth: most
of what they hold is long names.

A file there is machine code, and loading it runs code. So it is used only if it and its folder belong to this
user or to root, and nobody else may write to them; those of a wheel may belong to whoever installed it.

One process at a time compiles a kernel; others that want the same wait for it, and find it done.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pickle
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from streamdp.kernels import compiler, held, prebuilt
from streamdp.kernels.compilation import elsewhere, loaded
from streamdp.kernels.digest import digest_of
from streamdp.kernels.held import HeldType
from streamdp.safe_files import belongs_to_nobody_else, create, make_folder, open_regular

PATIENCE = 300.0
"""Seconds after which a process compiles what another one has begun, and may have stopped at."""

_LOOK = 0.05


class Turn:
    """The right to compile, of one kernel at a time, among the processes that share a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder
        self._fd = -1

    def take(self, name: str) -> bool:
        """Wait for those who compile a kernel already; whether any did, so that it may be there by now.

        Where locks cannot be had, nobody waits.
        """
        self.end()
        self._path = self._folder / f".{name}.lock"
        try:
            self._fd = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        except OSError:
            return False
        if self._lock():
            return False
        deadline = time.monotonic() + PATIENCE
        with elsewhere(name.partition("-")[0]):
            while not self._lock() and time.monotonic() < deadline:
                time.sleep(_LOOK)
        return True

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def end(self) -> None:
        """It is done; again is harmless."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._fd)
            self._fd = -1


FOLDER = "compiled"
"""The name of the folder of compiled kernels; what each depends on is in the name of its file."""

_log = logging.getLogger("streamdp")


def _classes(kinds: Iterable[Any]) -> Iterator[type]:
    """The classes of named tuples among types, and within them."""
    for kind in kinds:
        of: Any = kind.value if isinstance(kind, HeldType) else kind
        own = getattr(of, "instance_class", None)
        if own is not None:
            yield own
        if hasattr(of, "__iter__"):
            yield from _classes(of)


def cache_folder() -> Path | None:
    """A writable folder for compiled kernels, or None (which is said once)."""
    base = os.environ.get("STREAMDP_CACHE_DIR")
    shared = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "streamdp"
    return _writable(Path(base) if base else shared)


@functools.cache
def _writable(base: Path) -> Path | None:
    folder = base / FOLDER
    try:
        make_folder(folder)
        tempfile.TemporaryFile(dir=folder).close()
        if _trusted(folder.stat(), folder):
            return folder
        _say_once(
            f"the cache folder {folder} belongs to another user, or others may write to it (chmod go-w), "
            "so that no machine code is taken from there"
        )
    except OSError as error:
        _say_once(f"no writable cache folder ({error})")
    return None


def _trusted(found: os.stat_result, folder: Path) -> bool:
    """Whether a file in a folder, or the folder, is as only this user, root or the installer made it."""
    owners = {os.geteuid()}
    if prebuilt.PREBUILT in folder.parents:
        owners.add(prebuilt.PREBUILT.parent.stat().st_uid)
    return belongs_to_nobody_else(found, frozenset(owners))


@functools.cache
def _say_once(why: str) -> None:
    _log.warning(
        "%s: what a wheel did not bring along is compiled anew in every process; "
        "set STREAMDP_CACHE_DIR to a folder that only you can write",
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
        self._function = function
        self._writable = writable
        self._turn = None if writable is None else Turn(writable)
        self._folders = [folder for folder in (writable, prebuilt.own_set() / FOLDER) if folder is not None]

    @property
    def cache_path(self) -> str | None:
        """The folder that new ones are written to."""
        return None if self._writable is None else str(self._writable)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types; None where it is not found, or not whole.

        numba learns all that it can compile only where something is to be compiled: that takes it longer than
        to load a dozen kernels, and machine code needs none of it.
        """
        key = self._key(sig, target_context.codegen())
        payload = self._find(key)
        if payload is None and self._turn is not None and self._turn.take(self._file(key)):
            payload = self._find(key)
        if payload is None:
            compiler.leave_blas_for_later()
            return None
        self._end_turn()
        loaded(self._name)
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
        payload = zlib.compress(dumps((key, _without_intermediate(data._reduce()))), 9)  # noqa: SLF001
        try:
            _write(self._writable / self._file(key), payload)
        except OSError as error:
            _say_once(f"compiled kernels could not be written ({error})")
        self._end_turn()

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (
            sig,
            codegen.magic_tuple(),
            prebuilt.BUILD,
            digest_of(self._function, _classes(sig), (held, compiler)),
        )

    def _file(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"

    def enable(self) -> None:
        """Nothing: it is never off."""

    def disable(self) -> None:
        """Nothing: it is never off."""

    def flush(self) -> None:
        """Nothing: there is no index."""


def _without_intermediate(reduced: tuple[Any, ...]) -> tuple[Any, ...]:
    """A compiled kernel without the code that numba would link into others: nothing else calls an entry.

    That is half of the file. What Python calls must be defined in what is left of it.
    """
    (name, kind, (machine_code, _)), description, *rest = reduced
    called = (description.llvm_func_name, description.llvm_cpython_wrapper_name)
    stubs = "\n".join(f'define void @"{function}"() {{ ret void }}' for function in called)
    return (
        (name, kind, (machine_code, llvmlite.binding.parse_assembly(stubs).as_bitcode())),
        description,
        *rest,
    )


def _read(path: Path) -> Any:
    """What a file holds; None where there is none, not all of it, or others may have written it."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with open(open_regular(path.name, follow=True, folder=folder), "rb") as file:
            found = os.fstat(folder), os.fstat(file.fileno())
            if not all(_trusted(each, path.parent) for each in found):
                return None
            written = file.read()
    except OSError:
        return None
    finally:
        os.close(folder)
    digest, payload = written[:32], written[32:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    return pickle.loads(zlib.decompress(payload))  # noqa: S301 - nobody else may have written it


def _write(path: Path, payload: bytes) -> None:
    """Write a file at once, so that no other process reads a part of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        fresh.unlink(missing_ok=True)
        with open(create(fresh), "wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
