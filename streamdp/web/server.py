"""The server of the page, the service and the metrics: a thread, a loop and a socket of its own.

Connections that wait for slow clients are cut, while these shake hands, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.web import PAGE, PATIENCE, ConnectionLimiter, Limits

_log = logging.getLogger("streamdp")

ANSWER = 90.0
"""Seconds that an answer may take, reading it included, unless it is a stream."""

SWEEP = 1.0
"""Seconds between two looks for slow clients."""

STREAMS = ("/api/stream", "/v1/events")


class Connections:
    """All connections of one server."""

    def __init__(self, limits: Limits = PAGE) -> None:
        self.patience, self.answer = PATIENCE, ANSWER
        self.crowd: ConnectionLimiter[Connection] = ConnectionLimiter(
            limits.connections, limits.each, lambda one: one.idle
        )
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


CLOSING = 5.0
"""Seconds that the server is waited for."""

QUIET = 10.0
"""Seconds between two lines of the log about connections that failed."""


class Loop(asyncio.SelectorEventLoop):
    """A loop whose servers bear clients that do nothing, and say little of those that fail."""

    _said = -QUIET

    async def create_server(self, *given: Any, **how: Any) -> Any:
        """The same, with patience for the handshakes of TLS, too."""
        if how.get("ssl") is not None:
            how |= {"ssl_handshake_timeout": PATIENCE, "ssl_shutdown_timeout": PATIENCE}
        return await super().create_server(*given, **how)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Say in one line what went wrong, now and then: a flood of connections would fill the disk."""
        if self.time() - self._said >= QUIET:
            self._said = self.time()
            _log.warning("a connection failed: %s (%s)", context.get("message"), context.get("exception"))


def _nothing() -> None:
    """Do nothing."""


class Server:
    """Serves an application of ASGI from a daemon thread, until closed.

    Parameters
    ----------
    host, port
        Where; port 0 takes any free one, and ``port`` is the one taken.
    limits
        What it bears of clients.
    tls
        What uvicorn takes of certificates.

    Raises OSError or OverflowError, of which ``refusal`` says what people read.
    """

    def __init__(
        self, host: str, port: int, limits: Limits = PAGE, tls: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.host, self.connections = host, Connections(limits)
        self._limits, self._tls = limits, tls
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        self._began = threading.Event()

    def start(self, app: Any, name: str, begun: Callable[[], None] = _nothing) -> None:
        """Serve an application; ``begun`` is called in the loop first."""
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        config = uvicorn.Config(
            app,
            http=self.connections.protocol(),
            ws="none",
            loop="asyncio",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=128,
            limit_concurrency=self._limits.connections + 56,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
            **self._tls,
        )
        self._server = uvicorn.Server(config)

        async def serve() -> None:
            begun()
            sweeping = asyncio.create_task(self.connections.sweep())
            self._began.set()
            await self._server.serve(sockets=[self._socket])
            sweeping.cancel()

        def run() -> None:
            with contextlib.suppress(SystemExit), asyncio.Runner(loop_factory=Loop) as runner:
                runner.run(serve())

        self._thread = threading.Thread(target=run, name=name, daemon=True)
        self._thread.start()
        self._began.wait(CLOSING)

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self._server.should_exit = True
        self._thread.join(CLOSING)
        self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except (OSError, OverflowError):
        made.close()
        raise
    made.setblocking(False)
    return made


def refusal(what: str, option: str, host: str, port: int, error: OSError | OverflowError) -> str:
    """Why something cannot be served, and which ``option`` gives it another port, where there is one."""
    another = f", choose another with {option}" if option else ": choose another"
    if isinstance(error, OverflowError):
        return f"cannot serve {what}: {port} is not a port{another}"
    if error.errno == errno.EADDRINUSE:
        return f"cannot serve {what}: port {port} on {host} is taken{another}"
    named = f" ({option})" if option else ""
    return f"cannot serve {what} on {host}, port {port}{named}: {error.strerror or error}"
