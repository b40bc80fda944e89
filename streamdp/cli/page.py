"""Pages: of a run, and of a state that nobody runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from streamdp.cli.config import automatic
from streamdp.cli.errors import say
from streamdp.cli.reading import Reader
from streamdp.cli.show import open_state, written_at
from streamdp.cli.watch import Watch
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.records import Answers, Record, Reject
from streamdp.settings.places import Serving

if TYPE_CHECKING:
    from streamdp.page.server import Page

EVERY = 1.0
"""Seconds between two ticks."""

SHARE = 33.0
"""So many times as long as a tick took is waited for the next: ticks cost three per cent at most."""


def token_in(path: str | None) -> str | None:
    """The token that a file holds. Raises StreamdpError."""
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        token = file.read().strip()
    if (
        not 8 <= len(token) <= 200
        or not token.isascii()
        or not token.replace("-", "").replace("_", "").isalnum()
    ):
        raise StreamdpError(
            f"{path}: a token is 8 to 200 letters, digits, - and _, and nothing else", Exit.CONFIG
        )
    return token


def open_page(at: Serving, stream: str, chosen: Sequence[str]) -> Page:
    """Serve a page. Raises StreamdpError."""
    token = token_in(at.page_token)
    try:
        from streamdp.page.server import Page
        from streamdp.page.view import View
    except ImportError:
        raise StreamdpError(
            "the page needs two more packages: pip install starlette uvicorn", Exit.UNAVAILABLE
        ) from None
    assert at.page is not None
    page = Page(View(stream, chosen), at.page_host, at.page, token)
    say(f"the page is at {page.address}")
    return page


class LivePage(Watch):
    """A page that shows the run."""

    def __init__(self, at: Serving, stream: str, chosen: Sequence[str]) -> None:
        super().__init__()
        self._linger = at.page_linger
        self.page = open_page(at, stream, chosen)
        self._due = 0.0
        self._begun = False

    def beat(self, engine: Engine, reader: Reader | None, answered: int) -> None:
        """Answer what pages ask, and tell them how things stand, once a second."""
        if not self._begun:
            self._begun = True
            engine.tell_events()
            self.page.view.begin(engine)
        self.page.questions.answer(engine)
        now = time.monotonic()
        if now >= self._due:
            self.tick(engine, _behind(reader))
            took = time.monotonic() - now
            self._due = now + max(EVERY, SHARE * took)

    def tick(self, engine: Engine, more: dict[str, Any]) -> None:
        """Tell pages how things stand."""
        self.page.hub.publish(self.page.view.look(engine, time.monotonic(), {"state": "running", **more}))

    def taken(self, records: list[Record | Reject]) -> None:
        """Their texts."""
        self.page.view.taken(records)

    def told(self, answers: Answers, held_back: int) -> None:
        """Assignments, revisions, events and rejects."""
        self.page.view.told(answers, held_back)

    def ended(self, engine: Engine, asked: Callable[[], bool]) -> None:
        """Tell pages; go on answering them until an end is asked, where that was wanted."""
        self.tick(engine, {"state": "ended"})
        if not self._linger:
            return
        say(f"the input has ended; the page stays at {self.page.address} until Ctrl-C")
        while not asked():
            self.page.questions.answer(engine)
            time.sleep(0.05)

    def close(self) -> None:
        """Stop serving."""
        self.page.close()


def _behind(reader: Reader | None) -> dict[str, Any]:
    """How far reading is behind."""
    if reader is None:
        return {}
    lags = reader.lags(time.time())
    if lags:
        seconds = [lag.seconds for lag in lags if lag.seconds is not None]
        return {"lag": {"records": sum(lag.records for lag in lags), "seconds": max(seconds, default=None)}}
    share = reader.source.share()
    return {} if share is None else {"read": round(share, 4)}


LOOK = 2.0
"""Seconds between two looks for a newer snapshot."""


def serve_state(state: str, at: Serving) -> None:
    """Serve the newest snapshot until a signal comes."""
    seen = written_at(state)
    header, engine = open_state(state)
    page = open_page(at, state, automatic(engine.settings))
    try:
        told: dict[str, Any] = {"state": "snapshot", "written": header.written}
        _tell(page, engine, told)
        looked = ticked = time.monotonic()
        while True:
            page.questions.answer(engine)
            time.sleep(0.05)
            now = time.monotonic()
            if now - looked >= LOOK:
                looked = now
                if seen != (seen := written_at(state)):
                    header, engine = open_state(state)
                    told["written"] = header.written
                    page.view.restart()
                    _tell(page, engine, told)
            if now - ticked >= 10 * EVERY:  # what was not described yet is, by and by
                ticked = now
                page.hub.publish(page.view.look(engine, now, told))
    finally:
        page.close()


def _tell(page: Page, engine: Engine, told: dict[str, Any]) -> None:
    page.view.begin(engine)
    for _ in range(50):  # what a run describes over some time is described at once
        tick = page.view.look(engine, time.monotonic(), told)
        if not page.view.table.behind:
            break
    page.hub.publish(tick)
