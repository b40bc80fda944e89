"""Vectors, or features that are numbers, to rows of one length."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from streamdp.encode.batch import Batch
from streamdp.encode.order import refuse
from streamdp.kernels.sound import finite, require
from streamdp.likelihoods.base import FULL, Moments
from streamdp.likelihoods.von_mises_fisher import UNIT
from streamdp.records import Kind, Record, Reject, holds_categories
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.registry import LIKELIHOODS, find
from streamdp.settings.schema import AUTO

LONG = 16
"""Numbers from which on vectors of length one are taken for embeddings."""

_log = logging.getLogger("streamdp")

HUGE = 1e100
"""Larger components are refused: their squares would leave the range of a double."""

TINY = 1e-90
"""In units of a smaller variance the square of a number up to HUGE would leave the range of a double."""

OF_POINTS = ("kappa", "shape", "scale", "forget")
"""Settings that say that vectors are points in space."""

FAR = 100.0
"""Vectors so many times as far from the middle as three quarters of all are no measure of scales."""


class VectorEncoder:
    """Vectors, or named features in a fixed order, to rows.

    Parameters
    ----------
    dimension, names
        D, and the names of the features; None for vectors.
    likelihood
        The family that says which vectors are records, by the name that users write.
    normalise
        Whether vectors are scaled to length one.
    """

    sparse = False
    vocabulary = None
    beside = None
    waits = True
    knows_all = False
    kind: ClassVar[Kind] = "vectors"

    def __init__(
        self, dimension: int, names: list[str] | None, likelihood: str = AUTO, *, normalise: bool = False
    ) -> None:
        self.dimension = dimension
        self.names = names
        self.likelihood = likelihood
        self.normalise = normalise
        self.rows: list[np.ndarray] = []
        self._read = None if likelihood == AUTO else find(LIKELIHOODS, likelihood).read

    def meant(self, settings: Settings) -> Settings:
        """The settings with the likelihood that is meant for such records, where only they say that."""
        return replace(settings, normalise=True) if self.normalise else settings

    def check(self, moments: Moments | None) -> None:
        """Raise UnsoundError unless it is sound, and goes with the moments of vectors."""
        dimension, names = self.dimension, self.names
        require(type(dimension) is int and dimension > 0, "the dimension is out of range")
        if names is not None:
            texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
            require(texts, "names of another type")
            require(len(set(names)) == len(names) == dimension, "the names are not one a dimension")
        if moments is not None:
            within = (dimension, dimension) if dimension <= FULL else (dimension,)
            shapes = ((dimension,), (dimension,), within, (4,))
            for moment, shape in zip(moments, shapes, strict=True):
                require(moment.dtype == np.float64 and moment.shape == shape, "moments of another shape")
                finite(moment, "a moment")
            require((moments.variance > 0.0).all(), "a variance is not positive")

    def recognise(self, settings: Settings) -> bool:
        """Whether the vectors of the batch are directions: of length one, and not short.

        They are scaled to it from now on, where the settings say nothing else.
        """
        if settings.likelihood != AUTO or any(getattr(settings, name) is not None for name in OF_POINTS):
            return False
        rows = np.array(self.rows, float)
        off = np.abs(np.sqrt(np.square(rows).sum(axis=1)) - 1.0)
        found = len(rows) > 0 and rows.shape[1] >= LONG and off.max() <= UNIT
        if found:
            self.normalise, self.rows = True, list(self.normalised(rows))
        return bool(found)

    def learn(self) -> Moments | None:
        """Location and scale of the vectors of the batch."""
        rows = np.array(self.rows, float)
        gaps = np.abs(rows - np.median(rows, axis=0))
        usual = np.quantile(gaps, 0.75, axis=0)
        far = ((gaps > FAR * usual) & (usual > TINY**0.5)).any(axis=1)
        rows = rows[~far] if far.mean() < 0.25 else rows
        small = rows.var(axis=0) < TINY
        if small.all() and np.ptp(rows, axis=0).any():
            _log.warning("the vectors differ by less than 1e-45, too little to be told apart: multiply them")
        rows[:, small] = rows[:1, small]
        return Moments.of(rows)

    def extend(self, rows: np.ndarray) -> bool:
        """Append rows if all can be clustered, and say so."""
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            return False
        fine = bool(np.abs(rows).max(initial=0.0) <= HUGE)
        if self.normalise:
            fine = fine and bool(rows.any(axis=1).all())
        if fine:
            self.rows.extend(self._made_of(rows))
        return fine

    def add_one(self, record: Record) -> Reject | None:
        """Append a record to the batch, or say why it cannot be clustered."""
        value: Any = record.value
        row: Any
        if isinstance(value, str):
            return refuse(record, "wrong_kind", "it holds a text where this stream holds vectors")
        if isinstance(value, dict):
            if holds_categories(value):
                return refuse(record, "wrong_kind", "it holds categories where this stream holds numbers")
            if self.names is None:
                return refuse(record, "wrong_kind", "it holds features where this stream holds vectors")
            strange = value.keys() - set(self.names)
            if strange:
                return refuse(
                    record,
                    "unknown_feature",
                    f"feature {min(strange)!r} was not in the first record of the stream",
                )
            row = [value.get(name, 0.0) for name in self.names]
        else:
            if self.names is not None:
                return refuse(record, "wrong_kind", "it holds a vector where this stream holds features")
            row = value
            if len(row) != self.dimension:
                return refuse(
                    record,
                    "wrong_length",
                    f"its vector has {len(row)} numbers where this stream has {self.dimension}",
                )
        if not len(row):
            return refuse(record, "empty", "it holds no numbers")
        numbers = np.array(row, float)
        largest = float(np.abs(numbers).max())
        if not math.isfinite(largest):
            return refuse(record, "not_finite", "a number in it is not finite")
        if largest > HUGE:
            return refuse(record, "too_large", f"a number in it is beyond {HUGE:g}")
        if self.normalise and largest == 0.0:
            return refuse(record, "zero_vector", "its vector is all zeros, which has no direction")
        try:
            self.rows.append(self._made_of(numbers[np.newaxis])[0])
        except ValueError as error:
            return refuse(record, "wrong_value", f"under the {self.likelihood} likelihood {error}")
        return None

    def add(self, given: Columns) -> list[tuple[int, Reject]]:
        """Append records to the batch; which of them cannot be clustered, and why."""
        if (values := given.values) is not None and given.dimension == self.dimension > 0:
            rows, alike = values.vectors, (sorted(values.features) or None) == self.names
            if alike and self.names is not None:
                rows = rows[:, [values.features.index(name) for name in self.names]]
            with suppress(ValueError):
                if alike and self.extend(rows):
                    return []
        found = enumerate(map(self.add_one, given))
        return [(i, reject) for i, reject in found if reject is not None]

    def _made_of(self, rows: np.ndarray) -> np.ndarray:
        """What the settings make of rows, none of them zero; ValueError where one is no record."""
        rows = self.normalised(rows) if self.normalise else rows
        return rows if self._read is None else self._read(rows)

    @staticmethod
    def normalised(rows: np.ndarray) -> np.ndarray:
        """Rows of length one, of the same directions; none may be zero."""
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)  # the squares neither overflow nor vanish
        return np.asarray(rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True)))

    def take(self, times: np.ndarray) -> Batch:
        """The batch, with the event time of each of its records; a new one is begun."""
        rows = np.array(self.rows, float).reshape(len(self.rows), self.dimension)
        self.rows = []
        return Batch.of_vectors(rows, times)

    def for_scoring(self) -> VectorEncoder:
        """An encoder of the same vectors with a batch of its own."""
        return VectorEncoder(self.dimension, self.names, self.likelihood, normalise=self.normalise)

    def sizes(self, batch: Batch) -> np.ndarray:
        """By how many parts the novelty of each record is divided, shape (n,): its numbers."""
        return batch.sizes

    def absorbed(self, batch: Batch, first: int) -> np.ndarray:
        """A beam absorbs these records from number ``first`` on; returns their :meth:`sizes`."""
        return batch.sizes

    @property
    def words(self) -> Sequence[str | None] | None:
        """None: vectors have no words."""
        return None

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        return {
            "kind": "vectors",
            "dimension": self.dimension,
            "names": self.names,
            "likelihood": self.likelihood,
            "normalise": self.normalise,
        }
