"""Lines of a log: the time, level and component before the message, and the message."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from streamdp.decode.columns import parse_row
from streamdp.decode.fields import RefusedError, in_seconds, in_utc, kept_value, text_value
from streamdp.decode.log_fields import (
    REQUEST,
    fields_of,
    name_log,
    object_of,
    of_a_log,
    requested,
    told_by,
)
from streamdp.decode.log_heads import (
    CLOSED,
    COLUMNS,
    FORMS,
    NEVER,
    NUMBER,
    HeadForm,
    HeadReader,
    forms_of,
    head_reader,
)
from streamdp.decode.log_times import (
    EPOCH,
    KNOWN,
    LEVEL,
    LOW,
    PARTS,
    Written,
    Years,
    moment,
    moment_of,
    written_as,
)
from streamdp.decode.log_traces import Held, Trace
from streamdp.records import Raw

FIRST = 1000
"""Lines by which the way of writing times is found."""

MOSTLY = 0.9
"""Nearly all: the share of lines that must have a time for the others to have that of the line before, or a
host and a program after it where that is no syslog, or a time behind other columns."""

RARELY = 8
"""Lines of traces, and such as go on, for one with a head, beyond which the first lines may be no log."""

PROBED = 100
"""Lines in which a time behind other columns is looked for before it is in all."""

MOST_COLUMNS = 8
"""Columns that may stand before a time."""

GOES_ON = " \t)]}"
"""With what lines begin that go on with the line before, where that has a head."""

DEEPEST = 4
"""Lines in each other that are read: of a container, of a journal, of a program, of its library."""

CARRIERS = tuple(
    re.compile(carrier, re.ASCII)
    for carrier in (
        r"(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<stream>stdout|stderr) (?P<part>[FP])(?::\S+)? ",
        r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}(?:Z|[+-]\d\d:\d\d)) ",
        r"\[(?:pod/)?(?P<component>[\w.-]+(?:/[\w.-]+)+)\] ",
        r"(?:\d++\|)?(?P<component>[A-Za-z0-9][\w.-]*+) *+\| ",
        r"\[\d++\] (?P<component>[^\s:]++): \[\[?(?P<time>\d{10}\.\d+)(?:, \{.*?\}\])?, (?=\{)",
        r"(?P<component>[^\t]+)\t[^\t]+\t\ufeff?(?=\d{4}-)",
        r"(?P<time>\d{4}-\d\d-\d\dT\S+Z) \d\d(?P<stream>[OE])[ +]",
        r"(?P<time>\d{4}-\d\d-\d\dT\S+) \d{4}/\d\d/\d\d/\[\S+\]\w+ ",
    )
)
"""What stands before lines of others: of a container's log file, a pod, docker compose and PM2, Fluent Bit,
GitHub's actions, GitLab's jobs, `aws logs tail`."""

_FIELDS, _CURSOR = re.compile(r"#[Ff]ields:?\s"), "__CURSOR"
_SERVER = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+ [A-Z]+,[^,]*,[^,]*,(p?)\d+,", re.ASCII)
_SERVERS = {
    "": "time user database process connection session line tag start virtual transaction level state "
    "message",
    "p": "time user database process thread host port start transaction session command segment slice "
    "distributed local sub level state message",
}
"""How rows of PostgreSQL, and with a p of Greenplum, begin, and their columns up to the message."""

_UNSEEN = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[0-Z\\^_a-z])|\A\ufeff|\r\Z"
)
_EXACT = re.compile(r"[\W]?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^.,\d]", re.ASCII)
"""A time as programs write it, and no person."""
_NUMBER = re.compile(r"\d{9,19}(?:\.\d+)?", re.ASCII)
LONGEST = 1 << 20
"""Characters of a line beyond which no part of it is waited for."""

_LEVELED = Written(
    "their levels",
    re.compile(
        rf"(?=\[?(?:{LEVEL})\]?(?:[\s|]|:\s|:[\w.]+:)|(?:{LEVEL})\[\d+\]\s|(?:{LOW}): "
        rf"|\[[^\]]*\]\s+(?:{LEVEL})\s|##\[|(?:trce|dbug|info|warn|fail|crit): [A-Z][\w.`]+\[\d+\]"
        r"|[VDIWEF]/[^\s:(]+\s*\(\s*\d+\): |(?:npm|\d+) (?:silly|verbose|info|http|warn|WARN|error|ERR!) )"
    ),
    "",
    False,
)
"""Lines that begin with their levels: no time."""

_BOOTED = Written("seconds since a start", re.compile(r"\[\s*\d+\.\d{3,6}\]\s", re.ASCII), "")
"""Lines of a kernel, which say no time."""

INNER = (*KNOWN[:-1], _LEVELED)
"""How lines may begin that others carry."""


_TIME = re.compile(r"\S*\d[:.,/-]\d\S*|\b\d{9,}\b", re.ASCII)

_NO_HEADS = HeadReader(re.compile(NEVER), (), (), (), 0)


Line = tuple[str, float | None, dict[str, Any] | None]
"""A message, its time in seconds, and the fields that are kept."""


class Said(NamedTuple):
    """What a line says: its message, time in seconds, level and component."""

    message: str
    time: float | None
    level: str | None = None
    component: str | None = None
    closes: str | None = None
    """The sign up to which the message goes on, over further lines."""

    def within(self, outer: Said) -> Said:
        """The same of a line that is the message of another, which may say more."""
        named = (mine if mine is not None else its for its, mine in zip(self[1:], outer[1:], strict=True))
        return Said(self.message, *named)  # type: ignore[arg-type]


class Place:
    """What came last from one file or partition."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.time: float | None = None
        self.kept: dict[str, Any] | None = None
        self.text = ""
        self.raw: Raw | None = None
        self.headed = False
        self.parts: dict[str, Said] = {}
        """Of lines that come in parts: those that there are, by stream and container."""
        self.begun = False
        self.above = self.row = ""
        """The head of which the message is on the next line; what came of a row of several lines."""
        self.closes: str | None = None
        self.entry: dict[str, str] = {}
        """Of a journal's export the fields of the entry that has begun."""


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
        self.form, self.recognised = "", False
        """What was learned, in words, and whether that is a log."""
        self._carried = self._parted = self._paired = self._exported = self._doubled = False
        self.requests = self.talks = False
        """Whether messages are of requests; whether they may be people's: with times, and without levels."""
        self._names: list[str] = []
        self._separator: str | None = None
        self._header = ""
        self._forms = FORMS
        self._readers: dict[str, HeadReader] = {}
        """How heads are read, by the expression of their times."""
        self._joins = True
        self._places: dict[object, Place] = {}
        self.overdue: list[Held] = []
        """Traces, and lines that might have begun one; lines of which only parts came."""
        self.exceptions = 0
        self.given = timestamp_format is not None or pattern is not None
        self.years: dict[str, Years] = {}
        """Of files that are read once, from first to last line."""

    def learn(self, lines: Iterable[bytes]) -> str:
        """Find out how lines are written, by the first ones; what is found, in words."""
        given = [plain(line.decode("utf-8", "replace")) for line in lines]
        self.form, self.recognised = "messages without times", False
        if found := self._carrying(given):
            self.form, self.recognised = found, True
            return f"its lines are {found}: times, levels and messages are read line by line"
        records = [fields_of(text) for text in given]
        texts = [text for text, record in zip(given, records, strict=True) if record is None]
        objects = sum(text.startswith("{") for text in given) - sum(text.startswith("{") for text in texts)
        pairs = len(given) - len(texts) - objects
        self._paired = pairs > 0
        known = sum(record is not None and of_a_log(record) for record in records)
        self.recognised = 2 * known > len(given)
        if given and not texts:
            others = "events of CEF" if any(record and "CEF" in record for record in records) else "logfmt"
            kinds = " and ".join(["objects"] * (objects > 0) + [others] * (pairs > 0))
            self.form = kinds.replace("objects", "objects of JSON")
            return f"its lines are {kinds}: times, levels and messages are read from their fields"
        bare = self._beginnings(texts)
        leveled = [match for text in bare if (match := _LEVELED.pattern.match(text)) is not None]
        booted = [match for text in bare if (match := _BOOTED.pattern.match(text)) is not None]
        ways = [self._way(bare), *self._behind(bare), (_LEVELED, leveled), (_BOOTED, booted)]
        way, found_in = max(ways, key=lambda each: len(each[1]) >= MOSTLY * len(bare))
        if way is None or not found_in:
            return "no times are found at the beginning of its lines: each is a message"
        self.written = way
        self._readers.clear()
        self._learn_heads(way, found_in)
        apart = sum(way.pattern.match(match.string) is None for match in leveled)
        self._doubled = way.timed and len(found_in) + apart >= MOSTLY * len(bare) and 3 * apart > len(bare)
        self._forms = FORMS if self._doubled else self._forms
        self._joins = self._doubled or (way.timed and len(found_in) >= MOSTLY * len(bare))
        self._learn_contents(way, texts)
        known += len(texts) if self._doubled else len(texts) - len(bare) + len(found_in)
        self.recognised = self.recognised or (
            known >= MOSTLY * len(given) and RARELY * len(bare) > len(texts)
        )
        if self._doubled:
            return f"times are read as {way.name}; levels and messages stand on the lines behind them"
        if not way.timed:
            return f"its lines begin with {way.name}, and have no times"
        if not self._joins:
            return f"times are read as {way.name}; a line without one is a message of its own"
        return f"times are read as {way.name}; a line without one has that of the line before it"

    def _carrying(self, given: Sequence[str]) -> str:
        """What lines are that carry others, or are of columns or entries; empty for others."""
        if any(map(self._names_columns, given)):
            return "rows of named columns"
        if given and given[0].startswith(f"{_CURSOR}="):
            self._exported = True
            return "entries of a journal's export"
        carried = [lead for text in given if (lead := _carrier(text)) is not None]
        if given and len(carried) >= MOSTLY * len(given) and self._pattern is None:
            self._carried = True
            self._parted = any("log" in lead and lead["rest"][-1:] == "\n" for lead in carried)
            return "those of containers, each behind a name or time"
        return ""

    def _names_columns(self, text: str) -> bool:
        """Whether a line names columns, or is a row of a server whose columns are known: they are noted."""
        if (found := _FIELDS.match(text)) is not None:
            text = text[found.end() :]
            self._separator = next((sign for sign in "\t," if sign in text), None)
            self._names = text.split(self._separator)
        elif (found := _SERVER.match(text)) is not None:
            self._separator, self._names = ",", _SERVERS[found[1]].split()
        elif text.count(",") > 2 and not self._names and text.count('"') % 2 == 0:
            with contextlib.suppress(RefusedError):
                if name_log(names := parse_row(text)):
                    self._separator, self._names, self._header = ",", [*names, "Message"], text
        return found is not None or bool(self._header)

    def _cells(self, at: Place, text: str) -> list[str] | None:
        """The cells of a row; None for a header, and for a line with which the row is not over."""
        if text == self._header or (text.startswith("#") and not at.row):
            self._names_columns(text)
            return None
        if self._separator != ",":
            return text.split(self._separator)
        text, at.row = at.row + text, ""
        if text.count('"') % 2 and len(text) < LONGEST:
            at.row = text + "\n"
            return None
        return parse_row(text)

    def _beginnings(self, texts: Sequence[str]) -> list[str]:
        """The lines that are of no trace, and go on with none."""
        trace = Trace()
        bare = [
            text
            for text in texts
            if any(way.pattern.match(text) for way in KNOWN)
            or not (trace.read(Held(text), apart=True) or text[:1] in GOES_ON)
        ]
        trace.end()
        return bare + [held.message for held, told in trace.ended if not told]

    def _learn_heads(self, way: Written, found: Sequence[re.Match[str]]) -> None:
        """Learn what stands behind the times that were found."""
        rest = [(match.string, match.end()) for match in found]
        again = [text[_blank_end(text, at) :] for text, at in rest]
        second = next(self._behind(again), None) if way.timed else None
        if second is not None:
            self._second = second[0]
            rest = [(match.string, match.end()) for match in second[1]]
        self._forms = forms_of(rest)
        for columns in COLUMNS:
            if sum(columns.match(*each) is not None for each in rest) > MOSTLY * len(rest):
                self._columns = columns
        numbers = [_numbers(*each) for each in rest]
        self.numbers = sorted(numbers)[int((1 - MOSTLY) * len(numbers))]

    def _learn_contents(self, way: Written, texts: Sequence[str]) -> None:
        """Learn whether messages are requests, or may be a talk."""
        reader = self.heads(way)
        heads = [head for text in texts if (head := reader.pattern.match(text)) is not None]
        requests = sum(REQUEST.match(head.string, head.end()) is not None for head in heads)
        self.requests = 2 * requests > len(heads)
        levels = sum(any(head.group(*reader.levels, 0)[:-1]) for head in heads)
        fractions = [reader.times[PARTS.index(part)] for part in ("f", "ms", "s")]
        exact = sum(any(head.group(*fractions)) for head in heads)
        exact += sum(_EXACT.match(head.string) is not None for head in heads)
        of_programs = self.requests or way.syslog or self._doubled or 2 * max(levels, exact) > len(heads)
        self.talks = way.timed and not of_programs
        behind = f"behind {'times as ' if way.timed else ''}{way.name}"
        self.form = f"{'requests' if self.requests else 'messages'} {behind}"

    def _way(self, texts: Sequence[str]) -> tuple[Written | None, list[re.Match[str]]]:
        """The commonest way in which lines begin, and where it was found."""
        ways = [(way, [found for text in texts if (found := way.pattern.match(text))]) for way in KNOWN]
        ways = [each for each in ways if each[1] and (each[0] is not EPOCH or _is_clock(each[1], len(texts)))]
        return max(ways, key=lambda each: len(each[1]), default=(None, []))

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
            if form is not None and written is self.written:
                form = form._replace(forms=self._forms)
            self._readers[way] = head_reader(form)
        return self._readers[way]

    def reading(self) -> tuple[HeadReader, bool, str | None]:
        """How ordinary lines are read: their heads, whether these hold a time, and in which zone.

        With a pattern none is ordinary.
        """
        heads = _NO_HEADS if self._pattern is not None else self.heads(self.written)
        return heads, self.timed, self._zone

    @property
    def timed(self) -> bool:
        """Whether lines begin with times."""
        return self.written is not None and self.written.timed

    @property
    def has_columns(self) -> bool:
        """Whether lines are rows of named columns."""
        return bool(self._names)

    @property
    def together(self) -> bool:
        """Whether lines may be read side by side."""
        return not (self._carried or self._names or self._paired or self._exported or self._doubled)

    def begins(self, data: bytes) -> bool:
        """Whether a line begins an event, and belongs to none before it."""
        text = plain(data.decode("utf-8", "replace"))
        way = self._pattern or (None if self.written is None else self.written.pattern)
        if text.startswith("{") or way is None or way.match(text) is not None:
            return True
        return self._pattern is None and not (self._joins or text[:1].isspace())

    def dates(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, re.Match[str]]]:
        """The times without a year in lines, with their numbers; of lines that begin alike the first."""
        before, known = b"", KNOWN if self._pattern is not None else ()
        ways = [way for way in ((self.written,) if self.written is not None else known) if not way.has_year]
        for number, line in lines if ways else ():
            if line[:12] != before:
                before, text = line[:12], plain(line.decode("utf-8", "replace"))
                if self._pattern is not None:
                    found = self._pattern.match(text)
                    text = "" if found is None else found.groupdict().get("time") or ""
                times = (way.pattern.match(text) for way in ways)
                yield from ((number, time) for time in times if time is not None)

    def arrival(self, position: Mapping[str, Any], arrival: float) -> float:
        """The time that says of which year a line is: that of its arrival, or one of ``years``."""
        years = self.years.get(position.get("file", ""))
        return years[bisect_right(years, (position["line"], math.inf)) - 1][1] if years else arrival

    def ordinary(self, place: object) -> bool:
        """Whether lines that come from there next and are ordinary can be read elsewhere, and passed over."""
        at = self._places.get(place)
        if at is None:
            return True
        return not (at.trace.busy or at.above or at.closes or (not self.timed and at.time is not None))

    def pass_over(self, place: object, time: float | None, kept: dict[str, Any] | None) -> None:
        """Ordinary lines came from there: the last one's time, and the fields kept of it."""
        at = self._places.setdefault(place, Place())
        at.time, at.kept, at.begun = at.time if time is None else time, kept, True

    def held(self, place: object) -> list[Raw]:
        """Lines from there of which something may still be told."""
        at = self._places.get(place)
        return [] if at is None else [held.raw for held in at.trace.held if held.raw is not None]

    def read(self, data: bytes, arrival: float, place: object = None, raw: Raw | None = None) -> Line | None:
        """The message, its time and the fields kept; None for a line of a trace, or one that goes on.

        ``overdue`` has what is known of such: events of traces, and lines that turned out to be messages.
        ``place`` says which file or partition the line is from. Raises RefusedError and UnicodeDecodeError.
        """
        text = plain(data.decode())
        at = self._places.get(place)
        if at is None:
            at = self._places[place] = Place()
        at.text, at.raw = text, raw
        if self._exported:
            return self._entry(at, text, arrival)
        if self._carried:
            outer, stream, more = self._unwrapped(text, arrival)
            before = at.parts.pop(stream, None)
            if before is not None:
                outer = before._replace(message=before.message + outer.message)
            if more and len(outer.message) < LONGEST:
                at.parts[stream] = outer
                return None
            return self._of_container(at, outer, arrival, stream)
        said: Said | None = None
        if self._names:
            if (cells := self._cells(at, text)) is None:
                return None
            said = self._of_fields(dict(zip(self._names, cells, strict=False)), arrival, self._zone)
        elif self._pattern is None or text.startswith("{"):
            said = self._inside(text, arrival, self._zone, ())
        if said is None and self._pattern is not None:
            return self._followed(at, text, self._by_pattern(text, arrival))
        if said is not None:
            return self._followed(at, text, self._line(said))
        if self.written is None:
            return self._followed(at, text, (text, None, None))
        said = self._headed(text, self.written, arrival, self._zone)
        above, at.above = at.above, ""
        if said is not None:
            at.closes = said.closes
            if not said.message or said.message.isspace() or (self._doubled and said.level is None):
                at.above = text
                return None
        elif above:
            at.text = text = f"{above} {text.strip()}"
            said = self._headed(text, self.written, arrival, self._zone)
            at.closes = None if said is None else said.closes
        elif at.closes is not None:
            text, closed = text.rstrip().removesuffix(at.closes), text.rstrip().endswith(at.closes)
            at.closes = None if closed else at.closes
            return self._followed(at, text, None, more=True) if text else None
        else:
            said = self._headed(text, _LEVELED, arrival, self._zone)
        return self._followed(at, text, None if said is None else self._line(said))

    def _line(self, said: Said) -> Line:
        return said.message, said.time, self.kept(said.level, said.component)

    def _followed(
        self, at: Place, text: str, line: Line | None, *, headed: bool = False, more: bool = False
    ) -> Line | None:
        """A line, unless it is of a trace or goes on with another, as with ``more``; ``headed``: what others
        carry."""
        more = line is None and (more or self._pattern is not None or (at.begun and text[:1] in GOES_ON))
        at.begun = True
        message, time, kept = (text, None, at.kept) if line is None else line
        if not at.trace.busy:
            text_value(message, "message")
        held = Held(message, at.time if time is None else time, kept, at.raw, line is not None)
        at.time, at.kept = held.time, kept
        apart = headed or self.written is not None or self._pattern is not None
        key = "" if line is None and not self._carried else _before(at.text, message)
        of_trace = at.trace.read(held, key, apart=apart, carried=self._carried)
        self._hear(at)
        if of_trace or more:
            return None
        return text_value(message, "message"), held.time, None if line is None else kept

    def _hear(self, at: Place) -> None:
        self.exceptions += sum(told for _, told in at.trace.ended)
        self.overdue += [
            held if told or held.headed else held._replace(kept=None) for held, told in at.trace.ended
        ]
        at.trace.ended.clear()

    def end(self, *, messages: bool = False) -> None:
        """Nothing follows for now: traces are over, and lines of which parts came.

        With ``messages`` only what began no trace for certain is over.
        """
        for at in self._places.values():
            at.trace.end(messages=messages)
            self._hear(at)
            if messages:
                continue
            for stream, outer in at.parts.items():
                if (line := self._of_container(at, outer, outer.time or 0.0, stream)) is not None:
                    self.overdue.append(Held(*line, at.raw))
            at.parts.clear()
            if at.entry:
                with contextlib.suppress(RefusedError):
                    line = self._entry(at, _CURSOR, 0.0)
                    self.overdue += [] if line is None else [Held(*line, at.raw)]
                at.entry = {}
            at.trace.end()
            self._hear(at)

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

    def _headed(self, text: str, written: Written, arrival: float, zone: str | None) -> Said | None:
        """What a line says behind a head of its own; None where it has none."""
        if written.pattern.match(text) is None:  # of a container's lines most ways of writing are none
            return None
        heads = self.heads(written)
        found = heads.pattern.match(text)
        if found is None:
            return None
        time = moment_of(found.group(*heads.times), arrival, self._zone or zone) if written.timed else None
        if time is None and written.timed:
            return None
        message, closes = text[found.end() :], None
        if (sign := next((sign for sign in CLOSED if text.endswith(sign, 0, found.end())), "")) and message:
            whole, message = message.strip(), message.strip().removesuffix(CLOSED[sign])
            closes = CLOSED[sign] if message == whole else None
        level, component = heads.level_and_component(found.group(*heads.parts))
        said = Said(message, time, level, component, closes)
        first, tab, fields = message.rstrip().partition("\t{")  # as zap writes them
        if tab and (record := object_of(b"{" + fields.encode())) is not None:
            return said._replace(message=told_by({**record, "MESSAGE": first})[0])
        inner = self._inside(message, time or arrival, zone, ())
        if inner is not None:
            return inner.within(said)
        return said._replace(message=requested(message) or message)

    def _inside(
        self, text: str, arrival: float, zone: str | None, ways: Sequence[Written] = INNER, depth: int = 0
    ) -> Said | None:
        """What a line says that is fields, or begins with a head of one of these ways; None for another."""
        if depth < DEEPEST and (record := fields_of(text)) is not None:
            return self._of_fields(record, arrival, zone, depth)
        for way in ways:
            if (said := self._headed(text, way, arrival, zone)) is not None:
                return said
        return None

    def _of_fields(self, record: Mapping[str, Any], arrival: float, zone: str | None, depth: int = 0) -> Said:
        """What the fields of a line say. Raises RefusedError."""
        written, at, level, component = told_by(record)
        message, time = plain(text_value(written, "message")), self._seconds(at, arrival)
        said = Said(message, time, level, component)
        near, zone = (arrival, zone) if time is None else (time, "UTC")
        try:
            inner = self._inside(message, near, zone, INNER, depth + 1)
        except RefusedError:
            inner = None
        if inner is None or not inner.message.strip():
            return said
        if inner.level is not None and "PRIORITY" in record:  # a journal's own guess
            said = said._replace(level=inner.level)
        return inner.within(said)

    def of_object(self, record: dict[str, Any], arrival: float) -> Line:
        """What the object of a line says. Raises RefusedError."""
        return self._line(self._of_fields(record, arrival, self._zone))

    def _unwrapped(self, text: str, arrival: float) -> tuple[Said, str, bool]:
        """The line of a container, its time and name; of which stream, and whether more of it is to come."""
        said, stream, more = Said(text, None), "", False
        for _ in range(DEEPEST):
            if (found := _carrier(said.message)) is None:
                break
            written, component = found.get("time"), found.get("component") or said.component
            time = said.time if written is None else _time_in(written, KNOWN, arrival, self._zone)
            rest, stream = found["rest"], f"{found.get('stream', stream)} {component}"
            more = found.get("part") == "P" or ("log" in found and self._parted and rest[-1:] != "\n")
            said = Said(plain(rest.rstrip("\r\n")), time, None, component)
        return said, stream, more

    def _entry(self, at: Place, text: str, arrival: float) -> Line | None:
        """The entry of a journal that ends where the next begins."""
        name, _, value = text.partition("=")
        entry = at.entry
        if name != _CURSOR:
            entry[name] = value
            return None
        at.entry = {name: value}
        return self._line(self._of_fields(entry, arrival, self._zone)) if entry else None

    def _of_container(self, at: Place, outer: Said, arrival: float, stream: str) -> Line | None:
        """What the whole line of a container says; None also for a head that its next line goes on with."""
        if not outer.message or outer.message.isspace():
            return None
        inner = self._inside(outer.message, outer.time or arrival, "UTC" if outer.time else self._zone)
        if inner is not None and not inner.message.strip():
            at.parts[stream] = outer._replace(message=f"{outer.message.rstrip()} ")
            return None
        if inner is None and at.headed and outer.message[:1].isspace():
            return self._followed(at, outer.message, None)
        at.headed = inner is not None
        said = outer if inner is None else inner._replace(component=inner.component or outer.component)
        time = said.time if outer.time is None else outer.time
        return self._followed(at, said.message, self._line(said._replace(time=time)), headed=True)

    def _seconds(self, written: object, arrival: float) -> float | None:
        """The time in a field."""
        if isinstance(written, str) and _NUMBER.fullmatch(written) is None:
            return _time_in(written, KNOWN, arrival, self._zone)
        known = isinstance(written, str | int | float) and not isinstance(written, bool)
        return in_seconds(float(written)) if known and abs(float(written)) < 1e19 else None  # type: ignore[arg-type]

    def kept(self, level: str | None, component: str | None) -> dict[str, Any] | None:
        """Level and component, as far as they are kept; None where nothing is."""
        held = {"level": level, "component": component}
        found = {name: kept_value(held[name], name) for name in self._keep if held.get(name) is not None}
        return found or None


def plain(text: str) -> str:
    """A line without colours and other signs that are not seen."""
    return _UNSEEN.sub("", text) if _UNSEEN.search(text) else text


def _before(text: str, message: str) -> str:
    """What stands before a message in a line but for times: of the lines of one trace it is the same."""
    before = "{" if text.startswith("{") else text.removesuffix(message)
    return f"{' '.join(_TIME.sub('', before).split())}|" if before else ""


def _carrier(text: str) -> dict[str, Any] | None:
    """What stands before the line of a container, and the ``rest``; None where nothing does."""
    if text.startswith("{"):
        record = object_of(text.encode())
        named = record if record is not None and {"log", "stream"} <= record.keys() else {}
        return {**named, "rest": named["log"]} if isinstance(named.get("log"), str) else None
    for carrier in CARRIERS:
        if (found := carrier.match(text)) is not None:
            return {**found.groupdict(), "rest": text[found.end() :]}
    return None


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


def _own_pattern(pattern: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern is no regular expression: {error}") from None
    if "message" not in made.groupindex:
        raise ValueError("pattern needs a group (?P<message>...)")
    return made


def _time_in(text: str, ways: Iterable[Written], arrival: float, zone: str | None) -> float | None:
    """The time with which a text begins; a word that follows is the name of its zone."""
    found = next((match for way in ways if (match := way.pattern.match(text)) is not None), None)
    if found is None:
        return None
    time, rest = moment(found, arrival, zone), text[found.end() :].strip()
    return in_utc(time, rest, zone) if time is not None and rest[:1].isalpha() else time
