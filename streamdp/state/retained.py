"""The latest records in encoded form, with their newest labels: what offline passes refine.

Arrays and batches become plain values that msgpack can hold.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from streamdp.encode.batch import Batch, Labelled
from streamdp.kernels.rows import Counters

Packed = tuple[Any, list[int], memoryview]


def pack(array: np.ndarray) -> Packed:
    """(dtype, shape, little-endian bytes); the dtype of rows as pairs of name and type.

    The bytes are the array's own where they can be: to be encoded before it changes.
    """
    ordered = np.ascontiguousarray(array)
    if ordered.dtype.byteorder == ">":
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"))
    kind: Any = ordered.dtype.str if ordered.dtype.names is None else ordered.dtype.descr
    return kind, list(array.shape), ordered.reshape(-1).view(np.uint8).data


def unpack(packed: Any) -> np.ndarray:
    """The inverse of :func:`pack`, as a writable array of native byte order."""
    kind, shape, data = packed
    dtype = np.dtype(kind if isinstance(kind, str) else [(name, of) for name, of in kind])
    array = np.frombuffer(data, dtype).reshape(shape)
    found = array.astype(array.dtype.newbyteorder("="), copy=True)
    return found.view(Counters) if dtype.names and not shape else found


def pack_all(found: Any) -> Any:
    """Arrays in a mapping, and in mappings within it, packed; what else there is as it is."""
    if isinstance(found, dict):
        return {name: pack_all(value) for name, value in found.items()}
    return pack(found) if isinstance(found, np.ndarray) else found


def unpack_all(stored: Any) -> Any:
    """The inverse of :func:`pack_all`."""
    if isinstance(stored, dict):
        return {name: unpack_all(value) for name, value in stored.items()}
    return unpack(stored) if isinstance(stored, list) else stored


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


class Retained:
    """The last ``limit`` records, or fewer: as many of the newest as have ``most_bytes`` of content."""

    def __init__(self, limit: int, most_bytes: int = 1 << 62) -> None:
        self.limit, self.most_bytes = limit, most_bytes
        self.parts: deque[Labelled] = deque()
        self._small = 0  # of the last parts
        self.count = self.bytes = 0
        """Of the parts, which may have more than is asked for."""
        self.short = False
        """Whether this process has let records go that ``limit`` allows."""

    def append(self, part: Labelled) -> None:
        """Take in the newest records, and now and then let go of the oldest parts that are no longer needed.

        Their labels may be filled in afterwards, up to the next call.
        """
        if self.limit == 0:
            return
        if self.bytes > self.most_bytes + self.most_bytes // 4:  # the first part may be as large as all
            self._joined()
        if self._small == TOGETHER:
            self._join_small()
        self._add(part)
        self._small = self._small + 1 if len(part.labels) < TOGETHER else 0
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
            count = self.count - len(self.parts[0].labels)
            size = self.bytes - _bytes_of(self.parts[0].batch)
            if count < self.limit and size < self.most_bytes:
                break
            self.parts.popleft()
            self.short |= count < self.limit
            self.count, self.bytes = count, size
        self._small = min(self._small, len(self.parts))

    def _add(self, part: Labelled) -> None:
        self.parts.append(part)
        self.count += len(part.labels)
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

    def relabel(self, before: int, after: int) -> None:
        """Give all records of a label another one."""
        for part in self.parts:
            part.labels[part.labels == before] = after

    def rename(self, labels: np.ndarray) -> None:
        """Give all records new labels; ``labels`` are those of all records so far."""
        if (held := self._joined()) is not None:
            held.labels[:] = labels[held.first :]

    def revise(self, seq: int, label: int) -> None:
        """Give a record its newest label, where it is still held."""
        for part in reversed(self.parts):
            if seq >= part.first:
                if seq - part.first < len(part.labels):
                    part.labels[seq - part.first] = label
                return

    @property
    def time(self) -> float | None:
        """That of the newest record; None where records have none."""
        times = self.parts[-1].batch.times if self.parts else None
        return None if times is None else float(times[-1])

    def collect(self) -> Labelled | None:
        """Exactly those that may be held (all, while there are fewer); None while there is none."""
        held = self._joined()
        return None if held is None else held._replace(labels=held.labels.copy())

    def newest(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The newest label of each record that may be held, and its time where records have one."""
        held = self._joined()
        return (np.zeros(0, np.int64), None) if held is None else (held.labels.copy(), held.batch.times)

    def _joined(self) -> Labelled | None:
        """Those that may be held, as one part from now on: the next call joins only what is new."""
        if not self.parts:
            return None
        self._let_go()
        excess = self._excess()
        if excess or len(self.parts) > 1:
            parts = [self.parts[0].since(excess), *itertools.islice(self.parts, 1, None)]
            self._hold(_one_of(parts))
        return self.parts[0] if self.parts else None

    def _hold(self, part: Labelled) -> None:
        """Hold these records, and no others."""
        self.parts = deque()
        self.count = self.bytes = self._small = 0
        if len(part.labels):
            self._add(part)

    def latest_labels(self, count: int) -> list[int]:
        """The newest labels of the last ``count`` records (of those that may be held), oldest first."""
        count = min(count, self.held)
        found: list[int] = []
        for part in reversed(self.parts):
            if len(found) >= count:
                break
            found = part.labels.tolist() + found
        return found[-count:] if count else []

    def erase(self, seqs: Iterable[int], often: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Let go of what records say; returns the words that they had, and their counts.

        Each keeps the one of its words that is the most frequent (``often``, by id), once, and no vector
        beside them. Vectors alone are held from behind the last of these records on.
        """
        held = self._joined()
        if held is None:
            return []
        at = np.array(sorted(seq - held.first for seq in seqs if held.first <= seq), np.int64)
        at = at[at < len(held.labels)]
        batch, found = held.batch, []
        if batch.dense:
            kept = held.since(int(at[-1]) + 1 if len(at) else 0)
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
            lengths = np.bincount(batch.rows[stays], minlength=len(held.labels))
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
        held = self.collect()
        if held is None:
            return None
        return {"first": held.first, "labels": pack(held.labels), "batch": pack_batch(held.batch)}

    def load(self, stored: dict[str, Any] | None) -> None:
        """The inverse of :meth:`dump`."""
        if stored is None:
            return
        self._add(Labelled(stored["first"], unpack_batch(stored["batch"]), unpack(stored["labels"])))


def _one_of(parts: Sequence[Labelled]) -> Labelled:
    """Records of parts that follow each other."""
    labels = np.concatenate([part.labels for part in parts])
    return Labelled(parts[0].first, Batch.concatenate([part.batch for part in parts]), labels)


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
