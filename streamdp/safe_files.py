"""Opening files in folders where somebody else may have put something in their place.

A name there may be a link to another file, or a pipe that nobody writes to. So links are not followed unless
the user has named them, and only regular files are opened.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

_log = logging.getLogger("streamdp")

FILE, FOLDER = 0o640, 0o750
"""Modes of files and folders that are made. The umask takes from these: that of the command line leaves
0600 and 0700, unless ``--group-read`` is given."""

Name = str | os.PathLike[str]


def open_regular(
    path: Name, flags: int = os.O_RDONLY, *, follow: bool = False, folder: int | None = None
) -> int:
    """Open a regular file, which ``flags`` may create, and return its descriptor. Raises OSError.

    ``folder`` is the descriptor of the folder that ``path`` is in, if it is relative to one.
    """
    how = flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, how, FILE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "it is a link, which is not followed here", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return fd


def create(path: Name) -> int:
    """Create a file and return its descriptor, to write to it. OSError where anything has its name."""
    return open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


@contextlib.contextmanager
def written_anew(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A new file in the place of what has this name, on the disk once it is left. Raises OSError."""
    path.unlink(missing_ok=True)
    with open(create(path), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode & 0o777)
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Name) -> None:
    """Let the names in a folder outlive the machine. Raises OSError.

    Some file systems cannot, and then need not.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


@contextlib.contextmanager
def replaced(path: Path, check: Callable[[], object] = lambda: None) -> Iterator[BinaryIO]:
    """A new file that takes this name once it is left and all of it is on the disk. Raises OSError.

    ``check`` is called before it does, and may raise.
    """
    fresh = path.with_name(path.name + ".tmp")
    try:
        with written_anew(fresh) as file:
            yield file
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    check()
    os.replace(fresh, path)
    sync_folder(path.parent)


def lock(fd: int) -> bool:
    """Lock an open file for this process, unless another has; whether that is done.

    Some file systems have no locks: there it counts as done.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def make_folder(path: Path) -> None:
    """Make a folder where there is none. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER, exist_ok=True)


def belongs_to_nobody_else(found: os.stat_result, owners: frozenset[int]) -> bool:
    """Whether a file or folder belongs to one of these users or to root, and nobody else may write to it."""
    return found.st_uid in owners | {0} and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def warn_of_readers(path: str) -> None:
    """Log a warning, once, if every user of the machine may read this file, which holds a secret."""
    with contextlib.suppress(OSError):  # whoever reads it reports that
        if os.stat(path).st_mode & stat.S_IROTH:
            _log.warning(
                "%s holds a secret, and every user of this machine may read it: chmod o-r %s", path, path
            )


def physical_memory() -> int:
    """Bytes of memory that this machine, or the container of this process, has."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("utf-8").strip()
    except OSError:
        return found
    return min(found, int(limit)) if limit.isdecimal() else found
