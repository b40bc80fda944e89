"""Encoded records side by side: word counts, vectors or both, and when they happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from streamdp.kernels.blocks import places_of

NO_INTS = np.zeros(0, np.int32)

_LONG, _SHORT = np.dtype(np.int64), np.dtype(np.int32)
"""Quicker to ask for than by the class."""

BagArrays = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Offsets, words and counts of records, as a batch has them."""


class Batch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Records in time order: word counts, vectors, or word counts with a vector beside them.

    Parameters
    ----------
    offsets, words, counts
        Record i has the distinct words ``words[offsets[i]:offsets[i + 1]]`` and their counts (>= 1); int64
        of shape (n + 1,), int32, int32; of vectors alone no words. The beam wants words of count one first
        in each record.
    vectors
        Shape (n, D), float64; None for words. With words float32, and NaN for a record without one.
    times
        Event times in seconds, shape (n,), float64, non-decreasing; None where there are none.
    """

    offsets: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(1, np.int64))
    words: np.ndarray = msgspec.field(default_factory=lambda: NO_INTS)
    counts: np.ndarray = msgspec.field(default_factory=lambda: NO_INTS)
    vectors: np.ndarray | None = None
    times: np.ndarray | None = None

    @classmethod
    def of_vectors(cls, vectors: np.ndarray, times: np.ndarray | None = None) -> Batch:
        """Records that are the rows of an array."""
        return cls(np.zeros(len(vectors) + 1, np.int64), vectors=np.asarray(vectors, np.float64), times=times)

    @classmethod
    def of_words(
        cls, records: Sequence[tuple[np.ndarray, np.ndarray]], times: np.ndarray | None = None
    ) -> Batch:
        """Records that are pairs of arrays: distinct words and their counts."""
        for i, (words, counts) in enumerate(records):
            if len(words) != len(counts) or (np.asarray(counts) != np.floor(counts)).any():
                raise ValueError(f"record {i} must be words and as many whole counts")
        offsets = np.zeros(len(records) + 1, np.int64)
        np.cumsum([len(words) for words, _ in records], out=offsets[1:])
        joined = [np.concatenate([r[part] for r in records] or [NO_INTS]).astype(np.int32) for part in (0, 1)]
        return cls(offsets, joined[0], joined[1], times=times)

    @classmethod
    def concatenate(cls, batches: Sequence[Batch]) -> Batch:
        """All records of one batch after the other, with times where every batch has them."""
        stamps = [batch.times for batch in batches if batch.times is not None]
        times = np.concatenate(stamps) if len(stamps) == len(batches) else None
        rows = [batch.vectors for batch in batches if batch.vectors is not None]
        if rows:
            kinds = {batch.sparse for batch in batches if batch.size}
            if len(rows) < len(batches) or len(kinds) > 1:
                raise ValueError("records with and without vectors, or words, cannot be in one batch")
        bags = join_bags([(batch.offsets, batch.words, batch.counts) for batch in batches])
        return cls(*bags, np.concatenate(rows) if rows else None, times)

    @property
    def size(self) -> int:
        """n."""
        return len(self.offsets) - 1

    @property
    def sparse(self) -> bool:
        """Whether the records are word counts, maybe with vectors beside them."""
        return self.vectors is None or len(self.words) > 0

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of every record, or numbers of its vector, shape (n,), int64."""
        if self.vectors is not None and not self.sparse:
            return np.full(self.size, self.vectors.shape[1])
        return _differences(np.append(0, np.cumsum(self.counts, dtype=np.int64))[self.offsets])

    @property
    def bags(self) -> BagArrays:
        """Offsets, words and counts as kernels read them."""
        return (
            np.ascontiguousarray(self.offsets, _LONG),
            np.ascontiguousarray(self.words, _SHORT),
            np.ascontiguousarray(self.counts, _SHORT),
        )

    @property
    def lengths(self) -> np.ndarray:
        """Distinct words of every record, shape (n,), int64."""
        return _differences(self.offsets)

    @property
    def rows(self) -> np.ndarray:
        """The record that each of ``words`` is in."""
        return np.repeat(np.arange(self.size), self.lengths)

    def slice(self, start: int, stop: int | None = None) -> Batch:
        """The records from ``start`` up to ``stop`` (the end), without copying words or vectors."""
        stop = self.size if stop is None else min(stop, self.size)
        times = None if self.times is None else self.times[start:stop]
        vectors = None if self.vectors is None else self.vectors[start:stop]
        a, b = self.offsets[start], self.offsets[stop]
        return Batch(self.offsets[start : stop + 1] - a, self.words[a:b], self.counts[a:b], vectors, times)

    def take(self, order: np.ndarray) -> Batch:
        """The records of the given numbers, in that order."""
        times = None if self.times is None else self.times[order]
        vectors = None if self.vectors is None else self.vectors[order]
        lengths = self.lengths[order]
        offsets = np.zeros(len(order) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = places_of(self.offsets[:-1][order], lengths)
        return Batch(offsets, self.words[places], self.counts[places], vectors, times)


class Labelled(NamedTuple):
    """Consecutive records from number ``first`` on, as the beam took them, and the label of each."""

    first: int
    batch: Batch
    labels: np.ndarray


def join_bags(parts: Sequence[BagArrays]) -> BagArrays:
    """The records of one part after the other."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.zeros(1, np.int64), NO_INTS, NO_INTS
    bounds, words, counts = zip(nothing, *parts, strict=True)
    lengths = _differences(np.concatenate(bounds))  # at once; from the end of a part to the next is none
    begins = np.cumsum(np.fromiter(map(len, bounds[:-1]), np.int64, len(parts)))
    offsets = np.zeros(len(lengths) - len(begins) + 1, np.int64)
    np.cumsum(np.delete(lengths, begins - 1), out=offsets[1:])
    return offsets, np.concatenate(words), np.concatenate(counts)


def _differences(bounds: np.ndarray) -> np.ndarray:
    """As ``np.diff``, in a tenth of its time where there is little."""
    return np.asarray(bounds[1:] - bounds[:-1])
