"""The paths of the service under /v1/, and what they answer (docs/serve.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from streamdp.decode.otlp import LARGEST
from streamdp.page.api import Api
from streamdp.page.errors import AskError, Endpoint, as_json, kind_of, only, or_error
from streamdp.page.live import queried
from streamdp.questions.answers import Answer
from streamdp.questions.questions import ShowAnswer
from streamdp.serve.bodies import Shape, Uploads, records_of
from streamdp.serve.logs import Logs, one_by_one
from streamdp.serve.openapi import document
from streamdp.serve.stored import ServiceContext, Stored
from streamdp.settings.memory import longest_record
from streamdp.web import PATIENCE

LISTENERS = 64
"""Clients that may listen to events at once."""

ALIVE = 5.0
"""Seconds of silence after which they hear that the service is still there."""

EVENTS = 100
"""Events that are read at once."""

Health = Callable[[str, str], tuple[int, bytes, str]]
"""Status, body and content type, of a path and an Accept header."""

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


class Service:
    """The answers to all paths of the service; ``page`` gives those of the page, ``health`` of health."""

    def __init__(self, page: Api, health: Health, drop: Callable[[Any], None]) -> None:
        self._page, self._health, self._drop = page, health, drop
        self.stands: ServiceContext | None = None
        self._happened = asyncio.Event()
        self._listeners: dict[tuple[Any, ...], float] = {}
        self._uploads = Uploads()
        self._logs = Logs(self._open, self._uploads)

    def routes(self) -> Iterable[Route]:
        """As Starlette takes them."""
        gets: dict[str, Endpoint] = {
            "/v1/events": self.events,
            "/v1/openapi.json": self.openapi,
            "/metrics": self.health,
            "/livez": self.health,
            "/readyz": self.health,
        }
        posts: dict[str, Endpoint] = {
            "/v1/records": self.take,
            "/v1/logs": self._logs.take,
            "/v1/traces": self._logs.elsewhere,
            "/v1/metrics": self._logs.elsewhere,
        }
        for method, paths in (("GET", gets), ("POST", posts)):
            yield from (Route(path, or_error(answer), methods=[method]) for path, answer in paths.items())
        yield from self._page.live.routes(self._open, self._uploads.whole, {"show_answer": self.answers})

    def _open(self) -> ServiceContext:
        if self.stands is None:
            raise AskError(503, "the service begins: ask again in a moment", 1.0)
        return self.stands

    # ---------------------------------------------------------------- records

    async def take(self, request: Request) -> Response:
        """Records in, answers out, in order."""
        stands = self._open()
        kind = kind_of(request)

        def read(body: bytes) -> tuple[Shape, list[bytes | Answer]]:
            most = max(longest_record(stands.settings), LARGEST)  # else the stream says what is too long
            shape, records = records_of(body, kind, of_text=stands.of_text, most=most)
            return (
                one_by_one(shape, records, stands.settings)
                if stands.settings.format == "otlp"
                else (shape, records)
            )

        shape, records = await self._uploads.read(request, read)
        answers = await stands.door.take(records)
        useless = all(answer.status == "refused" for answer in answers)
        wrong = 409 if all(answer.code == 409 for answer in answers) else 422
        return _answered(answers, shape, wrong if useless else 200, request.headers.get("accept", ""))

    async def answers(self, request: Request) -> Response:
        """The newest answer to the record of an id."""
        stands, name = self._open(), queried(ShowAnswer, request).id
        found = stands.door.pending(name) or stands.stored.answers([name]).get(name, (None,))[0]
        if found is None:
            raise AskError(404, "no record of this id is known here")
        return as_json(_encode(found))

    # ---------------------------------------------------------------- events

    def happened(self) -> None:
        """There are new events; in the loop."""
        self._happened.set()
        self._happened = asyncio.Event()

    async def events(self, request: Request) -> Response:
        """Events of stories, as server-sent events; from one on, else those that come."""
        stored = self._open().stored
        only(request, "last_event_id")
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        if last is not None and not (last.isascii() and last.isdigit() and len(last) < 16):
            raise AskError(400, "last-event-id: the number of an event")
        self._drop_stalled()
        if len(self._listeners) >= LISTENERS:
            raise AskError(503, "too many clients listen already", 10.0)
        oldest, newest = stored.held_events()
        after = newest if last is None else int(last)
        begin = ""
        if not oldest - 1 <= after <= newest:
            said = {"asked": after, "oldest": oldest, "newest": newest}
            after = newest if after > newest else oldest - 1
            begin = f"event: reset\nid: {after}\ndata: {_encode(said).decode()}\n\n"
        client = tuple(request.scope.get("client") or ())
        stream = self._listen(stored, after, client, begin)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _listen(
        self, stored: Stored, after: int, client: tuple[Any, ...], begin: str
    ) -> AsyncIterator[bytes]:
        self._listeners[client] = time.monotonic()
        try:
            yield f"retry: 1000\n\n{begin}".encode()
            while client in self._listeners:
                happened = self._happened
                found = stored.events(after, EVENTS)
                if found:
                    after = found[-1][0]
                    text = "".join(f"event: {kind}\nid: {n}\ndata: {more}\n\n" for n, kind, more in found)
                else:
                    self._drop_stalled()
                    try:
                        await asyncio.wait_for(happened.wait(), ALIVE)
                        continue
                    except TimeoutError:
                        text = ": still here\n\n"
                self._listeners[client] = time.monotonic()
                yield text.encode()
                self._listeners[client] = float("inf")  # it has read, and waits for more
        finally:
            self._listeners.pop(client, None)

    def _drop_stalled(self) -> None:
        """Cut off clients that do not read what was sent."""
        now = time.monotonic()
        for client, sent in [*self._listeners.items()]:
            if now - sent > PATIENCE:
                del self._listeners[client]
                self._drop(client)

    # ---------------------------------------------------------------- about itself

    async def openapi(self, request: Request) -> Response:
        """What all paths take and answer, as OpenAPI has it."""
        only(request)
        return as_json(_encode(document()))

    async def health(self, request: Request) -> Response:
        """Metrics, and whether the run lives and takes records."""
        status, body, kind = self._health(request.url.path, request.headers.get("accept", ""))
        return Response(body, int(status), {"content-type": kind, "cache-control": "no-store"})


def _answered(answers: list[Answer], shape: Shape, status: int, accept: str) -> Response:
    """Answers as the records came, lines of JSON where they came as lines, unless JSON is asked for."""
    if shape == "one":
        return as_json(_encode(answers[0]), status)
    wants = accept.lower()
    if "application/x-ndjson" in wants or (shape == "lines" and "application/json" not in wants):
        headers = {"cache-control": "no-store"}
        return Response(_encode_lines(answers), status, headers, "application/x-ndjson")
    return as_json(_encode(answers), status)
