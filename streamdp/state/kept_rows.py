"""What a function returned for texts, beside a state until its next snapshot: a replay does not call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from streamdp.encode.embedding import FunctionEmbedding, load_embedding
from streamdp.errors import Exit, foreseen
from streamdp.safe_files import open_regular, replaced
from streamdp.state.snapshot import SnapshotError

NAMES = "vectors", "vectors.before"
"""Files of rows since the last snapshot that was taken, and before it, until that is on the disk."""

_LENGTH, _KEY = 4, 16  # bytes of a row: the length of its vector, the hash of its text, then the vector


class KeptRows:
    """The rows that a function returns, in files that are only appended to. Methods raise SnapshotError.

    Those that a run left there that was killed are not asked for again.
    """

    def __init__(self, embedding: FunctionEmbedding, folder: Path) -> None:
        self._since, self._before = (folder / name for name in NAMES)
        self._known: dict[bytes, bytes] = {}
        self._replays, self._covered, embedding.kept = True, False, self
        for path in filter(Path.exists, (self._before, self._since)):
            with foreseen(SnapshotError, path, "read", Exit.IO_ERROR), open(open_regular(path), "rb") as file:
                data, at = file.read(), 0
            while (row := at + _LENGTH + _KEY) <= len(data):
                end = row + 4 * int.from_bytes(data[at : at + _LENGTH], "little")
                if end <= len(data):  # the last may be cut off
                    self._known[data[at + _LENGTH : row]] = data[row:end]
                at = end
        with foreseen(SnapshotError, self._before, "written", Exit.IO_ERROR):
            with replaced(self._before) as file:
                file.write(b"".join(_written(key, row) for key, row in self._known.items()))
            self._since.unlink(missing_ok=True)
            if not self._known:
                self._before.unlink()

    @property
    def dimension(self) -> int:
        """D of the rows; 0 while none is known."""
        return len(next(iter(self._known.values()), b"")) // 4

    def rows(self, texts: Sequence[str], ask: Callable[[list[str]], np.ndarray]) -> np.ndarray:
        """The rows of texts, shape (n, D); those that are not known as ``ask`` returns them, and written."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=_KEY).digest() for text in texts]
        found = [self._known.get(key, b"") for key in keys]
        new = [i for i, row in enumerate(found) if not row]
        if new:
            self._replays = False
            for i, row in zip(new, ask([texts[i] for i in new]), strict=True):
                found[i] = row.tobytes()
            self._append(self._since, b"".join(_written(keys[i], found[i]) for i in new))
        return np.frombuffer(b"".join(found), np.float32).reshape(len(texts), -1)

    def begin(self) -> None:
        """A snapshot is taken: what follows is not in it."""
        self._covered = not self._replays
        if self._covered:
            self._known.clear()
            if self._since.exists():
                self._append(self._before, self._since.read_bytes())
                self._since.unlink()

    def drop(self) -> None:
        """It is on the disk: what was before it is not needed any more, unless it was taken in a replay."""
        if self._covered:
            self._before.unlink(missing_ok=True)

    def _append(self, path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with (
            foreseen(SnapshotError, path, "written", Exit.IO_ERROR),
            open(open_regular(path, flags), "ab") as f,
        ):
            f.write(data)


def kept_rows(name: str | None, folder: Path) -> KeptRows | None:
    """Keep what the function of this name returns; None where it is no function."""
    embedding = None if name is None else load_embedding(name)
    return KeptRows(embedding, folder) if isinstance(embedding, FunctionEmbedding) else None


def _written(key: bytes, row: bytes) -> bytes:
    return (len(row) // 4).to_bytes(_LENGTH, "little") + key + row
