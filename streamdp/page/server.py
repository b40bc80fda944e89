"""The server of the page: a thread and a loop of its own; connections that wait for slow clients are cut."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

import uvicorn
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.errors import Exit, StreamdpError
from streamdp.page.api import Api
from streamdp.page.guard import Allowance, Guard
from streamdp.page.hub import Hub, Questions
from streamdp.page.view import View
from streamdp.web import PAGE, PATIENCE, ConnectionLimiter, Limits, is_loopback

ANSWER = 90.0
"""Seconds that an answer may take, reading it included, unless it is a stream."""

_log = logging.getLogger("streamdp")

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


SCORES = 10.0, 4.0
"""Texts that are scored at once, and in a second in the long run."""

MADE = 120.0, 60.0
"""Answers that are worked out at once, and in a second; pages share those that are the same."""

CLOSING = 5.0
"""Seconds that the server is waited for."""


class PageError(StreamdpError):
    """The page cannot be served."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNAVAILABLE)


class How(TypedDict, total=False):
    """What may be said of a page besides."""

    limits: Limits
    tls: Mapping[str, Any]
    more: Callable[[Api], Iterable[Route]]


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


class Page:
    """Serves a view from a daemon thread, until closed.

    Parameters
    ----------
    view
        What is shown.
    host, port
        Where; port 0 takes any free one, and ``port`` is the one taken.
    token
        What strangers must know where the address can be reached from other machines; None: one is made up,
        unless clients show a certificate.
    limits
        What it bears of clients.
    tls
        What uvicorn takes of certificates.
    more
        Makes further routes of the answers that a page gives.

    Raises PageError.
    """

    def __init__(
        self, view: View, host: str = "127.0.0.1", port: int = 0, token: str | None = None, **how: Unpack[How]
    ) -> None:
        self.view, self.questions, self.host = view, Questions(), host
        limits, self._tls = how.get("limits", PAGE), how.get("tls", {})
        open_to_all = not is_loopback(host) and "ssl_ca_certs" not in self._tls
        self.token = token or (secrets.token_urlsafe(24) if open_to_all else None)
        self._own_token = token is not None
        self.hub = Hub(secrets.token_hex(4), view.first_tick)
        self.connections = Connections(limits)
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        api = Api(view, self.hub, self.questions, self.connections.drop, Allowance(*SCORES), Allowance(*MADE))
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        config = uvicorn.Config(
            Guard(api.app(how.get("more")), host, self.token, limits),
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
            limit_concurrency=limits.connections + 56,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
            **self._tls,
        )
        self._server = uvicorn.Server(config)
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamdp-page", daemon=True)
        self._thread.start()
        self._began.wait(CLOSING)

    @property
    def address(self) -> str:
        """What to open in a browser; without a token that the user has chosen, because it is printed."""
        named = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.token is None or self._own_token else f"?token={self.token}"
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{named}:{self.port}/{shown}"

    @property
    def site(self) -> str:
        """The address without any token."""
        return self.address.partition("?")[0]

    def _run(self) -> None:
        async def serve() -> None:
            self.hub.begin()
            sweeping = asyncio.create_task(self.connections.sweep())
            self._began.set()
            await self._server.serve(sockets=[self._socket])
            sweeping.cancel()

        with contextlib.suppress(SystemExit), asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(serve())

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self.hub.close()
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
    except (OSError, OverflowError) as error:
        made.close()
        raise PageError(_refusal(host, port, error)) from error
    made.setblocking(False)
    return made


def _refusal(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"cannot serve the page: {port} is not a port: choose another"
    if error.errno == errno.EADDRINUSE:
        return f"cannot serve the page: port {port} on {host} is taken: choose another"
    return f"cannot serve the page on {host}, port {port}: {error.strerror or error}"
