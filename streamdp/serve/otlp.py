"""How OpenTelemetry's protocol writes requests and answers: as JSON, or as protobuf."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from starlette.responses import Response

from streamdp.decode.fields import RefusedError
from streamdp.decode.otlp import Piece, bounded, pieces
from streamdp.page.api import AskError
from streamdp.serve.bodies import MOST

_encode = msgspec.json.Encoder().encode


class Form(Protocol):
    """How requests and answers are written."""

    kind: str

    def pieces(self, body: bytes) -> list[Piece]:
        """The log records of a request. Raises AskError, RefusedError or UnicodeDecodeError."""

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

    def pieces(self, body: bytes) -> list[Piece]:
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

    def pieces(self, body: bytes) -> list[Piece]:
        """The log records of a request."""
        messages = _messages()
        from google.protobuf.message import DecodeError

        try:
            request = messages.ExportLogsServiceRequest.FromString(body)
        except DecodeError:
            raise AskError(400, "the body is no protobuf of logs: nothing was taken") from None
        count = sum(len(scope.log_records) for each in request.resource_logs for scope in each.scope_logs)
        if count > MOST:
            raise RefusedError("too_large", f"it holds more than {MOST:,} log records")
        found: list[Piece] = []
        for of_resource in request.resource_logs:
            resource = _encode(_about(of_resource.resource))
            for of_scope in of_resource.scope_logs:
                scope = _encode(_about(of_scope.scope) | _filled(name=of_scope.scope.name))
                found += (Piece(_encode(_record(each)), resource, scope) for each in of_scope.log_records)
        return bounded(found)

    def success(self, refused: int, said: str) -> bytes:
        """That records were taken, but for so many."""
        response = _messages().ExportLogsServiceResponse()
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
    """The definitions of requests and answers. Raises AskError where their package is missing."""
    try:
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    except ImportError:
        raise AskError(
            415, "protobuf needs one more package here (pip install 'streamdp[otlp]'): send application/json"
        ) from None
    return logs_service_pb2


def _filled(**parts: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in parts.items() if value}


def _about(message: Any) -> dict[str, Any]:
    return _filled(attributes=_attributes(message.attributes))


def _attributes(pairs: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"key": pair.key, "value": _value(pair.value)} for pair in pairs]


def _record(record: Any) -> dict[str, Any]:
    """A log record as it is in JSON."""
    found = _filled(
        timeUnixNano=record.time_unix_nano,
        observedTimeUnixNano=record.observed_time_unix_nano,
        severityNumber=record.severity_number,
        severityText=record.severity_text,
        attributes=_attributes(record.attributes),
        traceId=record.trace_id.hex(),
        spanId=record.span_id.hex(),
        eventName=getattr(record, "event_name", ""),
    )
    return found | ({"body": _value(record.body)} if record.HasField("body") else {})


def _value(value: Any) -> dict[str, Any]:
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
            return {"arrayValue": {"values": [_value(each) for each in value.array_value.values]}}
        case "kvlist_value":
            return {"kvlistValue": {"values": _attributes(value.kvlist_value.values)}}
        case "bytes_value":
            return {"bytesValue": base64.b64encode(value.bytes_value).decode()}
    return {}


def _number(number: float) -> float | str:
    """What JSON has no number for is a text."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
