"""All numba settings in one place.

Compiled kernels are cached under ``STREAMDP_CACHE_DIR`` (default: the user's cache folder), in a
folder named after the sources of this package: numba itself notices a change of the file a kernel
stands in, not of the files it calls into.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


# Any: some of what is used here is missing from numba's own stubs
_njit: Any = numba.njit
_config: Any = numba.config
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


@cache
def _cache_folder() -> str | None:
    """A writable folder for compiled kernels, or None."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("STREAMDP_CACHE_DIR")
    root = (
        Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "streamdp"
    )
    folder = root / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        logging.getLogger("streamdp").warning(
            "no writable cache folder (%s): kernels are compiled anew in every process; "
            "set STREAMDP_CACHE_DIR to a writable folder",
            error,
        )
        return None
    return str(folder)


def kernels_are_cached() -> bool:
    """Whether an earlier process has left compiled kernels for these sources."""
    folder = _cache_folder()
    return folder is not None and any(Path(folder).rglob("*.nbc"))


def kernel(function: F) -> F:
    """Compile a function that only other kernels call.

    It is inlined, because a call would copy every field of every array of its arguments. Kernels
    allocate nothing, so numba's reference counting is switched off: with tuples of many arrays it would
    cost most of the run time. Nor is there a wrapper that takes Python objects: calling a kernel from
    Python crashes, only an ``entry`` may be.
    """
    compiled: F = _njit(forceinline=True, no_cpython_wrapper=True, **_OPTIONS)(function)
    return compiled


def entry(function: F) -> F:
    """Compile a kernel that Python calls, caching the result where a folder can be written."""
    folder = _cache_folder()
    before = _config.CACHE_DIR
    if folder is not None:
        _config.CACHE_DIR = folder
    try:
        compiled: F = _njit(cache=folder is not None, **_OPTIONS)(function)
    finally:
        _config.CACHE_DIR = before
    return compiled
