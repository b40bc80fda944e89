"""Write lines to a file, or to standard output."""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Mapping
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.protocol import SinkClosed, SinkError

_BUFFER = 1 << 18


class FileSink:
    """One output file; ``-`` is standard output.

    A file that holds something is refused, unless ``resume_length`` says how many of its bytes count
    (the rest is cut off: it is going to be written again) or ``overwrite`` gives it up. Standard output,
    pipes and devices are never cut, and their length is 0. Raises SinkError.
    """

    marks: tuple[Mapping[str, Any], ...] = ()
    """Nothing is marked in a file."""

    def __init__(self, path: str, resume_length: int | None = None, overwrite: bool = False) -> None:
        self._name = "standard output" if path == "-" else path
        self._buffer: list[bytes] = []
        self._waiting = 0  # bytes in the buffer
        self._flushed = 0  # bytes in the file
        self._fd = 1 if path == "-" else self._open(path, resume_length, overwrite)
        self._file = path != "-" and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._folder = os.path.dirname(path) or "."
        self._new = self._file  # the name itself has not been synced yet
        if self._file:
            self._check(path, resume_length, overwrite)

    def mark(self, positions: Mapping[str, Any]) -> None:
        """A file does not tell how the source was read."""

    def write(self, lines: bytes) -> None:
        """Append whole lines. Raises SinkError, or SinkClosed when nobody reads any more."""
        self._buffer.append(lines)
        self._waiting += len(lines)
        if self._waiting >= _BUFFER:
            self._drain()

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk. Raises as ``write``."""
        self._drain()
        if not (sync and self._file):
            return
        try:
            os.fsync(self._fd)
            if self._new:
                _sync_folder(self._folder)
                self._new = False
        except OSError as error:
            raise self._failed(error) from None

    def state(self) -> int:
        """Return the length of the file with everything written so far, in bytes; 0 unless it is a file."""
        return self._flushed + self._waiting if self._file else 0

    def close(self) -> None:
        """Flush and close the file; standard output stays open."""
        if self._fd < 0:
            return
        try:
            self._drain()
        finally:
            if self._fd != 1:
                os.close(self._fd)
            self._fd = -1

    def _open(self, path: str, resume_length: int | None, overwrite: bool) -> int:
        if path.endswith(".gz"):
            raise SinkError(f"cannot write {path}: gzip output could not be cut and continued", Exit.USAGE)
        if resume_length and not os.path.exists(path):
            raise SinkError(
                f"{path} is gone, but the state says it holds {resume_length} bytes", Exit.BAD_DATA
            )
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        except OSError as error:
            raise SinkError(f"cannot create {path}: {error.strerror}", Exit.CANNOT_CREATE) from None

    def _check(self, path: str, resume_length: int | None, overwrite: bool) -> None:
        self._flushed = os.fstat(self._fd).st_size
        try:
            if resume_length is not None:
                if self._flushed < resume_length:
                    message = f"{path} has {self._flushed} bytes; the state says it holds {resume_length}"
                    raise SinkError(message, Exit.BAD_DATA)
                self._cut(resume_length)
            elif self._flushed and not overwrite:
                message = f"{path} exists: --overwrite replaces it, --state continues an earlier run"
                raise SinkError(message, Exit.CANNOT_CREATE)
            else:
                self._cut(0)
        except SinkError:
            self.close()
            raise

    def _cut(self, length: int) -> None:
        try:
            os.ftruncate(self._fd, length)
            os.lseek(self._fd, length, os.SEEK_SET)
        except OSError as error:
            raise self._failed(error) from None
        self._flushed = length

    def _drain(self) -> None:
        left = memoryview(b"".join(self._buffer))
        self._buffer.clear()
        self._waiting = 0
        try:
            while left:
                try:
                    done = os.write(self._fd, left)
                except BlockingIOError:  # a pipe that another program made non-blocking, and is full
                    select.select([], [self._fd], [])
                    continue
                self._flushed += done
                left = left[done:]
        except BrokenPipeError:
            raise SinkClosed(f"nobody reads {self._name} any more") from None
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> SinkError:
        return SinkError(f"cannot write {self._name}: {error.strerror}", Exit.IO_ERROR)


def _sync_folder(folder: str) -> None:
    """Make a new file's name last; without that a crash may lose the whole file."""
    with contextlib.suppress(OSError):  # some file systems cannot, and then need not
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
