"""The lock of a state folder: one process of a machine at a time, for as long as that process lives."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path

NAME = "lock"


class FolderLock:
    """The file ``lock`` in a folder, which is made where it is missing. Raises OSError where it cannot be."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / NAME
        self._fd = self._open()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)

    def take(self) -> bool:
        """Lock it, unless another process has; whether that is done."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if self._is_named():
            return True
        self.close()  # another file has its name by now: the one to be locked
        self._fd = self._open()
        return self.take()

    def replace(self) -> None:
        """Put a new file in its place, locked: whoever holds the old one holds nothing any more."""
        fd, fresh = tempfile.mkstemp(prefix=f"{NAME}.", dir=self._path.parent)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(fresh, self._path)
        self.close()
        self._fd = fd

    def release(self) -> None:
        """Let others lock it."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def check(self) -> None:
        """A lock is kept until it is given back."""

    def close(self) -> None:
        """Give it back; again is harmless."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = -1

    def _is_named(self) -> bool:
        held = os.fstat(self._fd)
        try:
            named = os.stat(self._path)
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
