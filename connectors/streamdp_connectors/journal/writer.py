"""Write a journal, a group at a time, each on the disk before anybody hears of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

from streamdp.errors import Exit
from streamdp.safe_files import FILE, make_folder, sync_folder
from streamdp_connectors.journal.segments import damaged, group_at, groups, opened, packed, segments
from streamdp_connectors.protocol import SinkError

LARGEST = 16 << 20
"""Bytes of a file above which another is begun."""

_LINE = re.compile(rb"\n# ")


class Journal:
    """The journal in a folder, which is made where it is missing. One process writes to it.

    What a crash has left of the last group is cut off: nobody has heard that it was accepted. Raises
    SinkError where the folder cannot be made or written to, SourceError where what was written is damaged.
    """

    def __init__(self, folder: str | Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = Path(folder)
        self._clock = clock
        self._lock = threading.Lock()
        self._fd = -1
        self._size = 0
        self._cut = False
        self._grown = threading.Condition()
        self.closed = False
        try:
            make_folder(self.folder)
            self._last = self._recover()
        except OSError as error:
            raise SinkError(
                f"{folder}: the journal cannot be used: {error.strerror}", Exit.CANNOT_CREATE
            ) from None
        self.released = self.records
        """How many records readers may have."""

    def _recover(self) -> Path:
        """Open the last file, and cut off what was not written whole."""
        found = segments(self.folder)
        if not found:
            self.records = 0
            return self._begin()
        path, self.records = found[-1]
        self._fd = opened(path, os.O_RDWR)
        for group in groups(self._fd):
            self.records += len(group.records)
            self._size += group.size
        if has_group_after(self._fd, self._size):
            raise damaged(path, self.records)
        os.ftruncate(self._fd, self._size)
        return path

    def _begin(self) -> Path:
        """Begin a file for what comes next."""
        path = self.folder / f"journal-{self.records + 1:015d}.sdj"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE)
        sync_folder(self.folder)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size, self._cut = fd, 0, False
        return path

    def append(self, records: list[bytes]) -> int:
        """Write records, and bring them to the disk; return the number of the first, from 1. Raises OSError.

        Where that fails none of them was accepted. Readers see them after ``release``.
        """
        group = packed(self._clock(), records)
        with self._lock:
            if self._size and (self._cut or self._size >= LARGEST):
                self._last = self._begin()
            try:
                _write(self._fd, group, self._size)
                os.fdatasync(self._fd)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self._size)
                raise
            self._size += len(group)
            first = self.records + 1
            self.records += len(records)
        return first

    def release(self) -> None:
        """Let readers have all that was appended."""
        with self._grown:
            self.released = self.records
            self._grown.notify_all()

    def wait(self, beyond: int, seconds: float) -> bool:
        """Wait until readers may have more than so many records; whether they may."""
        with self._grown:
            self._grown.wait_for(lambda: self.released > beyond or self.closed, seconds)
            return self.released > beyond

    def prune(self, covered: int, keep: int = 0) -> None:
        """Begin a new file with the next group, and remove those of which all records are ``covered``.

        The newest of these stay as far as they have ``keep`` bytes in all.
        """
        with self._lock:
            self._cut = True
            found = segments(self.folder)
            old = [path for (path, _), later in itertools.pairwise(found) if later.before <= covered]
            for path in reversed(old):
                with contextlib.suppress(OSError):
                    keep -= path.stat().st_size
                    if keep < 0:
                        path.unlink()

    def close(self) -> None:
        """Write no more, and let readers know; again is harmless."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
        with self._grown:
            self.closed = True
            self._grown.notify_all()


def has_group_after(fd: int, offset: int) -> bool:
    """Whether behind a group that is not whole there is another one, which is.

    Groups are written one after the other, so that only the last can be torn.
    """
    rest = os.pread(fd, os.fstat(fd).st_size - offset, offset)
    places = (found.end() - 2 for found in _LINE.finditer(rest, 1))
    return any(group_at(fd, offset + at) is not None for at in places)


def _write(fd: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        done = os.pwrite(fd, left, offset)
        left, offset = left[done:], offset + done
