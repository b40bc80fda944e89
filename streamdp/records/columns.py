"""Records side by side: columns that kernels read, and objects for whoever asks for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np

from streamdp.records import Record, Reject
from streamdp.records.raw_batch import RawBatch

LARGEST = 8e9
"""Below it, six decimals of a double can be told apart."""


NO_FIELDS = (-2, -2)
"""The spans of a record that has no mapping of kept fields, not even an empty one."""


NO_LETTERS = np.zeros(0, np.uint8)
NO_LETTERS.setflags(write=False)
NO_NUMBERS = np.zeros(0, np.int64)

OWN_ID, OWN_POSITION, OWN_TIME, OWN_KEPT = range(4)
"""Parts of a record that are written as a whole: see ``Given.written``."""


class Values(NamedTuple):
    """What records hold that are all texts, or vectors of one form."""

    letters: np.ndarray  # uint8[...] the texts in UTF-8, one after the other
    ends: np.ndarray  # int64[n] where in letters each ends
    vectors: np.ndarray  # float64[n, D]; D is 0 where they are texts
    features: tuple[str, ...] = ()  # the names of the numbers; none where vectors are arrays


class Given(NamedTuple):
    """What lines have from their records; a span is where in ``data`` something begins and ends."""

    data: np.ndarray  # uint8[...] the records as they came, and what was written anew
    times: np.ndarray  # float64[n] seconds, NaN where there is none
    kept: np.ndarray  # int64[n, fields, 2] spans of kept fields, below 0 where there is none
    places: np.ndarray  # int64[n, numbers] what is counted in positions
    written: (
        np.ndarray
    )  # int64[n, 1 or 4, 2] spans of ids, below 0 where there is none; of objects, of all parts


ENCODER = msgspec.json.Encoder(enc_hook=lambda value: value.item() if hasattr(value, "item") else str(value))
_encode, _encode_lines = ENCODER.encode, ENCODER.encode_lines
_NEWLINE = 10

FEW = 16
"""Values that are sooner gone through one by one."""


class Columns(Sequence[Record]):
    """Records side by side, and what was refused among them.

    They are all texts, or all vectors (or features) of one form, or of several kinds: then what they hold is
    in ``objects`` alone. What lines have of objects is made where somebody asks for it.

    Parameters
    ----------
    values, given
        What was read of them. No values: they are of several kinds; nothing given: that of the objects.
    raws
        The events that they were, and ``numbers`` which of these, shape (n,).
    keep
        The names of kept fields; none where nothing is kept.
    refused
        What was refused, each with how many records came before it.
    begin
        Where in ``letters`` the first text begins.
    objects
        The records themselves, where they came as objects.
    """

    def __init__(
        self,
        values: Values | None,
        given: Given | None,
        raws: RawBatch | None,
        numbers: np.ndarray,
        keep: tuple[str, ...],
        refused: Sequence[tuple[int, Reject]] = (),
        begin: int = 0,
        objects: Sequence[Record] | None = None,
    ) -> None:
        if values is not None and given is not None:
            for each in given.data, values.letters:
                each.setflags(write=False)  # however they came about: kernels are compiled for one kind
        self.values, self._given, self.keep = values, given, keep
        self.raws, self.numbers = raws, numbers
        self.refused, self.begin, self.objects = refused, begin, objects
        self._count = len(numbers if objects is None else objects)

    @classmethod
    def of(cls, given: Iterable[Record | Reject]) -> Columns:
        """Columns of records that are objects, and of what was refused."""
        records: list[Record] = []
        refused: list[tuple[int, Reject]] = []
        names: dict[str, Any] = {}
        for each in given:
            if isinstance(each, Reject):
                refused.append((len(records), each))
            else:
                records.append(each)
                if each.keep:
                    names |= each.keep
        values = values_of([record.value for record in records])
        return cls(values, None, None, NO_NUMBERS, tuple(names), refused, 0, records)

    @property
    def given(self) -> Given:
        """What lines have from them."""
        if self._given is None:
            self._given = self._given_of(self.objects or ())
        return self._given

    def _given_of(self, records: Sequence[Record]) -> Given:
        n, names = len(records), self.keep
        parts = [part for each in records for part in (each.id, each.position, each.time, each.keep)]
        lines = _encode_lines(parts)
        data, written = np.frombuffer(lines, np.uint8), _spans_of_lines(lines, 4 * n).reshape(n, 4, 2)
        fields = np.empty((n, 0, 2), np.int64)
        if names:
            keeps = [record.keep or {} for record in records]
            own, *kept = spans_of(*([keep.get(name, msgspec.UNSET) for keep in keeps] for name in names))
            fields = np.stack(kept, axis=1)
            fields[fields >= 0] += len(data)
            fields[[record.keep is None for record in records]] = NO_FIELDS
            data = np.concatenate([data, own])
            data.setflags(write=False)
        return Given(data, self.seconds, fields, np.empty((n, 0), np.int64), written)

    @property
    def seconds(self) -> np.ndarray:
        """Their times, NaN where there is none: shape (n,)."""
        if self.objects is not None:
            return np.array([record.time for record in self.objects], float)
        return self.given.times

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self.came > 0

    @property
    def are_texts(self) -> bool:
        """Whether all of them are texts, in ``letters``."""
        return self.values is not None and not self.dimension

    @property
    def came(self) -> int:
        """How many events there were, what was refused among them."""
        return self._count + len(self.refused)

    @property
    def dimension(self) -> int:
        """How many numbers each vector has; 0 of texts."""
        return 0 if self.values is None else self.values.vectors.shape[1]

    @property
    def arrivals(self) -> np.ndarray:
        """When each was read, in seconds since 1970: shape (n,)."""
        if self.objects is not None:
            return np.array([record.arrival for record in self.objects], float)
        found: np.ndarray = np.array(self.source.arrivals)[self.numbers]
        return found

    @property
    def source(self) -> RawBatch:
        """The events that records are of which no objects came."""
        assert self.raws is not None
        return self.raws

    def _part(self, start: int, stop: int) -> Columns:
        last = stop == len(self) and (start < stop or not len(self))
        refused = [
            (at - start, reject)
            for at, reject in self.refused
            if start <= at and (at < stop or (last and at == stop))
        ]
        values, given, begin = self.values, self._given, self.begin
        if values is not None:
            begin = int(values.ends[start - 1]) if start else begin
            values = values._replace(ends=values.ends[start:stop], vectors=values.vectors[start:stop])
        if given is not None:
            given = Given(given.data, *(each[start:stop] for each in given[1:]))
        objects = None if self.objects is None else self.objects[start:stop]
        numbers = self.numbers[start:stop]
        return Columns(values, given, self.raws, numbers, self.keep, refused, begin, objects)

    def take(self, which: np.ndarray) -> Columns:
        """Some of the records, by their numbers in order, without what was refused."""
        if self.objects is not None:
            return Columns.of([self.objects[i] for i in which.tolist()])
        assert self.values is not None
        data, *beside = self.given
        letters, ends, vectors, features = self.values
        starts = np.concatenate([[self.begin], ends[:-1]])
        pieces = [letters[starts[i] : ends[i]] for i in which.tolist()]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        values = Values(np.concatenate([NO_LETTERS, *pieces]), ends, vectors[which], features)
        given = Given(data, *(each[which] for each in beside))
        return Columns(values, given, self.raws, self.numbers[which], self.keep)

    def all(self) -> list[Record | Reject]:
        """Records and what was refused, as they came."""
        if self.objects is not None and not self.refused:
            return list(self.objects)
        found: list[Record | Reject] = []
        at = 0
        for before, reject in self.refused:
            found += self[at:before]
            found.append(reject)
            at = before
        return [*found, *self[at:]]

    def text(self, i: int) -> str:
        """What one of them says, of texts."""
        if self.objects is not None:
            return str(self.objects[i].value)
        assert self.values is not None
        ends = self.values.ends
        return self.values.letters[ends[i - 1] if i else self.begin : ends[i]].tobytes().decode()

    def value(self, i: int) -> str | list[float] | dict[str, Any]:
        """The text, the vector or the features of one of them."""
        if self.objects is not None:
            return self.objects[i].value
        if self.are_texts:
            return self.text(i)
        assert self.values is not None
        vector: list[float] = self.values.vectors[i].tolist()
        return dict(zip(self.values.features, vector, strict=True)) if self.values.features else vector

    def said(self) -> list[str]:
        """What all of them say; what is no text as JSON."""
        if self.objects is not None:
            values = (record.value for record in self.objects)
            return [value if isinstance(value, str) else _encode(value).decode() for value in values]
        if self.dimension:
            return [msgspec.json.encode(self.value(i)).decode() for i in range(len(self))]
        assert self.values is not None
        ends = (self.values.ends - self.begin).tolist()
        letters = self.values.letters[self.begin :][: ends[-1] if ends else 0].tobytes()
        spans = zip([0, *ends], ends, strict=False)
        if letters.isascii():  # of which each byte is a character
            text = letters.decode("ascii")
            return [text[start:end] for start, end in spans]
        return [letters[start:end].decode() for start, end in spans]

    def positions(self) -> list[bytes]:
        """Where all of them stand in their source, as JSON."""
        if self.objects is not None:
            return [_encode(record.position) for record in self.objects]
        return self.source.positions(self.numbers.tolist())

    def time(self, i: int) -> float | None:
        """The time of one of them."""
        if self.objects is not None:
            return self.objects[i].time
        time = float(self.given.times[i])
        return None if time != time else time

    def times(self) -> list[float | None]:
        """The times of all."""
        return [time if time == time else None for time in self.seconds.tolist()]

    def id(self, i: int) -> str | int | None:
        """The id of one of them."""
        if self.objects is not None:
            return self.objects[i].id
        found: str | int | None = self._written(self.given.written[i, OWN_ID])
        return found

    def record(self, i: int) -> Record:
        """One of them as a record."""
        if self.objects is not None:
            return self.objects[i]
        number, raws = int(self.numbers[i]), self.source
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
        if self.objects is not None:
            return self.objects[i].keep
        if not self.keep or self.given.kept[i, 0, 0] == NO_FIELDS[0]:
            return None
        spans = zip(self.keep, self.given.kept[i], strict=True)
        return {name: self._written(span) for name, span in spans if span[0] >= 0}

    def _written(self, span: np.ndarray) -> Any:
        start, stop = span.tolist()
        return None if start < 0 else msgspec.json.decode(self.given.data[start:stop].tobytes())

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Columns: ...
    def __getitem__(self, at: int | slice) -> Record | Columns:
        if isinstance(at, slice):
            if not at.start and (at.stop is None or at.stop >= len(self)):
                return self
            start, stop, _ = at.indices(len(self))
            return self if (start, stop) == (0, len(self)) else self._part(start, max(start, stop))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.record(at % len(self))

    def __iter__(self) -> Iterator[Record]:
        return map(self.record, range(len(self)))


def values_of(values: Sequence[Any]) -> Values | None:
    """Values of records side by side; None where they are not all texts, or vectors of one form."""
    n, kinds = len(values), set(map(type, values))
    if not n or kinds == {str}:
        try:
            letters = [text.encode() for text in values]
        except UnicodeEncodeError:  # half a surrogate pair, which bytes from outside never are
            letters = [text.encode("utf-8", "surrogatepass") for text in values]
        ends = np.array([*itertools.accumulate(map(len, letters))], np.int64)
        return Values(np.frombuffer(b"".join(letters), np.uint8), ends, np.empty((n, 0)))
    names = tuple(values[0]) if kinds == {dict} else ()
    if names:
        if any(tuple(value) != names for value in values):
            return None
        values = [[*value.values()] for value in values]
        if not all(type(number) is float for row in values for number in row):
            return None
    elif kinds != {list}:
        return None
    if not values[0] or len(set(map(len, values))) > 1:
        return None
    try:
        vectors = np.array(values, float)
    except (TypeError, ValueError, OverflowError):
        return None
    return Values(NO_LETTERS, np.zeros(n, np.int64), vectors, names)


def spans_of(*fields: Sequence[Any]) -> list[np.ndarray]:
    """Values as JSON, one field after the other, and the spans of each; ``UNSET`` has none."""
    lines, found, at = [], [], 0
    for values in fields:
        absent = [i for i, value in enumerate(values) if value is msgspec.UNSET]
        written = _encode_lines([None if v is msgspec.UNSET else v for v in values] if absent else values)
        spans = _spans_of_lines(written, len(values)) + at
        if absent:
            spans[absent] = -1
        lines.append(written)
        found.append(spans)
        at += len(written)
    return [np.frombuffer(b"".join(lines), np.uint8), *found]


def _spans_of_lines(written: bytes, count: int) -> np.ndarray:
    """Where so many lines begin and end, without their newlines."""
    if count <= FEW:  # arrays take longer
        starts = [*itertools.accumulate((len(line) + 1 for line in written.split(b"\n")[:-1]), initial=0)]
        pairs = [(start, after - 1) for start, after in itertools.pairwise(starts)]
        return np.array(pairs or np.empty((0, 2)), np.int64)
    ends = np.flatnonzero(np.frombuffer(written, np.uint8) == _NEWLINE)
    found = np.zeros((count, 2), np.int64)
    found[1:, 0], found[:, 1] = ends[:-1] + 1, ends
    return found


NOTHING = Columns.of(())
