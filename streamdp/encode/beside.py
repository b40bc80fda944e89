"""The vectors of records that have one beside their words: scaled, and centred where the stream is."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.encode.order import refuse
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.errors import ConfigError, Exit
from streamdp.kernels.jit import Bound, entry
from streamdp.kernels.sound import finite, require
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.vectors import has_vector
from streamdp.records import Record, Reject

LONGEST = 1 << 17
"""Numbers of a vector at most: every cluster holds twice as many."""

STEP = 25
"""Vectors after which the centre moves; as many must have come before there is one."""

LEAST = 1e-12
"""Squared distance from the centre, below which a vector has no direction."""

LASTING = 10_000.0
"""Vectors that the centre is the mean of, at most: older ones count for less and less."""


class Seen(NamedTuple):
    """What a centre knows of the vectors that have come."""

    total: np.ndarray  # float64[D]
    mean: np.ndarray  # float64[D]
    counts: np.ndarray  # float64[3] how many the total counts, how many have come, and 1 once there is a mean


@entry
def centre_rows(seen: Seen, learns: bool, rows: np.ndarray) -> None:
    """Turn vectors of length one, shape (n, D), into what is seen from the centre: of length one, or NaN."""
    total, mean, count = seen.total, seen.mean, seen.counts
    size = mean.shape[0]
    for i in range(rows.shape[0]):
        x, length = rows[i], 0.0
        if not has_vector(x):
            continue
        if learns:
            for d in range(size):
                total[d] += x[d]
            count[0] += 1.0
            count[1] += 1.0
            if count[1] % STEP == 0.0:
                count[2] = 1.0
                for d in range(size):
                    mean[d] = total[d] / count[0]
                if count[0] > LASTING:
                    for d in range(size):
                        total[d] *= LASTING / count[0]
                    count[0] = LASTING
        for d in range(size):
            x[d] -= mean[d]
            length += x[d] * x[d]
        apart = count[2] > 0.0 and length > LEAST
        for d in range(size):
            x[d] = np.float64(np.float32(x[d] / math.sqrt(length))) if apart else math.nan


class VectorBeside:
    """The vector of each record, scaled to length one and seen from the centre; NaN for a record without one.

    The centre is the mean direction of a stream's vectors; it follows the stream. Embeddings lie in a cone:
    without a centre all seem near each other. It moves at fixed numbers of records, and is state: the same
    records are seen from the same centres, however they come in batches. A vector stays as it was seen when
    it came. Until there is a centre a record has no vector.

    Parameters
    ----------
    field
        The name of the field that holds it; none where it is made of the text.
    dimension
        D; None: that of the first vector that comes.
    """

    def __init__(self, field: str, dimension: int | None = None) -> None:
        self.field = field
        self._read: VectorEncoder | None = None
        self._seen = Seen(*np.zeros((3, 0)))
        self._see = Bound(centre_rows)
        self._parts: list[np.ndarray] = []  # rows, NaN where a record has none
        self._lacking = 0  # records before these, which had none when it was not known how long one is
        self._counted = 0  # records of which the centre has learned
        if dimension is not None:
            self._begin(dimension)

    def _begin(self, dimension: int) -> None:
        self._read = VectorEncoder(dimension, None, normalise=True)
        self._seen = Seen(np.zeros(dimension), np.zeros(dimension), np.zeros(3))

    @property
    def dimension(self) -> int | None:
        """D; None while there was no vector."""
        return None if self._read is None else self._read.dimension

    def add(self, record: Record, found: Any) -> Reject | None:
        """Append the vector that a record has, None for none; or say what is wrong with it."""
        if found is None:
            if self.dimension is None:
                self._lacking += 1
            else:
                self._parts.append(np.full((1, self.dimension), np.nan))
            return None
        if not isinstance(found, list) or not found:
            detail = f"field {self.field!r} is no array of numbers: {found!r:.60}"
            return refuse(record, "wrong_type", detail)
        if len(found) > LONGEST:
            detail = f"field {self.field!r} has {len(found):,} numbers; at most {LONGEST:,} are taken"
            return refuse(record, "too_large", detail)
        read = self._read or VectorEncoder(len(found), None, normalise=True)
        refused = read.add_one(msgspec.structs.replace(record, value=found))
        if refused is not None:
            detail = f"field {self.field!r}: {refused.detail}"
            return msgspec.structs.replace(refused, detail=detail)
        if self._read is None:
            self._begin(len(found))
        self._parts.append(np.asarray(read.rows.pop())[np.newaxis])
        return None

    def extend(self, rows: np.ndarray) -> None:
        """Append vectors of any length, shape (n, D), of zeros or NaN where a record has none."""
        lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
        self._parts.append(np.where(lengths > 0.0, rows / np.maximum(lengths, 1e-300), np.nan))

    def learn(self) -> Moments:
        """What its family is made from: nothing but how long vectors are. ConfigError where none has come."""
        if self._read is None:
            raise ConfigError(
                f"vector_field: none of the first {self._lacking:,} records has a field {self.field!r}: is "
                "it called so? A larger --warmup waits for more",
                Exit.BAD_DATA,
            )
        self.begin(STEP)
        return self.moments

    @property
    def moments(self) -> Moments:
        """How long the vectors are, once that is known."""
        assert self.dimension is not None
        return Moments.of(np.zeros((1, self.dimension)))

    def begin(self, least: int = 1) -> None:
        """Learn the centre of the vectors that wait, before any is seen, where there are so many."""
        if self._read is None or self._seen.counts[2]:
            return
        rows = self._array()
        there = rows[~np.isnan(rows[:, 0])]
        if len(there) >= least:
            self._seen.total[:] = there.sum(axis=0)
            self._seen.counts[:] = len(there), len(there), 1
            self._seen.mean[:] = self._seen.total / len(there)
            self._counted = len(rows)

    def _array(self) -> np.ndarray:
        assert self.dimension is not None
        return np.concatenate([np.full((self._lacking, self.dimension), np.nan), *self._parts])

    def take(self, *, learns: bool) -> np.ndarray:
        """The vectors of the batch, shape (n, D), float32; a new one is begun."""
        rows = self._array()
        self._see((self._seen,), False, rows[: self._counted])
        self._see((self._seen,), learns, rows[self._counted :])
        self.clear()
        return rows.astype(np.float32)  # as which they were rounded

    def clear(self) -> None:
        """Begin a new batch."""
        self._parts, self._lacking, self._counted = [], 0, 0

    def for_scoring(self) -> VectorBeside:
        """One with a batch of its own, from the same centre, that learns nothing."""
        made = VectorBeside(self.field, self.dimension)
        made._seen = self._seen
        return made

    @property
    def centre(self) -> Seen | None:
        """What is known of the centre; None while there is none."""
        return None if self._read is None else self._seen

    def resume(self, seen: Seen | None) -> None:
        """Go on with such a centre. Raises UnsoundError."""
        if seen is None:
            require(self._read is None, "vectors without a centre")
            return
        require(0 < seen.mean.size <= LONGEST, "the dimension is out of range")
        if self._read is None:
            self._begin(seen.mean.size)
        for stored, array in zip(seen, self._seen, strict=True):
            require(stored.shape == array.shape and stored.dtype == array.dtype, "a centre of another length")
            finite(stored, "the centre")
            array[:] = stored
        require((self._seen.counts >= 0.0).all(), "a count of vectors is below 0")
