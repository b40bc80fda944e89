"""Times as kernels read them in tables: numbers, and dates with a time of day."""

from __future__ import annotations

import numpy as np

from streamdp.decode.grammar import (
    COLON,
    EXACT,
    INEXACT,
    MINUS,
    NINE,
    NOWHERE,
    ZERO,
    after_number,
    decimal,
)
from streamdp.kernels.jit import kernel

_NONE = 1 << 60
NO_DAY = -_NONE
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_POINT, _PLUS = 0x2E, 0x2B


@kernel
def time_of(data: np.ndarray, i: int, stop: int, unit: float) -> float:
    """The seconds of a time that is all that stands there; not a number for anything else."""
    number = after_number(data, i, stop) if data[i] == MINUS or ZERO <= data[i] <= NINE else NOWHERE
    if number == stop:
        time = _in_seconds(_number(data, i, stop), unit)
    elif 19 <= stop - i <= 32:
        moment = _moment(data, i, stop)
        time = moment / 1e6 if moment > -_NONE else np.nan
    else:
        time = np.nan
    return time if decimal(time) != INEXACT else np.nan


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
