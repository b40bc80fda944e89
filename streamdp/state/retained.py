"""The latest records in encoded form: with their newest labels what offline passes refine."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from streamdp.encode.batch import Batch, Labelled
from streamdp.kernels.packed import Packed, pack, unpack
from streamdp.ledger.ledger import Ledger


def pack_batch(batch: Batch) -> dict[str, Packed | None]:
    """Arrays by name, None where the batch has none."""
    arrays = {name: getattr(batch, name) for name in ("offsets", "words", "counts", "vectors", "times")}
    return {name: None if array is None else pack(array) for name, array in arrays.items()}


def unpack_batch(packed: dict[str, Any]) -> Batch:
    """The inverse of :func:`pack_batch`."""
    arrays: dict[str, Any] = {name: None if x is None else unpack(x) for name, x in packed.items()}
    return Batch(**arrays)


AROUND = 32
"""Bytes that a record counts for beside its words or numbers: its time, its label, where it begins."""

_EACH = 8
"""Bytes of a word and its count, and of a number of a vector."""

TOGETHER = 32
"""Parts of fewer records than that many are joined, so many at a time, and not all of them at once."""


class Part(NamedTuple):
    """Consecutive records from number ``first`` on, as the beam took them."""

    first: int
    batch: Batch


class Retained:
    """The last ``limit`` records, or fewer: as many of the newest as have ``most_bytes`` of content.

    ``ledger`` has their labels.
    """

    def __init__(self, ledger: Ledger, limit: int, most_bytes: int = 1 << 62) -> None:
        self.limit, self.most_bytes = limit, most_bytes
        self._ledger = ledger
        self.parts: deque[Part] = deque()
        self._small = 0  # of the last parts
        self.count = self.bytes = 0
        """Of the parts, which may have more than is asked for."""
        self.short = False
        """Whether this process has let records go that ``limit`` allows."""

    def append(self, first: int, batch: Batch) -> None:
        """Take in the newest records; now and then let go of the oldest parts that are no longer needed."""
        if self.limit == 0:
            return
        if self.bytes > self.most_bytes + self.most_bytes // 4:  # the first part may be as large as all
            self._joined()
        if self._small == TOGETHER:
            self._join_small()
        self._add(Part(first, batch))
        self._small = self._small + 1 if batch.size < TOGETHER else 0
        if self._small <= 1:
            self._let_go()

    def _join_small(self) -> None:
        """Make the last parts, which are small, one."""
        small = [self.parts.pop() for _ in range(self._small)]
        self.parts.append(_one_of(small[::-1]))
        self._small = 0

    def _let_go(self) -> None:
        """Let go of parts of which no record may be held."""
        while True:
            count = self.count - self.parts[0].batch.size
            size = self.bytes - _bytes_of(self.parts[0].batch)
            if count < self.limit and size < self.most_bytes:
                break
            self.parts.popleft()
            self.short |= count < self.limit
            self.count, self.bytes = count, size
        self._small = min(self._small, len(self.parts))

    def _add(self, part: Part) -> None:
        self.parts.append(part)
        self.count += part.batch.size
        self.bytes += _bytes_of(part.batch)

    def _excess(self) -> int:
        """How many of the first records are more than may be held: the same for any parts."""
        excess = max(self.count - self.limit, 0)
        if self.bytes <= self.most_bytes:
            return excess
        sizes = np.concatenate([_sizes_of(part.batch) for part in self.parts])
        held = max(int(np.searchsorted(np.cumsum(sizes[::-1]), self.most_bytes, "right")), 1)
        self.short |= held < min(self.count, self.limit)
        return max(excess, self.count - held)

    @property
    def held(self) -> int:
        """How many records are held."""
        return self.count - self._excess()

    @property
    def time(self) -> float | None:
        """That of the newest record; None where records have none."""
        times = self.parts[-1].batch.times if self.parts else None
        return None if times is None else float(times[-1])

    def collect(self) -> Labelled | None:
        """Exactly those that may be held (all, while there are fewer); None while there is none."""
        held = self._joined()
        return None if held is None else Labelled(*held, self._labels(held))

    def newest(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The newest label of each record that may be held, and its time where records have one."""
        held = self._joined()
        return (np.zeros(0, np.int64), None) if held is None else (self._labels(held), held.batch.times)

    def _labels(self, held: Part) -> np.ndarray:
        return self._ledger.labels(held.first, held.first + held.batch.size)

    def _joined(self) -> Part | None:
        """Those that may be held, as one part from now on: the next call joins only what is new."""
        if not self.parts:
            return None
        self._let_go()
        excess = self._excess()
        if excess or len(self.parts) > 1:
            first, batch = self.parts[0]
            parts = [Part(first + excess, batch.slice(excess)), *itertools.islice(self.parts, 1, None)]
            self._hold(_one_of(parts))
        return self.parts[0] if self.parts else None

    def _hold(self, part: Part) -> None:
        """Hold these records, and no others."""
        self.parts = deque()
        self.count = self.bytes = self._small = 0
        if part.batch.size:
            self._add(part)

    def latest_labels(self, count: int) -> list[int]:
        """The newest labels of the last ``count`` records (of those that may be held), oldest first."""
        seq = self._ledger.seq
        found: list[int] = self._ledger.labels(seq - min(count, self.held), seq).tolist()
        return found

    def erase(self, seqs: Iterable[int], often: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Let go of what records say; returns the words that they had, and their counts.

        Each keeps the one of its words that is the most frequent (``often``, by id), once, and no vector
        beside them. Vectors alone are held from behind the last of these records on.
        """
        held = self._joined()
        if held is None:
            return []
        at = np.array(sorted(seq - held.first for seq in seqs if held.first <= seq), np.int64)
        at = at[at < held.batch.size]
        batch, found = held.batch, []
        if batch.dense:
            start = int(at[-1]) + 1 if len(at) else 0
            kept = Part(held.first + start, batch.slice(start))
        else:
            stays = np.ones(len(batch.words), bool)
            counts = batch.counts.copy()
            for start, stop in zip(batch.offsets[at].tolist(), batch.offsets[at + 1].tolist(), strict=True):
                words = batch.words[start:stop]
                found.append((words.copy(), batch.counts[start:stop].copy()))
                if stop > start:
                    most = start + int(np.argmax(often[words]))
                    stays[start:stop] = np.arange(start, stop) == most
                    counts[most] = 1
            lengths = np.bincount(batch.rows[stays], minlength=batch.size)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            left = replace(batch, offsets=offsets, words=batch.words[stays], counts=counts[stays])
            if batch.vectors is not None:
                vectors = batch.vectors.copy()
                vectors[at] = np.nan
                left = replace(left, vectors=vectors)
            kept = held._replace(batch=left)
        self._hold(kept)
        return found

    def dump(self) -> dict[str, Any] | None:
        """What is held, as plain values."""
        held = self._joined()
        return None if held is None else {"first": held.first, "batch": pack_batch(held.batch)}

    def load(self, stored: dict[str, Any] | None) -> None:
        """The inverse of :meth:`dump`."""
        if stored is None:
            return
        self._add(Part(stored["first"], unpack_batch(stored["batch"])))


def _one_of(parts: Sequence[Part]) -> Part:
    """Records of parts that follow each other."""
    return Part(parts[0].first, Batch.concatenate([part.batch for part in parts]))


def _sizes_of(batch: Batch) -> np.ndarray:
    """Bytes that each record counts for."""
    numbers = np.zeros(batch.size, np.int64)
    if batch.sparse:
        numbers += np.diff(batch.offsets)
    if batch.vectors is not None:
        numbers += batch.vectors.shape[1] * batch.vectors.itemsize // _EACH
    return _EACH * numbers + AROUND


def _bytes_of(batch: Batch) -> int:
    """Bytes that all records count for."""
    numbers = len(batch.words) + (0 if batch.vectors is None else batch.vectors.nbytes // _EACH)
    return _EACH * numbers + AROUND * batch.size
