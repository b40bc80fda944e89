"""Where compiled kernels are kept, and where they are found.

They are kept under ``STREAMDP_CACHE_DIR`` (default: the user's cache folder). The name of a file holds a
digest of all that the kernel depends on (see ``digest``): a change of any of it compiles that kernel anew,
and no other. It ends with the versions of numba and llvmlite, whose kernels are kept apart. A wheel may bring
kernels along, whoever compiled them (see ``prebuilt``). Neither paths nor times of files matter, so a folder
may be copied to another machine.

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
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
import msgspec
import numpy as np

from streamdp.kernels import prebuilt
from streamdp.kernels.compilation import aside, loaded, under_way
from streamdp.kernels.digest import digest_of
from streamdp.kernels.held import Layout, form_of
from streamdp.kernels.machine import MachineCode, Run, linked
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
        with under_way(name.partition("-")[0]):
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


_MAKERS = ("compiler.py", "held_type.py")
"""Modules of this folder that take part in making machine code of a function."""

_lock = threading.RLock()


def code_for(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    compile_it: Callable[[Callable[..., Any], tuple[Any, ...], str], MachineCode],
) -> Run:
    """An entry for arguments of the types of these, ready to be called: found, or compiled and kept.

    Parameters
    ----------
    function
        The entry, as it is written.
    arguments
        What it is to be called with.
    compile_it
        Compiles a function for arguments, under a name.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    with _lock, aside():
        key, folder = key_of(function, arguments), cache_folder()
        file = f"{name}-{key[:16]}.{_versions()}.kernel"
        found, turn = _find(folder, file, key), None if folder is None else Turn(folder)
        try:
            if found is None and turn is not None and turn.take(file):
                found = _find(folder, file, key)
            if found is not None:
                loaded(name)
            else:
                with under_way(name):
                    found = compile_it(function, arguments, f"kernel_{key}")
                if folder is not None:
                    _keep(folder / file, found)
        finally:
            if turn is not None:
                turn.end()
        return linked(found, name)


@functools.cache
def _versions() -> str:
    return f"{version('numba')}-{version('llvmlite')}"


def key_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """A digest of all that the machine code of an entry depends on."""
    classes: list[type] = []
    form = _written(form_of(arguments), classes)
    target = llvmlite.binding.get_process_triple(), prebuilt.cpu(), sys.implementation.cache_tag
    key = form, target, digest_of(function, classes), _makers()
    return hashlib.sha256(repr(key).encode()).hexdigest()


@functools.cache
def _makers() -> bytes:
    written = b"".join(Path(__file__).with_name(name).read_bytes() for name in _MAKERS)
    return hashlib.sha256(written).digest()


def _written(form: Any, classes: list[type]) -> str:
    """A form of arguments in words that are the same in every process; its named tuples are noted."""
    if isinstance(form, Layout):
        return f"*{_written(form.form, classes)}"
    if isinstance(form, tuple):
        return f"({' '.join(_written(each, classes) for each in form)})"
    if isinstance(form, np.dtype):
        return repr(form.descr)
    if isinstance(form, type):
        classes += [form] if hasattr(form, "_fields") else []
        return f"{form.__module__}.{form.__qualname__}"
    return repr(form)


def _find(writable: Path | None, file: str, key: str) -> MachineCode | None:
    """What was compiled already; None where it is not found, or not whole."""
    brought = prebuilt.own_set().glob(f"{FOLDER}/{file.partition(key[:16])[0]}{key[:16]}.*")
    for path in (*([] if writable is None else [writable / file]), *brought):
        found = _read(path)
        if found is not None and found.name == f"kernel_{key}":
            return found
    return None


def _read(path: Path) -> MachineCode | None:
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
    return msgspec.msgpack.decode(zlib.decompress(payload), type=MachineCode)


def _keep(path: Path, found: MachineCode) -> None:
    try:
        _write(path, zlib.compress(msgspec.msgpack.encode(found), 9))
    except OSError as error:
        _say_once(f"compiled kernels could not be written ({error})")


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
