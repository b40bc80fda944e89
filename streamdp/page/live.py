"""Questions to a running stream over HTTP: a path for each kind, on the page's server and the service's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamdp.engine import Engine
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
    only,
    or_error,
    whole,
)
from streamdp.page.guard import Allowance
from streamdp.questions.answers import ChangeList, ThemeList
from streamdp.questions.asking import (
    Answers,
    QuestionError,
    changes_in,
    events_of,
    marks_now,
    titled,
    where_to,
)
from streamdp.questions.parse import Some, parse
from streamdp.questions.questions import (
    KINDS,
    Asked,
    Kind,
    ListChanges,
    ListCorrections,
    ListEvents,
    ListMarks,
    ListStories,
    ListThemes,
    ShowHealth,
    WhereWouldItGo,
)
from streamdp.reports.diff import Told, told_of
from streamdp.reports.source import EngineStories, holes_of, retained_records
from streamdp.reports.store import StoreStories
from streamdp.state.corrections import CorrectionRequest
from streamdp.story.story import Stories, Story, StoryRecord

FRESH, SHARE = 1.0, 30.0
"""What the stream is asked stands for so many seconds, and for so many times as long as it took."""

AT_ONCE = 1.0
"""Seconds that a page which is opened waits for its table."""

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


class StoredStories(StoreStories):
    """Live stories as the stream has them, those that ended and all records from its store."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.live, self._ended = Stories(), Stories()
        self._seen = -1

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """The live stories, or those that ended, gathered again where the store was written since."""
        if muted:  # the store knows them too
            return super().stories(closed=closed, stretch=stretch, muted=True)
        if closed and self._seen != (version := self.version()):
            self._seen, self._ended = version, super().stories(closed=True)
        return self._ended if closed else self.live


class RetainedStories(EngineStories):
    """The live stories of a moment, and records as the stream retains them.

    ``texts`` gives what its records say, by number, as far as pages remember that.
    """

    def __init__(self, engine: Engine, live: Stories, texts: Callable[[int], Mapping[int, str]]) -> None:
        super().__init__(engine)
        self.live, self._said, self._lacking = live, texts, super().lacking

    @property
    def lacking(self) -> str:
        """As of that moment: it is asked for from other threads."""
        return self._lacking

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """The live stories, or those that ended last."""
        return super().stories(closed=closed, muted=muted) if closed or muted else self.live

    def of(self, label: int) -> list[StoryRecord]:
        """The retained records of a story, as they are now."""
        answers = {each.seq: each for each in self.engine.open_answers() if each.cluster == label}
        texts = self._said(label)
        return [
            record if record.text else msgspec.structs.replace(record, text=texts.get(record.seq, ""))
            for _, record in retained_records(self.engine, answers, label)
        ]


class Live:
    """What a running stream answers: its store, where it has one, else what it retains itself."""

    def __init__(self, api: Asks, correcting: Correcting, scores: Allowance) -> None:
        self._api, self._correcting, self._scores = api, correcting, scores
        self._one, self._asking, self._reading = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._source: StoredStories | RetainedStories | None = None
        self._listed: dict[ListStories, Any] = {}
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
            yield route(path, endpoints)

    def _endpoint(self, kind: Kind, ready: Callable[[], object], read: Whole) -> Endpoint:
        async def answered(request: Request) -> Response:
            ready()
            return as_json(msgspec.json.encode(await self.asked(kind, request, read)))

        return answered

    async def asked(self, kind: Kind, request: Request, read: Whole = whole) -> Any:
        """The answer to the question in a request. Raises AskError."""
        try:
            return await self.answer(
                await self._posted(kind, request, read) if kind.posted else queried(kind.takes, request)
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
        only(request)
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
                found = await self._api.ask(lambda engine: where_to(engine, text), scores=True)
                return titled(found, (await self._fresh()).live)
            case ListThemes(themes=wanted):
                themed = await self.themed(wanted)
                return ThemeList(themes=themed.themes, live=len(themed))
            case ListChanges():
                return await self._changes(question)
            case ListMarks():
                return await asyncio.to_thread(marks_now, self._api.view.state)
            case ListCorrections(after=after, limit=limit):
                return await self._correcting.noted(after, limit)
            case CorrectionRequest():
                made = await self._correcting.given(question)
                self._due = 0.0
                return made
        source, state = await self._fresh(), self._api.view.state
        if isinstance(source, RetainedStories):
            allow(self._api.made)
            if isinstance(question, ListEvents):
                events = self._api.view.events(question)
                return events_of(events, {each.label: each.title for each in source.live}, question.limit)
            if not _of_a_moment(question):
                return await self._api.ask(lambda _: Answers(source, state).to(question))
        listed = self._listed  # of this moment
        if isinstance(question, ListStories) and question in listed:
            return listed[question]
        async with self._reading:  # a store has one connection
            found = await asyncio.to_thread(lambda: Answers(source, state).to(question))
        if isinstance(question, ListStories):
            listed[question] = found
        if isinstance(found, Story) and found.template and not found.ended:  # of which a store knows no holes
            holes = await self._api.ask(lambda engine: holes_of(engine, found.label))
            return msgspec.structs.replace(found, holes=holes)
        return found

    async def _fresh(self) -> StoredStories | RetainedStories:
        """What answers, with the live stories as of a moment ago; the page calls them so, too."""
        view = self._api.view
        async with self._one:
            if time.monotonic() >= self._due:
                engine, live, took = await self._api.ask(_looked)
                if view.source is None:
                    self._source = RetainedStories(engine, live, view.texts)
                else:
                    self._source = self._source or StoredStories(view.source)
                    self._source.live = live
                self._due, self._listed = time.monotonic() + max(FRESH, SHARE * took), {}
                view.entitle(live)
            assert self._source is not None
            return self._source

    async def known(self) -> Stories:
        """The live stories, for a page that is opened: none where the stream is busy."""
        with contextlib.suppress(AskError, StreamdpError, TimeoutError):
            return (await asyncio.wait_for(self._fresh(), AT_ONCE)).live
        return Stories()

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


def _looked(engine: Engine) -> tuple[Engine, Stories, float]:
    """A stream with its live stories, and the seconds that these took."""
    began = time.monotonic()
    return engine, engine.stories(records=False), time.monotonic() - began


def _of_a_moment(question: Asked) -> bool:
    """Whether the live stories alone answer a question."""
    if isinstance(question, ListStories):
        return question.which == "live" and not question.search.split()
    return isinstance(question, ShowHealth)


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


def queried(takes: type[Some], request: Request) -> Some:
    """The question of a path and its query. Raises QuestionError."""
    given: list[tuple[str, Any]] = [*request.path_params.items(), *request.query_params.multi_items()]
    twice = [name for name, count in Counter(name for name, _ in given).items() if count > 1]
    if twice:
        raise AskError(400, f"{twice[0]}: once")
    return parse(takes, dict(given), texts=True)
