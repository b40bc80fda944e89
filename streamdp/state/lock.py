"""The lock of a folder: one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from pathlib import Path

from streamdp.safe_files import make_folder, open_regular

LOCK = "lock"
_HELD = re.compile(rb"^lock:.*\bFLOCK\s+ADVISORY\s+WRITE\b", re.M)
"""How Linux shows, in ``/proc/PID/fdinfo/FD``, that a file is locked."""


def is_locked(folder: Path) -> bool:
    """Whether a process of this machine has a folder."""
    try:
        fd = open_regular(folder / LOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


class FolderLock:
    """The file ``lock`` in a folder, which is made where it is missing. Raises OSError where it cannot be."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._path = folder / LOCK
        self._fd = self._open()

    def _open(self) -> int:
        return open_regular(self._path, os.O_RDWR | os.O_CREAT)

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
        """Put a new file in its place, locked: a process that holds the old one holds nothing any more."""
        fd, fresh = tempfile.mkstemp(prefix=f"{LOCK}.", dir=self._path.parent)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(fresh, self._path)
        self.close()
        self._fd = fd

    def release(self) -> None:
        """Let others lock it."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def is_held_by(self, pid: int) -> bool:
        """Whether a process of this machine is seen to hold it; only one of this user can be (Linux)."""
        files = f"/proc/{pid}/fd"
        with contextlib.suppress(OSError):
            named = os.lstat(self._path)
            if not stat.S_ISREG(named.st_mode) or named.st_nlink != 1:
                return False  # under another name it may be another program's lock
            for number in os.listdir(files):
                with contextlib.suppress(OSError):
                    same = os.path.samestat(os.stat(f"{files}/{number}"), named)
                    if same and _HELD.search(Path(f"/proc/{pid}/fdinfo/{number}").read_bytes()):
                        return True
        return False

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
            named = os.lstat(self._path)
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
