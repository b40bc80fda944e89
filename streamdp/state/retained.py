"""The latest records in encoded form: with their newest labels what offline passes refine."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from streamdp.encode.batch import Batch, Labelled
from streamdp.kernels.rows import longer
from streamdp.ledger.ledger import Ledger

AROUND = 32
"""Bytes that a record counts for beside its words or numbers: its time, its label, where it begins."""

_EACH = 8
"""Bytes of a word and its count, and of a number of a vector."""

_ROOM = 64
"""Records, and words, that there is room for at least behind those that are held."""


class Retained:
    """The last ``limit`` records, or fewer: as many of the newest as have ``most_bytes`` of content.

    They stand in columns with room behind, so that what is held is not copied when more comes; ``ledger``
    has their labels.
    """

    def __init__(self, ledger: Ledger, limit: int, most_bytes: int = 1 << 62) -> None:
        self.limit, self.most_bytes = limit, most_bytes
        self._ledger = ledger
        self._columns = Batch()
        self._first = 0
        self._at = self._stop = 0
        """Where in the columns those that are held begin and end."""
        self.short = False
        """Whether this process has let records go that ``limit`` allows."""

    @property
    def held(self) -> int:
        """How many records are held."""
        return self._stop - self._at

    def append(self, first: int, batch: Batch) -> None:
        """Take in the newest records, from number ``first`` on, and let go of the oldest."""
        if not self.limit or not batch.size:
            return
        if not self.held:
            self._first = first
        columns = self._with_room(batch)
        at, stop = self._stop, self._stop + batch.size
        begin = int(columns.offsets[at])
        end = begin + len(batch.words)
        columns.offsets[at + 1 : stop + 1] = batch.offsets[1:] + (begin - int(batch.offsets[0]))
        columns.words[begin:end], columns.counts[begin:end] = batch.words, batch.counts
        if columns.vectors is not None:
            columns.vectors[at:stop] = batch.vectors
        if columns.times is not None:
            columns.times[at:stop] = batch.times
        self._stop = stop
        self._let_go()

    def _with_room(self, batch: Batch) -> Batch:
        """The columns, with room for these records behind those that are held."""
        held = self._columns
        words = int(held.offsets[self._stop]) + len(batch.words)
        if self._stop + batch.size <= held.size and words <= len(held.words):
            return held
        kept = held.slice(self._at, self._stop) if self.held else batch.slice(0, 0)
        rows = kept.size + batch.size + max(kept.size // 4, _ROOM)
        words = len(kept.words) + len(batch.words)
        words += max(len(kept.words) // 4, _ROOM) if words else 0
        self._columns = Batch(
            longer(kept.offsets, rows + 1),
            longer(kept.words, words),
            longer(kept.counts, words),
            None if kept.vectors is None else longer(kept.vectors, rows),
            None if kept.times is None else longer(kept.times, rows),
        )
        self._at, self._stop = 0, kept.size
        return self._columns

    def _let_go(self) -> None:
        """Let go of the oldest records that may not be held."""
        at = self._stop - min(self.held, self.limit)
        if self._bytes_from(at) > self.most_bytes:
            few = range(at, self._stop - 1)
            at += bisect.bisect_left(few, -self.most_bytes, key=lambda row: -self._bytes_from(row))
            self.short = True
        self._first += at - self._at
        self._at = at

    def _bytes_from(self, row: int) -> int:
        """What the records from a row of the columns on count for."""
        columns, each = self._columns, AROUND
        if columns.vectors is not None:
            each += _EACH * (columns.vectors.shape[1] * columns.vectors.itemsize // _EACH)
        words = int(columns.offsets[self._stop] - columns.offsets[row])
        return _EACH * words + each * (self._stop - row)

    @property
    def time(self) -> float | None:
        """That of the newest record; None where records have none."""
        times = self._columns.times
        return None if times is None or not self.held else float(times[self._stop - 1])

    def collect(self) -> Labelled | None:
        """The records that are held, with their newest labels; None while there is none."""
        if not self.held:
            return None
        return Labelled(self._first, self._columns.slice(self._at, self._stop), self._labels())

    def newest(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The newest label of each record that is held, and its time where records have one."""
        times = self._columns.times
        return self._labels(), None if times is None or not self.held else times[self._at : self._stop]

    def _labels(self) -> np.ndarray:
        return self._ledger.labels(self._first, self._first + self.held)

    def hold(self, first: int, batch: Batch) -> None:
        """Hold these records, and no others."""
        self._columns, self._first = batch, first
        self._at, self._stop = 0, batch.size
        self._let_go()

    def blank(self, seqs: Iterable[int], often: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Let go of what records say; returns the words that they had, and their counts.

        Each keeps the one of its words that is the most frequent (``often``, by id), once, and no vector
        beside them. Vectors alone are held from behind the last of these records on.
        """
        held = self.collect()
        if held is None:
            return []
        at = np.array(sorted(seq - held.first for seq in seqs if held.first <= seq), np.int64)
        at = at[at < held.batch.size]
        batch, found = held.batch, []
        if not batch.sparse:
            start = int(at[-1]) + 1 if len(at) else 0
            self.hold(held.first + start, batch.slice(start))
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
            self.hold(held.first, left)
        return found
