"""Names of time zones, and how far ahead of UTC they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

HOURS = {
    **{"Z": 0.0, "UT": 0.0, "UTC": 0.0, "GMT": 0.0, "WET": 0.0, "WEST": 1.0, "CET": 1.0, "CEST": 2.0},
    **{"EET": 2.0, "EEST": 3.0, "IDT": 3.0, "MSK": 3.0, "SAST": 2.0, "WIB": 7.0, "HKT": 8.0, "SGT": 8.0},
    **{"AWST": 8.0, "JST": 9.0, "KST": 9.0, "ACST": 9.5, "AEST": 10.0, "ACDT": 10.5, "AEDT": 11.0},
    **{"NZST": 12.0, "NZDT": 13.0, "BRT": -3.0, "EDT": -4.0, "EST": -5.0, "CDT": -5.0, "CST": -6.0},
    **{"MDT": -6.0, "MST": -7.0, "PDT": -7.0, "PST": -8.0, "AKDT": -8.0, "AKST": -9.0, "HST": -10.0},
}
"""Abbreviations that mean one offset: those of RFC 822, and others of one region."""

AMBIGUOUS = ("ADT", "AST", "BST", "GST", "IST")
"""Abbreviations that mean one offset here and another there."""

_AREAS = "Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Etc|Europe|Indian|Pacific|US"
_SHORT = "|".join(sorted([*HOURS, *AMBIGUOUS], key=len, reverse=True))
ZONE = (
    rf"(?:(?:{_AREAS})/[A-Za-z0-9_/+-]+|(?:UTC|GMT)[+-]\d{{1,2}}(?::?\d\d)?(?!\d)"
    rf"|(?:{_SHORT})(?![A-Za-z0-9_/]|[.-][A-Za-z0-9]))"
)
"""An expression of what is taken for a zone's name where it follows a time."""

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII)


def offset_of(name: str, wall_time: float) -> float | None:
    """Seconds that a zone is ahead of UTC: ``+0100``, ``CET``, ``Europe/Berlin``.

    ``wall_time`` is what clocks show there, in seconds since 1970 as if that were UTC. None for a name that
    means several offsets, or none.
    """
    if name in HOURS:
        return HOURS[name] * 3600
    written = _OFFSET.fullmatch(name)
    if written is not None:
        seconds = int(written[2]) * 3600 + int(written[3] or 0) * 60
        return float(-seconds if written[1] == "-" else seconds)
    try:
        if "/" not in name:
            return None
        ahead = datetime.fromtimestamp(wall_time, UTC).replace(tzinfo=ZoneInfo(name)).utcoffset()
    except (KeyError, ValueError, OSError, OverflowError):  # unknown; no relative path; a folder; no year
        return None
    return None if ahead is None else ahead.total_seconds()
