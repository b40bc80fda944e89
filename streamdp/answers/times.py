"""Times for people."""

from __future__ import annotations

from datetime import UTC, datetime

CALENDAR = 1e8
"""Seconds since the epoch (1973) from which a time is shown as a date; below, as a plain number."""

YEAR_9999 = 253_000_000_000.0
"""No calendar goes further."""


def is_date(time: float) -> bool:
    """Whether a time is shown as a date."""
    return CALENDAR <= time < YEAR_9999


def when(time: float | None) -> str:
    """A time for people."""
    if time is None:
        return ""
    if is_date(time):
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{time:g}"
