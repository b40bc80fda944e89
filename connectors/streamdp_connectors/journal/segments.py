"""The files of a journal: segments of groups, each checked by its checksum.

A group is what was written at once. It begins with a line of its own, and is followed by the records, each a
line as it was accepted: ``# ARRIVAL RECORDS BYTES CRC-32``. A segment is named by the number of the record
that it begins with. So ``grep -v '^# '`` gives the records of lines of JSON.

A record that would look like the line that begins a group has a backslash before it, as has one that begins
so with backslashes. A group with such records says `` e`` at the end of its own line.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamdp.errors import Exit
from streamdp.safe_files import open_regular
from streamdp_connectors.protocol import SourceError

NAME = re.compile(r"journal-(\d{15})\.sdj")
_HEAD = re.compile(rb"# (\d+\.\d+) (\d+) (\d+) ([0-9a-f]{8})( e)?\n")
_LIKE_HEAD, _ESCAPED = re.compile(rb"^(?=\\*# )", re.MULTILINE), re.compile(rb"^\\(?=\\*# )", re.MULTILINE)
_LONGEST = 80
"""Bytes of the line that begins a group, at most."""


class Group(NamedTuple):
    """What was written at once: when it came, its records, and how many bytes it takes."""

    arrival: float
    records: list[bytes]
    size: int


def packed(arrival: float, records: list[bytes]) -> bytes:
    """The bytes of a group. No record may hold a line end."""
    body, mark = b"".join(record + b"\n" for record in records), b""
    if body.startswith((b"# ", b"\\")) or b"\n# " in body or b"\n\\" in body:
        body, mark = _LIKE_HEAD.sub(rb"\\", body), b" e"
    return b"# %.6f %d %d %08x%b\n" % (arrival, len(records), len(body), zlib.crc32(body), mark) + body


def group_at(fd: int, offset: int) -> Group | None:
    """The group that begins there; None where there is no whole one."""
    head = _HEAD.match(os.pread(fd, _LONGEST, offset))
    if head is None:
        return None
    size = int(head[3])
    body = os.pread(fd, size, offset + head.end())
    if len(body) != size or zlib.crc32(body) != int(head[4], 16) or (size and body[-1:] != b"\n"):
        return None
    records = (_ESCAPED.sub(b"", body) if head[5] else body).split(b"\n")[:-1]
    return Group(float(head[1]), records, head.end() + size) if len(records) == int(head[2]) else None


def is_journal(path: str) -> bool:
    """Whether this is a folder that holds a journal."""
    return os.path.isdir(path) and any(NAME.fullmatch(name) for name in os.listdir(path))


class Segment(NamedTuple):
    """A file of a journal, and how many records stand before it."""

    path: Path
    before: int


def segments(folder: str | Path) -> list[Segment]:
    """The files of a journal, the oldest first. Raises SourceError."""
    try:
        names = sorted(filter(NAME.fullmatch, os.listdir(folder)))
    except OSError as error:
        raise SourceError(f"cannot read {folder}: {error.strerror}", Exit.NO_INPUT) from None
    return [Segment(Path(folder, name), int(name[8:23]) - 1) for name in names]


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """A file of a journal, open. Raises SourceError."""
    try:
        return open_regular(path, flags)
    except OSError as error:
        raise SourceError(f"cannot open {path}: {error.strerror}", Exit.NO_INPUT) from None


def groups(fd: int, offset: int = 0) -> Iterator[Group]:
    """The whole groups of a file, from one on, up to the first that is not whole."""
    while (group := group_at(fd, offset)) is not None:
        yield group
        offset += group.size


def damaged(path: Path, line: int) -> SourceError:
    """The error of a journal that was damaged after it was written."""
    return SourceError(
        f"{path}: damaged after record {line:,} of the journal: restore it, or begin anew with another "
        "--state",
        Exit.BAD_DATA,
    )
