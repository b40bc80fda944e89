"""Log records of OpenTelemetry, as OTLP has them in JSON: many in one object (docs/logs.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from streamdp.decode.fields import RefusedError, check_id, kept_value, text_value
from streamdp.decode.log import LogLines
from streamdp.decode.objects import fields_of
from streamdp.decode.outline import has_parts
from streamdp.records import Raw, Record, Reject

MOST = 100_000
"""Log records of one object: one of more is refused, since all of them are held at once."""

LARGEST = (16 << 20) - 1
"""Bytes of one object at most, if a single record may not have more: sources hold no more of a line."""

PARTS = 6_000_000
"""Objects, arrays and commas of one object: they are counted before any is made."""

WHOLE = 64 << 20
"""Bytes of all records of one object, each with its resource and scope: many may have the same large one."""

UID = "log.record.uid"
"""The attribute that is a record's id: OpenTelemetry calls records of the same one duplicates."""

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""What four severity numbers each are called, from 1."""

HEADS = ("level", "component")
_TRACE = "exception.stacktrace"
_NULL = msgspec.Raw(b"null")
_T = TypeVar("_T")


class Piece(NamedTuple):
    """A log record as it is written, and its resource and scope; or what is none, and why."""

    data: bytes
    resource: bytes = b"null"
    scope: bytes = b"null"
    refused: RefusedError | None = None

    @property
    def size(self) -> int:
        """Bytes of it alone."""
        return len(self.data) + len(self.resource) + len(self.scope)

    def alone(self) -> bytes:
        """An object that holds this record alone, on one line."""
        whole = b'{"resourceLogs":[{"resource":%b,"scopeLogs":[{"scope":%b,"logRecords":[%b]}]}]}'
        return (whole % (self.resource, self.scope, self.data)).replace(b"\n", b" ").replace(b"\r", b" ")


class _OfResource(msgspec.Struct, gc=False, rename="camel"):
    resource: msgspec.Raw = _NULL
    scope_logs: list[msgspec.Raw] | None = None


class _OfScope(msgspec.Struct, gc=False, rename="camel"):
    scope: msgspec.Raw = _NULL
    log_records: list[msgspec.Raw] | None = None


class _Attribute(msgspec.Struct, gc=False):
    key: str = ""
    value: Any = None


class _About(msgspec.Struct, gc=False):
    """A resource, or a scope."""

    name: str | None = None
    attributes: list[_Attribute] | None = None


_Nanoseconds = int | float | str | None


class _LogRecord(msgspec.Struct, gc=False, rename="camel"):
    time_unix_nano: _Nanoseconds = None
    observed_time_unix_nano: _Nanoseconds = None
    severity_number: Any = None
    severity_text: str | None = None
    body: Any = None
    attributes: list[_Attribute] | None = None
    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None


_list = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
_of_resource = msgspec.json.Decoder(_OfResource).decode
_of_scope = msgspec.json.Decoder(_OfScope).decode
_about = msgspec.json.Decoder(_About | None).decode
_log_record = msgspec.json.Decoder(_LogRecord).decode
_encode = msgspec.json.Encoder().encode


def pieces(data: bytes) -> list[Piece]:
    """The log records of an object in their order, and what stands where some should.

    Raises RefusedError or UnicodeDecodeError.
    """
    if not data.isascii():
        data.decode()
    if has_parts(data, PARTS):
        raise RefusedError("too_large", f"it holds more than {PARTS:,} values")
    found = fields_of(data)
    if "resourceLogs" not in found:
        named = ", ".join(map(repr, list(found)[:3])) or "nothing"
        raise RefusedError("missing_field", f"it has no 'resourceLogs', as OTLP has them, but {named}")
    made: list[Piece] = []
    for of_resource in _read(_list, found["resourceLogs"], "resourceLogs") or ():
        try:
            resource = _read(_of_resource, of_resource, "resourceLogs")
        except RefusedError as refused:
            made.append(Piece(bytes(of_resource), refused=refused))
            continue
        about = bytes(resource.resource)
        for of_scope in resource.scope_logs or ():
            try:
                scope = _read(_of_scope, of_scope, "scopeLogs")
            except RefusedError as refused:
                made.append(Piece(bytes(of_scope), about, refused=refused))
                continue
            inside = bytes(scope.scope)
            made += (Piece(bytes(record), about, inside) for record in scope.log_records or ())
            if len(made) > MOST:
                raise RefusedError("too_large", f"it holds more than {MOST:,} log records")
    return bounded(made)


def bounded(made: list[Piece]) -> list[Piece]:
    """The same, unless they are too many bytes one by one. Raises RefusedError."""
    if sum(piece.size for piece in made) > WHOLE:
        raise RefusedError("too_large", f"one by one, its log records have more than {WHOLE:,} bytes")
    return made


def _read(decode: Callable[[bytes], _T], data: bytes, name: str) -> _T:
    """What a part is. Raises RefusedError."""
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        raise RefusedError("wrong_type", f"in {name!r}: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError("not_json", f"in {name!r}: {error}") from None


class LogRecord(NamedTuple):
    """What is read of a log record: ``attributes`` are its own, those of its scope and of its resource."""

    text: str
    time: float | None
    told: Mapping[str, Any]
    attributes: tuple[Mapping[str, Any], ...]

    def __getitem__(self, name: Any) -> Any:
        """What is told under a name; else an attribute; else None."""
        if (found := self.told.get(name)) is not None:
            return found
        held = next((each[name] for each in self.attributes if name in each), None)
        if held is None and name == HEADS[1]:
            return self["service.name"]
        return plain(held)

    @property
    def id(self) -> str | None:
        """Its id, if it has one."""
        found = self[UID]
        if found is None or found == "":
            return None
        if len(written := found if isinstance(found, str) else _encode(found).decode()) > 1000:
            check_id(written)
        return written

    def kept(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Those of the names that it has."""
        found = ((name, self[name]) for name in names)
        return {name: kept_value(value, name) for name, value in found if value is not None}

    def object(self) -> dict[str, Any]:
        """The record as the object of a log's line."""
        heads = {name: self[name] for name in HEADS}
        found = {"message": self.text, "time": self.time, **heads, "stack_trace": self[_TRACE]}
        return {name: value for name, value in found.items() if value is not None}

    def line(self) -> bytes:
        """The same as that line."""
        return _encode(self.object())


class LogRecords:
    """Reads records of OTLP, of one source.

    The text of a record is its body, what is no string as JSON; the name of its event where it has no body.
    A time, level and component that the text begins with, and a stack trace, are read as of a log's line.
    ``keep`` may name the ``level``, the ``component`` (the scope, or ``service.name``), ``traceId``,
    ``spanId``, ``eventName``, ``severityNumber``, and attributes.
    """

    def __init__(
        self, keep: tuple[str, ...] = (), max_bytes: int = 1_000_000, zone: str | None = None
    ) -> None:
        self._keep, self._max_bytes = keep, max_bytes
        self._lines = LogLines(None, None, HEADS, zone)
        self._known: dict[int, tuple[bytes, _About]] = {}

    def read(self, raw: Raw) -> list[Record | Reject]:
        """All records of an object in their order, and what is refused in its place; or why it is none.

        The position of each is that of the object, and its number in it: ``record``, from 1.
        """
        data = raw.data
        try:
            if raw.refused:
                raise RefusedError("unreadable", raw.refused)
            if len(data) > (most := max(LARGEST, self._max_bytes)):
                raise RefusedError("too_large", f"it has {len(data)} bytes; the limit is {most}")
            found = pieces(data)
        except RefusedError as refused:
            return [Reject(raw.position, refused.reason, refused.detail, data)]
        except UnicodeDecodeError as error:
            return [Reject(raw.position, "not_utf8", f"byte {error.start} is not UTF-8", data)]
        return [
            self._one(piece, {**raw.position, "record": number}, raw) for number, piece in enumerate(found, 1)
        ]

    def _one(self, piece: Piece, position: dict[str, Any], raw: Raw) -> Record | Reject:
        try:
            record = self.of(piece)
            message, time, heads = self._lines.of_object(record.object(), raw.arrival)
            named = {name: value for name, value in (heads or {}).items() if name in self._keep}
            keep = record.kept(self._keep) | named
            identity = record.id
        except RefusedError as refused:
            return Reject(position, refused.reason, refused.detail, piece.data)
        return Record(
            message,
            position,
            raw.time if time is None else time,
            identity,
            raw.arrival,
            keep if self._keep else None,
            piece.data,
        )

    def of(self, piece: Piece) -> LogRecord:
        """What a piece says. Raises RefusedError."""
        if piece.refused is not None:
            raise piece.refused
        if piece.size > self._max_bytes:
            raise RefusedError(
                "too_large",
                f"with resource and scope the record has {piece.size} bytes; the limit is {self._max_bytes}",
            )
        read = _read(_log_record, piece.data, "logRecords")
        scope, resource = self._about(0, piece.scope, "scope"), self._about(1, piece.resource, "resource")
        number = read.severity_number
        if type(number) is not int or not 1 <= number <= 4 * len(LEVELS):
            number = None
        told = {
            "level": read.severity_text or (None if number is None else LEVELS[(number - 1) // 4]),
            "component": scope.name or None,
            "severityNumber": number,
            "traceId": read.trace_id or None,
            "spanId": read.span_id or None,
            "eventName": read.event_name or None,
        }
        time = _seconds(read.time_unix_nano, "timeUnixNano")
        if time is None:
            time = _seconds(read.observed_time_unix_nano, "observedTimeUnixNano")
        attributes = tuple(
            {each.key: each.value for each in part or ()}
            for part in (read.attributes, scope.attributes, resource.attributes)
        )
        return LogRecord(_text(read), time, told, attributes)

    def _about(self, which: int, data: bytes, name: str) -> _About:
        """A scope or a resource; records that follow each other have the same."""
        known = self._known.get(which)
        if known is None or known[0] is not data:
            known = self._known[which] = data, _read(_about, data, name) or _About()
        return known[1]


def _text(read: _LogRecord) -> str:
    """The text of a record."""
    body = plain(read.body)
    if body is None:
        if not read.event_name:
            raise RefusedError("missing_field", "the record has no body")
        return text_value(read.event_name, "eventName")
    return text_value(body if isinstance(body, str) else _encode(body).decode(), "body")


def _seconds(nanoseconds: _Nanoseconds, name: str) -> float | None:
    """Seconds since 1970; None where it is not known, as 0 says."""
    if isinstance(nanoseconds, str):
        if not (nanoseconds.isascii() and nanoseconds.isdigit() and len(nanoseconds) <= 20):
            raise RefusedError("bad_time", f"{name!r} is no number of nanoseconds: {nanoseconds[:40]!r}")
        nanoseconds = int(nanoseconds)
    if not nanoseconds:
        return None
    if not 0 < nanoseconds < 2**64:
        raise RefusedError("bad_time", f"{name!r} is no time since 1970: {nanoseconds}")
    return nanoseconds / 1e9


def plain(value: Any) -> Any:
    """What a value of OTLP holds, as JSON has it. Raises RefusedError."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise RefusedError("wrong_type", 'a value is an object such as {"stringValue": ...}')
    try:
        return next((read(value[kind]) for kind, read in _KINDS.items() if value.get(kind) is not None), None)
    except RecursionError:
        raise RefusedError("not_json", "a value is nested too deeply") from None


def _of(kind: type, name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise RefusedError("wrong_type", f"{name!r} holds {type(value).__name__}")
        return value

    return read


def _whole(value: Any) -> int:
    try:
        return int(value) if isinstance(value, str) else _of(int, "intValue")(value)
    except ValueError:
        raise RefusedError("wrong_type", f"'intValue' is no whole number: {value[:40]!r}") from None


def _number(value: Any) -> float | str:
    """A number; NaN and infinities, which JSON lacks, are texts."""
    return value if isinstance(value, str) else _of(int | float, "doubleValue")(value)  # type: ignore[arg-type]


def _values(value: Any) -> list[Any]:
    found: Any = _of(dict, "arrayValue")(value).get("values")
    return [] if found is None else _of(list, "values")(found)


def _fields(value: Any) -> dict[str, Any]:
    pairs = [_of(dict, "kvlistValue")(each) for each in _values(value)]
    return {str(pair.get("key", "")): plain(pair.get("value")) for pair in pairs}


_KINDS: dict[str, Callable[[Any], Any]] = {
    "stringValue": _of(str, "stringValue"),
    "boolValue": _of(bool, "boolValue"),
    "intValue": _whole,
    "doubleValue": _number,
    "arrayValue": lambda value: [plain(each) for each in _values(value)],
    "kvlistValue": _fields,
    "bytesValue": _of(str, "bytesValue"),
}
