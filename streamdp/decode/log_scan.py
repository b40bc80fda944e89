"""Lines of a log to columns: a kernel reads what is ordinary, and leaves every other line to Python.

Ordinary is a line in valid UTF-8 with a time, where lines have one, that six decimals hold, and a message
that does not begin as lines of a stack trace do. Level and component are written without escapes. Whatever
is accepted here is read as :class:`~streamdp.decode.log.LogLines` reads it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.decode.expressions import NONE, UNKNOWN, Machine, match
from streamdp.decode.fields import LATEST
from streamdp.decode.grammar import EXACT, INEXACT, MINUS, NINE, QUOTE, ZERO, decimal, is_utf8
from streamdp.decode.log_times import AHEAD, LEAPS
from streamdp.decode.times import NO_DAY, day_of
from streamdp.decode.zones import HOURS
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import row_type

LOG_LINE = row_type("ordinary named end", "time")
"""Of each line: whether it is ordinary, whether it names an exception, where in ``letters`` its message ends,
its time.
"""

GROUPS = (*"YymdbHMSfzs", "ms", "l", "level", "component", "logger", "dash")
"""Groups of the expressions, by number."""

(_YEAR, _SHORT_YEAR, _MONTH, _DAY, _NAME, _HOUR, _MINUTE, _SECOND, _FRACTION, _ZONE, _EPOCH, _MILLIS, _LETTER,
 _LEVEL, _COMPONENT, _LOGGER) = range(16)  # fmt: skip

EXPRESSIONS = ("time", "second", "cri", "glog", "hosts", "pipes", "number", "head", "begins")
(_TIME, _AGAIN, _CRI, _GLOG, _HOSTS, _PIPES, _NUMBER, _HEAD, _BEGINS) = range(9)

_OPEN = 0x7B
_NAMES = np.frombuffer(b"ErrorExceptionThrowable", np.uint8)
_PLUS = 0x2B
_ZONES = np.array([int.from_bytes(name.encode(), "big") for name in HOURS])
_AHEAD = np.array([3600 * hours for hours in HOURS.values()])
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)


class Heads(NamedTuple):
    """How what is before messages is read: the expressions, and where each begins; ``NONE`` where not."""

    machine: Machine
    begins: np.ndarray  # int64[expressions]
    numbers: np.ndarray  # int64[1] columns of numbers behind the time
    kept: np.ndarray  # int64[fields] which of the kept fields is a level (0), a component (1), neither (-1)
    parts: np.ndarray  # int64[2, 2] spans of level and component of the line at hand


class FoundLines(NamedTuple):
    """What was found; a span begins below 0 where there is nothing, at -2 where no field is kept at all."""

    rows: np.ndarray  # LOG_LINE[n]
    kept: np.ndarray  # int64[n, fields, 2] where in ``values`` the values of kept fields stand
    letters: np.ndarray  # uint8[...] the messages, one after the other
    values: np.ndarray  # uint8[...] what is kept, in JSON
    used: np.ndarray  # int64[1] how many bytes of values


@kernel
def _number(data: np.ndarray, span: np.ndarray, otherwise: int) -> int:
    """The number that a group has matched, blanks aside; another where it has matched nothing."""
    if span[1] < 0:
        return otherwise
    number = 0
    for k in range(span[0], span[1]):
        if data[k] != 0x20:
            number = 10 * number + (data[k] - ZERO)
    return number


@kernel
def _month(data: np.ndarray, span: np.ndarray) -> int:
    """The number of a month by its name."""
    for month in range(12):
        at = span[0]
        if (
            data[at] == _MONTHS[3 * month]
            and data[at + 1] == _MONTHS[3 * month + 1]
            and data[at + 2] == _MONTHS[3 * month + 2]
        ):
            return month + 1
    return 0


@kernel
def _offset(data: np.ndarray, span: np.ndarray) -> float:
    """Seconds that a zone is ahead of UTC; not a number for one that is left to Python."""
    if span[1] < 0:
        return 0.0
    name = digits = count = 0
    for k in range(span[0], min(span[1], span[0] + 7)):
        name = 256 * name + data[k]
        if ZERO <= data[k] <= NINE:
            digits, count = 10 * digits + (data[k] - ZERO), count + 1
    if data[span[0]] == MINUS or data[span[0]] == _PLUS:
        seconds = digits * 3600 if count == 2 else (digits // 100) * 3600 + (digits % 100) * 60
        return float(-seconds if data[span[0]] == MINUS else seconds)
    for k in range(_ZONES.shape[0]):
        if _ZONES[k] == name:
            return float(_AHEAD[k])
    return math.nan


@kernel
def _since_1970(data: np.ndarray, span: np.ndarray) -> float:
    """A number as seconds; not a number where it has too many digits, or is no plausible time."""
    digits, scale, after = 0, 1.0, False
    for k in range(span[0], span[1]):
        if data[k] < ZERO or data[k] > NINE:
            after = True
            continue
        if digits > EXACT // 10 - 1:
            return math.nan
        digits = 10 * digits + (data[k] - ZERO)
        if after:
            scale *= 10.0
    number = digits / scale
    number = number if number < 1e11 else number / 1e3 if number < 1e14 else number / 1e6
    return number if number < LATEST else math.nan


@kernel
def _moment(data: np.ndarray, spans: np.ndarray, year: int, arrival: float) -> float:
    """Seconds since 1970 of what was matched, as ``log_times.moment`` has them; not a number for no time.

    ``year`` is ``latest_year`` of the arrival.
    """
    if spans[_EPOCH, 1] >= 0:
        return _since_1970(data, spans[_EPOCH])
    month = _month(data, spans[_NAME]) if spans[_NAME, 1] >= 0 else _number(data, spans[_MONTH], 1)
    day = _number(data, spans[_DAY], 1)
    clock = 3600 * _number(data, spans[_HOUR], 0) + 60 * _number(data, spans[_MINUTE], 0)
    clock += _number(data, spans[_SECOND], 0)
    within = _number(data, spans[_MILLIS], 0) / 1e3
    if spans[_FRACTION, 1] >= 0:
        within = _number(data, spans[_FRACTION], 0) / 10.0 ** (spans[_FRACTION, 1] - spans[_FRACTION, 0])
    offset = _offset(data, spans[_ZONE])
    if spans[_YEAR, 1] >= 0 or spans[_SHORT_YEAR, 1] >= 0:
        written = _number(data, spans[_YEAR], 0)
        if spans[_YEAR, 1] < 0:
            written = 2000 + _number(data, spans[_SHORT_YEAR], 0)
        midnight = day_of(written, month, day)
        return math.nan if midnight == NO_DAY else 86_400.0 * midnight + clock + within - offset
    for guess in range(year, year - LEAPS, -1):
        midnight = day_of(guess, month, day)
        time = 86_400.0 * midnight + clock + within
        if midnight != NO_DAY and time <= arrival + AHEAD:
            return time - offset
    return math.nan


@kernel
def _copy(spans: np.ndarray, group: int, part: np.ndarray) -> None:
    part[0], part[1] = spans[group, 0], spans[group, 1]


@kernel
def _after_head(heads: Heads, data: np.ndarray, begin: int, at: int, stop: int) -> int:
    """Where the message begins behind a time, what is before which is noted."""
    machine, begins, parts = heads.machine, heads.begins, heads.parts
    spans = machine.spans
    for which in (_CRI, _GLOG, _HOSTS, _PIPES):
        if begins[which] == NONE or (which == _GLOG and parts[0, 1] < 0):
            continue
        end = match(machine, begins[which], data, begin, at, stop)
        if end == UNKNOWN:
            return UNKNOWN
        if end >= 0:
            _copy(spans, _COMPONENT, parts[1])
            return end
    for _ in range(heads.numbers[0]):
        end = match(machine, begins[_NUMBER], data, begin, at, stop)
        if end == UNKNOWN:
            return UNKNOWN
        if end >= 0:
            at = end
    end = match(machine, begins[_HEAD], data, begin, at, stop)
    if end < 0:
        return UNKNOWN
    if spans[_LEVEL, 1] >= 0:
        _copy(spans, _LEVEL, parts[0])
    _copy(spans, _COMPONENT if spans[_COMPONENT, 1] >= 0 else _LOGGER, parts[1])
    return end


@kernel
def _message(
    heads: Heads, row: Any, data: np.ndarray, begin: int, stop: int, year: int, arrival: float
) -> int:
    """Where the message of a line begins, whose time and parts are noted; ``UNKNOWN`` for others."""
    machine, begins = heads.machine, heads.begins
    at = match(machine, begins[_TIME], data, begin, begin, stop)
    if at < 0:
        return UNKNOWN
    row.time = _moment(data, machine.spans, year, arrival)
    if decimal(row.time) == INEXACT:
        return UNKNOWN
    _copy(machine.spans, _LETTER, heads.parts[0])
    if begins[_AGAIN] != NONE:
        blank = at
        while blank < stop and (9 <= data[blank] <= 13 or 28 <= data[blank] <= 32):
            blank += 1
        end = match(machine, begins[_AGAIN], data, begin, blank, stop)
        if end == UNKNOWN or (blank < stop and data[blank] > 127):
            return UNKNOWN
        if end < 0:  # which columns follow is another question then
            return UNKNOWN
        at = end
    return _after_head(heads, data, begin, at, stop)


@kernel
def _says(data: np.ndarray, begin: int, stop: int) -> bool:
    """Whether anything but white space stands there, as far as ASCII says."""
    i = begin
    while i < stop and not 0x20 < data[i] < 0x7F:
        i += 1
    return i < stop


@kernel
def _follows(data: np.ndarray, i: int, stop: int, first: int, last: int) -> bool:
    if i + last - first > stop:
        return False
    k = first
    while k < last and data[i + k - first] == _NAMES[k]:
        k += 1
    return k == last


@kernel
def _names_exception(data: np.ndarray, begin: int, stop: int) -> bool:
    """Whether a message has Error, Exception or Throwable in it."""
    for i in range(begin, stop):
        byte = data[i]
        if byte == 0x45:
            if _follows(data, i, stop, 0, 5) or _follows(data, i, stop, 5, 14):
                return True
        elif byte == 0x54 and _follows(data, i, stop, 14, 23):
            return True
    return False


@kernel
def _keep(found: FoundLines, heads: Heads, n: int, data: np.ndarray) -> bool:
    """Write what is kept of a line; whether it can be, without escapes."""
    some, parts = False, heads.parts
    for k in range(heads.kept.shape[0]):
        found.kept[n, k, 0], found.kept[n, k, 1] = -1, -1
        which = heads.kept[k]
        if which < 0 or parts[which, 1] < 0:
            continue
        at = found.used[0]
        found.values[at] = QUOTE
        for i in range(parts[which, 0], parts[which, 1]):
            byte = data[i]
            if byte < 0x20 or byte > 0x7E or byte == QUOTE or byte == 0x5C:
                return False
            at += 1
            found.values[at] = byte
        found.values[at + 1] = QUOTE
        found.kept[n, k, 0], found.kept[n, k, 1] = found.used[0], at + 2
        found.used[0] = at + 2
        some = True
    if heads.kept.shape[0] and not some:
        found.kept[n, 0, 0] = -2
    return True


@kernel
def _scan_line(
    heads: Heads,
    found: FoundLines,
    n: int,
    data: np.ndarray,
    begin: int,
    stop: int,
    year: int,
    arrival: float,
    at: int,
) -> int:
    """Read line n, whose message is to begin there; where it ends, below 0 for what is not ordinary."""
    row = found.rows[n]
    row.time, row.named = math.nan, 0
    heads.parts[:] = NONE
    if begin >= stop or data[begin] == _OPEN or not is_utf8(data, begin, stop):
        return UNKNOWN
    message = begin
    if heads.begins[_TIME] != NONE:
        message = _message(heads, row, data, begin, stop, year, arrival)
        if message < 0:
            return UNKNOWN
    if (
        not _says(data, message, stop)
        or match(heads.machine, heads.begins[_BEGINS], data, message, message, stop) != -1
    ):
        return UNKNOWN
    row.named = 1 if _names_exception(data, message, stop) else 0
    if not _keep(found, heads, n, data):
        return UNKNOWN
    for i in range(message, stop):
        found.letters[at + i - message] = data[i]
    return at + stop - message


@entry
def scan_log(
    heads: Heads,
    found: FoundLines,
    data: np.ndarray,
    ends: np.ndarray,
    arrivals: np.ndarray,
    most: int,
    year: int,
) -> None:
    """Read lines, which follow each other and end there; those longer than ``most`` bytes are not ordinary.

    They arrived at these times, which are of one ``latest_year``.
    """
    start, at = 0, 0
    for n in range(ends.shape[0]):
        stop, end = ends[n], UNKNOWN
        if stop - start <= most:
            end = _scan_line(heads, found, n, data, start, stop, year, arrivals[n], at)
        found.rows[n].ordinary = 1 if end >= 0 else 0
        if end >= 0:
            at = end
        found.rows[n].end = at
        start = stop
