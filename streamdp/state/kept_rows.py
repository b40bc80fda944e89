"""What a function returned for texts, beside a state until its next snapshot: a replay does not call it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from streamdp.encode.embedding import FunctionEmbedding, load_embedding
from streamdp.errors import Exit, foreseen
from streamdp.safe_files import open_regular, written_anew
from streamdp.state.snapshot import SnapshotError

PREFIX = "vectors-"
"""Beginning of the names of the files; the number of records of the snapshot before them follows."""

_KEY = 16


def keep_rows(name: str | None, folder: Path, seq: int) -> KeptRows | None:
    """Keep what the function of this name returns; None where it is no function."""
    if name is None or not isinstance(embedding := load_embedding(name), FunctionEmbedding):
        return None
    embedding.kept = kept = KeptRows(folder, seq)
    kept.owner = embedding
    return kept


class KeptRows:
    """Rows of numbers by hashes of their texts, in files beside the snapshots of a state.

    What was written after the snapshot of ``seq`` records, from which a run goes on, is not asked for again.
    A file holds the length of its rows, then keys and rows. Methods raise SnapshotError.
    """

    def __init__(self, folder: Path, seq: int) -> None:
        self._folder, self._known = folder, dict[bytes, bytes]()
        self._replays, self._head = True, b""
        self.owner: FunctionEmbedding | None = None
        self.drop(seq)
        for _, path in self._files():
            with foreseen(SnapshotError, path, "read", Exit.IO_ERROR), open(open_regular(path), "rb") as file:
                data = file.read()
            self._head = data[:4]
            size = _KEY + 4 * self.dimension
            for at in range(4, len(data) - size + 1, size):  # the last may be cut off
                self._known[data[at : at + _KEY]] = data[at + _KEY : at + size]
        self.begin(seq)

    @property
    def dimension(self) -> int:
        """D of the rows; 0 while there are none."""
        return int.from_bytes(self._head, "little")

    def rows(self, texts: Sequence[str], ask: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        """The rows of texts, shape (n, D); those that are not known as ``ask`` returns them, and written."""
        keys = [hashlib.blake2b(each.encode("utf-8", "replace"), digest_size=_KEY).digest() for each in texts]
        found: list[bytes | None] = [self._known.get(key) for key in keys]
        new = [i for i, row in enumerate(found) if row is None]
        if new:
            self._replays = False
            for i, row in zip(new, asked := ask([texts[i] for i in new]), strict=True):
                found[i] = row.tobytes()
            self._head = asked.shape[1].to_bytes(4, "little")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            fails = foreseen(SnapshotError, self._path, "written", Exit.IO_ERROR)
            with fails, open(open_regular(self._path, flags), "ab") as file:
                file.write(b"" if file.tell() else self._head)
                file.write(b"".join(keys[i] + (found[i] or b"") for i in new))
        return np.frombuffer(b"".join(row or b"" for row in found), np.float32).reshape(len(texts), -1)

    def begin(self, seq: int) -> None:
        """A snapshot of so many records is taken: write what follows to another file."""
        self._path = self._folder / f"{PREFIX}{seq:015d}"
        if not self._replays:
            self._known.clear()
        if self._known:
            fresh = self._path.with_name(f"{self._path.name}.new")
            with foreseen(SnapshotError, fresh, "written", Exit.IO_ERROR):
                with written_anew(fresh) as file:
                    file.write(b"".join([self._head, *(key + row for key, row in self._known.items())]))
                os.replace(fresh, self._path)
                for number, path in self._files():
                    if number > seq:  # the replay takes other snapshots than the run that was killed
                        path.unlink()

    def drop(self, seq: int) -> None:
        """A snapshot of so many records is on the disk: remove what was before it."""
        for number, path in self._files():
            if number < seq:
                path.unlink(missing_ok=True)

    def end(self) -> None:
        """Keep nothing more: the run has ended."""
        if self.owner is not None:
            self.owner.kept = None

    def _files(self) -> list[tuple[int, Path]]:
        """The files, and the numbers of records before them."""
        paths = sorted(self._folder.glob(f"{PREFIX}*[0-9]"))
        return [(int(path.name.removeprefix(PREFIX)), path) for path in paths]
