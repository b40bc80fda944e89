"""Events that are texts or vectors in JSON, read by a kernel; what it leaves is decoded one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.decode.columns import DELIMITERS
from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import LONGEST_ID, PER_SECOND
from streamdp.decode.grammar import INEXACT, decimal
from streamdp.decode.scan import FEATURES, ID, KEPT, SCANNED, TIME, Found, Names, scan
from streamdp.decode.table_scan import Table, scan_table
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import new_rows
from streamdp.records import Record, Reject
from streamdp.records.columns import NO_FIELDS, Columns, Texts
from streamdp.records.raws import Raws

FEW = 16
"""Events side by side that are worth a kernel; fewer are answered sooner as records."""

_PATIENCE = 8
"""Batches of which a kernel could read nothing, until it is not asked any more."""


class Form(NamedTuple):
    """What records hold that are read side by side: texts, vectors of one length, or some features."""

    dimension: int
    features: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Record) -> Form:
        """That of a record."""
        value = record.value
        if isinstance(value, str):
            return TEXTS
        return cls(len(value), tuple(value) if isinstance(value, dict) else ())


TEXTS = Form(0)


class TextReader:
    """Reads events as a decoder does that has texts (``has_texts``): those side by side that are alike.

    Texts are looked for, until most records of a batch have another form.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        fields = decoder.fields
        self._keep = fields.keep
        self._unit = 0.0 if fields.unit == "auto" else PER_SECOND[fields.unit]
        self._scan, self._scan_table = Bound(scan), Bound(scan_table)
        self._names = _names((*fields.roles, *fields.keep))
        self._patience = _PATIENCE
        self._form, self._features = TEXTS, _names(())

    def read(self, raws: Raws) -> Texts | list[Record | Reject]:
        """What the events hold: texts side by side where all of them are such, else records."""
        if not self._patience:
            return [self._decoder.decode(raw) for raw in raws]
        n, given = len(raws), raws.data
        of_table = self._decoder.format in DELIMITERS and self._form.features
        of_json = self._decoder.format == "jsonl"
        if not ((of_json or of_table) and self._decoder.fields.plain):  # nothing that a kernel reads
            given = [b""] * n
        elif raws.refused:  # what could not be read is not ordinary
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
            self._patience = _PATIENCE
            return made
        self._patience -= 1
        ordinary = iter(texts)
        found_all = [others[i] if i in others else next(ordinary) for i in range(n)]
        self._look_for(found_all)
        return found_all

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

    def _look_for(self, found: Iterable[Record | Reject]) -> None:
        """Look for records like most of these, from now on."""
        forms = Counter(Form.of(record) for record in found if isinstance(record, Record))
        if forms:
            self._form = forms.most_common(1)[0][0]
            self._features = _names(self._form.features)

    def _scanned(self, given: Sequence[bytes]) -> tuple[np.ndarray, Found]:
        """What a kernel finds in the lines, and the bytes that it says where to find things in."""
        n, buffer, fields = len(given), np.frombuffer(b"".join(given), np.uint8), len(self._keep)
        ends = np.cumsum(np.fromiter(map(len, given), np.int64, n))
        kept, vectors = np.empty((n, fields, 2), np.int64), np.empty((n, self._form.dimension))
        most, unit = self._decoder.max_bytes, self._unit
        found = Found(new_rows(n, SCANNED), kept, np.empty(len(buffer), np.uint8), vectors)
        if not len(buffer):  # there is no line for which a kernel would have to be compiled
            return buffer, found
        if self._decoder.format == "jsonl":
            self._scan((self._names, self._features, found), buffer, ends, most, unit)
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
                parts.append((FEATURES, self._form.features.index(name)))
            elif role == "kept":
                parts.append((KEPT, self._keep.index(name)))
            else:
                parts.append(({"time": TIME, "id": ID}.get(role, -1), 0))
        return np.array(parts, np.int64)

    def _ordinary(self, raws: Raws, data: np.ndarray, found: Found, which: np.ndarray) -> Texts:
        """The texts that a kernel has read."""
        read = found.rows[which]
        times = with_stamps(read["time"].copy(), raws, which)
        letters = found.letters[: int(read["end"][-1]) if len(read) else 0]
        ids = np.stack([read["id_start"], read["id_stop"]], axis=1)
        columns = Columns(
            data,
            letters,
            read["end"].copy(),
            times,
            ids,
            found.kept[which],
            places_of(raws)[which],
            found.vectors[which],
        )
        return Texts(columns, raws, which, self._keep, features=self._form.features)


def with_stamps(times: np.ndarray, raws: Raws, which: np.ndarray) -> np.ndarray:
    """Times of some events; of those without one the source's own."""
    if not raws.times:
        return times
    stamps = np.array([raws.times.get(i, np.nan) for i in which.tolist()])
    return np.where(np.isnan(times), stamps, times)


def places_of(raws: Raws) -> np.ndarray:
    """The numbers in the positions, shape (n, numbers)."""
    return np.array(raws.places, np.int64).reshape(len(raws), len(raws.counted))


def _names(names: Sequence[str]) -> Names:
    written = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in written], dtype=np.int64)
    return Names(np.frombuffer(b"".join(written), np.uint8), ends)


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
    if any(time == time and decimal(time) == INEXACT for time in stamps):
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
        _inserted(columns.places, places, places_of(texts.raws)[at]),
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
