"""Read a file whose newest records come first: from its end to its beginning."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from streamdp.errors import Exit
from streamdp.records.raws import Raws
from streamdp_connectors.files.source import FileSource, check_same
from streamdp_connectors.protocol import SourceError

BLOCK = 4_000
"""Lines that are read at a time, unless the file is packed."""

PASSES = 16
"""How often a packed file, of which each block is unpacked from its beginning, is gone through at most."""

RECENT = 1_000
"""Records before the next one that are remembered."""


class BackwardsSource:
    """The records of a finite file, the last one first, each with the position that it has in the file.

    ``begins`` says whether a record begins with a line; lines that follow it stay behind it. Without it each
    line, or row, is a record. A stored position counts the lines returned so far; the file must be the same.
    Raises SourceError.
    """

    def __init__(self, file: FileSource, begins: Callable[[bytes], bool] | None = None) -> None:
        self.path, self.header, self.seekable = file.path, file.header, file.seekable
        self._file, self._begins = file, begins
        blocks: list[tuple[dict[str, Any], int]] = []
        while not file.at_end:
            start = file.positions()
            blocks.append((start, self._fill(Raws({}, ()), BLOCK)))
        step = -(-len(blocks) // PASSES) if file.packed else 1
        parts = [blocks[i : i + step] for i in range(0, len(blocks), step)]
        self._blocks = [(part[0][0], sum(count for _, count in part)) for part in parts]
        self._known = file.positions().get("known")
        self._total = sum(count for _, count in blocks)
        self._given, self._line = 0, 0
        self._ready, self._at = Raws({}, ()), 0
        self._left = Raws({}, ())  # lines of a record that begins in the next block
        self._recent: deque[bytes] = deque(maxlen=RECENT)

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return not self._blocks and self._at == len(self._ready)

    def read(self, max_records: int, timeout: float) -> Raws:
        """Return at most ``max_records``, of one block."""
        while self._at == len(self._ready) and self._blocks:
            self._ready, self._at = self._block(), 0
        ready, stop = self._ready, self._at + max_records
        found = Raws({"file": self.path}, ("line",))
        found.data, found.places = ready.data[self._at : stop], ready.places[self._at : stop]
        found.arrivals, found.unfinished = ready.arrivals[self._at : stop], not self.at_end
        found.blank, ready.blank = ready.blank, 0
        self._at += len(found)
        self._given += len(found)
        self._line = found.places[-1] if found else self._line
        self._recent += found.data
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
        alike = [{**(known or {}), "inode": 0} for known in (positions.get("known"), self._known)]
        if alike[0] != alike[1] or not 0 <= given <= self._total:
            what = "is not what was read backwards: restore it, or begin anew with another --state"
            raise SourceError(f"{self.path} {what}", Exit.BAD_DATA)
        while self._given < given:
            self.read(given - self._given, 0.0)
        return True

    def before(self, most: int) -> list[bytes]:
        """The records before the next one, in the order in which they are read."""
        return list(self._recent)

    def share(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return self._given / max(self._total, 1)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fill(self, found: Raws, count: int) -> int:
        """Add so many lines, or those that are left; how many these are."""
        before = len(found)
        while len(found) - before < count and not self._file.at_end:
            more = self._file.read(count + before - len(found), 1.0)
            found.data += more.data
            found.places += more.places
            found.arrivals += more.arrivals
            found.blank += more.blank
        return len(found) - before

    def _block(self) -> Raws:
        """The last block that is left, its records from the last to the first."""
        start, count = self._blocks.pop()
        self._file.seek(start)
        lines = Raws({}, ())
        self._fill(lines, count)
        for name in ("data", "places", "arrivals"):
            getattr(lines, name).extend(getattr(self._left, name))
        heads = list(range(len(lines)))
        if self._begins is not None:
            heads = [i for i in heads if self._begins(lines.data[i])]
        first = 0 if not self._blocks else heads[0] if heads else len(lines)
        heads = heads if heads[:1] == [first] else [first, *heads]
        turned, self._left = Raws({}, ()), Raws({}, ())
        for name in ("data", "places", "arrivals"):
            given = getattr(lines, name)
            setattr(self._left, name, given[:first])
            parts = (given[a:b] for a, b in reversed(list(pairwise([*heads, len(lines)]))))
            setattr(turned, name, [each for part in parts for each in part])
        turned.blank = lines.blank
        return turned
