"""Events that a decoder reads, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import Parts
from streamdp.records import Record, Reject
from streamdp.records.columns import (
    LARGEST,
    NO_FIELDS,
    NO_LETTERS,
    Columns,
    Given,
    Values,
    spans_of,
    values_of,
)
from streamdp.records.raw_batch import RawBatch

FEW = 16
"""Events side by side that are worth it; fewer are answered sooner as records."""


class TextReader:
    """Reads events as a decoder does that has texts (``has_texts``): those of a batch side by side."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._keep = decoder.fields.keep

    def read(self, raws: RawBatch) -> Columns:
        """What the events hold."""
        rows = self._decoder.rows(raws)
        if rows is not None:
            numbers, times = np.arange(len(raws)), np.array(rows.times, float)
            values = Values(NO_LETTERS, np.zeros(len(raws), np.int64), rows.vectors, rows.features)
            times = with_stamps(times, raws, numbers)
            if are_decimal(times):
                given = _given(raws, numbers, times, rows.ids, rows.kept)
                return Columns(values, given, raws, numbers, self._keep)
        return columns_of(enumerate(self._decoder.parts(raws)), raws, self._keep)

    def times(self, raws: RawBatch, ahead: float) -> list[float | None]:
        """The times of the events; None of one that is refused, or so many seconds ahead of its arrival."""
        found, times = self.read(raws), np.full(len(raws), np.nan)
        times[found.numbers] = found.seconds
        with np.errstate(invalid="ignore"):
            known = times <= np.array(raws.arrivals) + ahead
        return [time if there else None for time, there in zip(times.tolist(), known.tolist(), strict=True)]


def with_stamps(times: np.ndarray, raws: RawBatch, which: np.ndarray) -> np.ndarray:
    """Times of some events; of those without one the source's own."""
    if not raws.times:
        return times
    stamps = np.array([raws.times.get(i, np.nan) for i in which.tolist()])
    return np.where(np.isnan(times), stamps, times)


def places_of(raws: RawBatch) -> np.ndarray:
    """The numbers in the positions, shape (n, numbers)."""
    return np.array(raws.places, np.int64).reshape(len(raws), len(raws.counted))


def columns_of(found: Iterable[tuple[int, Parts | Reject]], raws: RawBatch, keep: tuple[str, ...]) -> Columns:
    """What was read of events, with their numbers, side by side."""
    refused: list[tuple[int, Reject]] = []
    which: list[int] = []
    parts: list[Parts] = []
    for i, each in found:
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
        records = [_record(each, raws, i) for i, each in zip(which, parts, strict=True)]
        mixed = Columns.of(records)
        mixed.numbers, mixed.refused = numbers, refused
        return mixed
    unkept = [kept is None for kept in keeps] if keep else []
    fields = [
        [msgspec.UNSET if kept is None else kept.get(name, msgspec.UNSET) for kept in keeps] for name in keep
    ]
    given = _given(raws, numbers, times, names, fields)
    if any(unkept):
        given.kept[unkept] = NO_FIELDS
    return Columns(made, given, raws, numbers, keep, refused)


def _given(
    raws: RawBatch,
    numbers: np.ndarray,
    times: np.ndarray,
    ids: Sequence[Any],
    kept: Sequence[Sequence[Any] | None],
) -> Given:
    """What lines have from records, by their parts; None is no id, or a field that none of them has."""
    data, named, *spans = spans_of(
        [msgspec.UNSET if each is None else each for each in ids],
        *([msgspec.UNSET] * len(ids) if field is None else field for field in kept),
    )
    fields = np.stack(spans, axis=1) if spans else np.empty((len(ids), 0, 2), np.int64)
    return Given(data, times, fields, places_of(raws)[numbers], named[:, None])


def _record(parts: Parts, raws: RawBatch, i: int) -> Record:
    value, time, name, keep = parts
    at = raws.times.get(i) if time is None else time
    return Record(value, raws.position(i), at, name, raws.arrivals[i], keep, raws.data[i])


def are_decimal(times: np.ndarray) -> bool:
    """Whether six decimals are all of each, or there is none."""
    with np.errstate(invalid="ignore"):
        near = np.rint(times * 1e6) / 1e6 == times
        return bool((near & (np.abs(times) < LARGEST) | np.isnan(times)).all())
