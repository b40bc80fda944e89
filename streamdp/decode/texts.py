"""Events that a decoder reads, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.decode.columns import DELIMITERS
from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import LONGEST_ID, PER_SECOND, Parts
from streamdp.decode.table_scan import FEATURES, ID, KEPT, SCANNED, TIME, Found, Table, scan_table
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import new_rows
from streamdp.records import Record, Reject
from streamdp.records.columns import (
    LARGEST,
    NO_FIELDS,
    NO_LETTERS,
    Columns,
    Texts,
    spans_of,
    values_of,
)
from streamdp.records.raws import Raws

FEW = 16
"""Events side by side that are worth it; fewer are answered sooner as records."""


class Form(NamedTuple):
    """What records hold that are read side by side: texts, vectors of one length, or some features."""

    dimension: int
    features: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Record) -> Form:
        """That of a record."""
        value = record.value
        if isinstance(value, str):
            return cls(0)
        return cls(len(value), tuple(value) if isinstance(value, dict) else ())


class TextReader:
    """Reads events as a decoder does that has texts (``has_texts``): those of a batch side by side."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        fields = decoder.fields
        self._keep = fields.keep
        self._unit = 0.0 if fields.unit == "auto" else PER_SECOND[fields.unit]
        self._scan_table = Bound(scan_table)

    def read(self, raws: Raws) -> Texts | list[Record | Reject]:
        """What the events hold: side by side where all of them are of one form, else records."""
        decoder = self._decoder
        if decoder.format in DELIMITERS and decoder.fields.plain and "feature" in decoder.roles:
            return self._rows(raws)
        return columns_of(decoder.parts(raws), raws, self._keep)

    def _rows(self, raws: Raws) -> Texts | list[Record | Reject]:
        """Rows of numbers, read by a kernel; what it leaves is decoded one by one."""
        given = raws.data
        if raws.refused:  # what could not be read is not ordinary
            given = [b"" if i in raws.refused else line for i, line in enumerate(given)]
        buffer, found = self._scanned(given)
        long = found.rows["id_stop"] - found.rows["id_start"] > LONGEST_ID
        if long.any():  # seldom: they are decoded one by one
            left = [b"" if too_long else line for line, too_long in zip(given, long, strict=True)]
            buffer, found = self._scanned(left)
        odd = np.flatnonzero(found.rows["ordinary"] == 0).tolist()
        others = {i: self._decoder.decode(raws[i]) for i in odd}
        texts = self._ordinary(raws, buffer, found, np.flatnonzero(found.rows["ordinary"]))
        made = with_others(texts, list(others.items())) if odd else texts
        if made is not None:
            return made
        ordinary = iter(texts)
        return [others[i] if i in others else next(ordinary) for i in range(len(raws))]

    def times(self, raws: Raws, ahead: float) -> list[float | None]:
        """The times of the events; None of one that is refused, or so many seconds ahead of its arrival."""
        found, times = self.read(raws), np.full(len(raws), np.nan)
        if isinstance(found, Texts):
            times[found.numbers] = found.columns.times
        else:
            read = [record.time if isinstance(record, Record) else None for record in found]
            times[:] = [np.nan if time is None else time for time in read]
        with np.errstate(invalid="ignore"):
            known = times <= np.array(raws.arrivals) + ahead
        return [time if there else None for time, there in zip(times.tolist(), known.tolist(), strict=True)]

    @property
    def _features(self) -> tuple[str, ...]:
        """The columns of a table that are features."""
        decoder = self._decoder
        return tuple(
            name for name, role in zip(decoder.header or (), decoder.roles, strict=True) if role == "feature"
        )

    def _scanned(self, given: Sequence[bytes]) -> tuple[np.ndarray, Found]:
        """What a kernel finds in the rows, and the bytes that it says where to find things in."""
        n, buffer, fields = len(given), np.frombuffer(b"".join(given), np.uint8), len(self._keep)
        ends = np.cumsum(np.fromiter(map(len, given), np.int64, n))
        kept, vectors = np.empty((n, fields, 2), np.int64), np.empty((n, len(self._features)))
        most, unit = self._decoder.max_bytes, self._unit
        found = Found(new_rows(n, SCANNED), kept, vectors)
        if not len(buffer):  # there is no line for which a kernel would have to be compiled
            return buffer, found
        values = np.empty(len(buffer) + 2 * (fields + 1) * n, np.uint8)
        table = Table(self._parts(), values, np.zeros(1, np.int64))
        delimiter = ord(DELIMITERS[self._decoder.format])
        self._scan_table((table, found), buffer, ends, most, delimiter, unit)
        return values[: table.used[0]], found

    def _parts(self) -> np.ndarray:
        """What the cells of a row are for, as a kernel reads it."""
        header, parts = self._decoder.header or (), []
        for name, role in zip(header, self._decoder.roles, strict=True):
            if role == "feature":
                parts.append((FEATURES, self._features.index(name)))
            elif role == "kept":
                parts.append((KEPT, self._keep.index(name)))
            else:
                parts.append(({"time": TIME, "id": ID}.get(role, -1), 0))
        return np.array(parts, np.int64)

    def _ordinary(self, raws: Raws, data: np.ndarray, found: Found, which: np.ndarray) -> Texts:
        """The rows that a kernel has read."""
        read = found.rows[which]
        times = with_stamps(read["time"].copy(), raws, which)
        ids = np.stack([read["id_start"], read["id_stop"]], axis=1)
        columns = Columns(
            data,
            NO_LETTERS,
            np.zeros(len(read), np.int64),
            times,
            ids,
            found.kept[which],
            places_of(raws)[which],
            found.vectors[which],
        )
        return Texts(columns, raws, which, self._keep, features=self._features)


def with_stamps(times: np.ndarray, raws: Raws, which: np.ndarray) -> np.ndarray:
    """Times of some events; of those without one the source's own."""
    if not raws.times:
        return times
    stamps = np.array([raws.times.get(i, np.nan) for i in which.tolist()])
    return np.where(np.isnan(times), stamps, times)


def places_of(raws: Raws) -> np.ndarray:
    """The numbers in the positions, shape (n, numbers)."""
    return np.array(raws.places, np.int64).reshape(len(raws), len(raws.counted))


def columns_of(
    found: Sequence[Parts | Reject], raws: Raws, keep: tuple[str, ...]
) -> Texts | list[Record | Reject]:
    """What was read of events, side by side where all of them are of one form, else records."""
    refused: list[tuple[int, Reject]] = []
    which: list[int] = []
    parts: list[Parts] = []
    for i, each in enumerate(found):
        if each.__class__ is Reject:
            refused.append((len(which), each))
        else:
            which.append(i)
            parts.append(each)  # type: ignore[arg-type]
    numbers = np.array(which, np.int64)
    values, moments, names, keeps = zip(*parts, strict=True) if parts else ((), (), (), ())
    times = with_stamps(np.array(moments, float), raws, numbers)
    made = values_of(values)
    if not parts or made is None or not are_decimal(times):
        return _records(found, raws)
    data, ids, *kept = spans_of(
        [msgspec.UNSET if name is None else name for name in names],
        *([kept.get(name, msgspec.UNSET) for kept in keeps] for name in keep),
    )
    fields = np.stack(kept, axis=1) if kept else np.empty((len(which), 0, 2), np.int64)
    letters, ends, vectors, features = made
    columns = Columns(data, letters, ends, times, ids, fields, places_of(raws)[numbers], vectors)
    return Texts(columns, raws, numbers, keep, refused, features=features)


def _records(found: Sequence[Parts | Reject], raws: Raws) -> list[Record | Reject]:
    """The same as objects."""
    records: list[Record | Reject] = []
    for i, each in enumerate(found):
        if isinstance(each, Reject):
            records.append(each)
        else:
            value, time, name, keep = each
            at = raws.times.get(i) if time is None else time
            records.append(Record(value, raws.position(i), at, name, raws.arrivals[i], keep, raws.data[i]))
    return records


def are_decimal(times: np.ndarray) -> bool:
    """Whether six decimals are all of each, or there is none."""
    with np.errstate(invalid="ignore"):
        near = np.rint(times * 1e6) / 1e6 == times
        return bool((near & (np.abs(times) < LARGEST) | np.isnan(times)).all())


def with_others(texts: Texts, others: Sequence[tuple[int, Record | Reject]]) -> Texts | None:
    """The same with other events among them, by their numbers, in order.

    None where one of those is not like these.
    """
    form = Form(texts.dimension, texts.features)
    at = [i for i, record in others if isinstance(record, Record)]
    taken = [record for _, record in others if isinstance(record, Record)]
    if any(Form.of(record) != form for record in taken):
        return None
    try:
        encoded = [b"" if form.dimension else str.encode(record.value) for record in taken]  # type: ignore[arg-type]
    except UnicodeEncodeError:
        return None
    stamps = [np.nan if record.time is None else record.time for record in taken]
    if not are_decimal(np.array(stamps)):
        return None
    numbers = np.sort(np.concatenate([texts.numbers, np.array(at, np.int64)]))
    if not len(numbers):
        return None
    columns, more = texts.columns, _Written(texts.columns.data)
    ids = [more.span(record.id, record.id is not None) for record in taken]
    kept = [
        [more.span((record.keep or {}).get(name), name in (record.keep or {})) for name in texts.keep]
        if record.keep is not None
        else [NO_FIELDS] * len(texts.keep)
        for record in taken
    ]
    places = np.searchsorted(texts.numbers, at)  # before which of those that were read each comes
    cuts = [0, *columns.ends.tolist()]
    bounds = [0, *(cuts[place] for place in places.tolist()), len(columns.letters)]
    pieces = [columns.letters[bounds[0] : bounds[1]].tobytes()]
    for i, text in enumerate(encoded, 1):
        pieces += text, columns.letters[bounds[i] : bounds[i + 1]].tobytes()
    lengths = np.insert(np.diff(columns.ends, prepend=0), places, [len(text) for text in encoded])
    joined = Columns(
        more.data(),
        np.frombuffer(b"".join(pieces), np.uint8),
        np.cumsum(lengths),
        np.insert(columns.times, places, stamps),
        _inserted(columns.ids, places, ids),
        _inserted(columns.kept, places, kept),
        _inserted(columns.places, places, places_of(texts.source)[at]),
        _inserted(columns.vectors, places, [_vector(record) for record in taken]),
    )
    refused = [
        (int(np.searchsorted(numbers, i)), reject) for i, reject in others if isinstance(reject, Reject)
    ]
    return Texts(joined, texts.raws, numbers, texts.keep, refused, features=texts.features)


def _vector(record: Record) -> list[float]:
    """The numbers of a record; of a text there are none."""
    value = record.value
    if isinstance(value, str):
        return []
    return list(value.values()) if isinstance(value, dict) else value


def _inserted(array: np.ndarray, places: np.ndarray, rows: Any) -> np.ndarray:
    added = np.array(rows, array.dtype).reshape(len(rows), *array.shape[1:])
    return np.insert(array, places, added, axis=0)


class _Written:
    """Bytes, and values written in JSON behind them."""

    def __init__(self, before: np.ndarray) -> None:
        self._parts = [before.tobytes()]
        self._size = len(before)

    def span(self, value: Any, there: bool) -> tuple[int, int]:
        """Write a value; where it stands."""
        if not there:
            return -1, -1
        self._parts.append(msgspec.json.encode(value))
        self._size += len(self._parts[-1])
        return self._size - len(self._parts[-1]), self._size

    def data(self) -> np.ndarray:
        """All of it."""
        return np.frombuffer(b"".join(self._parts), np.uint8)
