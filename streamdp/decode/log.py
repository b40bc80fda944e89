"""Lines of a log: the time, level and component before the message, and the message.

Of a time at the beginning of lines: which way of writing it is, and which moment is meant.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from streamdp.decode.fields import RefusedError, in_seconds, kept_value, text_value

MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
AHEAD = 86_400.0
"""Seconds that a time without a year may lie beyond its arrival; else it is of the year before."""

_MONTH = r"(?P<b>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY_NAME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)"
_DATE = r"(?P<Y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"
_PARTS = r"(?:[.,](?P<f>\d{1,9}))?"
_ZONE = r"(?: ?(?P<z>Z|[+-]\d\d:?\d\d)(?!\d))?"

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
    "s": r"(?P<s>\d{9,19}(?:\.\d+)?)",
    "%": "%",
}
"""What each directive of ``--timestamp-format`` stands for."""


class Written(NamedTuple):
    """A way of writing times: its name, an expression that finds it, and where in a line it may begin."""

    name: str
    pattern: re.Pattern[str]
    syslog: bool = False


def _written(name: str, pattern: str, lead: str = r"[\[<(]?", *, syslog: bool = False) -> Written:
    return Written(name, re.compile(f"{lead}(?:{pattern})", re.ASCII), syslog)


KNOWN = (
    _written("ISO 8601", rf"{_DATE}[T _]{_CLOCK}{_PARTS}{_ZONE}", r"(?:\S+ )?[\[<(]?"),
    _written("ISO 8601 with slashes", rf"(?P<Y>\d{{4}})/(?P<m>\d\d)/(?P<d>\d\d) {_CLOCK}{_PARTS}"),
    _written("syslog", rf"{_MONTH} (?P<d>[ \d]\d) {_CLOCK}{_PARTS}", r"(?:<\d+>)?", syslog=True),
    _written("Apache error log", rf"{_DAY_NAME} {_MONTH} (?P<d>[ \d]\d) {_CLOCK}{_PARTS} (?P<Y>\d{{4}})"),
    _written(
        "Apache access log",
        rf"(?P<d>\d\d)/{_MONTH}/(?P<Y>\d{{4}}):{_CLOCK} (?P<z>[+-]\d{{4}})",
        r"(?:\S+ ){0,4}\[",
    ),
    _written("glog", rf"(?P<l>[IWEFDV])(?P<m>\d\d)(?P<d>\d\d) {_CLOCK}{_PARTS}", ""),
    _written("logcat", rf"(?P<m>\d\d)-(?P<d>\d\d) {_CLOCK}{_PARTS}"),
    _written("month.day", rf"(?P<m>\d\d)\.(?P<d>\d\d) {_CLOCK}{_PARTS}"),
    _written("yy/mm/dd", rf"(?P<y>\d\d)/(?P<m>\d\d)/(?P<d>\d\d) {_CLOCK}{_PARTS}"),
    _written("yymmdd hhmmss", r"(?P<y>\d\d)(?P<m>\d\d)(?P<d>\d\d) (?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d)(?!\S)"),
    _written(
        "yyyymmdd-h:m:s:ms",
        r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)-(?P<H>\d{1,2}):(?P<M>\d{1,2}):(?P<S>\d{1,2}):(?P<ms>\d{1,3})",
    ),
    _written("seconds since 1970", r"(?P<s>\d{10}(?:\.\d+)?|\d{13}|\d{16})(?!\S)", r"(?:\S+ )?[\[(]?"),
)
"""Ways of writing times, the first that fits a line before others."""


def written_as(directives: str) -> Written:
    """The way of writing that directives like those of strptime mean. ValueError for one not known."""
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
    try:
        return _written(directives, "".join(parts), r"\W?")
    except re.error:
        raise ValueError("a directive stands in it twice") from None


@lru_cache(maxsize=512)
def _midnight(year: int, month: int, day: int) -> float:
    """Seconds since 1970 at which a day begins. ValueError for a day that there is not."""
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def moment(found: re.Match[str], arrival: float) -> float | None:
    """Seconds since 1970, UTC unless there is a zone; None for what is no time (a 31 February).

    ``arrival`` says which year is meant where none is written.
    """
    parts = found.groupdict()
    if parts.get("s"):
        number = float(parts["s"])
        return number if number < 1e11 else number / 1e3 if number < 1e14 else number / 1e6
    month = MONTHS[parts["b"]] if parts.get("b") else int(parts.get("m") or 1)
    day = int(parts.get("d") or 1)
    clock = int(parts.get("H") or 0) * 3600 + int(parts.get("M") or 0) * 60 + int(parts.get("S") or 0)
    within = float("0." + parts["f"]) if parts.get("f") else int(parts.get("ms") or 0) / 1e3
    offset = _offset(parts["z"]) if parts.get("z") else 0
    try:
        if parts.get("Y") or parts.get("y"):
            year = int(parts["Y"]) if parts.get("Y") else 2000 + int(parts["y"])
            return _midnight(year, month, day) + clock + within - offset
        year = datetime.fromtimestamp(arrival, UTC).year
        for guess in (year, year - 1):
            time = _midnight(guess, month, day) + clock + within - offset
            if time <= arrival + AHEAD:
                return time
    except ValueError:  # 29 February of another year
        pass
    return None


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if zone[0] == "-" else 1)


FIRST = 1000
"""Lines by which the way of writing times is found."""

MOSTLY = 0.9
"""Share of lines that must have a host and a program after the time, where that is no syslog."""

_LEVEL = r"TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|SEVERE|CRIT(?:ICAL)?|ALERT|EMERG|FATAL|VERBOSE|PANIC"
_HOST = re.compile(rf"\s+(?!(?:{_LEVEL})\b)[\w.-]+\s+(?P<component>[\w./-]+)(?:\[\d+\])?:\s+", re.ASCII)
_BRACKETS = r"\[(?!client\b)(?:[^\[\]]|\[[^\]]*\])*\]"
_HEAD = re.compile(
    rf"""[\])>]?[\s,|-]*
    (?:(?:[^\sa-z]+\s+|{_BRACKETS}\s+){{0,8}}?
       [\[<]?(?P<level>{_LEVEL}|(?i:info|error|warn(?:ing)?|notice|debug)(?=[\]\s])|[VDIWEF](?=[ /]))[\]>]?
       (?=[\s:,|-])[\s:,|-]*)?
    (?:{_BRACKETS}(?P<dash>\s+-\s+)?[\s:]*)?
    (?(dash)|(?:(?P<component>[A-Za-z_][\w.$/@*\#-]*?)(?:\(\s*\d+\))?:\s+)?)""",
    re.VERBOSE | re.ASCII,
)
"""What may be between the time and the message: numbers, a level, a thread in brackets, a component."""

_SYSLOG = re.compile(
    r"\s+(?P<host>\S+)\s+(?P<component>[^\s\[:]+(?:\s\S+?)??)(?:\[(?P<pid>\d+)\])?:\s+", re.ASCII
)
_PIPES = re.compile(r"\|(?P<component>[^|\s]+)\|(?:[^|\s]*\|)?", re.ASCII)
_GLOG = re.compile(r"\s+\d+\s+(?P<component>[\w./-]+):\d+\]\s+", re.ASCII)
_CRI = re.compile(r"\s(?:stdout|stderr)\s[FP]\s", re.ASCII)

_MESSAGES = ("MESSAGE", "log", "message", "msg", "text")
_TIMES = ("time", "ts", "timestamp", "@timestamp")
_LEVELS = ("level", "severity", "PRIORITY")
_COMPONENTS = ("component", "SYSLOG_IDENTIFIER", "_COMM", "logger")


Line = tuple[str, float | None, dict[str, Any] | None]
"""A message, its time in seconds, and the fields that are kept."""


class Head(NamedTuple):
    """What is before a message: time in seconds, level and component; and where the message begins."""

    time: float | None
    level: str | None
    component: str | None
    begins: int


class LogLines:
    """Reads lines of one log.

    ``timestamp_format`` says how times are written (directives of strptime), ``pattern`` is an expression of
    the whole line with groups ``message`` and, as there are, ``time``, ``level`` and ``component``.
    ValueError where they cannot be used.
    """

    def __init__(self, timestamp_format: str | None, pattern: str | None, keep: tuple[str, ...] = ()) -> None:
        self.written: Written | None = None if timestamp_format is None else written_as(timestamp_format)
        self._pattern = None if pattern is None else _own_pattern(pattern)
        self._keep = keep
        self._hosted = False
        self.given = timestamp_format is not None or pattern is not None

    def learn(self, lines: Iterable[bytes]) -> str:
        """Find out how times are written, by the first lines; what is found, in words."""
        found: Counter[int] = Counter()
        hosted: Counter[int] = Counter()
        for line in lines:
            text = line.decode("utf-8", "replace")
            ways = ((n, way.pattern.match(text)) for n, way in enumerate(KNOWN))
            number, match = next(((n, match) for n, match in ways if match), (-1, None))
            if match is not None:
                found[number] += 1
                hosted[number] += _HOST.match(text, match.end()) is not None
        if not found:
            return "no times are found at the beginning of its lines: each is a message"
        number = min(found, key=lambda n: (-found[n], n))
        self.written = KNOWN[number]
        self._hosted = hosted[number] > MOSTLY * found[number]
        return f"times are read as {self.written.name}; a line without one belongs to the line before it"

    def read(self, data: bytes, arrival: float) -> Line | None:
        """The message, its time and the fields kept; None for a line that goes on with the one before.

        Raises RefusedError and UnicodeDecodeError.
        """
        text = data.decode()
        if text.startswith("{") and text.rstrip().endswith("}"):
            found = self._object(data, arrival)
            if found is not None:
                return found
        if self._pattern is not None:
            return self._by_pattern(text, arrival)
        if self.written is None:
            return text_value(text, "message"), None, None
        head = self.head(text, self.written, arrival)
        if head is None:
            return None
        message = text_value(text[head.begins :], "message")
        return message, head.time, self._kept(head.level, head.component)

    def head(self, text: str, written: Written, arrival: float) -> Head | None:
        """What is before the message; None where that is no time."""
        found = written.pattern.match(text)
        if found is None:
            return None
        time, at = moment(found, arrival), found.end()
        if time is None:
            return None
        level = found.groupdict().get("l")
        hosts = _SYSLOG if written.syslog else _HOST if self._hosted else None
        for special in (_CRI, _GLOG if level else None, hosts, _PIPES):
            more = special.match(text, at) if special is not None else None
            if more is not None:
                return Head(time, level, more.groupdict().get("component"), more.end())
        more = _HEAD.match(text, at)
        if more is None:
            return Head(time, level, None, at)
        return Head(time, more["level"] or level, more["component"], more.end())

    def _by_pattern(self, text: str, arrival: float) -> Line | None:
        assert self._pattern is not None
        found = self._pattern.match(text)
        if found is None:
            return None
        parts, time = found.groupdict(), None
        if parts.get("time"):
            ways = KNOWN if self.written is None else (self.written,)
            times = (way.pattern.match(parts["time"]) for way in ways)
            time = next((moment(match, arrival) for match in times if match is not None), None)
            if time is None:
                raise RefusedError("bad_time", f"what stands for the time is none: {parts['time'][:40]!r}")
        message = text_value(parts.get("message") or "", "message")
        return message, time, self._kept(parts.get("level"), parts.get("component"))

    def _object(self, data: bytes, arrival: float) -> Line | None:
        """A line that is a JSON object: of journalctl, Docker, Kubernetes or a program's own."""
        try:
            record = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        name = next((name for name in _MESSAGES if record.get(name) is not None), None)
        if name is None:
            raise RefusedError("missing_field", f"none of {', '.join(_MESSAGES)} holds its message")
        message = record[name]
        if isinstance(message, list):  # journalctl: bytes that are no text
            message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode(
                "utf-8", "replace"
            )
        text = text_value(message, name).rstrip("\n")
        time = _time_of(record, arrival)
        level, component = _first(record, _LEVELS), _first(record, _COMPONENTS)
        for way in KNOWN[:-1]:  # the program's own head, behind that of what ran it
            inner = self.head(text, way, arrival)
            if inner is not None and not text[inner.begins :].isspace() and inner.begins < len(text):
                text = text[inner.begins :]
                time = inner.time if time is None else time
                level, component = level or inner.level, component or inner.component
                break
        return text_value(text, name), time, self._kept(level, component)

    def _kept(self, level: str | None, component: str | None) -> dict[str, Any] | None:
        held = {"level": level, "component": component}
        found = {name: kept_value(held[name], name) for name in self._keep if held.get(name) is not None}
        return found or None


def _own_pattern(pattern: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern is no regular expression: {error}") from None
    if "message" not in made.groupindex:
        raise ValueError("pattern needs a group (?P<message>...)")
    return made


def _time_of(record: dict[str, Any], arrival: float) -> float | None:
    micros = record.get("__REALTIME_TIMESTAMP")
    if isinstance(micros, str) and micros.isdigit():
        return int(micros) / 1e6
    for name in _TIMES:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return in_seconds(float(value))
        if isinstance(value, str):
            for way in KNOWN:
                found = way.pattern.match(value)
                if found is not None:
                    return moment(found, arrival)
    return None


def _first(record: dict[str, Any], names: Iterable[str]) -> str | None:
    value = next((record[name] for name in names if record.get(name) is not None), None)
    return None if value is None else str(value)
