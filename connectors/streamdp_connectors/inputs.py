"""Bytes from a file, a pipe or standard input, as they arrive; gzip and Zstandard are taken off."""

from __future__ import annotations

import os
import select
import stat
import time

from streamdp.errors import Exit
from streamdp_connectors import gunzip, unzstd
from streamdp_connectors.gunzip import Gunzip
from streamdp_connectors.protocol import SourceError
from streamdp_connectors.unzstd import Unzstd

BLOCK = 1 << 20
PACKERS: dict[bytes, tuple[str, type[Gunzip | Unzstd]]] = {
    gunzip.MAGIC: (".gz", Gunzip),
    unzstd.MAGIC: (".zst", Unzstd),
}
"""How packed files begin, what their names end in, and what unpacks them."""
_POLL = 0.1  # seconds between two looks at the end of a followed file


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
        """Whether all bytes are there already: nothing to wait for but the end of the file."""
        self.seekable = self.regular and path != "-"
        self._follow = follow and self.seekable
        self._next_fd = -1
        self._unpack: Gunzip | Unzstd | None = None
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
                if raw and any(len(self._head) < len(m) and m.startswith(self._head) for m in PACKERS):
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
        """Go on with the beginning of the file that took the name of this one; False when none did."""
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

    def _unpacker(self, head: bytes, name: str = "") -> Gunzip | Unzstd | None:
        """What unpacks bytes that begin so, or a file of that name."""
        for magic, (ending, packer) in PACKERS.items():
            if head.startswith(magic) or name.endswith(ending):
                return packer(self.path)
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
