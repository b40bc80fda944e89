"""Read the rows of a NumPy array as vectors."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from streamdp.errors import Exit
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.files.parquet import ENOUGH, RowSource
from streamdp_connectors.protocol import SourceError


class NpySource(RowSource):
    """The rows of a ``.npy`` file, each as the bytes of a JSON object with one field, which is a vector.

    The file is mapped into memory, not read as a whole. Raises SourceError unless it holds rows of numbers.
    """

    def __init__(self, path: str, field: str) -> None:
        try:
            self._array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise SourceError(f"cannot open {path}: {error.strerror or error}", Exit.NO_INPUT) from None
        except (ValueError, EOFError):
            what = "it is another kind of file, cut off, or of Python objects, which are never read"
            raise SourceError(f"{path} is no .npy file of numbers: {what}", Exit.BAD_DATA) from None
        shape, kind = self._array.shape, self._array.dtype
        if len(shape) != 2 or not shape[1] or kind.kind not in "fiub":
            what = f"an array of {kind} with the shape {shape}, not vectors: save rows of numbers"
            raise SourceError(f"{path} holds {what}", Exit.BAD_DATA)
        super().__init__(path, shape[0])
        self._field, self._most = field, max(1, ENOUGH // (20 * shape[1]))

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return the next rows, at most ``max_records``, and fewer where they are long."""
        found, first = RawBatch({"file": self.path}, ("line",)), self._taken
        rows = np.asarray(self._array[first : first + min(max_records, self._most)], float)
        found.data = [msgspec.json.encode({self._field: row}) for row in rows.tolist()]
        found.places = list(range(first + 1, first + len(rows) + 1))
        found.arrivals = [time.time()] * len(rows)
        wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist()
        found.refused = dict.fromkeys(wrong, "the row holds NaN or an infinite number")
        self._taken += len(rows)
        return found

    def close(self) -> None:
        """Let the file go."""
        self._array = self._array[:0, :0].copy()
