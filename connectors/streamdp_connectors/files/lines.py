"""Cut a stream of bytes into lines and CSV rows, however the bytes arrive and however long they get."""

from __future__ import annotations

import re
from typing import NamedTuple

_REST_OF_FIELD = {
    delimiter: re.compile(rb'(?:[^"]++|"")*+"[^%b]*+%b?' % (re.escape(delimiter), re.escape(delimiter)))
    for delimiter in (b",", b"\t", b";", b"|")
}


class Block(NamedTuple):
    """Consecutive lines without their newlines.

    ``extra`` is how many more bytes the last one took in the stream than its length and a newline: less
    than nothing for a last line that has no newline, much for one that was cut short. ``alone`` says that
    the first line is a row by itself, whatever quotes it opens.
    """

    lines: list[bytes]
    extra: int = 0
    alone: bool = False


class Lines:
    """Cuts chunks into lines. Of a line longer than ``max_line`` only the beginning is held and given."""

    def __init__(self, max_line: int) -> None:
        self._max = max_line
        self._parts: list[bytes] = []  # the beginning of a line whose newline has not come
        self._held = 0
        self._length = 0

    def feed(self, chunk: bytes) -> list[Block]:
        """Return the lines that ``chunk`` completes."""
        blocks: list[Block] = []
        start = 0
        if self._length:
            end = chunk.find(b"\n")
            if end < 0:
                self._hold(chunk)
                return blocks
            self._hold(chunk[:end])
            blocks.append(self._release(newline=True))
            start = end + 1
        lines = (chunk[start:] if start else chunk).split(b"\n")
        self._hold(lines.pop())
        if len(chunk) <= self._max or max(map(len, lines), default=0) <= self._max:
            return [*blocks, Block(lines)] if lines else blocks
        for line in lines:
            blocks.append(Block([line[: self._max]], max(0, len(line) - self._max)))
        return blocks

    @property
    def blank(self) -> bool:
        """Whether nothing but space is held of a line."""
        return all(part.isspace() for part in self._parts) and self._held == self._length

    def drop(self) -> int:
        """Forget the line that is held; return how many bytes it has."""
        length = self._length
        self._parts, self._held, self._length = [], 0, 0
        return length

    def finish(self) -> list[Block]:
        """Return the last line, if it has no newline, at the end of the stream."""
        return [self._release(newline=False)] if self._length else []

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        part = part[: self._max - self._held]
        if part:
            self._held += len(part)
            self._parts.append(part)

    def _release(self, newline: bool) -> Block:
        line = b"".join(self._parts)
        return Block([line], self.drop() - len(line) - (not newline))


class Rows:
    """Joins lines into CSV rows: a quoted field may run over several lines."""

    def __init__(self, delimiter: bytes = b",") -> None:
        self._delimiter = delimiter
        self._lines: list[bytes] = []
        self._sizes: list[int] = []
        self.size = 0
        """Bytes of the row that is still open; 0 when none is."""

    def add(self, line: bytes, size: int) -> tuple[bytes, int, int] | None:
        """Add the next line, which took ``size`` bytes in the stream.

        Return the row that it completes: its bytes, and the lines and bytes that it took in the stream.
        """
        inside = leaves_quote_open(line, bool(self._lines), self._delimiter)
        self._lines.append(line)
        self._sizes.append(size)
        self.size += size
        if inside:
            return None
        row = b"\n".join(self._lines), len(self._lines), self.size
        self._clear()
        return row

    def give_up(self) -> Block:
        """Take the open row back as lines, the first to stand alone, so that a stray quote costs one row."""
        block = Block(self._lines, self._sizes[-1] - len(self._lines[-1]) - 1, alone=True)
        self._clear()
        return block

    def _clear(self) -> None:
        self._lines, self._sizes, self.size = [], [], 0


def leaves_quote_open(line: bytes, inside: bool = False, delimiter: bytes = b",") -> bool:
    """Whether a quoted field is open after ``line``, as the csv module sees it; ``inside``: before it.

    A quote opens a field only at its start, and a doubled one inside stands for itself.
    """
    at = 0
    rest, opening = _REST_OF_FIELD[delimiter], delimiter + b'"'
    while True:
        if inside:
            closed = rest.match(line, at)
            if closed is None:
                return True
            at = closed.end()
        if at < len(line) and line[at] == 0x22:
            at += 1
        else:
            at = line.find(opening, at) + 2
            if at < 2:
                return False
        inside = True
