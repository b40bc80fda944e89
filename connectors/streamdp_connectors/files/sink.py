"""Write lines, or rejected records, to a file or to standard output."""

from __future__ import annotations

import base64
import contextlib
import errno
import logging
import os
import select
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp.records import Reject
from streamdp.safe_files import FILE, lock, sync_folder
from streamdp_connectors.files.checkpoint import (
    STANDARD_OUTPUT,
    Claim,
    FileCheckpoint,
    remember,
    unused,
)
from streamdp_connectors.protocol import SinkClosed, SinkError

_log = logging.getLogger(__name__)
_BUFFER = 1 << 18


class OutputFile:
    """One output file; ``-`` is standard output. It harms no file that this stream did not write.

    A file that holds something is refused, unless ``overwrite`` gives it up. ``left`` is what ``state``
    returned at the snapshot that a run resumes from. A file that begins with what was written by then is
    continued, whatever its name is now; what follows is cut off, because it will be written again. All lines
    that are cut must begin like this sink's own (``beginnings``). If the file has been moved away, ``anew``
    begins another. If the records are not ``replayed``, only a torn line is cut. Standard output, pipes and
    devices are never cut. A link is followed, unless the name is a ``proposed`` one that no user has written.

    One process writes to a file, and locks it. Whenever lines are handed over, the file must be as it was
    written: a file that something else deleted, replaced, cut or wrote gets no more lines. Raises SinkError.
    """

    def __init__(
        self,
        path: str,
        left: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
        anew: bool = False,
        replayed: bool = True,
        beginnings: Sequence[bytes] = (b"{",),
        at_once: bool = True,
        proposed: bool = False,
    ) -> None:
        self.path = path
        """Where the file is, or will be."""
        self._links = os.O_NOFOLLOW if proposed else 0
        self._buffer: list[bytes] = []
        self._waiting = 0  # bytes in the buffer
        self._flushed = 0  # bytes in the file
        self._broken = self._moved = self._ends = False
        self._fd, self._file = -1, False
        before = None if left is None else FileCheckpoint.of(left)
        self._claim = Claim(path, before, overwrite, anew, replayed, beginnings)
        if at_once:
            self._begin()

    def _begin(self) -> None:
        """Open the file."""
        standard = self.path == STANDARD_OUTPUT
        if not standard:
            self._claim.check_name()
        self._fd = 1 if standard else _open(self.path, self._links)
        self._file = not standard and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._new = self._file  # the name itself has not been synced yet
        if self._file:
            self._take_over()

    def append(self, lines: bytes) -> None:
        """Append whole lines. Raises SinkError, or SinkClosed when nobody reads any more."""
        self._buffer.append(lines)
        self._waiting += len(lines)
        if self._waiting >= _BUFFER:
            self._drain()

    def flush(self, sync: bool) -> None:
        """Hand everything to the operating system; with ``sync`` also to the disk. Raises as ``append``."""
        self._drain()
        if sync:
            self._sync()

    def lasting(self) -> Callable[[], None]:
        """Return a function that brings everything handed over so far to the disk."""
        return self._sync

    def _sync(self) -> None:
        if not self._file:
            return
        with self._writing():
            os.fsync(self._fd)
            if self._new:
                sync_folder(os.path.dirname(self.path) or ".")
                self._new = False

    def state(self) -> dict[str, Any]:
        """Return how to recognise the file; to be called right after a flush. Raises SinkError."""
        if not self._file:
            return FileCheckpoint(self.path if self._fd >= 0 else os.path.abspath(self.path)).plain()
        with self._writing():
            self._check()
            if self._ends:
                return FileCheckpoint(os.path.abspath(self.path)).plain()
            return remember(self.path, self._fd, self._flushed).plain()

    def leave(self) -> bool:
        """Whether somebody has renamed the file: then ``state`` says from now on that another is begun.

        To be called right after a synced flush. ``begin_anew`` does it once a snapshot holds this state.
        Raises SinkError.
        """
        if self._file:
            with self._writing():
                self._ends = not self._is_at_its_name(os.fstat(self._fd))
        return self._ends

    def begin_anew(self) -> None:
        """Begin a file of the old name. Raises SinkError."""
        with self._writing():
            fd = _open(self.path, self._links)
            try:
                _lock(fd, self.path)
                if os.fstat(fd).st_size:
                    self._stop("was moved away, and another file stands there")
            except BaseException:
                os.close(fd)
                raise
            os.close(self._fd)
        self._fd, self._flushed, self._new = fd, 0, True
        self._ends = self._moved = False

    def close(self) -> None:
        """Flush and close the file; standard output stays open."""
        if self._fd < 0:
            return
        try:
            if not self._broken:
                self._drain()
        finally:
            if self._fd != 1:
                os.close(self._fd)
            self._fd = -1

    def _take_over(self) -> None:
        """Lock the file and cut it to what stays; close it if that is not allowed."""
        try:
            with self._writing():
                _lock(self._fd, self.path)
                self._flushed = self._claim.length_kept(self._fd)
                if os.fstat(self._fd).st_size > self._flushed:
                    os.ftruncate(self._fd, self._flushed)
        except SinkError:
            self._broken = True
            self.close()
            raise

    def _drain(self) -> None:
        left = memoryview(b"".join(self._buffer))
        self._buffer.clear()
        self._waiting = 0
        with self._writing():
            self._check()
            while left:
                try:
                    done = os.write(self._fd, left)
                except BlockingIOError:  # a pipe that another program made non-blocking, and is full
                    select.select([], [self._fd], [])
                    continue
                self._flushed += done
                left = left[done:]
                self._check()

    def _check(self) -> None:
        """Check that the file is still there, and as it was written. Raises SinkError, OSError."""
        if not self._file:
            return
        held = os.fstat(self._fd)
        if held.st_nlink == 0:
            self._stop("was deleted or replaced while it was written")
        if held.st_size != self._flushed:
            self._stop(
                f"has {held.st_size} bytes where {self._flushed} were written: something else cut or wrote it"
            )
        if not self._moved and not self._is_at_its_name(held):
            self._moved = True
            _log.warning("%s was moved away: its lines go where it is now until SIGHUP", self.path)

    def _stop(self, what: str) -> None:
        self._broken = True
        raise SinkError(
            f"{self.path} {what}; nothing more is written, a state goes on with --new-output "
            "(to rotate a file, rename it and send SIGHUP)",
            Exit.IO_ERROR,
        )

    def _is_at_its_name(self, held: os.stat_result) -> bool:
        try:
            return os.path.samestat(held, os.stat(self.path))
        except OSError:
            return False

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise what the system says as SinkError, or SinkClosed when nobody reads any more."""
        name = "standard output" if self.path == STANDARD_OUTPUT else self.path
        try:
            yield
        except BrokenPipeError:
            raise SinkClosed(f"nobody reads {name} any more") from None
        except OSError as error:
            raise SinkError(f"cannot write {name}: {error.strerror}", Exit.IO_ERROR) from None


class FileSink(OutputFile):
    """A file of lines."""

    write = OutputFile.append


class RejectSink(OutputFile):
    """The file of rejected records, created when the first one comes.

    Each line is ``{"position", "reason", "detail", "data"}``, with ``data_base64`` instead of ``data`` for
    bytes that are not UTF-8. A file that is in the way is refused at once. If the path is ``spare``, a mere
    proposal, a number is put before its ending until no such file exists. The rest is as of OutputFile.
    """

    def __init__(
        self, path: str, left: Mapping[str, Any] | None = None, *, spare: bool = False, **how: bool
    ) -> None:
        self._spare = spare
        there = (left is not None and left["length"] > 0) or (os.path.lexists(path) and not spare)
        at_once = path == STANDARD_OUTPUT or path.endswith(".gz") or there
        super().__init__(path, left, beginnings=(b'{"position":',), at_once=at_once, **how)

    def write(self, reject: Reject) -> None:
        """Append one rejected record. Raises SinkError or SinkClosed."""
        if self._fd < 0:
            if self._spare:
                self.path = unused(self.path)
                self._claim = self._claim._replace(path=self.path)
            self._begin()
        self.append(reject_line(reject))


def reject_line(reject: Reject) -> bytes:
    """Return the JSON line that stands for a rejected record, with its newline."""
    line: dict[str, Any] = {"position": reject.position, "reason": reject.reason, "detail": reject.detail}
    try:
        line["data"] = reject.data.decode()
    except UnicodeDecodeError:
        line["data_base64"] = base64.b64encode(reject.data).decode()
    return msgspec.json.encode(line) + b"\n"


def _open(path: str, links: int = 0) -> int:
    if path.endswith(".gz"):
        raise SinkError(f"cannot write {path}: gzip output could not be cut and continued", Exit.USAGE)
    try:
        # a file is read too, to be known again; a pipe opened for both would never find its reader gone.
        # Appending, a line that is under way when another program cuts the file leaves no hole.
        file = not os.path.exists(path) or os.path.isfile(path)
        how = os.O_RDWR | os.O_APPEND if file else os.O_WRONLY
        return os.open(path, how | os.O_CREAT | links, FILE)
    except OSError as error:
        what = {errno.ELOOP: "it is a link, followed only where you name it"}
        what[errno.ENOENT] = f"there is no folder {os.path.dirname(path)}, make it first"
        raise SinkError(
            f"cannot create {path}: {what.get(error.errno or 0, error.strerror)}", Exit.CANNOT_CREATE
        ) from None


def _lock(fd: int, path: str) -> None:
    """Lock a file against other runs while it is open. Raises SinkError."""
    if not lock(fd):
        raise SinkError(
            f"{path}: another streamdp process writes to it; stop that one, or name another file",
            Exit.CANNOT_CREATE,
        )
