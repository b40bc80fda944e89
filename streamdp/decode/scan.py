"""Lines of JSON to columns: a kernel reads what is ordinary, and leaves every other line to Python.

Ordinary is an object in valid UTF-8 that has a text with something in it and no other value, names no field
of its own twice, writes names and ids without escapes, and times so that six decimals hold their seconds.
Whatever is accepted here is read as :class:`~streamdp.decode.objects.Objects` reads it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.decode.grammar import (
    CLOSE,
    COMMA,
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
from streamdp.decode.times import after_time
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import row_type

SCANNED = row_type("ordinary end id_start id_stop", "time")
"""Of each line: whether it is ordinary, where in ``letters`` its text ends, where its id stands, its time."""

TEXT, VECTOR, FEATURES, TIME, ID, KEPT = range(6)
"""The parts that fields play, in the order of ``Names``; the kept ones follow each other."""


class Names(NamedTuple):
    """The names of the fields that count, by their parts."""

    letters: np.ndarray  # uint8[...]
    ends: np.ndarray  # int64[KEPT + kept fields]


class Found(NamedTuple):
    """What was found; a span begins below 0 where there is nothing."""

    rows: np.ndarray  # SCANNED[n]
    kept: np.ndarray  # int64[n, fields, 2] where the values of kept fields stand
    letters: np.ndarray  # uint8[...] the texts, one after the other


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
def _part_of(names: Names, data: np.ndarray, start: int, stop: int) -> int:
    """Which part a field plays; none: -1."""
    begin = 0
    for part in range(names.ends.shape[0]):
        end = names.ends[part]
        if end - begin == stop - start:
            same = True
            for k in range(end - begin):
                if names.letters[begin + k] != data[start + k]:
                    same = False
                    break
            if same:
                return part
        begin = end
    return -1


@kernel
def _scan_line(
    names: Names, found: Found, n: int, data: np.ndarray, start: int, stop: int, unit: float, begin: int
) -> int:
    """Read line n, whose text is to begin there; where the text ends, below 0 for what is not ordinary."""
    row, at, text, seen = found.rows[n], begin, False, np.uint64(0)
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
        end = name
        while data[end] != QUOTE:
            end += 1
        part = _part_of(names, data, name, end)
        if part >= 0:
            bit = np.uint64(1) << np.uint64(part)
            if seen & bit:
                return NOWHERE
            seen |= bit
        if part == TEXT:
            if data[i] != QUOTE:
                return NOWHERE
            i, at = put_text(data, i + 1, stop, found.letters, at)
            text = True
        elif part in (VECTOR, FEATURES):
            return NOWHERE
        elif part == TIME:
            i, row.time = after_time(data, i, stop, unit)
        elif part == ID:
            if is_null(data, i, stop):
                i += 4
            else:
                row.id_start = i
                i = after_plain(data, i + 1, stop) if data[i] == QUOTE else after_whole(data, i, stop)
                row.id_stop = i
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
    if not text or after_space(data, i + 1, stop) != stop:
        return NOWHERE
    return at


@entry
def scan(names: Names, found: Found, data: np.ndarray, ends: np.ndarray, most: int, unit: float) -> None:
    """Read lines, which follow each other and end there; those longer than ``most`` bytes are not ordinary.

    ``unit`` is how many units of a time are a second, 0 where its size says so.
    """
    start, at = 0, 0
    for n in range(ends.shape[0]):
        row, stop = found.rows[n], ends[n]
        row.id_start, row.id_stop, row.time = -1, -1, math.nan
        for k in range(found.kept.shape[1]):
            found.kept[n, k, 0], found.kept[n, k, 1] = -1, -1
        end = _scan_line(names, found, n, data, start, stop, unit, at) if stop - start <= most else NOWHERE
        row.ordinary = 1 if end >= 0 else 0
        if end >= 0:
            at = end
        row.end = at
        start = stop
