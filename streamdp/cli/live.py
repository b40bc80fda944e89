"""The live page of a run, where it was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from streamdp_connectors.protocol import share_of

from streamdp.cli.errors import say
from streamdp.cli.reading import Reader
from streamdp.cli.watch import Watch
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.records import Answers, Record, Reject

if TYPE_CHECKING:
    from streamdp.page.server import Page

EVERY = 1.0
"""Seconds between two ticks."""

SHARE = 33.0
"""So many times as long as a tick took is waited for the next: ticks cost three per cent at most."""


class PageAt(NamedTuple):
    """Where a page is wanted."""

    port: int
    host: str = "127.0.0.1"
    token: str | None = None
    linger: bool = False
    """Whether it is still served when the input has ended."""


def page_at(
    port: int | None, host: str = "127.0.0.1", token: str | None = None, *, linger: bool = False
) -> PageAt | None:
    """What the command line says, ``token`` being a file; None for no page. Raises StreamdpError."""
    return None if port is None else PageAt(port, host, token_in(token), linger)


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


def open_page(at: PageAt, stream: str, chosen: Sequence[str]) -> Page:
    """Serve a page. Raises StreamdpError."""
    try:
        from streamdp.page.server import Page
        from streamdp.page.view import View
    except ImportError:
        raise StreamdpError(
            "the page needs two more packages: pip install starlette uvicorn", Exit.UNAVAILABLE
        ) from None
    page = Page(View(stream, chosen), at.host, at.port, at.token)
    say(f"the page is at {page.address}")
    return page


class LivePage(Watch):
    """A page that shows the run."""

    def __init__(self, at: PageAt, stream: str, chosen: Sequence[str]) -> None:
        super().__init__()
        self._linger = at.linger
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
    share = share_of(reader.source)
    return {} if share is None else {"read": round(share, 4)}
