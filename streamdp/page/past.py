"""What a page asks of the past: stories that ended, all records of one, and themes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.engine import Engine
from streamdp.page.errors import Asks, allow, as_json, integer, label_of
from streamdp.page.live import Live
from streamdp.reports.source import retained_records
from streamdp.reports.store import PagedStore
from streamdp.story.story import Stories, Theme

PAGED = 100
"""Records, or stories that ended, that are given at once."""

Page = tuple[int, list[dict[str, Any]]]
"""How many there are, and some of them."""

Known = Callable[[int, int], Awaitable[Page]]
"""Gives so many from one on."""

Listed = Literal["ended", "records"]
"""The lists that are given a page at a time: methods of a store."""


class Further:
    """The answers about what is further back. ``source`` is the store; None where there is none."""

    def __init__(self, api: Asks, live: Live) -> None:
        self._api, self._live = api, live

    async def ended(self, request: Request) -> Response:
        """Stories that ended."""
        words = request.query_params.get("search", "")[:200].lower().split()

        async def known(start: int, most: int) -> Page:
            found: Page = self._api.view.ended(words, start, most)
            return found

        lacking = "without --store, those are known that ended since the page began"
        return await self._paged(request, "ended", 50, words, known, lacking)

    async def records(self, request: Request) -> Response:
        """All records of a story that are known, the latest first."""
        label = label_of(request)

        async def known(start: int, most: int) -> Page:
            allow(self._api.made)
            found, rows = await self._api.ask(lambda engine: retained(engine, label, start, most))
            texts = self._api.view.texts(label)
            return found, [{**row, "text": row["text"] or texts.get(row["seq"], "")} for row in rows]

        lacking = "the records that are retained, and the texts of some: a --store has all"
        return await self._paged(request, "records", 20, label, known, lacking)

    async def _paged(
        self, request: Request, name: Listed, most: int, of: Any, known: Known, lacking: str
    ) -> Response:
        """A page of a list ``of`` something: of the store, else what is ``known`` without one."""
        start, most = integer(request, "start", 0, 0, 10**9), integer(request, "limit", most, 1, PAGED)
        source: PagedStore | None = self._api.view.source
        if source is None:
            found, rows = await known(start, most)
        else:
            found, rows = await asyncio.to_thread(getattr(source, name), of, start, most)
            lacking = source.lacking
        return as_json(msgspec.json.encode({"found": found, "lacking": lacking, name: rows}))

    async def themes(self, request: Request) -> Response:
        """The live stories in fewer, coarser groups."""
        asked = request.query_params.get("themes", "20")
        wanted = None if asked == "auto" else integer(request, "themes", 20, 1, 500)
        found = await self._live.themed(wanted)
        view = self._api.view
        rows = [theme_row(theme, found) for theme in found.themes]
        with view.lock:
            for row in rows:
                row["slot"] = view.graph.colours.of(row["stories"][0]["cluster"])
        why = "" if rows else "templates, and clusters whose words are not known, have no themes"
        return as_json(msgspec.json.encode({"of": len(found), "why": why, "themes": rows}))


def theme_row(theme: Theme, stories: Stories) -> dict[str, Any]:
    """A theme as pages get it, with its largest stories."""
    titles = {story.label: story for story in stories}
    largest = [titles[label] for label in theme.stories[:5]]
    return {
        "theme": theme.theme,
        "name": theme.title,
        "keywords": theme.keywords,
        "size": theme.records,
        "now": theme.now,
        "before": theme.before,
        "count": len(theme.stories),
        "stories": [{"cluster": each.label, "name": each.title, "size": each.records} for each in largest],
    }


def retained(engine: Engine, label: int, start: int, most: int) -> Page:
    """Records of a story that the stream retains, the latest first."""
    open_still = {answer.seq: answer for answer in engine.open_answers() if answer.cluster == label}
    found = [record for _, record in retained_records(engine, open_still, label)]
    return len(found), [
        {
            "seq": record.seq,
            "id": "" if record.id is None else str(record.id)[:80],
            "time": record.time,
            "text": record.text[:300],
            "probability": record.probability,
            "revision": None if record.probability is None else record.revision,
        }
        for record in found[::-1][start : start + most]
    ]
