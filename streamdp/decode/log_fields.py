"""Lines of a log that are fields, as objects, pairs or columns: one table of which field is what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from streamdp.decode.fields import RefusedError
from streamdp.decode.log_heads import EVENT, PAIRED, level_name
from streamdp.decode.log_times import LEVEL
from streamdp.decode.log_traces import Held, Trace
from streamdp.decode.objects import plain_fields

Path = tuple[str, ...]


def _paths(names: str) -> tuple[Path, ...]:
    """Names as they may be written: as one, or as names of objects in each other."""
    found = [(name, tuple(name.split("."))) for name in names.split()]
    return tuple(path for name, parts in found for path in ((name,), parts)[: len(parts)])


MESSAGES = _paths(
    "MESSAGE log message msg @m RenderedMessage @mt MessageTemplate Message fields.message textPayload "
    "jsonPayload.message jsonPayload.msg jsonPayload.MESSAGE short_message eventMessage resultDescription "
    "MSG logMessage event text body error.message error err alert.signature eventName operationName "
    "protoPayload.methodName"
)
TIMES = (
    ("Date and Time",),
    *_paths(
        "__REALTIME_TIMESTAMP time ts timestamp @timestamp @t asctime Timestamp t.$date instant.epochSecond "
        "eventTime datetime time_local time_iso8601 TimeCreated StartUTC EdgeStartTimestamp "
        "requestReceivedTimestamp lastTimestamp started_at TIMESTAMP logTime date t"
    ),
)
NANOSECONDS = _paths("instant.nanoOfSecond")
LEVELS = _paths(
    "level severity log.level PRIORITY @l levelname LevelDisplayName Level lvl LogLevel jsonPayload.level "
    "loglevel logLevel log_level LEVEL severityLevel messageType s"
)
COMPONENTS = _paths(
    "component SYSLOG_IDENTIFIER _COMM logger log.logger logger_name loggerName SourceContext Category "
    "Properties.SourceContext ProviderName winlog.provider_name subsystem target c name jsonPayload.logger "
    "jsonPayload.component labels.component module app app_name service category "
    "protoPayload.serviceName Source"
)
TRACES = _paths(
    "stack_trace stacktrace stack exception exc_info error.stack_trace traceback @x Exception err.stack "
    "error.stack exc_text thrown.extendedStackTrace jsonPayload.stack_trace"
)
METHODS = _paths(
    "method cs-method request_method http.request.method httpRequest.requestMethod RequestMethod "
    "request.method req.method request_verb ClientRequestMethod verb"
)
PATHS = _paths(
    "path cs-uri-stem cs-uri request_uri uri url url.path httpRequest.requestUrl RequestPath request.uri "
    "request.url req.url request_url ClientRequestURI requestURI"
)
STATUSES = _paths(
    "status sc-status status_code http.response.status_code httpRequest.status StatusCode DownstreamStatus "
    "response.status res.statusCode elb_status_code EdgeResponseStatus responseStatus.code"
)
"""Fields by what they hold, the best first."""

FORMS = tuple(
    tuple(names.split())
    for names in (
        "__REALTIME_TIMESTAMP MESSAGE",
        "log stream time",
        "textPayload timestamp",
        "jsonPayload timestamp",
        "@t @mt",
        "@t @m",
        "CEF msg",
        "short_message host timestamp",
        "eventMessage eventType",
        "severityLevel message",
        "reqId remoteAddr message",
        "eventTime eventName",
        "resourceId operationName",
        "resultDescription category",
        "event_type flow_id",
    )
)
"""Fields that tell a log from other objects without a level."""

_LEVEL = re.compile(
    rf"(?i:{LEVEL}|informational|information|default|fault|[TVDIWEF]|D[1-5]|10|20|30|40|50|60)"
)
"""Levels as programs write them to objects; pino and bunyan number them."""

SCALES = {
    "severityLevel": "VERBOSE INFO WARN ERROR FATAL",
    "reqId": "DEBUG INFO WARN ERROR FATAL",
    "EventID": "INFO FATAL ERROR WARN INFO VERBOSE",
    "CEF": "INFO INFO INFO INFO WARN WARN WARN ERROR ERROR FATAL FATAL",
}
"""Names of levels from 0 on, where a field tells that they are no numbers of syslog: of Azure, Nextcloud,
Windows, CEF."""

_CALLED = re.compile(r"(?i:(?:[a-z]+ )?(?:request|access)s?(?: [a-z]+)?)?")
"""Messages that say no more of a request than that there was one."""

_PAIR = re.compile(r'\s*+([A-Za-z_@][\w.@/-]*+)=("(?:[^"\\]|\\.)*+"|[^\s"]*+(?=\s|\Z))', re.ASCII)
_PAIRED = re.compile(r"(?:[\w.@/-]+=\S* ){0,6}(?:" + PAIRED + ")=")
_UNIQUE = ("level", "lvl", "time", "ts", "msg")
_EVENT = re.compile(
    EVENT + r"[^|]*+\|(?P<component>[^|]*+)\|[^|]*+\|[^|]*+\|(?P<name>[^|]*+)\|(?P<level>[^|]*+)\|"
)
_RECEIVED = re.compile(r"\b(?:rt|end|start)=(\d{13})\b")

_ASKED = r'"(?P<method{0}>[A-Z]{{3,10}}) (?P<path{0}>\S+)(?: [A-Z]+/[\d.]+)?"'
_CLIENT = r"(?:[^\s.:]*[.:]\S* (?:\S+ ){0,4}?)?(?:\[[^\]]+\] )?"
_TARGETS = r"\S+ (?:\S+ )?\S+:\d+ \S+ [\d.-]+ [\d.-]+ [\d.-]+"
REQUEST = re.compile(
    _CLIENT + _ASKED.format(1) + r" (?P<status1>\d{3})\b"
    rf"|{_TARGETS} (?P<status2>\d{{3}}) \S+ \S+ \S+ " + _ASKED.format(2) +
    r"|\S+:\d+ \[[^\]]+\] \S+ \S+ [\d/+-]+ (?P<status3>\d{3}) .*?" + _ASKED.format(3) +
    r"|(?:\d+ )?\S+ [A-Z_]+/(?P<status4>\d{3}) \d+ (?P<method4>[A-Z]{3,10}) (?P<path4>\S+)"
    r'|(?P<status5>\d{3}) \|[^|]*+\|[^|]*+\| (?P<method5>[A-Z]{3,10}) +"(?P<path5>[^"]++)"',
    re.ASCII,
)  # fmt: skip
"""A request and its status: of Apache, nginx and others; AWS; HAProxy; Squid; Gin."""


def values(record: Mapping[str, Any], paths: Iterable[Path]) -> Iterator[Any]:
    """What fields of one kind hold, that is there and no object."""
    for path in paths:
        value: Any = record
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None and not isinstance(value, Mapping):
            yield value


def of_a_log(record: Mapping[str, Any]) -> bool:
    """Whether fields are a line of a log: a message with a time and a level of logs, or a request."""
    if any(all(name in record for name in names) for names in FORMS):
        return True
    if next(values(record, TIMES), None) is None:
        return False
    known = _LEVEL.fullmatch(str(next(values(record, LEVELS), "")))
    return bool(known and next(values(record, MESSAGES), None)) or _request(record) is not None


def name_log(names: Sequence[str]) -> bool:
    """Whether columns are those of a log: of times, of levels and of messages or kinds of events."""
    held = dict.fromkeys(names, "")
    said = "Event ID" in held or any(True for _ in values(held, MESSAGES))
    return said and all(any(True for _ in values(held, paths)) for paths in (TIMES, LEVELS))


def object_of(data: bytes) -> dict[str, Any] | None:
    """The object that a line is; None for another line."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        try:
            found = plain_fields(data)
        except (RefusedError, UnicodeDecodeError):
            return None
    return found if isinstance(found, dict) else None


def fields_of(text: str) -> dict[str, Any] | None:
    """The fields that a line is, an object, CEF or pairs of logfmt; None for another line."""
    if text.startswith("{"):
        if '"=>' in text:  # as Ruby writes it, and Fluent Bit
            text = text.replace('"=>', '":').rstrip("]")
        return object_of(text.encode("utf-8", "surrogatepass")) if text.rstrip().endswith("}") else None
    event = _EVENT.match(text)
    if event is None:
        return pairs_of(text)
    at = _RECEIVED.search(text, event.end())
    return {
        **event.groupdict(),
        "CEF": "",
        "msg": f"{event['name']} {text[event.end() :]}",
        "ts": at and at[1],
    }


def pairs_of(text: str) -> dict[str, Any] | None:
    """The pairs that a line of logfmt is; None for another line."""
    if _PAIRED.match(text) is None:
        return None
    found: dict[str, Any] = {}
    at = 0
    while (pair := _PAIR.match(text, at)) is not None:
        name, value, at = pair[1], pair[2], pair.end()
        if value.startswith('"'):
            quoted = object_of(b'{"a":%b}' % value.encode())
            value = quoted["a"] if quoted else value[1:-1]
        found.setdefault(name, value)
    known = sum(name in found for name in _UNIQUE) > 1 or _request(found) is not None
    return found if known and not text[at:].strip() else None


def told_by(record: Mapping[str, Any]) -> tuple[str, Any, str | None, str | None]:
    """Message, time as it is written, level and component. Raises RefusedError where there is no message."""
    level = next((each for each in values(record, LEVELS) if _LEVEL.fullmatch(str(each))), None)
    level = next(values(record, LEVELS[:-2]), None) if level is None else level
    time = next(values(record, TIMES), None)
    if time is not None and "date" in record and "time" in record:
        time = f"{record['date']} {record['time']}"
    nanos = next(values(record, NANOSECONDS), None)
    if type(time) is int and type(nanos) is int:
        time += nanos / 1e9
    message = _message(record)
    if message is None or _CALLED.fullmatch(message):
        message = _request(record) or message or None
    if message is None:
        if time is None and level is None:
            names = ", ".join(path[0] for path in MESSAGES[:5])
            raise RefusedError("missing_field", f"none of {names} and the like holds its message")
        told = {path[0] for paths in (TIMES, LEVELS, COMPONENTS) for path in paths} | {"caller", "source"}
        message = " ".join(f"{name}={value}" for name, value in record.items() if name not in told)
    scale = next((names.split() for field, names in SCALES.items() if field in record), [])
    named = None if level is None else level_name(str(level))
    if str(level).isdecimal() and int(str(level)) < len(scale):
        named = scale[int(str(level))]
    if level is None and "@t" in record:
        named = "Information"
    component = next(values(record, COMPONENTS), None)
    return _with_exception(message, record), time, named, None if component is None else str(component)


def _message(record: Mapping[str, Any]) -> str | None:
    for value in values(record, MESSAGES):
        if isinstance(value, list):  # journalctl: bytes that are no text
            data = bytes(b for b in value if isinstance(b, int) and 0 <= b < 256)
            return data.decode("utf-8", "replace")
        if isinstance(value, str):
            return (
                _filled(value, record)
                if value in (record.get("@mt"), record.get("MessageTemplate"))
                else value
            )
    return None


_PLACE = re.compile(r"\{\{|\}\}|\{[@$]?(\w+)(?:,-?\d+)?(?::[^{}]*)?\}")


def _filled(template: str, record: Mapping[str, Any]) -> str:
    """A template of Serilog with the values of its properties."""
    held = record.get("Properties")
    held = held if isinstance(held, Mapping) else record
    return _PLACE.sub(lambda place: str(held.get(place[1], place[0])) if place[1] else place[0][0], template)


def _with_exception(message: str, record: Mapping[str, Any]) -> str:
    """A message, and the exception whose trace is in its further lines or in a field of its own."""
    first, _, further = message.rstrip("\r\n").partition("\n")
    if not further:
        traces = (
            "\n".join(map(str, each)) if isinstance(each, list) else each for each in values(record, TRACES)
        )
        further = next((each for each in traces if isinstance(each, str)), "")
    if not further:
        return first
    trace = Trace()
    for number, line in enumerate([first, *further.split("\n")]):
        trace.read(Held(line, number))
    trace.end()
    found = next((held for held, told in trace.ended if told), None)
    if found is None:
        return message.rstrip("\r\n")
    return f"{first} {found.message}" if found.time else found.message


def _request(record: Mapping[str, Any]) -> str | None:
    method, path, status = (next(values(record, names), None) for names in (METHODS, PATHS, STATUSES))
    if method is None and isinstance(asked := record.get("request"), str) and asked.count(" ") == 2:
        method, path, _ = asked.split(" ")
    return (
        None
        if None in (method, path, status) or method == "-"
        else request_of(str(method), str(path), str(status))
    )


def requested(message: str, at: int = 0) -> str | None:
    """The request that a line of an access log is about; None for another line."""
    found = REQUEST.match(message, at)
    if found is None:
        return None
    parts = found.groupdict()
    return request_of(
        *(
            next(filter(None, (parts[f"{name}{n}"] for n in range(1, 6))))
            for name in ("method", "path", "status")
        )
    )


def request_of(method: str, path: str, status: str) -> str:
    """A request as one word, so that different ones never become one template: without host and query."""
    path = re.sub(r"^[a-z]+://[^/]+", "", path).partition("?")[0] or "/"
    try:
        said = HTTPStatus(int(status)).phrase
    except ValueError:
        said = status
    return f"{method}@{re.sub('[][(){}<>,;:=]', '_', path)}#{re.sub('[^A-Za-z0-9]', '', said)}"
