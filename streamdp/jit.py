"""All numba settings in one place.

Compiled kernels are cached under ``STREAMDP_CACHE_DIR`` (default: the user's cache folder), in a
folder named after the sources of the package they stand in: numba itself notices a change of the file
a kernel stands in, not of the files it calls into.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


# Any: some of what is used here is missing from numba's own stubs
_njit: Any = numba.njit
_config: Any = numba.config
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


class Kernels:
    """The decorators of a package of kernels.

    Kernels allocate nothing, so numba's reference counting is switched off: with tuples of many arrays
    it would cost most of the run time.

    Parameters
    ----------
    sources
        The files that the kernels stand in; a change of any of them compiles all anew.
    """

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = sorted(sources)

    def kernel(self, function: F) -> F:
        """Compile a function that only other kernels call.

        It is inlined, because a call would copy every field of every array of its arguments. Nor is
        there a wrapper that takes Python objects: calling a kernel from Python crashes, only an
        ``entry`` may be.
        """
        compiled: F = _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
            function
        )
        return compiled

    def sum_kernel(self, function: F) -> F:
        """A kernel whose sums may be taken in any order, so that they are vectorised.

        Only for sums of finite numbers.
        """
        compiled: F = _njit(
            forceinline=True,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            fastmath={"reassoc", "contract"},
            **_OPTIONS,
        )(function)
        return compiled

    def inlined(self, function: F) -> F:
        """Compile a function into each of its callers, and not by itself.

        Every function that is compiled by itself is optimised together with all that it calls, so a
        chain of them would have the same code optimised many times.
        """
        compiled: F = _njit(inline="always", **_OPTIONS)(function)
        return compiled

    def routine(self, function: F) -> F:
        """Compile a larger function that several entries call, without inlining it."""
        compiled: F = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
        return compiled

    def entry(self, function: F) -> F:
        """Compile a kernel that Python calls, caching the result where a folder can be written."""
        before = _config.CACHE_DIR
        if self.folder is not None:
            _config.CACHE_DIR = self.folder
        try:
            compiled: F = _njit(cache=self.folder is not None, no_cfunc_wrapper=True, **_OPTIONS)(function)
        finally:
            _config.CACHE_DIR = before
        return compiled

    @cached_property
    def folder(self) -> str | None:
        """A writable folder for compiled kernels, or None."""
        digest = hashlib.sha256()
        for source in self._sources:
            digest.update(source.read_bytes())
        base = os.environ.get("STREAMDP_CACHE_DIR")
        shared = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "streamdp"
        folder = (Path(base) if base else shared) / f"kernels-{digest.hexdigest()[:16]}"
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

    def are_cached(self) -> bool:
        """Whether an earlier process has left compiled kernels for these sources."""
        return self.folder is not None and any(Path(self.folder).rglob("*.nbc"))
