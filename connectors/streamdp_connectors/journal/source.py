"""Read the records of a journal, in the order in which they were accepted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from streamdp.errors import Exit
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.journal.segments import damaged, group_at, opened, segments
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.protocol import SourceError

JOURNAL = "journal"
"""What a position says in the place of a file: a journal may be read anywhere."""

MOST = 4 << 20
"""Bytes of a batch, above which it grows no further."""


class JournalSource:
    """The records of a journal: of one that is ``written``, as they come; else to its end.

    A record's position is ``{"file": "journal", "line": n}``: its number, from 1. Its arrival is when it was
    accepted, so that a journal gives the same records whenever it is read. Raises SourceError.
    """

    place = ("file", "line")

    def __init__(self, folder: str | Path, written: Journal | None = None) -> None:
        self.folder = Path(folder)
        self._written = written
        self._fd, self._offset = -1, 0
        self._path = Path()
        self._records: list[bytes] = []  # of the group at hand
        self._at, self._arrival = 0, 0.0
        self.line = 0
        """How many records were returned, or lie before the first that is there."""
        found = segments(folder)
        if found:
            self.line = found[0].before
            self._enter(found[0].path)

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        if self._at < len(self._records) or not (self._written is None or self._written.closed):
            return False
        return not self._more()

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return at most ``max_records``; none if nothing came in ``timeout`` seconds."""
        found = RawBatch({"file": JOURNAL}, ("line",))
        size = 0
        while len(found) < max_records and size < MOST and self._more(0.0 if found else timeout):
            some = self._records[self._at : self._at + max_records - len(found)]
            found.data += some
            found.places += range(self.line + 1, self.line + 1 + len(some))
            found.arrivals += [self._arrival] * len(some)
            self._at += len(some)
            self.line += len(some)
            size += sum(map(len, some))
        return found

    def positions(self) -> dict[str, Any]:
        """The number of the last record returned."""
        return {"file": JOURNAL, "line": self.line}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue after the record at which ``positions`` were taken."""
        line = positions.get("line")
        if positions.get("file") != JOURNAL or type(line) is not int or line < 0:
            raise SourceError(
                f"the state continues {positions.get('file')}, and no journal: name another --state "
                "(--start-from begins with what this one has learned)",
                Exit.BAD_DATA,
            )
        before = [segment for segment in segments(self.folder) if segment.before <= line]
        if not before:
            raise self._lacks(line)
        self._enter(before[-1].path)
        self.line, self._records, self._at = before[-1].before, [], 0
        while self.line < line:
            if not self._more():
                raise self._lacks(line)
            step = min(line - self.line, len(self._records) - self._at)
            self._at += step
            self.line += step
        return True

    def close(self) -> None:
        """Close the file that is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _lacks(self, line: int) -> SourceError:
        return SourceError(
            f"{self.folder} is not the journal of this state, or lacks records: it has none after record "
            f"{line:,}, where the state goes on; restore it, or begin anew with another --state",
            Exit.BAD_DATA,
        )

    def _enter(self, path: Path) -> None:
        self.close()
        self._fd, self._offset, self._path = opened(path), 0, path

    def _more(self, timeout: float = 0.0) -> bool:
        """Whether there is a record at hand, after at most so many seconds."""
        if self._at < len(self._records):
            return True
        if self._written is not None and not self._written.wait(self.line, timeout):
            return False
        while True:
            group = None if self._fd < 0 else group_at(self._fd, self._offset)
            if group is None and not self._next():
                return False
            if group is not None:
                self._offset += group.size
                self._records, self._at, self._arrival = group.records, 0, group.arrival
                if group.records:
                    return True

    def _next(self) -> bool:
        """Go to the file that follows; False where there is none. Raises SourceError for a damaged one."""
        later = [segment for segment in segments(self.folder) if segment.path > self._path]
        whole = self._fd < 0 or os.fstat(self._fd).st_size == self._offset
        if later and whole and later[0].before == self.line:
            self._enter(later[0].path)
            return True
        if later or (self._written is not None and self._written.released > self.line):
            raise damaged(self._path, self.line)
        return False
