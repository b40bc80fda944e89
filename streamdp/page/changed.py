"""What has changed in the stream since a time or a mark, as ``streamdp diff`` says it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.errors import ConfigError
from streamdp.page.errors import AskError, Asks, as_json, integer
from streamdp.reports.diff import Change, Diff, Told, since_in, told_of
from streamdp.reports.marks import MarkError, marks, since_of
from streamdp.story.answers import StoriesError

FRESH = 1.0
"""Seconds for which the stream is not asked again."""


class ChangeList(msgspec.Struct, frozen=True, kw_only=True):
    """Some changes, what is new first, then the most surprising; ``total`` counts those that match.

    What is before them begins at ``begin`` and ends at ``until``; what is after begins at ``since`` and ends
    at ``end``: in seconds, or in records where these have no times (not ``dated``).
    """

    changes: list[Change]
    total: int
    begin: float
    until: float
    since: float
    end: float
    dated: bool

    @classmethod
    def of(cls, found: Diff, start: int, most: int, *, every: bool) -> ChangeList:
        """Those that are new or far from what chance does, or all of them, from one on."""
        chosen = found.changes if every else found.listed
        times = {name: float(getattr(found, name)) for name in ("begin", "until", "since", "end")}
        return cls(changes=chosen[start : start + most], total=len(chosen), dated=found.dated, **times)


class Changed:
    """Answers about changes. ``state`` gives what marks lie beside, None where there is none."""

    def __init__(self, api: Asks, state: Callable[[], str | None]) -> None:
        self._api, self._state = api, state
        self._asking = asyncio.Lock()
        self._told: tuple[float, Told] | None = None

    async def show(self, request: Request) -> Response:
        """Changes: what is new first, by size, then the most surprising."""
        text = request.query_params.get("since")
        if not text:
            raise AskError(400, "since: a time (ISO 8601), so long ago (6h, 2d), or a mark")
        every = request.query_params.get("all", "false")
        if every not in ("true", "false"):
            raise AskError(400, "all: true or false")
        start, most = integer(request, "start", 0, 0, 10**9), integer(request, "limit", 50, 1, 500)
        try:
            told = await self._known()
            found = await asyncio.to_thread(_since, told, self._state(), text)
        except ConfigError as error:
            raise AskError(422, error.message) from None
        except (StoriesError, MarkError) as error:
            raise AskError(409, error.message) from None
        return as_json(msgspec.json.encode(ChangeList.of(found, start, most, every=every == "true")))

    async def marks(self, request: Request) -> Response:
        """The moments that have a name, the latest last; of one name the latest alone counts."""
        held = await asyncio.to_thread(marks, self._state())
        return as_json(msgspec.json.encode({"marks": [*{mark.name: mark for mark in held}.values()]}))

    async def _known(self) -> Told:
        """What the stream knows of its past, as of a moment ago."""
        async with self._asking:
            made, found = self._told or (0.0, None)
            if found is None or time.monotonic() - made > FRESH:
                found = await self._api.ask(told_of)
                self._told = time.monotonic(), found
        return found


def _since(told: Told, state: str | None, text: str) -> Diff:
    """What has changed since a time, or a mark beside the state. Raises StreamdpError."""
    return since_in(told, since_of(state, text, lambda: told.stories.clock, "since"))
