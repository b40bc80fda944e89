"""Questions to a running stream over HTTP: a path for each kind, on the page's server and the service's."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.compilation import beside
from streamdp.page.correcting import Correcting
from streamdp.page.errors import (
    AskError,
    Asks,
    Endpoint,
    allow,
    as_json,
    kind_of,
    or_error,
    whole,
)
from streamdp.page.guard import Allowance
from streamdp.questions.answers import ChangeList, ThemeList
from streamdp.questions.asking import Answers, QuestionError, changes_in, where_to
from streamdp.questions.parse import parse
from streamdp.questions.questions import (
    KINDS,
    Asked,
    Kind,
    ListChanges,
    ListCorrections,
    ListThemes,
    WhereWouldItGo,
)
from streamdp.reports.diff import Told, told_of
from streamdp.reports.source import EngineStories
from streamdp.reports.store import StoreStories
from streamdp.state.corrections import CorrectionRequest
from streamdp.story.story import Stories, Story, StoryRecord

FRESH, SHARE = 1.0, 30.0
"""What the stream is asked stands for so many seconds, and for so many times as long as it took."""

LEAST = 5.0
"""Seconds for which themes stand, at least."""

BODY = 1 << 20
"""Bytes of a question, at most."""

EXAMPLES: dict[type[Asked], str] = {
    WhereWouldItGo: '{"text": "..."}',
    CorrectionRequest: '{"what": "rename", "stories": [7], "title": "..."}',
}
"""Questions that are sent as JSON."""

Whole = Callable[[Request, int], Awaitable[bytes]]


class LiveStories:
    """Live stories as the stream has them, those that ended and all records from its store."""

    def __init__(self, path: str) -> None:
        self._store = StoreStories(path)
        self.live, self._ended = Stories(), Stories()
        self._version = -1

    @property
    def lacking(self) -> str:
        """What the store does not hold any more."""
        return self._store.lacking

    def stories(self, *, closed: bool = False, stretch: float | None = None) -> Stories:
        """The live stories, or those that ended, gathered again where the store was written since."""
        if closed and self._version != (version := self._store.version()):
            self._version, self._ended = version, self._store.stories(closed=True)
        return self._ended if closed else self.live

    def in_full(self, story: Story) -> Story:
        """A story with some of its records."""
        return self._store.in_full(story)

    def records(self, labels: Collection[int]) -> Iterator[tuple[int, StoryRecord]]:
        """The records of some stories."""
        return self._store.records(labels)

    def named(self, name: str) -> tuple[int, StoryRecord] | None:
        """The story and the latest record of an id."""
        return self._store.named(name)

    def search(self, words: Sequence[str]) -> set[int]:
        """The stories of which some record holds all words."""
        return self._store.search(words)


class Live:
    """What a running stream answers: its store, where it has one, else what it retains itself."""

    def __init__(self, api: Asks, correcting: Correcting, scores: Allowance) -> None:
        self._api, self._correcting, self._scores = api, correcting, scores
        self._one, self._asking = asyncio.Lock(), asyncio.Lock()
        self._stored: LiveStories | None = None
        self._due = 0.0
        self._told: tuple[float, Told] | None = None
        self._themes: dict[int | None, tuple[float, Stories]] = {}
        self._theming = asyncio.Lock()

    def routes(
        self,
        ready: Callable[[], object] = lambda: None,
        read: Whole = whole,
        instead: Mapping[str, Endpoint] = MappingProxyType({}),
    ) -> Iterator[Route]:
        """A path for each question; ``ready`` raises AskError where none is answered yet.

        ``instead`` are kinds of questions, by name, that somebody else answers.
        """
        for path in dict.fromkeys(kind.path for kind in KINDS):
            kinds = {"POST" if kind.posted else "GET": kind for kind in KINDS if kind.path == path}
            endpoints = {
                method: instead.get(kind.name) or self._endpoint(kind, ready, read)
                for method, kind in kinds.items()
            }
            yield route(path.replace("{label}", "{label:int}"), endpoints)

    def _endpoint(self, kind: Kind, ready: Callable[[], object], read: Whole) -> Endpoint:
        async def answered(request: Request) -> Response:
            ready()
            return as_json(msgspec.json.encode(await self.asked(kind, request, read)))

        return answered

    async def asked(self, kind: Kind, request: Request, read: Whole = whole) -> Any:
        """The answer to the question in a request. Raises AskError."""
        try:
            return await self.answer(
                await self._posted(kind, request, read) if kind.posted else queried(kind, request)
            )
        except StreamdpError as error:
            status = {Exit.USAGE: 400, Exit.NO_INPUT: 404}.get(error.exit_code)
            if status is None or isinstance(error, QuestionError):
                raise  # a QuestionError has its status, and of what nobody foresaw the log says more
            raise AskError(status, error.message) from None

    async def _posted(self, kind: Kind, request: Request, read: Whole) -> Asked:
        example = EXAMPLES[kind.takes]
        if kind_of(request) != "application/json":
            raise AskError(415, f"send JSON: {example}")
        if kind.takes is WhereWouldItGo:
            allow(self._scores, "requests")
        try:
            given = msgspec.json.decode(await read(request, BODY))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AskError(400, f"this is no JSON: {error}: send {example}") from None
        if not isinstance(given, dict):
            raise AskError(400, f"send {example}")
        return parse(kind.takes, given)

    async def answer(self, question: Asked) -> Any:
        """The answer to a question. Raises AskError and StreamdpError."""
        match question:
            case WhereWouldItGo(text=text):
                return await self._api.ask(lambda engine: where_to(engine, text), scores=True)
            case ListThemes(themes=wanted):
                found = await self.themed(wanted)
                return ThemeList(themes=found.themes, live=len(found))
            case ListChanges():
                return await self._changes(question)
            case ListCorrections(after=after, limit=limit):
                return await self._correcting.noted(after, limit)
            case CorrectionRequest():
                return await self._correcting.given(question)
        state = self._api.view.state
        if (source := self._api.view.source) is None:
            allow(self._api.made)
            return await self._api.ask(lambda engine: Answers(EngineStories(engine), state).to(question))
        async with self._one:
            stored = self._stored = self._stored or LiveStories(source.path)
            began = time.monotonic()
            if began >= self._due:
                stored.live = await self._api.ask(lambda engine: engine.stories(records=False))
                ended = time.monotonic()
                self._due = ended + max(FRESH, SHARE * (ended - began))
            return await asyncio.to_thread(lambda: Answers(stored, state).to(question))

    async def themed(self, wanted: int | None) -> Stories:
        """The stories with their themes, as of a moment ago; numbers stay from one look to the next."""
        async with self._theming:
            until, found = self._themes.get(wanted, (0.0, Stories()))
            if time.monotonic() < until:
                return found
            allow(self._api.made)
            stories = await self._api.ask(lambda engine: engine.stories(records=False).settled())
            began = time.monotonic()
            made: Stories = await asyncio.to_thread(_make, stories, wanted, found.theme_numbers or None)
            now = time.monotonic()
            self._themes[wanted] = now + max(LEAST, SHARE * (now - began)), made
            while len(self._themes) > 8:
                self._themes.pop(next(iter(self._themes)))
        return made

    async def _changes(self, question: ListChanges) -> ChangeList:
        state = self._api.view.state
        async with self._asking:
            made, told = self._told or (0.0, None)
            if told is None or time.monotonic() - made > FRESH:
                told = await self._api.ask(told_of)
                self._told = time.monotonic(), told
        return await asyncio.to_thread(changes_in, told, question, state)


def _make(stories: Stories, wanted: int | None, before: Mapping[int, int] | None) -> Stories:
    """In a thread: the first time a kernel may have to be compiled, and nobody waits for that."""
    with beside():
        return stories.themed(wanted, before=before)


def route(path: str, endpoints: Mapping[str, Endpoint]) -> Route:
    """A path, and what answers it by method."""
    by_method = {method: or_error(answer) for method, answer in endpoints.items()}

    async def answered(request: Request) -> Response:
        return await by_method["POST" if request.method == "POST" else "GET"](request)

    return Route(path, answered, methods=[*by_method])


def queried(kind: Kind, request: Request) -> Asked:
    """The question of a path and its query. Raises QuestionError."""
    given: list[tuple[str, Any]] = [*request.path_params.items(), *request.query_params.multi_items()]
    twice = [name for name, count in Counter(name for name, _ in given).items() if count > 1]
    if twice:
        raise AskError(400, f"{twice[0]}: once")
    return parse(kind.takes, dict(given), texts=True)
