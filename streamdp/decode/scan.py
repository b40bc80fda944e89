"""Lines of JSON to columns: a kernel reads what is ordinary, and leaves every other line to Python.

Ordinary is an object in valid UTF-8 that has a text with something in it and no other value, names no field
of its own twice, writes names and ids without escapes, and times so that six decimals hold their seconds.
Five bytes of a schema registry may stand before it.
Of vectors it has one of the length that is expected, of features those that are, in that order. Whatever is
accepted here is read as :class:`~streamdp.decode.objects.Objects` reads it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.decode.grammar import (
    CLOSE,
    COMMA,
    FIRST,
    LAST,
    NOWHERE,
    OPEN,
    QUOTE,
    after_name,
    after_plain,
    after_space,
    after_value,
    after_whole,
    after_word,
    is_null,
    is_utf8,
    put_text,
)
from streamdp.decode.numbers import after_double
from streamdp.decode.times import after_time
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import row_type

SCANNED = row_type("ordinary end id_start id_stop", "time")
"""Of each line: whether it is ordinary, where in ``letters`` its text ends, where its id stands, its time."""

TEXT, VECTOR, FEATURES, TIME, ID, KEPT = range(6)
"""The parts that fields play, in the order of ``Names``; the kept ones follow each other."""


class Names(NamedTuple):
    """Names of fields, one after the other: of those that count by their parts, or of features."""

    letters: np.ndarray  # uint8[...]
    ends: np.ndarray  # int64[KEPT + kept fields], int64[features]


class Found(NamedTuple):
    """What was found; a span begins below 0 where there is nothing."""

    rows: np.ndarray  # SCANNED[n]
    kept: np.ndarray  # int64[n, fields, 2] where the values of kept fields stand
    letters: np.ndarray  # uint8[...] the texts, one after the other
    vectors: (
        np.ndarray
    )  # float64[n, D] the vectors, or the features in order; D is 0 where texts are looked for


@kernel
def _looked_for(features: Names, found: Found) -> int:
    """The part that values play which are looked for."""
    if found.vectors.shape[1] == 0:
        return TEXT
    return FEATURES if features.ends.shape[0] else VECTOR


@kernel
def _after_id(row: Any, data: np.ndarray, i: int, stop: int) -> int:
    """The place after an id, which is noted."""
    if is_null(data, i, stop):
        return i + 4
    row.id_start = i
    row.id_stop = after_plain(data, i + 1, stop) if data[i] == QUOTE else after_whole(data, i, stop)
    after: int = row.id_stop
    return after


@kernel
def _after_kept(data: np.ndarray, i: int, stop: int) -> int:
    """The place after a value that is written again as it stands."""
    if i >= stop:
        return NOWHERE
    if data[i] == QUOTE:
        return after_plain(data, i + 1, stop)
    word = after_word(data, i, stop)
    return word if word >= 0 else after_whole(data, i, stop)


@kernel
def _is_name(names: Names, which: int, data: np.ndarray, start: int, stop: int) -> bool:
    """Whether one of the names stands there."""
    begin = names.ends[which - 1] if which else 0
    if names.ends[which] - begin != stop - start:
        return False
    k = start
    while k < stop and names.letters[begin + k - start] == data[k]:
        k += 1
    return k == stop


@kernel
def _after_vector(features: Names, vector: np.ndarray, data: np.ndarray, i: int, stop: int) -> int:
    """The place after an array of so many numbers, or an object of these features, which are noted."""
    named = features.ends.shape[0] > 0
    if data[i] != (OPEN if named else FIRST):
        return NOWHERE
    for d in range(vector.shape[0]):
        i = after_space(data, i + 1, stop)
        if named:
            name = i + 1
            i = after_name(data, i, stop)
            if i < 0 or not _is_name(features, d, data, name, _end_of_name(data, name)):
                return NOWHERE
        i, vector[d] = after_double(data, i, stop)
        if i < 0:
            return NOWHERE
        i = after_space(data, i, stop)
        if i >= stop or (data[i] != COMMA and d + 1 < vector.shape[0]):
            return NOWHERE
    return i + 1 if data[i] == (CLOSE if named else LAST) else NOWHERE


@kernel
def _end_of_name(data: np.ndarray, i: int) -> int:
    """Where the quotation mark behind a name stands that has one, and no escapes."""
    while data[i] != QUOTE:
        i += 1
    return i


@kernel
def _part_of(names: Names, data: np.ndarray, start: int, stop: int) -> int:
    """Which part a field plays; none: -1."""
    for part in range(names.ends.shape[0]):
        if _is_name(names, part, data, start, stop):
            return part
    return -1


@kernel
def _came_before(found: Found, n: int, part: int, seen: int) -> bool:
    """Whether line n has named the field already; ``seen`` has a bit for each part that is not kept."""
    if part >= KEPT:
        before: bool = found.kept[n, part - KEPT, 0] >= 0
        return before
    return part >= 0 and (seen >> part) & 1 == 1


@kernel
def _scan_line(
    names: Names,
    features: Names,
    found: Found,
    n: int,
    data: np.ndarray,
    start: int,
    stop: int,
    unit: float,
    begin: int,
) -> int:
    """Read line n, whose text is to begin there; where the text ends, below 0 for what is not ordinary."""
    row, at, seen, value = found.rows[n], begin, 0, _looked_for(features, found)
    if not is_utf8(data, start, stop):
        return NOWHERE
    i = after_space(data, start, stop)
    if i >= stop or data[i] != OPEN:
        return NOWHERE
    i = after_space(data, i + 1, stop)
    while True:
        name = i + 1
        i = after_name(data, i, stop)
        if i < 0 or i >= stop:
            return NOWHERE
        part = _part_of(names, data, name, _end_of_name(data, name))
        if _came_before(found, n, part, seen):
            return NOWHERE
        if 0 <= part < KEPT:
            seen |= 1 << part
        if TEXT <= part <= FEATURES:
            if part != value:
                return NOWHERE
            if part == TEXT:
                i, at = put_text(data, i + 1, stop, found.letters, at) if data[i] == QUOTE else (NOWHERE, at)
            else:
                i = _after_vector(features, found.vectors[n], data, i, stop)
        elif part == TIME:
            i, row.time = after_time(data, i, stop, unit)
        elif part == ID:
            i = _after_id(row, data, i, stop)
        elif part >= KEPT:
            found.kept[n, part - KEPT, 0] = i
            i = _after_kept(data, i, stop)
            found.kept[n, part - KEPT, 1] = i
        else:
            i = after_value(data, i, stop)
        if i < 0:
            return NOWHERE
        i = after_space(data, i, stop)
        if i >= stop:
            return NOWHERE
        if data[i] == CLOSE:
            break
        if data[i] != COMMA:
            return NOWHERE
        i = after_space(data, i + 1, stop)
    if not (seen >> value) & 1 or after_space(data, i + 1, stop) != stop:
        return NOWHERE
    return at


@entry
def scan(
    names: Names,
    features: Names,
    found: Found,
    data: np.ndarray,
    ends: np.ndarray,
    most: int,
    unit: float,
) -> None:
    """Read lines, which follow each other and end there; those longer than ``most`` bytes are not ordinary.

    ``unit`` is how many units of a time are a second, 0 where its size says so.
    """
    start, at = 0, 0
    for n in range(ends.shape[0]):
        row, stop = found.rows[n], ends[n]
        row.id_start, row.id_stop, row.time = -1, -1, math.nan
        for k in range(found.kept.shape[1]):
            found.kept[n, k, 0], found.kept[n, k, 1] = -1, -1
        end = NOWHERE
        if stop - start <= most:
            behind = 5 if stop - start > 5 and data[start] == 0 else 0  # of a schema registry
            end = _scan_line(names, features, found, n, data, start + behind, stop, unit, at)
        row.ordinary = 1 if end >= 0 else 0
        if end >= 0:
            at = end
        row.end = at
        start = stop
