"""How a run goes on with an output file: recognised by its contents, cut to what stays."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from streamdp.errors import Exit
from streamdp_connectors.protocol import SinkError

EDGE = 1 << 16
"""Bytes at the beginning and at the end of what was written that are remembered by their checksum."""

STANDARD_OUTPUT = "-"

Number = Annotated[int, Meta(ge=0, lt=1 << 62)]


class FileCheckpoint(msgspec.Struct, frozen=True):
    """What a snapshot remembers of an output file.

    ``path`` is absolute, or ``-``; ``length`` counts the bytes written; ``head`` and ``tail`` are the CRC-32
    of the first and the last 64 KiB of them. So two short reads recognise a file of any size.
    """

    path: Annotated[str, Meta(pattern=r"^[^\0]*$")]
    length: Number = 0
    head: Number = 0
    tail: Number = 0

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> FileCheckpoint:
        """The inverse of ``plain``. Raises SinkError (65) for anything else."""
        try:
            return msgspec.convert(stored, cls)
        except msgspec.ValidationError as error:
            raise SinkError(f"the state does not say what an output holds ({error})", Exit.BAD_DATA) from None

    def plain(self) -> dict[str, Any]:
        """As a snapshot stores it."""
        stored: dict[str, Any] = msgspec.to_builtins(self)
        return stored


def edges(fd: int, length: int) -> tuple[int, int]:
    """The CRC-32 of the first and of the last 64 KiB of the first ``length`` bytes of an open file."""
    head = os.pread(fd, min(length, EDGE), 0)
    tail = os.pread(fd, min(length, EDGE), max(length - EDGE, 0))
    return zlib.crc32(head), zlib.crc32(tail)


def remember(path: str, fd: int, length: int) -> FileCheckpoint:
    """Return what to remember of the first ``length`` bytes of an open file."""
    return FileCheckpoint(os.path.abspath(path), length, *edges(fd, length))


def is_what_was_left(fd: int, left: FileCheckpoint) -> bool:
    """Whether an open file begins with all that was written to the remembered file."""
    if os.fstat(fd).st_size < left.length:
        return False
    return edges(fd, left.length) == (left.head, left.tail)


def foreign_line(fd: int, start: int, beginnings: Sequence[bytes]) -> bytes | None:
    """The first line after byte ``start`` that begins with none of ``beginnings``; None if there is none.

    A crash may have left a torn last line, or zeros for bytes that had not reached the disk.
    """
    for line in _lines(fd, start):
        if not line.strip(b"\0"):
            continue
        if not any(line.startswith(begin) or begin.startswith(line) for begin in beginnings):
            return line
    return None


def whole_lines(fd: int, size: int) -> int:
    """Bytes up to the end of the last whole line of an open file."""
    start = max(size - (1 << 20), 0)
    return start + os.pread(fd, size - start, start).rfind(b"\n") + 1


def _lines(fd: int, start: int) -> Iterator[bytes]:
    rest = b""
    while chunk := os.pread(fd, 1 << 20, start):
        start += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


class Claim(NamedTuple):
    """What a run wants of an output file, in the words of a FileSink. Its methods raise SinkError."""

    path: str
    left: FileCheckpoint | None
    overwrite: bool
    anew: bool
    replayed: bool
    beginnings: Sequence[bytes]

    def check_name(self) -> None:
        """Check, before the file is made, that it may begin empty."""
        if self.left is not None and not os.path.exists(self.path):
            self._may_begin(self.left)

    def length_kept(self, fd: int) -> int:
        """How many bytes of the open file stay; the rest is this stream's own, and is written again."""
        size = os.fstat(fd).st_size
        left = self.left
        if left is None:
            if size and not self.overwrite:
                raise SinkError(
                    f"{self.path} exists: --overwrite replaces it, --state continues an earlier run",
                    Exit.CANNOT_CREATE,
                )
            return 0
        if size == 0:
            self._may_begin(left)
            return 0
        same = self._is_at(left)
        if left.length == 0 and not same:
            before = "standard output" if left.path == STANDARD_OUTPUT else left.path
            raise SinkError(
                f"{self.path} exists, and is not what this state wrote to ({before}): name another file",
                Exit.CANNOT_CREATE,
            )
        if not is_what_was_left(fd, left):
            what = (
                "has changed since this state wrote to it"
                if same
                else f"is not {left.path}, which this state wrote"
            )
            raise SinkError(
                f"{self.path} {what}: restore it, or name a new file with --new-output", Exit.BAD_DATA
            )
        foreign = foreign_line(fd, left.length, self.beginnings)
        if foreign is not None:
            raise SinkError(
                f"{self.path} goes on after byte {left.length} with what this stream did not write "
                f"({foreign[:40]!r}): it would be cut; move it away, or name a new file with --new-output",
                Exit.BAD_DATA,
            )
        return left.length if self.replayed else whole_lines(fd, size)

    def _is_at(self, left: FileCheckpoint | None) -> bool:
        return left is not None and os.path.realpath(self.path) == os.path.realpath(left.path)

    def _may_begin(self, left: FileCheckpoint) -> None:
        """Raise if an empty file would miss earlier answers that it should hold."""
        if left.length == 0 or self.anew:
            return
        gone = "is gone or empty" if self._is_at(left) else "does not hold the answers so far"
        raise SinkError(
            f"{self.path} {gone}: the state has written {left.length} bytes to {left.path}; name that file "
            "as it is called now, or begin another with --new-output",
            Exit.BAD_DATA,
        )


def unused(path: str) -> str:
    """The path, or the first of ``NAME-2.ENDING``, ``NAME-3.ENDING``, ... that does not exist."""
    root, ending = os.path.splitext(path)
    number, found = 1, path
    while os.path.lexists(found):
        number += 1
        found = f"{root}-{number}{ending}"
    return found
