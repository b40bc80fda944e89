"""One process at a time compiles a kernel; others that want the same wait for it, and find it done."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from streamdp.kernels.compilation import elsewhere

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
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return False
        if self._lock():
            return False
        deadline = time.monotonic() + PATIENCE
        with elsewhere(name.partition("-")[0].rpartition(".")[2]):
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
