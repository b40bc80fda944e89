"""The vectors of records that have one beside their other fields."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from streamdp.encode.order import refuse
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.errors import ConfigError, Exit
from streamdp.likelihoods.base import Moments
from streamdp.records import Record, Reject

LONGEST = 1 << 17
"""Numbers of a vector at most: every cluster holds twice as many."""


class VectorBeside:
    """One field of vectors, scaled to length one; a record that lacks it has a row of NaN.

    Parameters
    ----------
    field
        Its name.
    dimension
        D; None: that of the first vector that comes.
    """

    def __init__(self, field: str, dimension: int | None = None) -> None:
        self.field = field
        self._rows: VectorEncoder | None = None
        self._lacking = 0  # records without a vector, before any had one
        if dimension is not None:
            self._rows = VectorEncoder(dimension, None, normalise=True)

    @property
    def dimension(self) -> int | None:
        """D; None while there was no vector."""
        return None if self._rows is None else self._rows.dimension

    def add(self, record: Record, found: Any) -> Reject | None:
        """Append the vector that a record has, None for none; or say what is wrong with it."""
        if found is None:
            if self._rows is None:
                self._lacking += 1
            else:
                self._rows.rows.append(np.full(self._rows.dimension, np.nan))
            return None
        if not isinstance(found, list) or not found:
            detail = f"field {self.field!r} is no array of numbers: {found!r:.60}"
            return refuse(record, "wrong_type", detail)
        if len(found) > LONGEST:
            detail = f"field {self.field!r} has {len(found):,} numbers; at most {LONGEST:,} are taken"
            return refuse(record, "too_large", detail)
        rows = self._rows or VectorEncoder(len(found), None, normalise=True)
        refused = rows.add(msgspec.structs.replace(record, value=found))
        if refused is not None:
            detail = f"field {self.field!r}: {refused.detail}"
            return msgspec.structs.replace(refused, detail=detail)
        if self._rows is None:
            self._rows = rows
            rows.rows = [*np.full((self._lacking, rows.dimension), np.nan), *rows.rows]
        return None

    @property
    def moments(self) -> Moments:
        """What its family is made from: nothing but how long vectors are. ConfigError where none has come."""
        if self._rows is None:
            raise ConfigError(
                f"vector_field: none of the first {self._lacking:,} records has a field {self.field!r}: is "
                "it called so? A larger --warmup waits for more",
                Exit.BAD_DATA,
            )
        return Moments.of(np.zeros((1, self._rows.dimension)))

    def take(self, times: np.ndarray) -> np.ndarray:
        """The rows of the batch, shape (n, D); a new one is begun."""
        assert self._rows is not None
        rows = self._rows.take(times).vectors
        assert rows is not None
        return rows
