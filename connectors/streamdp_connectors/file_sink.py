"""Write lines to a file, or to standard output."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import select
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.left import STANDARD_OUTPUT, Left, remember
from streamdp_connectors.protocol import SinkClosed, SinkError
from streamdp_connectors.rotate import Rotation, rotated_name
from streamdp_connectors.take_over import Claim

_log = logging.getLogger(__name__)
_BUFFER = 1 << 18


class FileSink:
    """One output file; ``-`` is standard output. No file is harmed that this stream did not write.

    A file that holds something is refused, unless ``overwrite`` gives it up. ``left`` is what ``state``
    returned at the snapshot from which a run goes on: then a file that begins with just what was written is
    gone on with, whatever its name is now, and what stands after it is cut off, for it is going to be written
    again. All that is cut must begin like this sink's own lines (``beginnings``). Where the file has been
    moved away, ``anew`` begins another. Unless what was written of is ``replayed``, nothing is cut but a torn
    line. Standard output, pipes and devices are never cut.

    One process writes to a file: it is locked. Whenever lines are handed over, it must be what was written
    before: a file that something else deleted, replaced, cut or wrote gets no line more. Raises SinkError.
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
        self._name = "standard output" if path == STANDARD_OUTPUT else path
        self._buffer: list[bytes] = []
        self._waiting = 0  # bytes in the buffer
        self._flushed = 0  # bytes in the file
        self._begun = 0.0  # when, in seconds since the epoch
        self._broken = self._moved = self._rotating = False
        self._full: Left | None = None  # what is being rotated, under its new name
        how = {"overwrite": overwrite, "anew": anew, "replayed": replayed, "beginnings": beginnings}
        claim = Claim.of(path, left, **how)
        if path != STANDARD_OUTPUT:
            claim.check_name()
        self._fd = 1 if path == STANDARD_OUTPUT else _open(path)
        self._file = path != STANDARD_OUTPUT and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._folder = os.path.dirname(path) or "."
        self._new = self._file  # the name itself has not been synced yet
        if self._file:
            self._take_over(claim)

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
            self._check()
            if self._rotating:
                return Left(os.path.abspath(self._path), rotated=self._full).plain()
            return remember(self._path, self._fd, self._flushed).plain()
        except OSError as error:
            raise self._failed(error) from None

    def full(self, rotation: Rotation | None) -> bool:
        """Whether the file is to be rotated; without a rule, whether there is anything to rotate."""
        if not self._file:
            return False
        if rotation is None:
            return self._flushed > 0 or not self._is_at_its_name(os.fstat(self._fd))
        return self._flushed > 0 and rotation.due(self._flushed, self._begun, time.time())

    def begin_rotation(self) -> str:
        """Choose what the file will be called; to be asked for right after a synced flush. Raises SinkError.

        From now on ``state`` says that the file has been rotated. With that in a snapshot, ``rotate`` does
        it, and where it could not any more, the run that goes on does.
        """
        try:
            if self._is_at_its_name(os.fstat(self._fd)):
                name = os.path.abspath(rotated_name(self._path, time.time()))
                self._full = remember(name, self._fd, self._flushed)
            else:  # somebody has renamed it already
                self._full, name = None, ""
        except OSError as error:
            raise self._failed(error) from None
        self._rotating = True
        return name

    def rotate(self) -> None:
        """Give the file its new name and begin another of the old one. Raises SinkError."""
        try:
            if self._full is not None:
                os.rename(self._path, self._full.path)
            fd = _open(self._path)
            try:
                _lock(fd, self._path)
                if os.fstat(fd).st_size:
                    self._stop("was moved away, and another file stands there")
            except BaseException:
                os.close(fd)
                raise
            os.close(self._fd)
        except OSError as error:
            raise self._failed(error) from None
        self._fd, self._flushed, self._begun = fd, 0, time.time()
        self._rotating = self._moved = False
        self._full, self._new = None, True

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

    def _take_over(self, claim: Claim) -> None:
        """Lock the file, and cut it to what stays. Closes it where it may not be touched."""
        try:
            _lock(self._fd, self._path)
            if claim.end_rotation(self._fd):
                os.close(self._fd)
                self._fd = _open(self._path)
                _lock(self._fd, self._path)
            self._begun = os.fstat(self._fd).st_mtime
            self._flushed = claim.length_kept(self._fd)
            if os.fstat(self._fd).st_size > self._flushed:
                os.ftruncate(self._fd, self._flushed)
        except SinkError:
            self._give_up()
            raise
        except OSError as error:
            self._give_up()
            raise self._failed(error) from None

    def _give_up(self) -> None:
        self._broken = True
        self.close()

    def _drain(self) -> None:
        left = memoryview(b"".join(self._buffer))
        self._buffer.clear()
        self._waiting = 0
        try:
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
        except BrokenPipeError:
            raise SinkClosed(f"nobody reads {self._name} any more") from None
        except OSError as error:
            raise self._failed(error) from None

    def _check(self) -> None:
        """See that the file is still there, and as it was written. Raises SinkError, OSError."""
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
            _log.warning("%s was moved away: its lines go where it is now until SIGHUP", self._path)

    def _stop(self, what: str) -> None:
        self._broken = True
        raise SinkError(
            f"{self._path} {what}; nothing more is written, a state goes on with --new-output "
            "(to rotate a file: --rotate, or rename it and send SIGHUP)",
            Exit.IO_ERROR,
        )

    def _is_at_its_name(self, held: os.stat_result) -> bool:
        try:
            return os.path.samestat(held, os.stat(self._path))
        except OSError:
            return False

    def _failed(self, error: OSError) -> SinkError:
        return SinkError(f"cannot write {self._name}: {error.strerror}", Exit.IO_ERROR)


def _open(path: str) -> int:
    if path.endswith(".gz"):
        raise SinkError(f"cannot write {path}: gzip output could not be cut and continued", Exit.USAGE)
    try:
        # a file is read too, to be known again; a pipe opened for both would never find its reader gone.
        # Appending, a line that is under way when another program cuts the file leaves no hole.
        file = not os.path.exists(path) or os.path.isfile(path)
        how = os.O_RDWR | os.O_APPEND if file else os.O_WRONLY
        return os.open(path, how | os.O_CREAT, 0o666)
    except OSError as error:
        raise SinkError(f"cannot create {path}: {error.strerror}", Exit.CANNOT_CREATE) from None


def _lock(fd: int, path: str) -> None:
    """Keep other runs off a file, for as long as it is open. Raises SinkError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SinkError(
            f"{path}: another streamdp process writes to it; stop that one, or name another file",
            Exit.CANNOT_CREATE,
        ) from None
    except OSError:  # some file systems have no locks
        pass


def _sync_folder(folder: str) -> None:
    """Make a new file's name last; without that a crash may lose the whole file."""
    with contextlib.suppress(OSError):  # some file systems cannot, and then need not
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
