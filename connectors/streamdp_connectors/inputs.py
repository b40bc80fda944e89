"""Read bytes from a file, a pipe or standard input as they arrive, and unpack gzip and Zstandard."""

from __future__ import annotations

import os
import select
import stat
import time
import zlib
from typing import Any

from streamdp.errors import Exit
from streamdp_connectors.protocol import SourceError

BLOCK = 1 << 20
_POLL = 0.1  # seconds between two looks at the end of a followed file
_PIECE = 1 << 12  # packed bytes of Zstandard at a time: four of them may stand for 128 KiB


class Unpacker:
    """Unpacks a stream of one or more compressed frames; ``name`` is for messages. Raises SourceError."""

    kind: str
    magic: bytes
    """How such files begin; no UTF-8 text does."""
    ending: str
    """How their names end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packed = b""
        self._frame: Any = None

    def feed(self, packed: bytes) -> None:
        """Add packed bytes; take everything out before adding more."""
        self._packed += packed

    def take(self, limit: int) -> bytes:
        """Return up to ``limit`` unpacked bytes, b"" when more packed ones are needed."""
        raise NotImplementedError

    def finish(self) -> None:
        """Check, at the end of the packed stream, that it ends where a frame does."""
        if self._frame is not None:
            raise self._invalid("it ends too early")

    def _invalid(self, why: object) -> SourceError:
        return SourceError(f"{self._name} is not valid {self.kind}: {why}", Exit.BAD_DATA)


class Gunzip(Unpacker):
    """Unpacks gzip."""

    kind, magic, ending = "gzip", b"\x1f\x8b", ".gz"
    _more = False  # the last piece filled its limit, so zlib may hold some of the next

    def take(self, limit: int) -> bytes:
        """Unpack no more than ``limit`` bytes, so that a small file cannot fill the memory."""
        while self._packed or self._more:
            if self._frame is None:
                self._packed = self._packed.lstrip(b"\0")  # padding between and after members
                if not self._packed:
                    break
                self._frame = zlib.decompressobj(wbits=31)
            try:
                piece: bytes = self._frame.decompress(self._packed, limit)
            except zlib.error as error:
                raise self._invalid(error) from None
            self._more = len(piece) == limit
            self._packed = self._frame.unconsumed_tail
            if self._frame.eof:
                self._packed, self._frame, self._more = self._frame.unused_data, None, False
            if piece:
                return piece
        return b""


class Unzstd(Unpacker):
    """Unpacks Zstandard."""

    kind, magic, ending = "Zstandard", b"\x28\xb5\x2f\xfd", ".zst"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        try:
            import zstandard
        except ImportError:
            raise SourceError(
                f"{name} is Zstandard, and reading it needs one more package: pip install zstandard",
                Exit.UNAVAILABLE,
            ) from None
        self._library: Any = zstandard
        self._unpacked = b""

    def take(self, limit: int) -> bytes:
        """Unpack a few packed bytes at a time, so that a small file cannot fill the memory."""
        while not self._unpacked and self._packed:
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            piece, self._packed = self._packed[:_PIECE], self._packed[_PIECE:]
            try:
                self._unpacked = self._frame.decompress(piece)
            except self._library.ZstdError as error:
                raise self._invalid(error) from None
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data + self._packed, None
        found, self._unpacked = self._unpacked[:limit], self._unpacked[limit:]
        return found


UNPACKERS: tuple[type[Unpacker], ...] = (Gunzip, Unzstd)


class Input:
    """An open file, pipe or standard input (``-``). Every method may raise SourceError."""

    def __init__(self, path: str, follow: bool = False) -> None:
        self.path = path
        try:
            path.encode()
        except UnicodeEncodeError:  # positions could not be written as JSON
            raise SourceError(f"cannot read {path!a}: the file name is not UTF-8", Exit.USAGE) from None
        self._fd = 0 if path == "-" else _open(path)
        try:
            mode = os.fstat(self._fd).st_mode
        except OSError as error:
            raise SourceError(f"cannot read standard input: {error.strerror}", Exit.NO_INPUT) from None
        self.regular = stat.S_ISREG(mode)
        """Whether it is a file, whose bytes are all there already."""
        self.seekable = self.regular and path != "-"
        self._follow = follow and self.seekable
        self._next_fd = -1
        self._unpack: Unpacker | None = None
        self._head: bytes | None = b""  # of a pipe, until it shows whether it is gzip
        if self.seekable:
            self._head = None
            self._unpack = self._unpacker(self._peek(0, 4), path)
        if self._unpack is not None and follow:
            raise SourceError(f"{path}: a packed file cannot be followed", Exit.USAGE)

    def read(self, wait: float) -> bytes | None:
        """Return up to one block, b"" at the end, or None when nothing came within ``wait`` seconds.

        A followed file ends only when another has taken its name or it was cut; see ``reopen``.
        """
        while True:
            if self._unpack is not None:
                chunk = self._unpack.take(BLOCK)
                if chunk:
                    return chunk
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
                return raw
            if not raw:
                self._unpack.finish()
                return b""
            self._unpack.feed(raw)

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
        return True

    def goto(self, offset: int) -> bytes:
        """Continue ``offset`` bytes into the unpacked file; return the byte before, b"" at the start."""
        if not self.seekable:
            name = "standard input" if self.path == "-" else self.path
            raise SourceError(f"{name} cannot go to byte {offset}: only a file can be continued", Exit.USAGE)
        os.lseek(self._fd, 0, os.SEEK_SET)
        if self._unpack is not None:
            self._unpack = type(self._unpack)(self.path)
            return self._skip(offset)
        if os.fstat(self._fd).st_size < offset:
            raise _shorter(self.path, offset)
        os.lseek(self._fd, offset, os.SEEK_SET)
        return self._peek(offset - 1, 1) if offset else b""

    def close(self) -> None:
        """Close the file; standard input stays open."""
        for fd in (self._fd, self._next_fd):
            if fd > 0:
                os.close(fd)
        self._fd = self._next_fd = -1

    def _unpacker(self, head: bytes, name: str = "") -> Unpacker | None:
        """The unpacker for bytes that begin with ``head``, or for a file of that name."""
        for unpacker in UNPACKERS:
            if head.startswith(unpacker.magic) or name.endswith(unpacker.ending):
                return unpacker(self.path)
        return None

    def _receive(self, wait: float) -> bytes | None:
        try:
            if not self.regular and not select.select([self._fd], [], [], wait)[0]:
                return None
            return os.read(self._fd, BLOCK)
        except BlockingIOError:
            return None
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror}", Exit.IO_ERROR) from None

    def _tail(self, wait: float) -> bytes | None:
        deadline = time.monotonic() + wait
        while True:
            # Look first, then read: what was written to the old file until it was replaced is still read.
            replaced = self._replaced()
            chunk = self._receive(0.0)
            if chunk or (replaced and self._open_next()):
                return chunk
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
        if (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino):
            return True
        return held.st_size < os.lseek(self._fd, 0, os.SEEK_CUR)

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

    def _skip(self, offset: int) -> bytes:
        left, last = offset, b""
        while left:
            assert self._unpack is not None
            chunk = self._unpack.take(min(left, BLOCK))
            if not chunk:
                raw = self._receive(0.0)
                if not raw:
                    raise _shorter(self.path, offset)
                self._unpack.feed(raw)
            left -= len(chunk)
            last = chunk[-1:]
        return last


def _open(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SourceError(f"cannot open {path}: {error.strerror}", Exit.NO_INPUT) from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise SourceError(f"cannot read {path}: it is a directory", Exit.NO_INPUT)
    return fd


def _shorter(path: str, offset: int) -> SourceError:
    return SourceError(
        f"{path} is shorter than the {offset} bytes already read: it is not the same file", Exit.BAD_DATA
    )
