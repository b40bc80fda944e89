"""The document of OpenAPI: the paths here, what they take and answer by the types of their answers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from streamdp._version import __version__
from streamdp.questions.answers import Answer, ErrorBody
from streamdp.questions.questions import KINDS, Kind
from streamdp.state.corrections import SHAPES, CorrectionRequest, What

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"
PROTOBUF = "application/x-protobuf"


class Operation(NamedTuple):
    """What a path takes and answers. ``takes`` and ``answers`` are schemas by content type."""

    path: str
    method: str
    summary: str
    answers: dict[str, Any]
    refusals: tuple[int, ...]
    parameters: Mapping[str, dict[str, Any]] = MappingProxyType({})
    takes: Mapping[str, Any] = MappingProxyType({})
    wrong: Any = ErrorBody
    also: tuple[int, ...] = ()
    """Further statuses with the same answers."""


_TEXT = {"type": "string"}
_LINES = {"type": "string", "pattern": "[^ \\t\\r\\n\\v\\f]"}
_ANY: dict[str, Any] = {}
_RECORDS = {"type": "array", "items": _ANY, "minItems": 1}
_BYTES = {"type": "string", "format": "binary"}
_TAKEN = {
    "type": "object",
    "properties": {
        "partialSuccess": {
            "type": "object",
            "properties": {"rejectedLogRecords": _TEXT, "errorMessage": _TEXT},
        }
    },
}

OPERATIONS = (
    Operation(
        "/v1/records",
        "post",
        "Take records, and answer them in order once they are safe",
        {JSON: Answer | list[Answer], LINES: _TEXT},
        (400, 413, 415, 429, 503, 507),
        takes={JSON: {"oneOf": [{"not": {"type": "array"}}, _RECORDS]}, LINES: _LINES, "text/plain": _LINES},
        also=(409, 422),
    ),
    Operation(
        "/v1/logs",
        "post",
        "Take log records as OpenTelemetry's protocol has them, and answer as it says",
        {JSON: _TAKEN, PROTOBUF: _BYTES},
        (400, 413, 415, 429, 503),
        takes={JSON: {"type": "object"}, PROTOBUF: _BYTES},
        wrong={"type": "object"},
    ),
    Operation(
        "/v1/events",
        "get",
        "Send events of stories as server-sent events, without end; Last-Event-ID goes on after one",
        {EVENTS: _TEXT},
        (400, 503),
        {"last_event_id": {"type": "string", "pattern": "^[0-9]{1,15}$"}},
    ),
    Operation("/v1/openapi.json", "get", "Show this document", {JSON: {"type": "object"}}, ()),
)


@cache
def document() -> dict[str, Any]:
    """The document."""
    types = [
        ErrorBody,
        Answer | list[Answer],
        *(part for kind in KINDS for part in (kind.takes, kind.answer)),
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    known = dict(zip(map(str, types), schemas, strict=True))
    components[CorrectionRequest.__name__]["oneOf"] = [*map(_shape, SHAPES)]
    paths: dict[str, dict[str, Any]] = {}
    asked = [_asked(kind, components[kind.takes.__name__]) for kind in KINDS]
    for each in (*asked, *OPERATIONS):
        paths.setdefault(each.path, {})[each.method] = _described(each, known)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamdp serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{"token": []}, {}],
    }


def _asked(kind: Kind, own: dict[str, Any]) -> Operation:
    """The operation of a question; ``own`` is its schema."""
    summary = (inspect.getdoc(kind.takes) or "").partition("\n")[0]
    answers = {JSON: kind.answer}
    if kind.posted:
        also = (403, 409, 413, 415, 507) if kind.writes else (413, 415)
        refusals = (400, *also, 429, 503)
        return Operation(kind.path, "post", summary, answers, refusals, takes={JSON: kind.takes})
    needed = own.get("required", ())
    fields = {name: {**_plain(each), "required": name in needed} for name, each in own["properties"].items()}
    return Operation(kind.path, "get", summary, answers, (400, 404, 429, 503), fields)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """What a query can say of a field: a text is never null there, and left out instead."""
    kinds = schema.get("anyOf", ())
    if {"type": "null"} not in kinds or not any(each.get("type") == "string" for each in kinds):
        return schema
    (text,) = (each for each in kinds if each != {"type": "null"})
    return {**text, "description": schema["description"]}


def _shape(what: What) -> dict[str, Any]:
    """What a correction of a kind names: nothing is allowed here that is then refused for its shape."""
    least, most, records = SHAPES[what]
    nothing, some, number = {"type": "null"}, {"minItems": 1}, {"type": "integer", "minimum": 1}
    own: dict[str, Any] = dict.fromkeys(("title", "hole", "value", "undone"), nothing)
    own |= {"what": {"const": what}, "stories": {"minItems": least, "maxItems": most, "uniqueItems": True}}
    own["who"] = {"pattern": r"^[\w ]{0,120}$"}
    own |= {name: {"maxItems": records // 2} for name in ("ids", "seqs")}
    needed = ["what", *(["stories"] if least else [])]
    if what == "rename":
        own["title"], needed = {"type": "string", "pattern": r"^\w[\w ]{0,119}$"}, [*needed, "title"]
    if what == "close":
        own["hole"], needed = number, [*needed, "hole"]
    if what == "undo":
        own["undone"], needed = number, [*needed, "undone"]
    shape: dict[str, Any] = {"properties": own, "required": needed}
    if records:
        shape["anyOf"] = [{"required": [name], "properties": {name: some}} for name in ("ids", "seqs")]
    return shape


def _content(parts: Mapping[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: {"schema": part if isinstance(part, dict) else known[str(part)]} for kind, part in parts.items()
    }


def _described(each: Operation, known: dict[str, Any]) -> dict[str, Any]:
    answered = {"description": "answered", "content": _content(each.answers, known)}
    wrong = {"description": "why not", "content": _content({JSON: each.wrong}, known)}
    refusals = {str(status): wrong for status in sorted({*each.refusals, 401, 403, 421, 429})}
    found: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method} {each.path}",
        "parameters": [_parameter(each, name, schema) for name, schema in each.parameters.items()],
        "responses": {**{str(status): answered for status in (200, *each.also)}, **refusals},
    }
    if each.takes:
        found["requestBody"] = {"required": True, "content": _content(each.takes, known)}
    return found


def _parameter(each: Operation, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    of_path = f"{{{name}}}" in each.path
    required = of_path or bool(schema.get("required"))
    plain = {key: value for key, value in schema.items() if key != "required"}
    return {"name": name, "in": "path" if of_path else "query", "required": required, "schema": plain}
