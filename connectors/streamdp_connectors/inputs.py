"""Read bytes from a file, a pipe or standard input as they arrive, and know a file again that was read."""

from __future__ import annotations

import logging
import os
import select
import stat
import time
from collections.abc import Mapping

from streamdp.errors import Exit
from streamdp_connectors.files.checkpoint import EDGE, edges
from streamdp_connectors.packed import UNPACKERS, Unpacker, Windows1252
from streamdp_connectors.protocol import SourceError

BLOCK = 1 << 20
WORK = 0.1
"""Seconds that a read may work without a result."""

SAMPLE = 4 << 20
"""Bytes by which it is recognised how a table is written."""

_PACKED = 1 << 16  # bytes of a packed file that are read at a time
_POLL = 0.1  # seconds between two looks at the end of a followed file
_log = logging.getLogger(__name__)

Known = Mapping[str, int]
"""By what a file is known again: its ``inode``, and the ``length``, ``head`` and ``tail`` of what was read.

The last two are checksums, as ``edges`` makes them.
"""


_ahead: dict[tuple[int, int], bytes] = {}
"""What was read of standard input before, by its device and inode."""


def first_of_input() -> list[bytes]:
    """The first lines of standard input, as they come; they are read again. Raises SourceError."""
    try:
        packed = _ahead.get(_which(0)) or os.read(0, BLOCK)
        _ahead[_which(0)] = packed
    except OSError:
        return []
    unpacker = next((each("-") for each in UNPACKERS if packed.startswith(each.magic)), None)
    if unpacker is not None:
        unpacker.feed(packed)
        packed = unpacker.take(BLOCK)
    lines = packed.split(b"\n")
    return [line for line in lines[:-1] or lines if line.strip()]


def _which(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Input:
    """An open file, pipe or standard input (``-``). Every method may raise SourceError.

    A file that is a ``table``, and is not followed, may be in Windows-1252.
    """

    def __init__(self, path: str, follow: bool = False, table: bool = False) -> None:
        self.path = path
        try:
            path.encode()
        except UnicodeEncodeError:  # positions could not be written as JSON
            raise SourceError(f"cannot read {path!a}: the file name is not UTF-8", Exit.USAGE) from None
        self._fd = 0 if path == "-" else _open(path)
        try:
            status = os.fstat(self._fd)
        except OSError as error:
            raise SourceError(f"cannot read standard input: {error.strerror}", Exit.NO_INPUT) from None
        self.regular = stat.S_ISREG(status.st_mode)
        """Whether it is a file, whose bytes are all there already."""
        self.seekable = self.regular and path != "-"
        self._follow = follow and self.seekable
        self._next_fd = -1
        self._unpack: Unpacker | None = None
        self._head: bytes | None = b""  # of a pipe, until it shows whether it is gzip
        self._length = status.st_size  # of a packed file
        self._skip = 0  # unpacked bytes that are not wanted again
        self.before = b""
        """After ``goto`` and the next block: the byte before it, b"" at the beginning."""
        self._restart()
        if self.seekable:
            self._head = None
            self._unpack = self._unpacker(self._peek(0, 4), path)
            if table and not follow and self._unpack is None and Windows1252.wrote(self._peek(0, SAMPLE)):
                self._unpack = Windows1252(path)
        if self._unpack is not None and follow:
            raise SourceError(f"{path}: a file that is packed or in UTF-16 cannot be followed", Exit.USAGE)

    @property
    def encoding(self) -> str | None:
        """What a table is written in that is no UTF-8 and does not say so."""
        return Windows1252.kind if isinstance(self._unpack, Windows1252) else None

    @property
    def packed(self) -> bool:
        """Whether it is unpacked while it is read."""
        return self._unpack is not None

    def read(self, wait: float) -> bytes | None:
        """Return up to one block, b"" at the end, or None when nothing came within ``wait`` seconds.

        A followed file ends only when another has taken its name or it was cut; see ``reopen``.
        """
        deadline = time.monotonic() + max(wait, WORK)
        while True:
            more = False
            if self._unpack is not None:
                chunk = self._unpack.take(BLOCK)
                if self._skip:
                    wanted = chunk[self._skip :]
                    skipped = len(chunk) - len(wanted)
                    self.before = chunk[skipped - 1 : skipped] or self.before
                    self._skip -= skipped
                    more, chunk = bool(chunk), wanted
                if chunk:
                    return chunk
                if time.monotonic() > deadline:
                    return None
                if more:
                    continue
            raw = self._tail(wait) if self._follow else self._receive(wait)
            if raw is None:
                return None
            if self._head is not None:
                self._head += raw
                if raw and any(
                    len(self._head) < len(u.magic) and u.magic.startswith(self._head) for u in UNPACKERS
                ):
                    continue
                raw, self._head = self._head, None
                self._unpack = self._unpacker(raw)
            if self._unpack is None:
                return self._noted(raw) if self.seekable else raw
            if not raw:
                self._unpack.finish()
                if self._skip:
                    raise _shorter(self.path)
                return b""
            self._unpack.feed(raw)

    def known(self, offset: int) -> dict[str, int] | None:
        """By what the file is known again after ``offset`` unpacked bytes; None for a pipe."""
        if not self.seekable or self._fd < 0:
            return None
        length = self._length if self.packed else offset
        head, tail = edges(self._fd, length)
        return {"inode": os.fstat(self._fd).st_ino, "length": length, "head": head, "tail": tail}

    def is_same(self, known: Known) -> bool:
        """Whether this file begins with what was read of the known one."""
        return _is_same(self._fd, known)

    def turn_back(self, known: Known) -> str | None:
        """Read first the known file, which was renamed; its new name, or None if it is not found."""
        for entry in os.scandir(os.path.dirname(self.path) or "."):
            if entry.inode() != known["inode"] or not entry.is_file(follow_symlinks=False):
                continue
            fd = _open(entry.path)
            if _is_same(fd, known):
                os.close(self._fd)
                self._fd = fd
                return entry.path
            os.close(fd)
        return None

    def share(self) -> float | None:
        """How much of a file has been read, from 0 to 1; None for a pipe, and while it is followed."""
        if not self.seekable or self._follow:
            return None
        size = os.fstat(self._fd).st_size
        return os.lseek(self._fd, 0, os.SEEK_CUR) / size if size else 1.0

    def reopen(self) -> bool:
        """Go on with the beginning of the file that took this one's name; return False if none did."""
        if self._next_fd < 0:
            return False
        os.close(self._fd)
        self._fd, self._next_fd = self._next_fd, -1
        self._restart()
        return True

    def goto(self, offset: int) -> None:
        """Continue ``offset`` bytes into the unpacked file."""
        if not self.seekable:
            name = "standard input" if self.path == "-" else self.path
            raise SourceError(f"{name} cannot go to byte {offset}: only a file can be continued", Exit.USAGE)
        if self._unpack is not None:
            os.lseek(self._fd, 0, os.SEEK_SET)
            self._unpack, self._skip, self.before = type(self._unpack)(self.path), offset, b""
            return
        if os.fstat(self._fd).st_size < offset:
            raise _shorter(self.path)
        os.lseek(self._fd, offset, os.SEEK_SET)
        self._restart(offset)
        self.before = self._last[-1:]

    def close(self) -> None:
        """Close the file; standard input stays open."""
        for fd in (self._fd, self._next_fd):
            if fd > 0:
                os.close(fd)
        self._fd = self._next_fd = -1

    def _unpacker(self, head: bytes, name: str = "") -> Unpacker | None:
        """The unpacker for bytes that begin with ``head``, or for a file of that name."""
        for unpacker in UNPACKERS:
            ending = unpacker.ending
            if head.startswith(unpacker.magic) or (ending is not None and name.endswith(ending)):
                return unpacker(self.path)
        return None

    def _receive(self, wait: float) -> bytes | None:
        try:
            if self._fd == 0 and _ahead and (ahead := _ahead.pop(_which(0), None)) is not None:
                return ahead
            if not self.regular and not select.select([self._fd], [], [], wait)[0]:
                return None
            return os.read(self._fd, BLOCK if self._unpack is None else _PACKED)
        except BlockingIOError:
            return None
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror}", Exit.IO_ERROR) from None

    def _restart(self, read: int = 0) -> None:
        """Begin to remember what is read of a file, after ``read`` bytes."""
        self._read, self._stamp = read, (-1, 0)  # size and time of change when it was last found unchanged
        self._first = self._peek(0, min(read, EDGE)) if read else b""
        self._last = self._peek(max(read - EDGE, 0), min(read, EDGE)) if read else b""

    def _noted(self, chunk: bytes) -> bytes:
        """Remember the edges of what was read; at the end of a file check that it was one file."""
        if not chunk and not self._follow and self._was_cut():
            raise SourceError(
                f"{self.path} has changed while it was read: what it held is lost in part", Exit.BAD_DATA
            )
        self._first += chunk[: EDGE - len(self._first)]
        self._last = chunk[-EDGE:] if len(chunk) >= EDGE else (self._last + chunk)[-EDGE:]
        self._read += len(chunk)
        return chunk

    def _was_cut(self) -> bool:
        """Whether the open file no longer begins with what was read of it."""
        now = os.fstat(self._fd)
        stamp = now.st_size, now.st_mtime_ns
        if stamp == self._stamp:
            return False
        first, last = self._first, self._last
        if self._peek(0, len(first)) != first or self._peek(self._read - len(last), len(last)) != last:
            return True
        self._stamp = stamp
        return False

    def _tail(self, wait: float) -> bytes | None:
        deadline = time.monotonic() + wait
        while True:
            # Look first, then read: what was written to the old file until it was replaced is still read.
            replaced = self._replaced()
            chunk = self._receive(0.0)
            cut = self._was_cut()
            if chunk and not (cut and self._peek(self._read, len(chunk)) == chunk):
                return chunk  # it followed what was read, and no part of what was written anew
            if (replaced or cut) and self._open_next():
                if cut:
                    _log.warning("%s was cut and written anew: going on with its beginning", self.path)
                return b""
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(_POLL, left))

    def _replaced(self) -> bool:
        try:
            named = os.stat(self.path)
        except OSError:  # moved away, and nothing in its place yet
            return False
        held = os.fstat(self._fd)
        return (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino)

    def _open_next(self) -> bool:
        if self._next_fd < 0:
            try:
                self._next_fd = _open(self.path)
            except SourceError:
                if os.path.exists(self.path):
                    raise
                return False
        return True

    def _peek(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror}", Exit.IO_ERROR) from None


def _open(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SourceError(f"cannot open {path}: {error.strerror}", Exit.NO_INPUT) from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise SourceError(f"cannot read {path}: it is a directory", Exit.NO_INPUT)
    return fd


def _is_same(fd: int, known: Known) -> bool:
    length = known["length"]
    return os.fstat(fd).st_size >= length and edges(fd, length) == (known["head"], known["tail"])


def _shorter(path: str) -> SourceError:
    return SourceError(f"{path} is shorter than what was read of it: it is not the same file", Exit.BAD_DATA)
