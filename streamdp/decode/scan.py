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
    COLON,
    COMMA,
    EXACT,
    INEXACT,
    MINUS,
    NINE,
    NOWHERE,
    OPEN,
    QUOTE,
    ZERO,
    after_name,
    after_number,
    after_plain,
    after_space,
    after_value,
    after_whole,
    after_word,
    decimal,
    is_null,
    is_utf8,
    put_text,
)
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


_NONE = 1 << 60
NO_DAY = -_NONE
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_POINT, _PLUS = 0x2E, 0x2B


@kernel
def after_time(data: np.ndarray, i: int, stop: int, unit: float) -> tuple[int, float]:
    """The place after a time, and its seconds.

    ``unit`` is how many units of a number are a second, 0 where its size says so.
    """
    if is_null(data, i, stop):
        return i + 4, np.nan
    if data[i] == QUOTE:
        end = _after_date(data, i + 1, stop)
        if end < 0:
            return NOWHERE, 0.0
        time = _moment(data, i + 1, end) / 1e6
        end += 1
    else:
        end = after_number(data, i, stop) if data[i] == MINUS or ZERO <= data[i] <= NINE else NOWHERE
        if end < 0:
            return NOWHERE, 0.0
        time = _in_seconds(_number(data, i, end), unit)
    if decimal(time) == INEXACT:
        return NOWHERE, 0.0
    return end, time


@kernel
def _number(data: np.ndarray, begin: int, end: int) -> float:
    """The number that is written there; not a number where it is not exact, or less than nothing."""
    digits, scale, after = 0, 1.0, False
    for k in range(begin, end):
        byte = data[k]
        if byte == _POINT:
            after = True
        elif byte != MINUS:
            if digits > EXACT // 10 - 1:
                return np.nan
            digits = 10 * digits + (byte - ZERO)
            if after:
                scale *= 10.0
    if data[begin] != MINUS:
        return digits / scale
    return -digits / scale if digits else np.nan


@kernel
def _in_seconds(time: float, unit: float) -> float:
    if unit:
        return time / unit
    size = abs(time)
    if size < 1e11:
        return time
    return time / (1e3 if size < 1e14 else 1e6 if size < 1e17 else 1e9)


@kernel
def _digits(data: np.ndarray, i: int, count: int) -> int:
    """The number that so many digits write; far below 0 where one is none."""
    number = 0
    for k in range(i, i + count):
        if data[k] < ZERO or data[k] > NINE:
            return -_NONE
        number = 10 * number + (data[k] - ZERO)
    return number


@kernel
def _after_date(data: np.ndarray, i: int, stop: int) -> int:
    """The place of the quotation mark behind a date and a time of day; both are to be checked."""
    end = i
    while end < stop and data[end] != QUOTE:
        end += 1
    if end >= stop or end - i < 19 or end - i > 32:
        return NOWHERE
    return end if _moment(data, i, end) > -_NONE else NOWHERE


@kernel
def _moment(data: np.ndarray, i: int, end: int) -> int:
    """Microseconds since 1970 of ``YYYY-MM-DDTHH:MM:SS``, a fraction, Z or an offset; -_NONE for others."""
    if data[i + 4] != MINUS or data[i + 7] != MINUS or (data[i + 10] != 0x54 and data[i + 10] != 0x20):
        return -_NONE
    year, month, day = _digits(data, i, 4), _digits(data, i + 5, 2), _digits(data, i + 8, 2)
    seconds = _time_of_day(data, i + 11, True)
    if seconds < 0:
        return -_NONE
    days = day_of(year, month, day)
    if days == NO_DAY:
        return -_NONE
    at, fraction, unit = i + 19, 0, 1_000_000
    if at < end and data[at] == _POINT:
        at += 1
        while at < end and ZERO <= data[at] <= NINE:
            unit //= 10
            fraction = 10 * fraction + (data[at] - ZERO)
            at += 1
        if unit == 1_000_000 or unit == 0:
            return -_NONE
    offset = 0
    if at < end and data[at] == 0x5A:
        at += 1
    elif at + 6 == end and (data[at] == _PLUS or data[at] == MINUS):
        offset = _time_of_day(data, at + 1, False)
        if offset < 0:
            return -_NONE
        if data[at] == MINUS:
            offset = -offset
        at += 6
    if at != end:
        return -_NONE
    return 1_000_000 * (86_400 * days + seconds - offset) + fraction * unit


@kernel
def _time_of_day(data: np.ndarray, i: int, with_seconds: bool) -> int:
    """Seconds of ``HH:MM`` or ``HH:MM:SS``; below 0 where there is no such time."""
    hour, minute, second = _digits(data, i, 2), _digits(data, i + 3, 2), 0
    if data[i + 2] != COLON:
        return NOWHERE
    if with_seconds:
        second = _digits(data, i + 6, 2)
        if data[i + 5] != COLON:
            return NOWHERE
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NOWHERE
    return 3600 * hour + 60 * minute + second


@kernel
def day_of(year: int, month: int, day: int) -> int:
    """Days since 1970 in the Gregorian calendar; ``NO_DAY`` where there is none in years 1 to 9999."""
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1:
        return NO_DAY
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if day > _DAYS[month - 1] + (1 if leap and month == 2 else 0):
        return NO_DAY
    # years are counted from March on
    if month <= 2:
        year -= 1
    months = (month + 9) % 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * months + 2) // 5 + day - 1 - 719_468


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
def _came_before(found: Found, n: int, part: int, seen: int) -> bool:
    """Whether line n has named the field already; ``seen`` has a bit for each part that is not kept."""
    if part >= KEPT:
        before: bool = found.kept[n, part - KEPT, 0] >= 0
        return before
    return part >= 0 and (seen >> part) & 1 == 1


@kernel
def _scan_line(
    names: Names, found: Found, n: int, data: np.ndarray, start: int, stop: int, unit: float, begin: int
) -> int:
    """Read line n, whose text is to begin there; where the text ends, below 0 for what is not ordinary."""
    row, at, text, seen = found.rows[n], begin, False, 0
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
        if _came_before(found, n, part, seen):
            return NOWHERE
        if 0 <= part < KEPT:
            seen |= 1 << part
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
