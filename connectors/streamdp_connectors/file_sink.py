"""Write lines to a file, or to standard output."""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.left import STANDARD_OUTPUT, Left, is_what_was_left, remember, stranger, whole_lines
from streamdp_connectors.protocol import SinkClosed, SinkError

_BUFFER = 1 << 18


class FileSink:
    """One output file; ``-`` is standard output. No file is harmed that this stream did not write.

    A file that holds something is refused, unless ``overwrite`` gives it up. ``left`` is what ``state``
    returned at the snapshot from which a run goes on: then a file that begins with just what was written is
    gone on with, whatever its name is now, and what stands after it is cut off, for it is going to be written
    again. All that is cut must begin like this sink's own lines (``beginnings``). Where the file has been
    moved away, ``anew`` begins another. Unless what was written of is ``replayed``, nothing is cut but a torn
    line. Standard output, pipes and devices are never cut. Raises SinkError.
    """

    marks: tuple[Mapping[str, Any], ...] = ()
    """Nothing is marked in a file."""

    def __init__(
        self,
        path: str,
        left: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
        anew: bool = False,
        replayed: bool = True,
        beginnings: Sequence[bytes] = (b"{",),
    ) -> None:
        self._path = path
        self._replayed = replayed
        self._name = "standard output" if path == STANDARD_OUTPUT else path
        self._buffer: list[bytes] = []
        self._waiting = 0  # bytes in the buffer
        self._flushed = 0  # bytes in the file
        before = None if left is None else Left.of(left)
        if before is not None and path != STANDARD_OUTPUT and not os.path.exists(path):
            self._refuse_to_begin(before, anew)
        self._fd = 1 if path == STANDARD_OUTPUT else _open(path)
        self._file = path != STANDARD_OUTPUT and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._folder = os.path.dirname(path) or "."
        self._new = self._file  # the name itself has not been synced yet
        if self._file:
            self._take_over(before, overwrite, anew, beginnings)

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
        if sync:
            self._sync()

    def lasting(self) -> Callable[[], None]:
        """Return what brings all that was handed over by now to the disk."""
        return self._sync

    def _sync(self) -> None:
        if not self._file:
            return
        try:
            os.fsync(self._fd)
            if self._new:
                _sync_folder(self._folder)
                self._new = False
        except OSError as error:
            raise self._failed(error) from None

    def state(self) -> dict[str, Any]:
        """Return how the file is known again; to be asked for right after a flush. Raises SinkError."""
        if not self._file:
            return Left(self._path).plain()
        try:
            size = os.fstat(self._fd).st_size
            if size != self._flushed:
                raise SinkError(
                    f"{self._name} has {size} bytes where {self._flushed} were written: something else cut "
                    "or wrote it; to rotate it, stop, rename it, and go on with --new-output",
                    Exit.IO_ERROR,
                )
            return remember(self._path, self._fd, self._flushed).plain()
        except OSError as error:
            raise self._failed(error) from None

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

    def _take_over(self, left: Left | None, overwrite: bool, anew: bool, beginnings: Sequence[bytes]) -> None:
        try:
            size = os.fstat(self._fd).st_size
            if left is None:
                if size and not overwrite:
                    message = (
                        f"{self._path} exists: --overwrite replaces it, --state continues an earlier run"
                    )
                    raise SinkError(message, Exit.CANNOT_CREATE)
                self._cut(0)
            else:
                self._cut(self._length_kept(left, size, anew, beginnings))
        except SinkError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise self._failed(error) from None

    def _is_at(self, left: Left) -> bool:
        return os.path.realpath(self._path) == os.path.realpath(left.path)

    def _refuse_to_begin(self, left: Left, anew: bool) -> None:
        """Raise SinkError where an empty file would not hold the answers that went before."""
        if left.length == 0 or anew:
            return
        gone = "is gone or empty" if self._is_at(left) else "does not hold the answers so far"
        raise SinkError(
            f"{self._path} {gone}: the state has written {left.length} bytes to {left.path}; name that file "
            "as it is called now, or begin another with --new-output",
            Exit.BAD_DATA,
        )

    def _length_kept(self, left: Left, size: int, anew: bool, beginnings: Sequence[bytes]) -> int:
        """How much of the file is what was left of it; SinkError where it is another one."""
        if size == 0:
            self._refuse_to_begin(left, anew)
            return 0
        same = self._is_at(left)
        if left.length == 0 and not same:
            before = "standard output" if left.path == STANDARD_OUTPUT else left.path
            raise SinkError(
                f"{self._path} exists, and is not what this state wrote to ({before}): name another file",
                Exit.CANNOT_CREATE,
            )
        if not is_what_was_left(self._fd, left):
            what = (
                "has changed since this state wrote to it"
                if same
                else f"is not {left.path}, which this state wrote"
            )
            raise SinkError(
                f"{self._path} {what}: restore it, or name a new file with --new-output", Exit.BAD_DATA
            )
        strange = stranger(self._fd, left.length, beginnings)
        if strange is not None:
            raise SinkError(
                f"{self._path} goes on after byte {left.length} with what this stream did not write "
                f"({strange[:40]!r}): it would be cut; move it away, or name a new file with --new-output",
                Exit.BAD_DATA,
            )
        return left.length if self._replayed else whole_lines(self._fd, size)

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


def _open(path: str) -> int:
    if path.endswith(".gz"):
        raise SinkError(f"cannot write {path}: gzip output could not be cut and continued", Exit.USAGE)
    try:
        # a file is read too, to be known again; a pipe opened for both would never find its reader gone
        how = os.O_RDWR if not os.path.exists(path) or os.path.isfile(path) else os.O_WRONLY
        return os.open(path, how | os.O_CREAT, 0o666)
    except OSError as error:
        raise SinkError(f"cannot create {path}: {error.strerror}", Exit.CANNOT_CREATE) from None


def _sync_folder(folder: str) -> None:
    """Make a new file's name last; without that a crash may lose the whole file."""
    with contextlib.suppress(OSError):  # some file systems cannot, and then need not
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
