"""Records side by side: columns that kernels read, and objects for whoever asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np

from streamdp.records import Record, Reject
from streamdp.records.raws import Raws

LARGEST = 8e9
"""Below it, six decimals of a double can be told apart."""


NO_FIELDS = (-2, -2)
"""The spans of a record that has no mapping of kept fields, not even an empty one."""


class Columns(NamedTuple):
    """What kernels read of texts or vectors; a span is where in ``data`` something begins and ends."""

    data: np.ndarray  # uint8[...] the records as they came, and what was written anew
    letters: np.ndarray  # uint8[...] the texts in UTF-8, one after the other
    ends: np.ndarray  # int64[n] where in letters each ends
    times: np.ndarray  # float64[n] seconds, NaN where there is none
    ids: np.ndarray  # int64[n, 2] spans of what is written of ids; begins below 0 where there is none
    kept: np.ndarray  # int64[n, fields, 2] the same of kept fields
    places: np.ndarray  # int64[n, numbers] what is counted in positions
    vectors: np.ndarray  # float64[n, D]; D is 0 where they are texts


_BESIDE = ("times", "ids", "kept", "places", "vectors")


class Texts(Sequence[Record]):
    """Texts that were read, or vectors of one length, and what was refused among them.

    Parameters
    ----------
    columns
        What was read of them.
    raws
        The events that they were, and ``numbers`` which of these, shape (n,).
    keep
        The names of kept fields; None where nothing is kept.
    refused
        What was refused, each before the text of so many before it.
    begin
        Where in ``letters`` the first text begins.
    features
        The names of the numbers of each vector; none where vectors are arrays.
    """

    def __init__(
        self,
        columns: Columns,
        raws: Raws,
        numbers: np.ndarray,
        keep: tuple[str, ...],
        refused: Sequence[tuple[int, Reject]] = (),
        begin: int = 0,
        features: tuple[str, ...] = (),
    ) -> None:
        for each in columns.data, columns.letters:
            each.setflags(write=False)  # however they came about: kernels are compiled for one kind
        self.columns, self.raws, self.numbers, self.keep = columns, raws, numbers, keep
        self.refused, self.begin, self.features = refused, begin, features

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def came(self) -> int:
        """How many events there were, what was refused among them."""
        return len(self) + len(self.refused)

    @property
    def dimension(self) -> int:
        """How many numbers each vector has; 0 of texts."""
        return int(self.columns.vectors.shape[1])

    @property
    def arrivals(self) -> np.ndarray:
        """When each was read, in seconds since 1970: shape (n,)."""
        found: np.ndarray = np.array(self.raws.arrivals)[self.numbers]
        return found

    def _part(self, start: int, stop: int) -> Texts:
        columns, last = self.columns, stop == len(self)
        parts = {name: getattr(columns, name)[start:stop] for name in ("ends", *_BESIDE)}
        part = columns._replace(**parts)
        begin = int(columns.ends[start - 1]) if start else self.begin
        refused = [
            (at - start, reject)
            for at, reject in self.refused
            if start <= at and (at < stop or (last and at == stop))
        ]
        return Texts(part, self.raws, self.numbers[start:stop], self.keep, refused, begin, self.features)

    def take(self, which: np.ndarray) -> Texts:
        """Some of the texts, by their numbers in order, without what was refused."""
        columns = self.columns
        starts = np.concatenate([[self.begin], columns.ends[:-1]])
        pieces = [columns.letters[starts[i] : columns.ends[i]] for i in which.tolist()]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        letters = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
        part = columns._replace(
            letters=letters,
            ends=ends,
            **{name: getattr(columns, name)[which] for name in _BESIDE},
        )
        return Texts(part, self.raws, self.numbers[which], self.keep, features=self.features)

    def all(self) -> list[Record | Reject]:
        """Records and what was refused, as they came."""
        found: list[Record | Reject] = []
        at = 0
        for before, reject in self.refused:
            found += self[at:before]
            found.append(reject)
            at = before
        return [*found, *self[at:]]

    def text(self, i: int) -> str:
        """What one of them says."""
        begin = self.columns.ends[i - 1] if i else self.begin
        return self.columns.letters[begin : self.columns.ends[i]].tobytes().decode()

    def value(self, i: int) -> str | list[float] | dict[str, Any]:
        """The text, the vector or the features of one of them."""
        if not self.dimension:
            return self.text(i)
        vector: list[float] = self.columns.vectors[i].tolist()
        return dict(zip(self.features, vector, strict=True)) if self.features else vector

    def said(self) -> list[str]:
        """What all of them say; vectors and features as JSON."""
        if self.dimension:
            return [msgspec.json.encode(self.value(i)).decode() for i in range(len(self))]
        ends = self.columns.ends.tolist()
        letters = self.columns.letters[self.begin : ends[-1] if ends else self.begin].tobytes()
        spans = zip(
            [0, *(end - self.begin for end in ends[:-1])], (end - self.begin for end in ends), strict=True
        )
        if letters.isascii():  # of which each byte is a character
            text = letters.decode("ascii")
            return [text[start:end] for start, end in spans]
        return [letters[start:end].decode() for start, end in spans]

    def positions(self) -> list[bytes]:
        """Where all of them stand in their source, as JSON."""
        return self.raws.positions(self.numbers.tolist())

    def time(self, i: int) -> float | None:
        """The time of one of them."""
        time = float(self.columns.times[i])
        return None if time != time else time

    def id(self, i: int) -> str | int | None:
        """The id of one of them."""
        found: str | int | None = self._written(self.columns.ids[i])
        return found

    def record(self, i: int) -> Record:
        """One of them as a record."""
        number = int(self.numbers[i])
        raws = self.raws
        return Record(
            self.value(i),
            raws.position(number),
            self.time(i),
            self.id(i),
            raws.arrivals[number],
            self.kept(i),
            raws.data[number],
        )

    def kept(self, i: int) -> dict[str, Any] | None:
        """The kept fields of one of them."""
        if not self.keep or self.columns.kept[i, 0, 0] == NO_FIELDS[0]:
            return None
        spans = zip(self.keep, self.columns.kept[i], strict=True)
        return {name: self._written(span) for name, span in spans if span[0] >= 0}

    def _written(self, span: np.ndarray) -> Any:
        start, stop = span.tolist()
        return None if start < 0 else msgspec.json.decode(self.columns.data[start:stop].tobytes())

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Texts: ...
    def __getitem__(self, at: int | slice) -> Record | Texts:
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            return self if (start, stop) == (0, len(self)) else self._part(start, max(start, stop))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.record(at % len(self))

    def __iter__(self) -> Iterator[Record]:
        return map(self.record, range(len(self)))


def time_of(records: Sequence[Record], i: int) -> float | None:
    """The time of one of the records."""
    return records.time(i) if isinstance(records, Texts) else records[i].time


def text_of(records: Sequence[Record], i: int) -> str:
    """What one of some records says that are texts."""
    return records.text(i) if isinstance(records, Texts) else str(records[i].value)


def times_of(records: Sequence[Record]) -> list[float | None]:
    """The time of each record."""
    if isinstance(records, Texts):
        return [time if time == time else None for time in records.columns.times.tolist()]
    return [record.time for record in records]
