"""Read the files of a folder, one after the other, and what comes to it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from streamdp.errors import Exit
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.files.source import FileSource, check_same
from streamdp_connectors.protocol import SourceError

LOOK = 1.0
"""Seconds between two looks at a folder that is followed."""

_log = logging.getLogger(__name__)


class FolderSource:
    """The records of all files of a folder, in the order of their names.

    Hidden files, and whatever is not a file, are skipped. ``open_file`` makes the source of one file, of its
    whole lines or of all that is in it. Files are listed when the source is made; a run that goes on from a
    state finds files that came later, as long as their names sort after those read, and tells of the others.

    With ``follow`` there is no end: the source reads what comes, be it a new file or more lines of an old
    one, each when its newline has come. A file that was read and renamed is the same file, one that was
    replaced or cut is read anew, and one that cannot be read is told of and left. Raises SourceError.
    """

    place = ("file", "line")

    def __init__(self, path: str, open_file: Callable[[str, bool], FileSource], follow: bool = False) -> None:
        self.path = path
        self._open, self._follow = open_file, follow
        self._read: dict[str, dict[str, Any]] = {}  # positions in files that are not open, by name
        self._seen: dict[str, tuple[int, ...]] = {}  # size, change and inode when a file was last read
        self._looked = time.monotonic()
        self._todo = self._names()
        self._total = len(self._todo)
        if not self._todo and not follow:
            raise SourceError(f"{path} holds no files to read", Exit.NO_INPUT)
        self._name = ""
        self._file: FileSource | None = None
        self._next()

    @property
    def at_end(self) -> bool:
        """Whether the last file has come to its end."""
        return not self._follow and not self._todo and (self._file is None or self._file.at_end)

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return records of one file, at most ``max_records``; none where there are none."""
        deadline = time.monotonic() + timeout
        while True:
            found = self._read_file(max_records)
            if found or found.unfinished or self.at_end:
                return found
            if not self._next():
                left = deadline - time.monotonic()
                if left <= 0:
                    return found
                time.sleep(min(0.1, left))

    def positions(self) -> dict[str, Any]:
        """The folder, the position in the file that is open, and those in files that were read before."""
        place = {"file": None} if self._file is None else self._file.positions()
        return {"folder": self.path, **place, "read": dict(self._read)}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue in the file, and after the record, at which ``positions`` were taken."""
        folder, file = positions.get("folder"), positions.get("file")
        if folder != self.path:
            check_same(folder or file, self.path)
        names = self._names()
        self._close()
        self._read, self._seen = dict(positions.get("read", {})), {}
        if file is not None:
            self._read[os.path.basename(file)] = _place(positions)
        if self._follow:
            self._todo = names
            self._rename()
            return True
        if file is None:
            self._todo = [name for name in names if name not in self._read]
            return True
        last = os.path.basename(file)
        if last not in names:
            raise SourceError(f"{file} is gone, and the state was reading it", Exit.BAD_DATA)
        self._tell(name for name in names if name < last)
        self._todo = [name for name in names if name >= last]
        self._next()
        return True

    def share(self) -> float | None:
        """How much of all files has been read, from 0 to 1; None while the folder is followed."""
        if self._follow or self._file is None:
            return None
        return (self._total - len(self._todo) - 1 + (self._file.share() or 0.0)) / max(self._total, 1)

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()

    def _names(self) -> list[str]:
        """The files, by name."""
        found = []
        try:
            for entry in os.scandir(self.path):
                if entry.name.startswith("."):
                    continue
                try:
                    if entry.is_file():
                        found.append(entry.name)
                except OSError as error:  # a link that leads to itself
                    _log.warning("%s is left out: %s", entry.path, error.strerror)
        except OSError as error:
            raise SourceError(f"cannot read {self.path}: {error.strerror}", Exit.NO_INPUT) from None
        return sorted(found)

    def _read_file(self, max_records: int) -> RawBatch:
        if self._file is None:
            return RawBatch({}, ())
        try:
            return self._file.read(max_records, 0.0)
        except SourceError as error:
            if not self._follow:
                raise
            _log.warning("%s: left until it changes", error.message)
            self._close()
            return RawBatch({}, ())

    def _next(self) -> bool:
        """Go to the next file that has not been read to its end; False if there is none now."""
        if not self._todo and self._follow and time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self._todo = [name for name in self._names() if self._stamp(name) != self._seen.get(name)]
            if self._todo:
                self._close()
                self._rename()
        if not self._todo:
            return False
        self._close()
        name = self._todo.pop(0)
        path = os.path.join(self.path, name)
        stamp = self._stamp(name)
        if stamp is not None:
            self._seen[name] = stamp
        try:
            self._go_to(name, self._open(path, self._follow))
        except SourceError as error:
            if not self._follow:
                raise
            _log.warning("%s: left until it changes", error.message)
        return True

    def _go_to(self, name: str, file: FileSource) -> None:
        self._name, self._file = name, file
        before = self._read.pop(name, None)
        if before is not None and self._follow and not file.is_same(before):
            _log.warning("%s has changed: reading it anew", file.path)
        elif before is not None:
            file.seek({"file": file.path, **before})

    def _rename(self) -> None:
        """Give the positions in files that were renamed to the names that these have now."""
        known = {place.get("known", {}).get("inode"): name for name, place in self._read.items()}
        inodes = {name: (self._stamp(name) or (None,))[-1] for name in {*self._todo, *known.values()}}
        moved = {name: known.get(inodes[name], name) for name in self._todo}
        moved = {name: old for name, old in moved.items() if inodes[old] != inodes[name]}
        places = {name: self._read.pop(old) for name, old in moved.items()}
        self._read.update(places)

    def _stamp(self, name: str) -> tuple[int, ...] | None:
        try:
            now = os.stat(os.path.join(self.path, name))
        except OSError:
            return None
        return now.st_size, now.st_mtime_ns, now.st_ino

    def _close(self) -> None:
        """Leave the open file, and remember how far it was read."""
        if self._file is not None:
            self._read[self._name] = _place(self._file.positions())
            self._file.close()
            self._file = None

    def _tell(self, names: Iterable[str]) -> None:
        """Tell of files that a run without ``follow`` does not read."""
        for name in names:
            place = self._read.get(name)
            if place is None:
                what = "came later than files that were read after it"
            else:
                file = self._open(os.path.join(self.path, name), True)
                length = place.get("known", {}).get("length", 0)
                stamp = self._stamp(name)
                if not file.is_same(place):
                    what = "has changed since it was read"
                elif stamp is not None and stamp[0] > length:
                    what = "has grown since it was read"
                else:
                    what = ""
                file.close()
            if what:
                _log.warning("%s %s: not read (--follow does)", os.path.join(self.path, name), what)


def _place(positions: dict[str, Any]) -> dict[str, Any]:
    """What of the positions in a file belongs to that file alone."""
    return {name: positions[name] for name in ("line", "offset", "known") if name in positions}
