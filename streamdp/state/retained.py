"""The latest records in encoded form, with their newest labels: what offline passes refine."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np

from streamdp.state.arrays import Packed, pack, unpack


class Chunk(msgspec.Struct):
    """Consecutive records ``first`` .. ``first + len(labels) - 1``, as the beam took them."""

    first: int
    times: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    vectors: np.ndarray

    def part(self, start: int) -> Chunk:
        """The chunk without its first ``start`` records."""
        dense = self.vectors.shape[1] > 0
        a = self.offsets[start] if not dense else 0
        return Chunk(
            self.first + start,
            self.times[start:],
            self.labels[start:],
            self.offsets if dense else self.offsets[start:] - a,
            self.words[a:],
            self.counts[a:],
            self.vectors[start:] if dense else self.vectors,
        )


class Retained:
    """The last ``limit`` records."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.chunks: deque[Chunk] = deque()
        self.count = 0

    def append(self, chunk: Chunk) -> None:
        """Take in the newest records, let go of the oldest chunk that is no longer needed."""
        if self.limit == 0:
            return
        self.chunks.append(chunk)
        self.count += len(chunk.labels)
        while self.count - len(self.chunks[0].labels) >= self.limit:
            self.count -= len(self.chunks.popleft().labels)

    def revise(self, seq: int, label: int) -> None:
        """Give a record its newest label, where it is still held."""
        for chunk in reversed(self.chunks):
            if seq >= chunk.first:
                if seq - chunk.first < len(chunk.labels):
                    chunk.labels[seq - chunk.first] = label
                return

    def collect(self) -> Chunk | None:
        """Exactly the last ``limit`` records (all, while there are fewer) as one chunk."""
        if not self.chunks:
            return None
        first = self.chunks[0]
        chunks = [first.part(max(self.count - self.limit, 0)), *list(self.chunks)[1:]]
        dense = first.vectors.shape[1] > 0
        offsets = [np.zeros(1, np.int64)]
        for chunk in chunks:
            if not dense:
                offsets.append(chunk.offsets[1:] - chunk.offsets[0] + offsets[-1][-1])
        return Chunk(
            chunks[0].first,
            np.concatenate([c.times for c in chunks]),
            np.concatenate([c.labels for c in chunks]),
            np.concatenate(offsets),
            np.concatenate([c.words for c in chunks]),
            np.concatenate([c.counts for c in chunks]),
            np.concatenate([c.vectors for c in chunks]) if dense else first.vectors,
        )

    def dump(self) -> dict[str, Any] | None:
        """What is held, as plain values."""
        chunk = self.collect()
        if chunk is None:
            return None
        arrays: dict[str, Packed] = {
            name: pack(getattr(chunk, name))
            for name in ("times", "labels", "offsets", "words", "counts", "vectors")
        }
        return {"first": chunk.first, **arrays}

    def load(self, stored: dict[str, Any] | None) -> None:
        """The inverse of :meth:`dump`."""
        if stored is None:
            return
        arrays = {name: unpack(value) for name, value in stored.items() if name != "first"}
        self.chunks.append(Chunk(stored["first"], **arrays))
        self.count = len(self.chunks[0].labels)
