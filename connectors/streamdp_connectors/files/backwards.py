"""Read a file whose newest records come first: from its end to its beginning."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from streamdp.errors import Exit
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.files.source import FileSource, check_same
from streamdp_connectors.protocol import SourceError

BLOCK = 4_000
"""Lines that are read at a time, unless the file is packed."""

PASSES = 16
"""How often a packed file, of which each block is unpacked from its beginning, is gone through at most."""


class BackwardsSource:
    """The records of a finite file, the last one first, each with the position that it has in the file.

    ``begins`` says whether a record begins with a line; lines that follow it stay behind it. Without it each
    line, or row, is a record. A stored position counts the lines returned so far; the file must be the same.
    Raises SourceError.
    """

    place = ("file", "line")

    def __init__(self, file: FileSource, begins: Callable[[bytes], bool] | None = None) -> None:
        self.path, self.header, self.seekable = file.path, file.header, file.seekable
        self._file, self._begins, self._blank = file, begins or (lambda line: True), 0
        blocks: list[tuple[dict[str, Any], int]] = []
        while not file.at_end:
            start = file.positions()
            blocks.append((start, len(self._lines(BLOCK))))
        step = -(-len(blocks) // PASSES) if file.packed else 1
        parts = [blocks[i : i + step] for i in range(0, len(blocks), step)]
        self._blocks = [(part[0][0], sum(count for _, count in part)) for part in parts]
        self._known, self._total = file.positions().get("known"), sum(count for _, count in blocks)
        self._ready: list[tuple[int, bytes]] = []  # the lines of a block, with their numbers
        self._left: list[tuple[int, bytes]] = []  # those of a record that begins in the next block
        self._at = self._given = self._line = self._blank = 0

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return not self._blocks and self._at == len(self._ready)

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return at most ``max_records``, of one block."""
        while self._at == len(self._ready) and self._blocks:
            self._ready, self._at = self._block(), 0
        found, lines = (
            RawBatch({"file": self.path}, ("line",)),
            self._ready[self._at : self._at + max_records],
        )
        found.places, found.data = [line for line, _ in lines], [data for _, data in lines]
        found.arrivals = [time.time()] * len(lines)
        self._line = found.places[-1] if lines else self._line
        self._at += len(found)
        self._given += len(found)
        found.unfinished, found.blank, self._blank = not self.at_end, self._blank, 0
        return found

    def positions(self) -> dict[str, Any]:
        """Return the file, the line of the last record returned, and how many there were."""
        return {"file": self.path, "line": self._line, "backwards": self._given, "known": self._known}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue after the record at which ``positions`` were taken; the file must be the same."""
        check_same(positions.get("file"), self.path)
        given = positions.get("backwards")
        if not isinstance(given, int):
            what = "the state has read it from its beginning: go on with --read-order forwards"
            raise SourceError(f"{self.path} has its newest records first, and {what}", Exit.BAD_DATA)
        before, now = ({**(known or {}), "inode": 0} for known in (positions.get("known"), self._known))
        if before != now or not 0 <= given <= self._total:
            what = "is not what was read backwards: restore it, or begin anew with another --state"
            raise SourceError(f"{self.path} {what}", Exit.BAD_DATA)
        while self._given < given:
            self.read(given - self._given, 0.0)
        return True

    def before(self, most: int) -> list[tuple[int, bytes]]:
        """The lines before the next one, of its block, numbered, in the order in which they are read."""
        return self._ready[: self._at]

    def share(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return self._given / max(self._total, 1)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _lines(self, count: int) -> list[tuple[int, bytes]]:
        """The next lines of the file, so many or those that are left."""
        lines: list[tuple[int, bytes]] = []
        while len(lines) < count and not self._file.at_end:
            more = self._file.read(count - len(lines), 1.0)
            lines += zip(more.places, more.data, strict=True)
            self._blank += more.blank
        return lines

    def _block(self) -> list[tuple[int, bytes]]:
        """The last block that is left, its records from the last to the first."""
        start, count = self._blocks.pop()
        self._file.seek(start)
        lines = self._lines(count) + self._left
        heads = [i for i, (_, data) in enumerate(lines) if self._begins(data)]
        first = min(heads, default=len(lines)) if self._blocks else 0
        self._left = lines[:first]
        cuts = [*sorted({first, *heads}), len(lines)]
        return [line for a, b in reversed(list(pairwise(cuts))) for line in lines[a:b]]
