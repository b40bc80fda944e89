"""Lines of a log: the time, level and component before the message, and the message."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from streamdp.decode.fields import RefusedError, in_seconds, in_utc, kept_value, text_value
from streamdp.decode.log_heads import COLUMNS, LEVEL, NEVER, NUMBER, HeadForm, HeadReader, head_reader
from streamdp.decode.log_times import EPOCH, KNOWN, Written, Years, moment, moment_of, written_as
from streamdp.decode.log_traces import Trace, goes_on
from streamdp.decode.objects import plain_fields

FIRST = 1000
"""Lines by which the way of writing times is found."""

MOSTLY = 0.9
"""Nearly all: the share of lines that must have a time for others to go on with the line before, or a host
and a program after it where that is no syslog, or a time behind other columns."""

PROBED = 100
"""Lines in which a time behind other columns is looked for before it is in all."""

DOUBTFUL = 0.1
"""Share of lines that go on with the one before beyond which that is doubtful."""

MOST_COLUMNS = 8
"""Columns that may stand before a time."""

JOURNALS = (("__REALTIME_TIMESTAMP", "MESSAGE"), ("log", "stream", "time"))
"""Fields of objects that tell a journal, or a container's log, from other JSON."""

_NAMED = re.compile(rf"(?i:{LEVEL}|10|20|30|40|50|60)")
"""Levels as programs write them to objects; pino and bunyan number them."""

_MESSAGES = ("MESSAGE", "log", "message", "msg", "text")
_TIMES = ("time", "ts", "timestamp", "@timestamp")
_LEVELS = ("level", "severity", "PRIORITY")
_TRACES = ("stack_trace", "stacktrace", "stack", "exception", "exc_info", "error.stack_trace", "traceback")
_COMPONENTS = ("component", "SYSLOG_IDENTIFIER", "_COMM", "logger")


_NO_HEADS = HeadReader(re.compile(NEVER), (), (), (), 0)


def of_a_log(record: Mapping[str, Any]) -> bool:
    """Whether an object is a line of a log: a message with a time, and a level as logs have them."""
    known = _NAMED.fullmatch(_first(record, _LEVELS) or "")
    return bool(known) and all(any(name in record for name in names) for names in (_MESSAGES, _TIMES))


Line = tuple[str, float | None, dict[str, Any] | None]
"""A message, its time in seconds, and the fields that are kept."""


class Head(NamedTuple):
    """What is before a message: time in seconds, level and component; and where the message begins."""

    time: float
    level: str | None
    component: str | None
    begins: int


class Place:
    """What came last from one file or partition."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.time: float | None = None
        self.kept: dict[str, Any] | None = None


class LogLines:
    """Reads lines of one log.

    ``timestamp_format`` says how times are written (directives of strptime), ``pattern`` is an expression of
    the whole line with groups ``message`` and, as there are, ``time``, ``level`` and ``component``.
    ``zone`` is that of times which have none, or one of several meanings; None: UTC. ValueError where they
    cannot be used.
    """

    def __init__(
        self,
        timestamp_format: str | None,
        pattern: str | None,
        keep: tuple[str, ...] = (),
        zone: str | None = None,
    ) -> None:
        self.written: Written | None = None if timestamp_format is None else written_as(timestamp_format)
        self._pattern = None if pattern is None else _own_pattern(pattern)
        self._keep, self._zone = keep, zone
        self._columns: re.Pattern[str] | None = None
        """What nearly all lines have behind the time."""
        self.numbers = 0
        """Columns of numbers behind the time."""
        self._second: Written | None = None
        self._readers: dict[str, HeadReader] = {}
        """How heads are read, by the expression of their times."""
        self._joins = True
        self._places: dict[object, Place] = {}
        self.overdue: list[Line] = []
        """Exceptions that had no frame of one's own, told once their traces are over."""
        self.exceptions = 0
        self.given = timestamp_format is not None or pattern is not None
        self.years: dict[str, Years] = {}
        """Of files that are read once, from first to last line."""

    def learn(self, lines: Iterable[bytes]) -> str:
        """Find out how times are written, by the first lines; what is found, in words."""
        texts = [line.decode("utf-8", "replace") for line in lines]
        given, texts = texts, [text for text in texts if not text.startswith("{")]
        if given and not texts:
            return "its lines are objects: times, levels and messages are read from their fields"
        trace = Trace()
        bare = [text for text in texts if trace.read(text) is None and not goes_on(text)]
        ways = [self._way(bare), *self._behind(bare)]
        way, found = max(ways, key=lambda each: len(each[1]) >= MOSTLY * len(bare), default=(None, []))
        if way is None or not found:
            return "no times are found at the beginning of its lines: each is a message"
        self.written = way
        self._readers.clear()
        rest = [(match.string, match.end()) for match in found]
        again = [text[_blank_end(text, at) :] for text, at in rest]
        second = next(self._behind(again), None)
        if second is not None:
            self._second = second[0]
            rest = [(match.string, match.end()) for match in second[1]]
        for columns in COLUMNS:
            if sum(columns.match(*each) is not None for each in rest) > MOSTLY * len(rest):
                self._columns = columns
        numbers = [_numbers(*each) for each in rest]
        self.numbers = sorted(numbers)[int((1 - MOSTLY) * len(numbers))]
        self._joins = len(found) >= MOSTLY * len(bare)
        if not self._joins:
            return f"times are read as {way.name}; a line without one is a message of its own"
        said = f"times are read as {way.name}; a line without one belongs to the line before it"
        joined = len(texts) - len(found)
        if joined <= DOUBTFUL * len(texts):
            return said
        return (
            f"{said}. That is doubtful: {joined:,} of the first {len(texts):,} lines have none "
            "(streamdp check shows some)"
        )

    def _way(self, texts: Sequence[str]) -> tuple[Written | None, list[re.Match[str]]]:
        """The commonest way in which lines begin, and where it was found."""
        found: dict[int, list[re.Match[str]]] = {}
        for text in texts:
            for number, way in enumerate(KNOWN):
                match = way.pattern.match(text)
                if match is not None:
                    found.setdefault(number, []).append(match)
                    break
        for number in sorted(found, key=lambda n: (-len(found[n]), n)):
            if KNOWN[number] is not EPOCH or _is_clock(found[number], len(texts)):
                return KNOWN[number], found[number]
        return None, []

    def _behind(self, texts: Sequence[str]) -> Iterator[tuple[Written, list[re.Match[str]]]]:
        """Ways that nearly all lines have behind so many other columns."""
        for columns in range(1, MOST_COLUMNS + 1):
            for way in KNOWN:
                behind = way.behind(columns)
                begins = [behind.pattern.match(text) for text in texts[:PROBED]]
                if sum(match is not None for match in begins) < MOSTLY * len(begins):
                    continue
                found = [match for text in texts if (match := behind.pattern.match(text)) is not None]
                if way is not EPOCH or _is_clock(found, len(texts)):
                    yield behind, found

    def heads(self, written: Written | None) -> HeadReader:
        """How what is before messages is read, where times are written so."""
        way = "" if written is None else written.pattern.pattern
        if way not in self._readers:
            form = None if written is None else HeadForm(written, self._second, self._columns, self.numbers)
            self._readers[way] = head_reader(form)
        return self._readers[way]

    def reading(self) -> tuple[HeadReader, bool, str | None]:
        """How ordinary lines are read: their heads, whether these hold a time, and in which zone.

        With a pattern none is ordinary.
        """
        heads = _NO_HEADS if self._pattern is not None else self.heads(self.written)
        return heads, self.written is not None, self._zone

    def begins(self, data: bytes) -> bool:
        """Whether a line begins an event, and belongs to none before it."""
        text = data.decode("utf-8", "replace")
        way = self._pattern or (None if self.written is None else self.written.pattern)
        if text.startswith("{") or way is None or way.match(text) is not None:
            return True
        return self._pattern is None and not (self._joins or text[0].isspace())

    def dates(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, re.Match[str]]]:
        """The times without a year in lines, with their numbers; of lines that begin alike the first."""
        before, known = b"", KNOWN if self._pattern is not None else ()
        ways = [way for way in ((self.written,) if self.written is not None else known) if not way.has_year]
        for number, line in lines if ways else ():
            if line[:12] != before:
                before, text = line[:12], line.decode("utf-8", "replace")
                if self._pattern is not None:
                    found = self._pattern.match(text)
                    text = "" if found is None else found.groupdict().get("time") or ""
                times = (way.pattern.match(text) for way in ways)
                yield from ((number, time) for time in times if time is not None)

    def arrival(self, position: Mapping[str, Any], arrival: float) -> float:
        """The time that says of which year a line is: that of its arrival, or one of ``years``."""
        years = self.years.get(position.get("file", ""))
        return years[bisect_right(years, (position["line"], math.inf)) - 1][1] if years else arrival

    def room(self, place: object) -> float:
        """How many lines that come from there next can be passed over: see :meth:`pass_over`."""
        at = self._places.get(place)
        if at is None or self.written is not None:
            return math.inf if at is None else at.trace.room(True)
        return at.trace.room(False) if at.time is None else 0

    def pass_over(self, place: object, lines: int, last: Sequence[Line]) -> None:
        """So many ordinary lines came from there, read elsewhere, for which there was room.

        ``last`` are some that came last.
        """
        at = self._places.setdefault(place, Place())
        at.trace.skip(lines, [message for message, _, _ in last])
        _, time, at.kept = last[-1]
        at.time = at.time if time is None else time

    def read(self, data: bytes, arrival: float, place: object = None) -> Line | None:
        """The message, its time and the fields kept; None for a line that goes on with the one before.

        Of the lines of a stack trace one is the event of its exception. ``place`` says which file or
        partition the line is from. Raises RefusedError and UnicodeDecodeError.
        """
        text = data.decode()
        at = self._places.get(place)
        if at is None:
            at = self._places[place] = Place()
        line: Line | None = None
        if text.startswith("{") and text.rstrip().endswith("}"):
            line = self.object_line(data, arrival)
        if line is None:
            if self._pattern is not None:
                line = self._by_pattern(text, arrival)
            elif self.written is None:
                line = text, None, None
            else:
                head = self.head(text, self.written, arrival)
                if head is not None:
                    line = text[head.begins :], head.time, self.kept(head.level, head.component)
        return self._followed(at, text, line)

    def _followed(self, at: Place, text: str, line: Line | None) -> Line | None:
        """A line, or the exception whose trace it is of."""
        told = (
            at.trace.read(text, False) if line is None else at.trace.read(line[0], self.written is not None)
        )
        if told is None and line is None and (self._joins or text[0].isspace()):
            told = at.trace.joined(text)
        if told is not None:
            return self._told(at, told) if told else None
        message, time, kept = (text, None, None) if line is None else line
        message = text_value(message, "message")
        if at.trace.passes(message):
            self._end(at)
        at.time, at.kept = at.time if time is None else time, kept
        return message, at.time, kept

    def _end(self, at: Place) -> None:
        told = at.trace.end()
        if told:
            self.overdue.append(self._told(at, told))

    def end(self) -> None:
        """Nothing follows for now: traces that have begun are over."""
        for at in self._places.values():
            if at.trace.framed:
                self._end(at)

    def _told(self, at: Place, text: str) -> Line:
        """An exception, as of the line before it."""
        self.exceptions += 1
        return text, at.time, at.kept

    def head(self, text: str, written: Written, arrival: float, zone: str | None = None) -> Head | None:
        """What is before the message; None where that is no time. ``zone`` is used where none was given."""
        if written.pattern.match(text) is None:  # of a container's lines most ways of writing are none
            return None
        heads = self.heads(written)
        found = heads.pattern.match(text)
        time = None if found is None else moment_of(found.group(*heads.times), arrival, self._zone or zone)
        if found is None or time is None:
            return None
        return Head(time, *heads.level_and_component(found.group(*heads.parts)), found.end())

    def _by_pattern(self, text: str, arrival: float) -> Line | None:
        assert self._pattern is not None
        found = self._pattern.match(text)
        if found is None:
            return None
        parts, time = found.groupdict(), None
        if parts.get("time"):
            ways = KNOWN if self.written is None else (self.written,)
            time = _time_in(parts["time"], ways, arrival, self._zone)
            if time is None:
                raise RefusedError("bad_time", f"what stands for the time is none: {parts['time'][:40]!r}")
        return parts.get("message") or "", time, self.kept(parts.get("level"), parts.get("component"))

    def object_line(self, data: bytes, arrival: float) -> Line | None:
        """A line that is a JSON object: of journalctl, Docker, Kubernetes or a program's own."""
        try:
            record = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            try:
                record = plain_fields(data)
            except (RefusedError, UnicodeDecodeError):
                return None
        return self.of_object(record, arrival) if isinstance(record, dict) else None

    def of_object(self, record: dict[str, Any], arrival: float) -> Line:
        """What the object of a line says. Raises RefusedError."""
        name = next((name for name in _MESSAGES if record.get(name) is not None), None)
        if name is None:
            raise RefusedError("missing_field", f"none of {', '.join(_MESSAGES)} holds its message")
        message = record[name]
        if isinstance(message, list):  # journalctl: bytes that are no text
            message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode(
                "utf-8", "replace"
            )
        text = _with_exception(text_value(message, name).rstrip("\n"), record)
        time = _time_of(record, arrival, self._zone)
        level, component = _first(record, _LEVELS), _first(record, _COMPONENTS)
        for way in KNOWN[:-1]:  # the program's own head, behind that of what ran it
            inner = self.head(text, way, arrival, None if time is None else "UTC")
            if inner is not None and not text[inner.begins :].isspace() and inner.begins < len(text):
                text = text[inner.begins :]
                time = inner.time if time is None else time
                level, component = level or inner.level, component or inner.component
                break
        return text_value(text, name), time, self.kept(level, component)

    def kept(self, level: str | None, component: str | None) -> dict[str, Any] | None:
        """Level and component, as far as they are kept; None where nothing is."""
        held = {"level": level, "component": component}
        found = {name: kept_value(held[name], name) for name in self._keep if held.get(name) is not None}
        return found or None


def _blank_end(text: str, at: int) -> int:
    """Where blanks at a place end."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _numbers(text: str, at: int) -> int:
    """How many columns of numbers follow in a line."""
    count = 0
    while (number := NUMBER.match(text, at)) is not None:
        count, at = count + 1, number.end()
    return count


def _is_clock(found: Sequence[re.Match[str]], lines: int) -> bool:
    """Whether numbers are times: nearly all lines have one, they are plausible, and they rise."""
    times = [time for match in found if (time := moment(match, math.inf)) is not None]
    rising = sum(before <= time for before, time in itertools.pairwise(times))
    return len(times) >= MOSTLY * lines and rising >= MOSTLY * (len(times) - 1)


def _with_exception(message: str, record: dict[str, Any]) -> str:
    """A message, and the exception whose trace is in its further lines or in a field of its own."""
    first, _, further = message.partition("\n")
    if not further:
        further = next((each for name in _TRACES if isinstance(each := record.get(name), str)), "")
    if not further:
        return message
    trace = Trace()
    trace.passes(first)
    told = [trace.read(line) or trace.joined(line) for line in further.split("\n") if line]
    found = next(filter(None, [*told, trace.end()]), None)
    return message if found is None else f"{first} {found}"


def _own_pattern(pattern: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern is no regular expression: {error}") from None
    if "message" not in made.groupindex:
        raise ValueError("pattern needs a group (?P<message>...)")
    return made


def _time_of(record: dict[str, Any], arrival: float, zone: str | None) -> float | None:
    micros = record.get("__REALTIME_TIMESTAMP")
    if isinstance(micros, str) and micros.isdigit():
        return int(micros) / 1e6
    for name in _TIMES:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return in_seconds(float(value))
        if isinstance(value, str):
            return _time_in(value, KNOWN, arrival, zone)
    return None


def _time_in(text: str, ways: Iterable[Written], arrival: float, zone: str | None) -> float | None:
    """The time with which a text begins; a word that follows is the name of its zone."""
    found = next((match for way in ways if (match := way.pattern.match(text)) is not None), None)
    if found is None:
        return None
    time, rest = moment(found, arrival, zone), text[found.end() :].strip()
    return in_utc(time, rest, zone) if time is not None and rest[:1].isalpha() else time


def _first(record: Mapping[str, Any], names: Iterable[str]) -> str | None:
    value = next((record[name] for name in names if record.get(name) is not None), None)
    return None if value is None else str(value)
