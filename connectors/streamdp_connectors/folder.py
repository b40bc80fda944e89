"""Read the files of a folder, one after the other in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from streamdp.errors import Exit
from streamdp.records import Raw
from streamdp_connectors.files import FileSource
from streamdp_connectors.protocol import SourceError, Unwatched


class FolderSource(Unwatched):
    """The records of all files of a folder; hidden files, folders in it and what is no file are passed over.

    ``open_file`` makes the source of one file. Files are listed when the source is made; a run that goes on
    from a state finds those that came later, as long as their names sort after those read. Raises
    SourceError.
    """

    replayable = True
    """Files keep their records."""

    def __init__(self, path: str, open_file: Callable[[str], FileSource]) -> None:
        self.path = path
        self._open = open_file
        try:
            names = sorted(entry.name for entry in os.scandir(path) if _counts(entry))
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror}", Exit.NO_INPUT) from None
        if not names:
            raise SourceError(f"{path} holds no files to read", Exit.NO_INPUT)
        self._paths = [os.path.join(path, name) for name in names]
        self._at = 0
        self._file = open_file(self._paths[0])

    @property
    def at_end(self) -> bool:
        """Whether the last file has come to its end."""
        return self._at == len(self._paths) - 1 and self._file.at_end

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return records of one file, at most ``max_records``; [] where it has none left."""
        while self._file.at_end and not self.at_end:
            self._go_to(self._at + 1)
        return self._file.read(max_records, timeout)

    def positions(self) -> dict[str, Any]:
        """The folder, and the position in the file that is being read."""
        return {"folder": self.path, **self._file.positions()}

    def seek(self, positions: dict[str, Any]) -> None:
        """Continue in the file, and after the record, at which ``positions`` were taken."""
        folder, file = positions.get("folder"), positions.get("file")
        if folder != self.path:
            raise SourceError(
                f"the state continues {folder or file}, not {self.path}; use that name again", Exit.BAD_DATA
            )
        if file not in self._paths:
            raise SourceError(f"{file} is gone, and the state was reading it", Exit.BAD_DATA)
        self._go_to(self._paths.index(file))
        self._file.seek({name: value for name, value in positions.items() if name != "folder"})

    def share(self) -> float:
        """How much of all files has been read, from 0 to 1."""
        return (self._at + (self._file.share() or 0.0)) / len(self._paths)

    def close(self) -> None:
        """Close the file that is open."""
        self._file.close()

    def _go_to(self, at: int) -> None:
        self._file.close()
        self._at = at
        self._file = self._open(self._paths[at])


def _counts(entry: os.DirEntry[str]) -> bool:
    return entry.is_file() and not entry.name.startswith(".")
