"""What is served: the page's files, and its figures as JSON under /api/ (docs/page.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from streamdp.answers import listing
from streamdp.engine import Engine
from streamdp.page.correcting import Correcting
from streamdp.page.errors import (
    AskError,
    Endpoint,
    allow,
    as_json,
    or_error,
)
from streamdp.page.guard import Allowance
from streamdp.page.hub import BusyError, FullError, Hub, Questions
from streamdp.page.live import Live, queried
from streamdp.page.view import View
from streamdp.questions.questions import Question
from streamdp.story.story import COLUMNS, Stories
from streamdp.story.titles import short

SHOWN = 50
"""Stories in the table of the page without scripts."""

PLACE = "<!-- the table -->"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Place = Annotated[float, Meta(ge=-1e300, le=1e300)]

PATIENCE, LESS_PATIENCE = 60.0, 10.0
"""Seconds that an answer of the stream is waited for: the first of all compiles a kernel; and where there is
something to be answered without it."""


class DrawGraph(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts over time of the clusters that are drawn, between two places."""

    begin: Annotated[Place | None, Meta(description="a number")] = msgspec.field(default=None, name="from")
    end: Annotated[Place | None, Meta(description="a number")] = msgspec.field(default=None, name="to")
    bins: Annotated[int, Meta(ge=1, le=480)] = 160


class ShowLooks(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the page alone knows of some stories."""

    labels: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{1,18}(,[0-9]{1,18}){0,999}$",
            description="labels of stories, with commas between them",
        ),
    ]


class _Same:
    """Answers that are the same for all pages until the next tick: worked out once."""

    def __init__(self, version: Callable[[], int], allowance: Allowance) -> None:
        self._version, self._at, self._held = version, -1, dict[Any, bytes]()
        self._allowance = allowance

    def get(self, key: Any, make: Callable[[], Any]) -> bytes:
        if self._at != self._version() or len(self._held) > 64:
            self._held, self._at = {}, self._version()
        if key not in self._held:
            allow(self._allowance)
            self._held[key] = msgspec.json.encode(make())
        return self._held[key]


class Api:
    """The answers to all paths."""

    def __init__(
        self,
        view: View,
        hub: Hub,
        questions: Questions,
        drop: Callable[[Any], None],
        scores: Allowance,
        made: Allowance,
    ) -> None:
        self.view, self._hub, self._questions = view, hub, questions
        self.drop, self.made = drop, made
        self.correcting = Correcting(self)
        self.live = Live(self, self.correcting, scores)
        self._same = _Same(lambda: view.version, made)
        self._files = {
            each.name: each.read_bytes()
            for each in (files("streamdp.page") / "static").iterdir()
            if "." + each.name.rpartition(".")[2] in KINDS
        }

    def app(self, more: Callable[[Api], Iterable[Route]] | None = None) -> Starlette:
        """As ASGI has it; ``more`` makes the routes of programs out of these answers."""
        paths: dict[str, Endpoint] = {
            "/": self.index,
            "/api/status": self.status,
            "/api/graph": self.graph,
            "/api/shown": self.shown,
            "/api/shown/{label:int}": self.cluster,
            "/api/stream": self.stream,
            "/{name}": self.file,
        }
        routes = [Route(path, or_error(answer), methods=["GET"]) for path, answer in paths.items()]
        asked = self.live.routes() if more is None else more(self)
        return Starlette(routes=[*asked, *routes], exception_handlers={HTTPException: _refused})

    async def index(self, request: Request) -> Response:
        """The page, with a table for browsers without scripts."""
        made = _with_table(self._files["index.html"].decode(), await self.live.known())
        return _file(made.encode(), "index.html")

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params["name"]
        if name not in self._files:
            raise AskError(404, "there is no such page")
        return _file(self._files[name], name)

    async def status(self, request: Request) -> Response:
        """The state of the run."""
        return as_json(msgspec.json.encode(self.view.now()))

    async def graph(self, request: Request) -> Response:
        """Counts of the clusters that are drawn."""
        asked = queried(DrawGraph, request)
        return as_json(self._same.get(asked, lambda: self.view.drawing(asked.begin, asked.end, asked.bins)))

    async def shown(self, request: Request) -> Response:
        """What the page alone knows of some stories."""
        labels = queried(ShowLooks, request).labels.split(",")
        return as_json(msgspec.json.encode({"shown": self.view.shown([*map(int, labels)])}))

    async def cluster(self, request: Request) -> Response:
        """One cluster, its words against the base."""
        label = int(request.path_params["label"])
        found = self.view.cluster(label)
        if found is None:
            raise AskError(404, f"cluster {label} is not known here")
        words = [word for word, _ in found["words"]]
        base = await self.ask(lambda engine: in_detail(engine, label, words), or_else=None)
        return as_json(msgspec.json.encode({**found, **(base or {})}))

    async def stream(self, request: Request) -> Response:
        """Ticks, as server-sent events."""
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        client = tuple(request.scope.get("client") or ())
        try:
            listening = self._hub.join(last, lambda: self.drop(client))
        except FullError:
            raise AskError(503, "too many pages listen already", 10.0) from None
        return StreamingResponse(
            listening, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def ask(self, question: Callable[[Any], Any], *, scores: bool = False, **otherwise: Any) -> Any:
        """Ask the thread that runs the stream. ``or_else`` is the answer where it has no time.

        Raises AskError.
        """
        try:
            answer = asyncio.wrap_future(self._questions.ask(question, scores=scores))
            return await asyncio.wait_for(answer, LESS_PATIENCE if otherwise else PATIENCE)
        except (BusyError, TimeoutError):
            if otherwise:
                return otherwise["or_else"]
            raise AskError(503, "the stream is busy: ask again in a moment", 2.0) from None


async def _refused(request: Request, error: Exception) -> Response:
    """What is answered to a path or a method that is none: to programs as JSON."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/v1/"):
        return as_json(
            msgspec.json.encode({"error": error.detail}), error.status_code, dict(error.headers or {})
        )
    return Response(error.detail, error.status_code, error.headers, "text/plain")


def _file(body: bytes, name: str) -> Response:
    kind = KINDS["." + name.rpartition(".")[2]]
    return Response(body, 200, {"cache-control": "no-cache"}, kind)


def _with_table(page: str, stories: Stories) -> str:
    """The page with the table in its place."""
    caption = f"{len(stories):,} live {stories.nouns}, the largest first"
    return page.replace(PLACE, listing.table(COLUMNS, stories[:SHOWN].cells(), caption))


def in_detail(engine: Engine, label: int, words: Sequence[str]) -> dict[str, Any]:
    """How often a cluster has words, and how often the base has: shares of all words, by word."""
    base = engine.base_of(words)
    (cluster,) = engine.clusters({label}) or [None]
    if cluster is None:
        return {}
    counts = [(short(word, 40), count) for word, count in cluster.words or ()]
    return {
        "against_base": [{"word": word, "count": count, "base": base.get(word)} for word, count in counts],
        "tokens": engine.tokens_of(label),
    }
