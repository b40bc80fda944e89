"""Events that are texts in JSON, read by a kernel; what it leaves is decoded one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import LONGEST_ID, PER_SECOND, Fields
from streamdp.decode.grammar import INEXACT, decimal
from streamdp.decode.scan import SCANNED, Found, Names, scan
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import new_rows
from streamdp.records import Record, Reject
from streamdp.records.columns import NO_FIELDS, Columns, Texts
from streamdp.records.raws import Raws

_PATIENCE = 8
"""Batches of which a kernel could read nothing, until it is not asked any more."""


class TextReader:
    """Reads events as a decoder does that has texts (``has_texts``): those side by side."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        fields = decoder.fields
        self._keep = fields.keep
        self._unit = 0.0 if fields.unit == "auto" else PER_SECOND[fields.unit]
        self._scan, self._names = Bound(scan), _names(fields)
        self._patience = _PATIENCE

    def read(self, raws: Raws) -> Texts | list[Record | Reject]:
        """What the events hold: texts side by side where all of them are such, else records."""
        if not self._patience:
            return [self._decoder.decode(raw) for raw in raws]
        n, given = len(raws), raws.data
        if self._decoder.format != "jsonl":  # nothing that the kernel reads
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
        self._patience = self._patience - 1 if made is None else _PATIENCE
        if made is not None:
            return made
        ordinary = iter(texts)
        return [others[i] if i in others else next(ordinary) for i in range(n)]

    def _scanned(self, given: Sequence[bytes]) -> tuple[np.ndarray, Found]:
        """The lines one after the other, and what a kernel finds in them."""
        n, buffer = len(given), np.frombuffer(b"".join(given), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, given), np.int64, n))
        kept = np.empty((n, len(self._keep), 2), np.int64)
        found = Found(new_rows(n, SCANNED), kept, np.empty(len(buffer), np.uint8))
        if len(buffer):  # else there is no line for which a kernel would have to be compiled
            self._scan((self._names, found), buffer, ends, self._decoder.max_bytes, self._unit)
        return buffer, found

    def _ordinary(self, raws: Raws, data: np.ndarray, found: Found, which: np.ndarray) -> Texts:
        """The texts that a kernel has read."""
        read = found.rows[which]
        times = with_stamps(read["time"].copy(), raws, which)
        letters = found.letters[: int(read["end"][-1]) if len(read) else 0]
        letters.setflags(write=False)
        ids = np.stack([read["id_start"], read["id_stop"]], axis=1)
        columns = Columns(
            data, letters, read["end"].copy(), times, ids, found.kept[which], places_of(raws)[which]
        )
        return Texts(columns, raws, which, self._keep)


def with_stamps(times: np.ndarray, raws: Raws, which: np.ndarray) -> np.ndarray:
    """Times of some events; of those without one the source's own."""
    if not raws.times:
        return times
    stamps = np.array([raws.times.get(i, np.nan) for i in which.tolist()])
    return np.where(np.isnan(times), stamps, times)


def places_of(raws: Raws) -> np.ndarray:
    """The numbers in the positions, shape (n, numbers)."""
    return np.array(raws.places, np.int64).reshape(len(raws), len(raws.counted))


def _names(fields: Fields) -> Names:
    written = [name.encode() for name in (*fields.roles, *fields.keep)]
    return Names(np.frombuffer(b"".join(written), np.uint8), np.cumsum([len(name) for name in written]))


def with_others(texts: Texts, others: Sequence[tuple[int, Record | Reject]]) -> Texts | None:
    """The same with other events among them, by their numbers, in order.

    None where one of those is no text like these.
    """
    at = [i for i, record in others if isinstance(record, Record)]
    taken = [record for _, record in others if isinstance(record, Record)]
    try:
        encoded = [str.encode(record.value) for record in taken]  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):  # no text, or none that can be written
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
    )
    refused = [
        (int(np.searchsorted(numbers, i)), reject) for i, reject in others if isinstance(reject, Reject)
    ]
    return Texts(joined, texts.raws, numbers, texts.keep, refused)


def _inserted(array: np.ndarray, places: np.ndarray, rows: Any) -> np.ndarray:
    return np.insert(array, places, np.array(rows, np.int64).reshape(len(rows), *array.shape[1:]), axis=0)


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
