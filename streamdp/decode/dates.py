"""Times as people and programs write them beside ISO 8601: RFC 822, 10. März 2014, AM and PM."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
"""What a form may be beside directives of strptime: which number of 03/10/2014 is the day."""

COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Forms of times that are integers, by their number of digits."""

_CLEARLY = 5.0
"""How many times as long, or as unordered, dates must be in one reading for the other to be right."""

_MONTHS = re.findall(
    r"\S+",
    "jan|ene|gen f[eé][bv] m[aä]r|mrz a[bpv]r ma[giy]|mei jun|juin|giu jul|juil|lug aug|ago|aoû "
    "sep|set o[ckt]t|out nov d[eéi][cz]",
)
"""How the names of the months begin, in several languages."""

_TIME = r"""(?P<H>\d{1,2})(?:[:.](?P<M>\d\d)(?:[:.](?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?)?)?
    (?:\s*(?:(?P<p>[ap])\.?m\.?|uhr\b))?"""
_WRITTEN = re.compile(
    rf"""(?:[^\W\d]{{2,}}\.?,?\s+(?=\d|[^\W\d]{{3}}))?
    (?:(?P<a>\d{{1,4}})(?P<by>[./-])(?P<b>\d\d?)(?P=by)(?P<c>\d{{4}}|\d\d?)
      |(?P<d>\d\d?)(?:st|nd|rd|th|\.)?(?:\s+de)?[\s/-]*(?P<n>[^\W\d]{{3,}})\.?,?(?:\s+de)?[\s/-]+(?P<y>\d{{4}}|\d\d))
    (?:(?:\s*[,T:]\s*|\s+(?:at\s+|um\s+|-\s+)?){_TIME})?
    (?:\s*(?P<z>Z|[+-]\d\d:?\d\d|[a-z]{{2,5}}(?:[+-]\d\d?(?::?\d\d)?)?|[a-z]+/[a-z_/]+))?(?:\s*\(.*\))?""",
    re.VERBOSE | re.IGNORECASE,
)
_MONTH_LEADS = re.compile(
    r"([^\W\d]{3,})\.?\s+(\d\d?)(?:st|nd|rd|th)?,?\s+(?:(\d\d?:\d\d(?::\d\d)?)\s+(?:(\S+)\s+)?)?(\d{4})",
    re.IGNORECASE,
)
"""March 10, 2014; or with the year after the time and its zone, as ctime writes it."""

CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?|\s*uhr)?", re.IGNORECASE)
"""A time of day alone."""


class AmbiguousError(ValueError):
    """Day and month of a time, or of all times of a column, cannot be told apart."""

    def __init__(self, what: str = f"say --time-format {DAY_FIRST} or --time-format {MONTH_FIRST}") -> None:
        super().__init__(what)


def wall_time(text: str, form: str | None = None) -> tuple[float, str | None]:
    """What a clock shows, in seconds since 1970, and the zone that is written. ValueError says what is wrong.

    ``form`` is ``DAY_FIRST``, ``MONTH_FIRST``, or directives of strptime. Without one it is taken that a date
    with points begins with its day, and AmbiguousError is raised for 03/10/2014.
    """
    if form is not None and "%" in form:
        if COMPACT.get(len(text), form) != form:
            raise ValueError(f"it is not written as {form}")
        moment = datetime.strptime(text, form)
        zone = None if moment.tzinfo is None else "UTC"
        return (moment if zone else moment.replace(tzinfo=UTC)).timestamp(), zone
    found = _WRITTEN.fullmatch(_MONTH_LEADS.sub(r"\2 \1 \5 \3 \4", text).strip())
    if found is None:
        raise ValueError("it is written in no way that is known")
    part = found.groupdict()
    hour, half, zone = int(part["H"] or 0), part["p"], part["z"]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no hour {hour} before or after noon")
        hour = hour % 12 + 12 * (half in "pP")
    moment = datetime(*_date(part, form), hour, int(part["M"] or 0), int(part["S"] or 0), tzinfo=UTC)
    shown = moment.timestamp() + float("0." + (part["f"] or "0"))
    return shown, zone.upper() if zone and "/" not in zone else zone


def _date(part: dict[str, str], form: str | None) -> tuple[int, int, int]:
    """Year, month and day."""
    if part["n"]:
        name, year, day = part["n"].casefold(), part["y"], int(part["d"])
        month = next((i for i, begins in enumerate(_MONTHS, 1) if re.match(begins, name)), 0)
        if not month:
            raise ValueError(f"{name} is no month")
    elif len(part["a"]) == 4:
        year, month, day = part["a"], int(part["b"]), int(part["c"])
    elif form is None and part["by"] != ".":
        raise AmbiguousError
    else:
        year, day, month = part["c"], int(part["a"]), int(part["b"])
        if form == MONTH_FIRST:
            day, month = month, day
    century = 0 if len(year) == 4 else 2000 if int(year) < 69 else 1900
    return int(year) + century, month, day


def day_or_month(values: Sequence[str]) -> str | None:
    """Which number is the day in the dates of a column; None if it has no such dates.

    A number above 12 tells, else the order of the rows, else that dates follow each other closely. Raises
    AmbiguousError where none of these does.
    """
    day, month = _times(values, DAY_FIRST), _times(values, MONTH_FIRST)
    if len(day) != len(month) or not len(day):
        return DAY_FIRST if len(day) > len(month) else MONTH_FIRST if len(month) else None
    lasts = np.ptp(day), np.ptp(month)
    longer = day if lasts[0] > lasts[1] else month
    monthly = all(datetime.fromtimestamp(time, UTC).day == 1 for time in longer)
    for costs, least in (((min(steps(day)), min(steps(month))), 3), (lasts, math.inf if monthly else 0)):
        if max(costs) >= max(least, _CLEARLY * min(costs)) and costs[0] != costs[1]:
            return DAY_FIRST if costs[0] < costs[1] else MONTH_FIRST
    raise AmbiguousError


def steps(times: np.ndarray) -> tuple[int, int]:
    """How often times fall, and how often they rise."""
    changes = np.diff(times)
    return int((changes < 0).sum()), int((changes > 0).sum())


def _times(values: Sequence[str], form: str) -> np.ndarray:
    """The values that are times in a form."""
    found = []
    for value in values:
        with contextlib.suppress(ValueError, OverflowError):
            found.append(wall_time(value, form)[0])
    return np.array(found)
