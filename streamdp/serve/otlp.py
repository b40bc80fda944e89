"""How OpenTelemetry's protocol writes requests and answers: as JSON, or as protobuf."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import msgspec
from starlette.responses import Response

from streamdp.decode.fields import RefusedError
from streamdp.decode.otlp import Piece, bounded, pieces
from streamdp.errors import how_to_install
from streamdp.page.errors import AskError
from streamdp.serve.bodies import MOST

VALUES = 500_000
"""Attributes, and elements of arrays, of a body of protobuf: they are counted before any is converted."""

_encode = msgspec.json.Encoder().encode


class Form(Protocol):
    """How requests and answers are written."""

    kind: str

    def pieces(self, body: bytes, most: int) -> list[Piece]:
        """The log records of a request; those of more than ``most`` bytes may be left unread.

        Raises AskError, RefusedError or UnicodeDecodeError.
        """

    def success(self, refused: int, said: str) -> bytes:
        """That records were taken, but for so many."""

    def failure(self, message: str) -> bytes:
        """Why nothing was taken."""

    def response(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        """An answer."""
        return Response(body, status, {"cache-control": "no-store", **(headers or {})}, self.kind)


class JsonForm(Form):
    """As JSON."""

    kind = "application/json"

    def pieces(self, body: bytes, most: int) -> list[Piece]:
        """The log records of a request."""
        return pieces(body)

    def success(self, refused: int, said: str) -> bytes:
        """That records were taken, but for so many: numbers of 64 bits are strings in this JSON."""
        if not said:
            return b"{}"
        return _encode({"partialSuccess": {"rejectedLogRecords": str(refused), "errorMessage": said}})

    def failure(self, message: str) -> bytes:
        """Why nothing was taken."""
        return _encode({"message": message})


class ProtobufForm(Form):
    """As protobuf, by the package that OpenTelemetry makes of its definitions."""

    kind = "application/x-protobuf"

    def pieces(self, body: bytes, most: int) -> list[Piece]:
        """The log records of a request, one message made at a time."""
        of = _messages()
        from google.protobuf.message import DecodeError

        parts, values = Allowed(10 * MOST, "parts"), Allowed(VALUES, "attributes and values")
        records = Allowed(MOST, "log records")
        found: list[Piece] = []
        try:
            for each in _fields(memoryview(body), parts).get(1, ()):
                of_resource = _fields(each, parts)
                resource = _written(of.resource, of_resource.get(1, ()), most, _about, values)
                for inside in of_resource.get(2, ()):
                    of_scope = _fields(inside, parts)
                    scope = _written(of.scope, of_scope.get(1, ()), most, _about, values)
                    for record in of_scope.get(2, ()):
                        records.take()
                        if len(record) > most:
                            said = f"the record has {len(record)} bytes; the limit is {most}"
                            found.append(Piece(b"", refused=RefusedError("too_large", said)))
                        else:
                            data = _written(of.record, [record], most, _record, values)
                            found.append(Piece(data, resource, scope))
        except (DecodeError, LookupError):
            raise AskError(400, "the body is no protobuf of logs: nothing was taken") from None
        return bounded(found)

    def success(self, refused: int, said: str) -> bytes:
        """That records were taken, but for so many."""
        response = _messages().response()
        if said:
            response.partial_success.rejected_log_records = refused
            response.partial_success.error_message = said
        found: bytes = response.SerializeToString()
        return found

    def failure(self, message: str) -> bytes:
        """Why nothing was taken: a ``google.rpc.Status``, of which the message is field 2."""
        text = message.encode()
        size, length = len(text), bytearray()
        while size > 127:
            length.append(size & 127 | 128)
            size >>= 7
        return b"\x12" + bytes([*length, size]) + text


JSON = JsonForm()
FORMS: dict[str, Form] = {form.kind: form for form in (JSON, ProtobufForm())}
"""Forms by content type."""


def _messages() -> Any:
    """The definitions of what is made. Raises AskError where their package is missing."""
    try:
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
        from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
        from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
        from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    except ImportError:
        raise AskError(
            415, f"protobuf needs one more package here ({how_to_install('otlp')}): send application/json"
        ) from None
    response = logs_service_pb2.ExportLogsServiceResponse
    return SimpleNamespace(response=response, resource=Resource, scope=InstrumentationScope, record=LogRecord)


class Allowed:
    """So many of something in a body, and of these so many in one place as it may have records."""

    def __init__(self, most: int, what: str) -> None:
        self._most, self._left, self._what = most, most, what

    def take(self, count: int = 1) -> None:
        """Take some. Raises RefusedError where there are none left."""
        self._left -= count
        if self._left < 0 or count > MOST:
            most = self._most if self._left < 0 else MOST
            raise RefusedError("too_large", f"it holds more than {most:,} {self._what}")


def _fields(data: memoryview, parts: Allowed) -> dict[int, list[memoryview]]:
    """The parts of a message that have a length, by number; IndexError where they are cut off."""
    found: dict[int, list[memoryview]] = {}
    at = 0
    while at < len(data):
        parts.take()
        tag, at = _varint(data, at)
        size, at = _varint(data, at) if tag & 7 in (0, 2) else ({1: 8, 5: 4}[tag & 7], at)
        if tag & 7 == 2:
            found.setdefault(tag >> 3, []).append(data[at : at + size])
        at += size if tag & 7 else 0
    if at > len(data):
        raise IndexError
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of protobuf, and the place after it."""
    found = shift = 0
    while data[at] > 127:
        if shift > 56:
            raise IndexError
        found |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return found | data[at] << shift, at + 1


def _written(
    of: Any, parts: Sequence[memoryview], most: int, told: Callable[[Any, Allowed], Any], values: Allowed
) -> bytes:
    """A message as JSON has it, made of its parts. Raises RefusedError."""
    data = b"".join(parts)
    if len(data) > most:
        raise RefusedError("too_large", f"a part of it has {len(data)} bytes; the limit is {most}")
    return _encode(told(of.FromString(data), values))


def _filled(**parts: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in parts.items() if value}


def _about(message: Any, values: Allowed) -> dict[str, Any]:
    """A resource or a scope."""
    return _filled(attributes=_attributes(message.attributes, values), name=getattr(message, "name", ""))


def _attributes(pairs: Sequence[Any], values: Allowed) -> list[dict[str, Any]]:
    values.take(len(pairs))
    return [{"key": pair.key, "value": _value(pair.value, values)} for pair in pairs]


def _record(record: Any, values: Allowed) -> dict[str, Any]:
    """A log record as it is in JSON."""
    found = _filled(
        timeUnixNano=record.time_unix_nano,
        observedTimeUnixNano=record.observed_time_unix_nano,
        severityNumber=record.severity_number,
        severityText=record.severity_text,
        attributes=_attributes(record.attributes, values),
        traceId=record.trace_id.hex(),
        spanId=record.span_id.hex(),
        eventName=getattr(record, "event_name", ""),
    )
    return found | ({"body": _value(record.body, values)} if record.HasField("body") else {})


def _value(value: Any, values: Allowed) -> dict[str, Any]:
    """A value as it is in JSON."""
    match value.WhichOneof("value"):
        case "string_value":
            return {"stringValue": value.string_value}
        case "bool_value":
            return {"boolValue": value.bool_value}
        case "int_value":
            return {"intValue": str(value.int_value)}
        case "double_value":
            return {"doubleValue": _number(value.double_value)}
        case "array_value":
            inside = value.array_value.values
            values.take(len(inside))
            return {"arrayValue": {"values": [_value(each, values) for each in inside]}}
        case "kvlist_value":
            return {"kvlistValue": {"values": _attributes(value.kvlist_value.values, values)}}
        case "bytes_value":
            return {"bytesValue": base64.b64encode(value.bytes_value).decode()}
    return {}


def _number(number: float) -> float | str:
    """What JSON has no number for is a text."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
