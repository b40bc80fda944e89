"""The document of OpenAPI: the paths here, what they take and answer by the types of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import msgspec

from streamdp._version import __version__
from streamdp.page.changed import ChangeList
from streamdp.serve.schemas import (
    Answer,
    ErrorBody,
    RecordList,
    StoryList,
    Text,
    Where,
)
from streamdp.state.corrections import CorrectionEntry, CorrectionList, CorrectionRequest
from streamdp.story.orders import Sort
from streamdp.story.story import Story

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


def _whole(least: int, default: int, most: int = 10**9) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


_LABEL = {"label": {"type": "integer"}}
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
        "/v1/stories",
        "get",
        "List stories",
        {JSON: StoryList},
        (400, 503),
        {
            "sort": {"type": "string", "enum": list(get_args(Sort)), "default": "size"},
            "closed": {"type": "boolean", "default": False},
            "least": _whole(1, 1),
            "start": _whole(0, 0),
            "limit": _whole(1, 50, 500),
        },
    ),
    Operation("/v1/stories/{label}", "get", "Show a story", {JSON: Story}, (404, 503), _LABEL),
    Operation(
        "/v1/stories/{label}/records",
        "get",
        "List the records of a story in order",
        {JSON: RecordList},
        (400, 404, 503),
        {**_LABEL, "after": _whole(-1, -1, 10**12), "limit": _whole(1, 100, 1000)},
    ),
    Operation(
        "/v1/answers",
        "get",
        "Say what is known of the record of an id now",
        {JSON: Answer},
        (400, 404, 503),
        {"id": {"type": "string", "required": True}},
    ),
    Operation(
        "/v1/events",
        "get",
        "Send events of stories as they come; Last-Event-ID goes on after one",
        {EVENTS: _TEXT},
        (400, 503),
        {"last_event_id": {"type": "string", "pattern": "^[0-9]{1,15}$"}},
    ),
    Operation(
        "/v1/where",
        "post",
        "Say where a text would go, and learn nothing",
        {JSON: Where},
        (400, 413, 415, 429, 503),
        takes={JSON: Text},
    ),
    Operation(
        "/v1/changes",
        "get",
        "Say what has changed since a time or a mark, what is new first, then the most surprising",
        {JSON: ChangeList},
        (400, 409, 422, 503),
        {
            "since": {"type": "string", "minLength": 1, "required": True},
            "all": {"type": "boolean", "default": False},
            "start": _whole(0, 0),
            "limit": _whole(1, 50, 500),
        },
    ),
    Operation(
        "/v1/corrections",
        "get",
        "List the corrections by hand, in order",
        {JSON: CorrectionList},
        (400, 503),
        {"after": _whole(0, 0, 10**12), "limit": _whole(1, 100, 1000)},
    ),
    Operation(
        "/v1/corrections",
        "post",
        "Correct the stories by hand; 422 where that says nothing, 409 where it cannot be",
        {JSON: CorrectionEntry},
        (400, 409, 413, 415, 422, 429, 503, 507),
        takes={JSON: CorrectionRequest},
    ),
    Operation("/v1/openapi.json", "get", "Show this document", {JSON: {"type": "object"}}, ()),
)


@cache
def document() -> dict[str, Any]:
    """The document."""
    types = [ErrorBody, *_types()]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    known = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _described(each, known)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamdp serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
        "security": [{"token": []}, {}],
    }


def _types() -> list[Any]:
    parts = [part for each in OPERATIONS for part in (*each.answers.values(), *each.takes.values())]
    return [part for part in parts if not isinstance(part, dict)]


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
