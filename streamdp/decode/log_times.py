"""Times at the beginning of lines of a log: which way of writing it is, and which moment is meant."""

from __future__ import annotations

import calendar
import itertools
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from streamdp.decode.fields import LATEST, in_utc
from streamdp.decode.zones import ZONE

MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
DAY = AHEAD = 86_400.0
"""Seconds that a time without a year may lie beyond its arrival; else it is of the year before."""

LEAPS = 9
"""Years among which there is a 29 February."""

LEVEL = (
    r"TRACE|DEBUG\d?|INFO|NOTICE|WARN(?:ING)?|ERROR|SEVERE|CRIT(?:ICAL)?|ALERT|EMERG|FATAL|VERBOSE|PANIC"
    r"|SUCCESS|CONFIG|FINE(?:R|ST)?|VRB|DBG|INF|WRN|ERR|FTL|ERRO|DEBU|FATA"
)
LOW = "info|warn(?:ing)?|notice|error|debug|critical|verbose|trace"
_EARLY = rf"\[?\s*(?P<early>{LEVEL}|(?<=\[)(?:{LOW})(?=\]))\s*[\]:|]?"
"""A level before the time."""

_MONTH = r"(?P<b>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY_NAME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)"
_DATE = r"(?P<Y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"
_PARTS = r"(?:[.,:](?P<f>\d{1,9}))?"
_OFFSET = r"[+-]\d\d:?\d\d(?!\d)"
_ZONE = (
    rf"(?:(?: ?[\[(]?(?={_OFFSET}|[A-Z])|(?=[+-]\d\d(?!\d)))"
    rf"(?P<z>{_OFFSET}|[+-]\d\d(?!\d)|{ZONE})(?:\[{ZONE}\]|[\])])?)?"
)
"""An offset or the name of a zone, in brackets or not; both as ``+01:00[Europe/Berlin]``."""

DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d\d)",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>[ \d]?\d)",
    "e": r"(?P<d>[ \d]?\d)",
    "b": _MONTH,
    "a": _DAY_NAME,
    "H": r"(?P<H>[ \d]?\d)",
    "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})",
    "f": r"(?P<f>\d{1,9})",
    "z": r"(?P<z>Z|[+-]\d\d:?\d\d)",
    "Z": r"(?P<z>[A-Za-z][\w/+-]*)",
    "s": r"(?P<s>\d{9,19}(?:\.\d+)?)",
    "%": "%",
}
"""What each directive of ``--timestamp-format`` stands for."""


class Written(NamedTuple):
    """A way of writing times: its name, an expression that finds it, and that without what may be before."""

    name: str
    pattern: re.Pattern[str]
    body: str
    syslog: bool = False

    @property
    def has_year(self) -> bool:
        """Whether a time says its year."""
        return not self.timed or bool(self.pattern.groupindex.keys() & {"Y", "y", "s"})

    @property
    def timed(self) -> bool:
        """Whether it is a way of writing times, and not of what is instead of one."""
        return not self.pattern.groupindex.keys().isdisjoint(PARTS)

    def behind(self, columns: int) -> Written:
        """The same way behind so many other columns."""
        lead = rf"(?:(?:{_EARLY}|\S+)\s+){{{columns}}}[\[<(]?"
        return _written(f"{self.name} behind {columns} other columns", self.body, lead, syslog=self.syslog)


def _written(name: str, pattern: str, lead: str = r"[\[<(]?", *, syslog: bool = False) -> Written:
    return Written(name, re.compile(f"{lead}(?:{pattern})", re.ASCII), pattern, syslog)


EPOCH = _written(
    "seconds since 1970",
    r"(?P<s>\d{10}(?:\.\d+)?|\d{13}|\d{16})(?=[\s\]:]|\Z)",
    rf"(?:{_EARLY} |\S+ )?[\[(]?",
)
_HALF_DAY = r"(?:\s?(?P<p>[AaPp]\.?[Mm]\b\.?))?"
_THEN = rf"(?:,?\s|-)(?P<H>\d?\d):(?P<M>\d\d)(?::(?P<S>\d\d))?{_PARTS}{_HALF_DAY}{_ZONE}"
_YEAR_LAST = rf"(?:(?P<Y>\d{{4}})|(?P<y>\d\d)){_THEN}"
_DAY, _MONTH_NUMBER = r"(?P<d>0?[1-9]|[12]\d|3[01])", r"(?P<m>0?[1-9]|1[0-2])"
KNOWN = (
    _written(
        "ISO 8601",
        rf"{_DATE}(?:[T _]|, ){_CLOCK}{_PARTS}{_HALF_DAY}{_ZONE}",
        rf"(?:(?:\d+ )?<(?P<pri>\d{{1,3}})>(?P<version>\d )?|\s+|{_EARLY}\s+|\S+ )?(?:\[#\||[\[<(])?",
    ),
    _written(
        "ISO 8601 with slashes or dots",
        rf"(?P<Y>\d{{4}})[/.](?P<m>\d\d)[/.](?P<d>\d\d)(?:[ T]| - ){_CLOCK}{_PARTS}{_ZONE}",
    ),
    _written(
        "syslog",
        rf"{_MONTH} (?P<d>[ \d]?\d) {_CLOCK}{_PARTS}{_ZONE}",
        r"(?:<(?P<pri>\d{1,3})>)?[\[*.]?",
        syslog=True,
    ),
    _written(
        "Apache error log", rf"{_DAY_NAME} {_MONTH} (?P<d>[ \d]\d) {_CLOCK}{_PARTS}{_ZONE} (?P<Y>\d{{4}})"
    ),
    _written(
        "day, month's name, year",
        rf"(?P<d>\d\d?)[ /-]{_MONTH}[ /-](?P<Y>\d{{4}}) {_CLOCK}{_PARTS}{_ZONE}",
        rf"(?:\d+:(?P<role>[A-Z]) |\[?{_DAY_NAME}, )?\[?",
    ),
    _written(
        "Apache access log",
        rf"(?P<d>\d\d)/{_MONTH}/(?P<Y>\d{{4}}):{_CLOCK}{_PARTS} (?P<z>[+-]\d{{4}})",
        r"(?:(?:\S+ ){0,4}\[)?",
    ),
    _written(
        "glog with years",
        rf"(?P<l>[IWEFDV])(?:(?P<Y>\d{{4}})|(?P<y>\d\d))(?P<m>\d\d)(?P<d>\d\d) {_CLOCK}{_PARTS}",
        "",
    ),
    _written("glog", rf"(?P<l>[IWEFDV])(?P<m>\d\d)(?P<d>\d\d) {_CLOCK}{_PARTS}", r"(?:\[\w+\]:)?"),
    _written("logcat", rf"(?P<m>\d\d)-(?P<d>\d\d) {_CLOCK}{_PARTS}{_ZONE}"),
    _written("day.month.year", rf"{_DAY}\.{_MONTH_NUMBER}\.{_YEAR_LAST}"),
    _written("month.day", rf"(?P<m>\d\d)\.(?P<d>\d\d) {_CLOCK}{_PARTS}{_ZONE}"),
    _written("month/day/year", rf"{_MONTH_NUMBER}[/-]{_DAY}[/-]{_YEAR_LAST}"),
    _written("yy/mm/dd", rf"(?P<y>\d\d)/{_MONTH_NUMBER}/{_DAY} {_CLOCK}{_PARTS}{_ZONE}"),
    _written("day/month/year", rf"{_DAY}[/-]{_MONTH_NUMBER}[/-]{_YEAR_LAST}"),
    _written("month's name, day, year", rf"{_MONTH} (?P<d>[ \d]?\d),? {_YEAR_LAST}", r"#*[\[<(]?"),
    _written("yymmdd hhmmss", r"(?P<y>\d\d)(?P<m>\d\d)(?P<d>\d\d) (?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d)(?!\S)"),
    _written(
        "yyyymmdd-h:m:s:ms",
        r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)-(?P<H>\d{1,2}):(?P<M>\d{1,2}):(?P<S>\d{1,2}):(?P<ms>\d{1,3})",
    ),
    _written(
        "yyyymmdd hhmmss",
        r"(?P<Y>\d{4})\.?(?P<m>\d\d)\.?(?P<d>\d\d)[:T _-]?(?P<H>\d\d)[:.]?(?P<M>\d\d)[:.]?(?P<S>\d\d)"
        rf"{_PARTS}{_ZONE}(?=[\s\]])",
        r"(?:\s*\d+:)?[\[(]?",
    ),
    _written(
        "mmdd/hhmmss",
        rf"(?P<m>\d\d)(?P<d>\d\d)/(?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d){_PARTS}(?=:[A-Z])",
        r"\[(?:\d+:)*",
    ),
    _written(
        "time of day",
        rf"(?P<H>\d\d(?=:\d\d:)|\d?\d(?=:\d\d[AP]M)):(?P<M>\d\d)(?::(?P<S>\d\d){_PARTS})?"
        r"(?P<p>[AP]M)?(?=[\s\])|])",
    ),
    _written("auditd", r"(?=(?:node=\S+ )?type=\S+ msg=audit\((?P<s>\d{10}\.\d+):\d+\):)", ""),
    EPOCH,
)
"""Ways of writing times, the first that fits a line before others."""


def written_as(directives: str) -> Written:
    """The way of writing that directives like those of strptime mean. ValueError for one not known.

    Behind a time of day at their end a zone may stand, as behind every other.
    """
    parts, at = [], 0
    while at < len(directives):
        char = directives[at]
        at += 1
        if char == "%":
            name = directives[at : at + 1]
            if name not in DIRECTIVES:
                raise ValueError(f"%{name} is no directive: they are %{' %'.join(DIRECTIVES)}")
            parts.append(DIRECTIVES[name])
            at += 1
        else:
            parts.append(r"\s+" if char == " " else re.escape(char))
    if re.search("%[HMSf]$", directives) and not re.search("%[zZs]", directives):
        parts.append(_ZONE)
    try:
        return _written(directives, "".join(parts), r"\W?")
    except re.error:
        raise ValueError("a directive stands in it twice") from None


@lru_cache(maxsize=512)
def _midnight(year: int | str, month: str, day: str) -> float | None:
    """Seconds since 1970 at which a day begins; None for a day that there is not."""
    try:
        return datetime(int(year), MONTHS.get(month) or int(month), int(day), tzinfo=UTC).timestamp()
    except ValueError:
        return None


PARTS = (*"YybmdHMSf", "ms", "z", "s", "p")
"""The groups of what is written of a time."""


def moment(found: re.Match[str], arrival: float, zone: str | None = None) -> float | None:
    """Seconds since 1970; None for what is no time (a 31 February).

    Where no zone is written it is in ``zone``, else UTC. ``arrival`` says which year is meant where none is
    written. Raises RefusedError for an unknown zone.
    """
    return moment_of(tuple(map(found.groupdict().get, PARTS)), arrival, zone)


def moment_of(parts: tuple[str | None, ...], arrival: float, zone: str | None = None) -> float | None:
    """The same of what the groups ``PARTS`` have matched, if anything."""
    year, short, name, month, day, hour, minute, second, fraction, millis, named, since, half = parts
    if since:
        number = float(since)
        number = number if number < 1e11 else number / 1e3 if number < 1e14 else number / 1e6
        return number if number < LATEST else None
    if half:
        hour = str(int(hour or 0) % 12 + (12 if half[0] in "Pp" else 0))
    clock = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    within = float("0." + fraction) if fraction else int(millis or 0) / 1e3
    if not day:  # that which ends nearest to the arrival
        nearest = math.ceil((arrival - clock) / DAY - 0.5) * DAY
        return in_utc(nearest + clock + within, named, zone)
    written = year or (short and f"20{short}")
    for meant in (written,) if written else _years(arrival):
        midnight = _midnight(meant, name or month or "1", day or "1")
        if midnight is not None:  # else it is the 29 February of another year
            time = midnight + clock + within
            if written or time <= arrival + AHEAD:
                return in_utc(time, named, zone) if named or zone else time
    return None


@lru_cache(maxsize=512)
def _years(arrival: float) -> tuple[int, ...]:
    """The years that a time may be of which arrived then, the newest first."""
    newest = latest_year(arrival)
    return tuple(range(newest, newest - LEAPS, -1))


def latest_year(arrival: float) -> int:
    """The newest of them."""
    return datetime.fromtimestamp(arrival + AHEAD, UTC).year


_LEAP_DAY = datetime(2000, 2, 29, tzinfo=UTC).timestamp()
_HALF = 183 * 86_400.0

Years = list[tuple[int, float]]
"""From which line of a file on which arrival says the year that is meant."""


def years_of(dates: Iterable[tuple[int, re.Match[str]]], written: float) -> Years:
    """The years of a file that was last written then, by the times without a year in its lines.

    Dates that fall by half a year are of the next year. Of the years that are not after the file's own, the
    newest are meant in which each 29 February is a day.
    """
    dates = iter(dates)
    first = list(itertools.islice(dates, 1))
    dates = itertools.chain(first, dates)
    if first and "d" not in first[0][1].re.groupindex:
        return _days_of(dates, written)
    begins, leaps, year, before, last = [(0, 0)], set[int](), 0, _LEAP_DAY, None
    for line, found in dates:
        time = moment(found, _end_of(2000), "UTC")
        if time is None:
            continue
        if last is not None and not -_HALF <= time - before < 2 * _HALF - AHEAD:
            year += 1 if time < before else -1
            begins.append((line, year))
        if _LEAP_DAY <= time < _LEAP_DAY + AHEAD:
            leaps.add(year)
        before, last = time, found
    newest = latest_year(written)
    fits = [
        base
        for base in range(newest, newest - LEAPS, -1)
        if last is not None and (moment(last, _end_of(base), "UTC") or 0.0) <= written + AHEAD
    ]
    leap = [base for base in fits if all(calendar.isleap(base - year + own) for own in leaps)]
    base = next(iter(leap or fits), newest)
    return [(line, _end_of(base - year + own)) for line, own in begins]


def _days_of(dates: Iterable[tuple[int, re.Match[str]]], written: float) -> Years:
    """The days of a file by its times of day: one that falls by half a day is of the next."""
    begins, day, before = [(0, 0)], 0, DAY / 2
    for line, found in dates:
        clock = moment(found, DAY / 2, "UTC") or 0.0
        if fallen := round((before - clock) / DAY):
            day += fallen
            begins.append((line, day))
        before = clock
    newest = math.ceil((written - before) / DAY - 0.5) * DAY + DAY / 2
    return [(line, newest + (own - day) * DAY) for line, own in begins]


def _end_of(year: int) -> float:
    """An arrival by which times without a year are of that year."""
    return datetime(year + 1, 1, 1, tzinfo=UTC).timestamp() - 1.0 - AHEAD
