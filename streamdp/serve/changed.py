"""What has changed in the stream since a time or a mark, as ``streamdp diff`` says it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.errors import ConfigError
from streamdp.page.api import Api
from streamdp.page.errors import AskError, as_json, integer
from streamdp.reports.diff import Diff, Told, since_in, told_of
from streamdp.reports.marks import MarkError, since_of
from streamdp.serve.stored import Stands
from streamdp.serve.told import ChangeList
from streamdp.story.answers import StoriesError

FRESH = 1.0
"""Seconds for which the stream is not asked again."""


class Changed:
    """Answers to ``/v1/changes``: ``page`` asks the stream, ``stands`` gives what the service stands on."""

    def __init__(self, page: Api, stands: Callable[[], Stands]) -> None:
        self._page, self._stands = page, stands
        self._asking = asyncio.Lock()
        self._told: tuple[float, Told] | None = None

    async def show(self, request: Request) -> Response:
        """Changes, the most surprising first."""
        state, text = self._stands().state, request.query_params.get("since")
        if not text:
            raise AskError(400, "since: a time (ISO 8601), so long ago (6h, 2d), or a mark")
        every = request.query_params.get("all", "false")
        if every not in ("true", "false"):
            raise AskError(400, "all: true or false")
        start, most = integer(request, "start", 0, 0, 10**9), integer(request, "limit", 50, 1, 500)
        try:
            told = await self._known()
            found = await asyncio.to_thread(_since, told, state, text)
        except ConfigError as error:
            raise AskError(422, error.message) from None
        except (StoriesError, MarkError) as error:
            raise AskError(409, error.message) from None
        return as_json(msgspec.json.encode(ChangeList.of(found, start, most, every=every == "true")))

    async def _known(self) -> Told:
        """What the stream knows of its past, as of a moment ago."""
        async with self._asking:
            made, found = self._told or (0.0, None)
            if found is None or time.monotonic() - made > FRESH:
                found = await self._page.ask(told_of)
                self._told = time.monotonic(), found
        return found


def _since(told: Told, state: str, text: str) -> Diff:
    """What has changed since a time, or a mark beside the state. Raises StreamdpError."""
    return since_in(told.stories, told.past, since_of(state, text, lambda: told.stories.clock, "since"))
