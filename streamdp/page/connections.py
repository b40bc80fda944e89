"""Connections of the page: those that wait for slow clients are cut, so that none shuts others out."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.web import PAGE, PATIENCE, Crowd, Limits

ANSWER = 90.0
"""Seconds that an answer may take, reading it included, unless it is a stream."""

SWEEP = 1.0
"""Seconds between two looks for slow clients."""

STREAMS = ("/api/stream", "/v1/events")


class Connections:
    """All connections of one server."""

    def __init__(self, patience: float = PATIENCE, answer: float = ANSWER, limits: Limits = PAGE) -> None:
        self.patience, self.answer = patience, answer
        self.crowd: Crowd[Connection] = Crowd(limits.connections, limits.each, lambda one: one.idle)
        self.cut = 0
        """How many were cut."""

    def protocol(self) -> type[H11Protocol]:
        """HTTP/1.1 by a protocol whose connections are known here."""
        connections = self

        class Known(Connection):
            known = connections

        return Known

    def drop(self, client: Any) -> None:
        """Cut off the connection of a client: what waits for it is thrown away."""
        for one in self.crowd.all():
            if one.client is not None and tuple(one.client) == client:
                self._cut(one)

    def enter(self, one: Connection) -> None:
        """A connection was made."""
        gone = self.crowd.enter(one, one.client[0] if one.client else "")
        if gone is not None:
            self._cut(gone)

    async def sweep(self) -> None:
        """Cut connections that wait for their clients for too long, for as long as the server runs."""
        while True:
            await asyncio.sleep(min(SWEEP, self.patience / 2))
            now = time.monotonic()
            for one in self.crowd.all():
                if one.overdue(now, self.patience, self.answer):
                    self._cut(one)

    def _cut(self, one: Connection) -> None:
        self.cut += 1
        self.crowd.leave(one)
        one.transport.abort()


class Connection(H11Protocol):
    """A connection that knows for how long it has been as it is."""

    known: Connections
    _since = 0.0
    _seen: tuple[Any, bool] = (None, True)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take note of it."""
        super().connection_made(transport)
        self._since = time.monotonic()
        self.known.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.known.crowd.leave(self)
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether it waits for its client: for a request, or the rest of one."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def overdue(self, now: float, patience: float, answer: float) -> bool:
        """Whether it has waited for too long at a time of the monotonic clock."""
        idle = self.idle
        state = self.cycle, idle
        if state != self._seen:
            self._seen, self._since = state, now
        if not idle and self.cycle.scope["path"] in STREAMS:
            return False
        return now - self._since > (patience if idle else answer)
