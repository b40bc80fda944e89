"""How a file that a run has left is known again: by what stands in it, not by its name or length alone."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

EDGE = 1 << 16
"""Bytes at the beginning and at the end of what was written that are remembered by their checksum."""

STANDARD_OUTPUT = "-"


class Left(NamedTuple):
    """What a snapshot remembers of an output file.

    ``path`` is absolute, or ``-``; ``length`` counts the bytes written; ``head`` and ``tail`` are the CRC-32
    of the first and the last 64 KiB of them. So a file of any size is known again after two short reads.
    ``rotated`` is what a rotation that was under way then gave another name, so that the file began anew.
    """

    path: str
    length: int = 0
    head: int = 0
    tail: int = 0
    rotated: Left | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Left:
        """The inverse of ``plain``."""
        rotated = stored.get("rotated")
        before = None if rotated is None else cls.of(rotated)
        return cls(stored["path"], stored["length"], stored["head"], stored["tail"], before)

    def plain(self) -> dict[str, Any]:
        """As a snapshot stores it."""
        stored = {"path": self.path, "length": self.length, "head": self.head, "tail": self.tail}
        return stored if self.rotated is None else stored | {"rotated": self.rotated.plain()}


def remember(path: str, fd: int, length: int) -> Left:
    """Look at the first ``length`` bytes of an open file."""
    head = os.pread(fd, min(length, EDGE), 0)
    tail = os.pread(fd, min(length, EDGE), max(length - EDGE, 0))
    return Left(os.path.abspath(path), length, zlib.crc32(head), zlib.crc32(tail))


def is_what_was_left(fd: int, left: Left) -> bool:
    """Whether an open file begins with what was written to the file that is remembered."""
    if os.fstat(fd).st_size < left.length:
        return False
    return remember(left.path, fd, left.length)[1:4] == left[1:4]


def begins_alike(fd: int, left: Left) -> bool:
    """Whether an open file begins with the first 64 KiB of what is remembered."""
    return zlib.crc32(os.pread(fd, min(left.length, EDGE), 0)) == left.head


def stranger(fd: int, start: int, beginnings: Sequence[bytes]) -> bytes | None:
    """The first line from byte ``start`` on that begins with none of ``beginnings``; None where all do.

    A crash may have left the last line torn, or zeros where a disk had not got the bytes yet.
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
