"""Turn single decoded values into what a Record holds, or refuse them with a stable reason."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from streamdp.decode.dates import wall_time
from streamdp.decode.zones import offset_of

_DEEPEST = 64  # levels inside a kept field; it is encoded again later, further down the call stack


Parts = tuple[
    str | list[float] | dict[str, float] | dict[str, str],
    float | None,
    str | int | None,
    dict[str, Any] | None,
]
"""What every format gives: the value, the time in seconds, the id, and the kept fields."""


Unit = Literal["auto", "s", "ms", "us", "ns"]
"""What numbers of a time field count since 1970."""

PER_SECOND: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


FIRST_NUMBER = 1e8
"""From 1973 on the digits of seconds are more than those of a date."""

_BEYOND = (
    (re.compile(r"(?<=\d[Tt ])24(?=(:?00){1,2}([.,]0+)?(?![\d:.,]))"), "00", 86_400.0),
    (re.compile(r"(?<=[Tt ]\d\d:\d\d:)60|(?<=[Tt ]\d{4})60"), "59", 1.0),
)
"""Times of day that Python does not read: the end of a day, a leap second; how else, and so much earlier."""

EARLIEST, LATEST = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100, between which a number of unknown meaning may be a time."""

_WHOLE = len("2024-05-01T10:00:00")

_WITH_ZONE = re.compile(r"(.*\d\w?)(?:\s+|\s*[\[(])([A-Za-z][\w/+:-]*)[\])]?", re.ASCII)
"""A time, and the name of its zone behind it."""


class Fields:
    """The names under which a record holds its parts. Raises ValueError when two are the same."""

    def __init__(
        self,
        text: str,
        vector: str,
        features: str,
        time: str,
        id: str,
        keep: tuple[str, ...] = (),
        unit: Unit = "auto",
        zone: str | None = None,
        form: str | None = None,
        date: str | None = None,
        comma: bool = False,
    ) -> None:
        self.unit: Unit = unit
        self.zone = checked_zone(zone)
        self.form, self.date, self.comma = form, date, comma
        self.text, self.vector, self.features, self.time, self.id = text, vector, features, time, id
        self.values = (text, vector, features)
        self.roles = (*self.values, time, id)
        self.keep = tuple(dict.fromkeys(keep))
        if len(set(self.roles)) < len(self.roles):
            raise ValueError(f"two fields have the same name: {', '.join(self.roles)}")


LONGEST_ID = 4096
"""Bytes of an id: a longer one is refused, since ids are held until their answers are final."""


def checked_zone(zone: str | None) -> str | None:
    """A zone that was asked for. Raises ValueError for a name that means several offsets, or none."""
    if zone is not None and offset_of(zone, 0.0) is None:
        raise ValueError(f"time_zone: {zone!r} is not known: say one like Europe/Berlin, CET or +01:00")
    return zone


class RefusedError(Exception):
    """A record cannot be used: a short stable code (a metrics label) and a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def check_id(identity: str) -> None:
    """Refuse ``long_id``."""
    size = len(identity.encode("utf-8", "surrogatepass"))
    if size > LONGEST_ID:
        raise RefusedError("long_id", f"its id has {size} bytes; the limit is {LONGEST_ID}")


def text_value(value: Any, name: str) -> str:
    """Return a text that holds more than white space; refuses ``wrong_type``, ``empty``."""
    if not isinstance(value, str):
        raise RefusedError("wrong_type", f"field {name!r} must be a string, not {kind(value)}")
    if not value or value.isspace():
        raise RefusedError("empty", f"field {name!r} holds no text")
    return value


def vector_value(value: Any, name: str) -> list[float]:
    """Return a list of finite floats; refuses ``wrong_type``, ``null_value``, ``not_finite``, ``empty``."""
    if not isinstance(value, list):
        raise RefusedError("wrong_type", f"field {name!r} must be an array of numbers, not {kind(value)}")
    if not value:
        raise RefusedError("empty", f"field {name!r} is an empty array")
    return [number(item, f"{name}[{i}]") for i, item in enumerate(value)]


def features_value(value: Any, name: str) -> dict[str, float]:
    """Return a mapping to finite floats; refuses as ``vector_value`` does."""
    if not isinstance(value, dict):
        raise RefusedError("wrong_type", f"field {name!r} must be an object of numbers, not {kind(value)}")
    if not value:
        raise RefusedError("empty", f"field {name!r} is an empty object")
    return {key: number(item, f"{name}.{key}") for key, item in value.items()}


def number(value: Any, name: str) -> float:
    """Return a finite float; refuses ``null_value``, ``wrong_type`` (a bool is no number), ``not_finite``."""
    if value is None:
        raise RefusedError("null_value", f"field {name!r} is null")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError("wrong_type", f"field {name!r} must be a number, not {kind(value)}")
    try:
        result = float(value)
    except OverflowError:  # an integer of more than 308 digits
        result = math.inf
    if not math.isfinite(result):
        raise RefusedError("not_finite", f"field {name!r} is not a finite number")
    return result


EMPTY = frozenset(("", "-", "NA", "N/A", "n/a", "NULL", "null", "None", "NaT"))
"""What tables have for a time that is not known."""


def number_cell(cell: str, name: str, comma: bool = False) -> float:
    """Return the number written in a CSV cell; refuses ``null_value`` (an empty cell) and as ``number``."""
    if not cell or cell.isspace():
        raise RefusedError("null_value", f"column {name!r} is empty")
    try:
        result = plain_float(with_point(cell) if comma else cell)
    except ValueError:
        raise RefusedError("wrong_type", f"column {name!r} must hold a number, not {_short(cell)}") from None
    return number(result, name)


def in_seconds(number: float, unit: Unit = "auto") -> float:
    """Seconds since the epoch.

    Automatic is by magnitude: below 1e11 (the year 5138 in seconds) it is seconds, below 1e14 milliseconds,
    below 1e17 microseconds, else nanoseconds; each of them begins in 1973.
    """
    if unit == "auto":
        size = abs(number)
        if size < 1e11:
            return number
        unit = "ms" if size < 1e14 else "us" if size < 1e17 else "ns"
    return number / PER_SECOND[unit]


def in_utc(wall_time: float, named: str | None, zone: str | None) -> float:
    """Seconds since the epoch of what clocks show in the zone that is named, else in ``zone``, else in UTC.

    Refuses ``bad_time`` where a name means several zones, or none, and ``zone`` does not say which.
    """
    ahead = offset_of(named, wall_time) if named else None
    if ahead is None and named and zone is None:
        raise RefusedError(
            "bad_time", f"time zone {named!r} is unknown or ambiguous: say which is meant with --time-zone"
        )
    return wall_time - (ahead if ahead is not None else offset_of(zone or "UTC", wall_time) or 0.0)


def time_value(
    value: Any, name: str, unit: Unit = "auto", zone: str | None = None, form: str | None = None
) -> float | None:
    """Return seconds since the epoch from a number or a time in words (in ``zone`` unless it has one).

    ``form`` says how those are written (see ``wall_time``), and numbers too if it has directives. A string
    may hold the number, where its size says that it is one and no date. None and a blank string give None;
    refuses ``bad_time``.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return time_cell(value, name, unit, zone, form, FIRST_NUMBER)
    if "%" in (form or "") and isinstance(value, int | float):
        return _seconds_in_words(f"{value:.15g}", name, zone, form)
    try:
        return in_seconds(number(value, name), unit)
    except RefusedError:
        shown = kind(value) if isinstance(value, bool | list | dict) else _short(str(value))
        raise RefusedError("bad_time", f"field {name!r} is no time: {shown}") from None


def time_cell(
    cell: str,
    name: str,
    unit: Unit = "auto",
    zone: str | None = None,
    form: str | None = None,
    least: float = 0.0,
) -> float | None:
    """Return the time written in a CSV cell, in words or as a number from ``least`` on; ``EMPTY`` is None."""
    if not cell or cell.isspace():
        return None
    if "%" not in (form or ""):
        if cell[4:5] == "-" and len(cell) >= _WHOLE:  # as nearly always
            with contextlib.suppress(ValueError):
                moment = datetime.fromisoformat(cell)
                if moment.tzinfo is not None or zone is None:
                    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        with contextlib.suppress(ValueError):
            seconds = plain_float(cell)
            if least <= abs(seconds) < math.inf:
                return in_seconds(seconds, unit)
    return None if cell.strip() in EMPTY else _seconds_in_words(cell, name, zone, form)


def is_time(value: Any, *, numbers: bool, form: str | None = None) -> bool:
    """Whether a value of JSON or a cell is a time: in words, or with ``numbers`` one from 2000 to 2099."""
    try:
        if isinstance(value, str) and "%" not in (form or ""):
            with contextlib.suppress(ValueError):
                value = plain_float(value)
        if isinstance(value, str):
            _seconds_in_words(value, "", "UTC", form)
            return True
        return numbers and EARLIEST <= in_seconds(number(value, "")) < LATEST
    except RefusedError:
        return False


def id_value(value: Any, name: str) -> str | int | None:
    """Return an identifier, 17 for 17.0; refuses ``wrong_type``. One beyond 64 bits becomes a string."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():  # 17.0 where a table's numbers may be missing
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError("wrong_type", f"field {name!r} must be a string or an integer, not {kind(value)}")
    return value if -(2**63) <= value < 2**64 else str(value)  # msgpack, so the snapshot, ends there


def kept_value(value: Any, name: str, depth: int = 0) -> Any:
    """Return a kept value in a form every encoder can write: integers beyond 64 bits become strings."""
    if depth > _DEEPEST:
        raise RefusedError("wrong_type", f"field {name!r} is nested more than {_DEEPEST} levels deep")
    if isinstance(value, list):
        return [kept_value(item, name, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: kept_value(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def nothing_of(named: Sequence[str]) -> str:
    """What is wrong with a record none of whose fields has a value."""
    if not named:
        return "there is no field with a value"
    return f"there is no value in {' or '.join(map(repr, named))}"


def kind(value: Any) -> str:
    """Name the JSON type of a value, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def with_point(cell: str) -> str:
    """A number with a decimal comma, and points or blanks between thousands, as others write it."""
    whole, comma, rest = cell.strip().partition(",")
    grouped = re.fullmatch(r"[+-]?\d{1,3}(?:[. \u00a0\u202f']\d{3})+", whole)
    return (re.sub(r"[^\d+-]", "", whole) if grouped else whole) + (f".{rest}" if comma else "")


def plain_float(cell: str) -> float:
    """The number that a text writes; ValueError where it writes none."""
    if "_" in cell:  # Python's own digit separator; in data it is an identifier
        raise ValueError(cell)
    return float(cell)


def _seconds_in_words(text: str, name: str, zone: str | None = None, form: str | None = None) -> float:
    stripped, later = text.strip(), 0.0
    for beyond, written, seconds in _BEYOND:
        stripped, count = beyond.subn(written, stripped, count=1)
        later += seconds * count
    named = _WITH_ZONE.fullmatch(stripped)
    try:
        if "%" not in (form or ""):
            with contextlib.suppress(ValueError):
                moment = datetime.fromisoformat(named[1] if named else stripped)
                if moment.tzinfo is not None:
                    return moment.timestamp() + later
                shown = moment.replace(tzinfo=UTC).timestamp() + later
                return in_utc(shown, named[2] if named else None, zone)
        shown, zone_name = wall_time(stripped, form)
        return in_utc(shown + later, zone_name, zone)
    except (ValueError, OverflowError) as error:
        raise RefusedError("bad_time", f"field {name!r} is no time: {_short(text)}: {error}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
