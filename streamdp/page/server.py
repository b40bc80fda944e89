"""The server of the page: a thread of its own, with a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import secrets
import socket
import threading
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.errors import Exit, StreamdpError
from streamdp.page.api import Api
from streamdp.page.guard import Allowance, Guard, is_loopback
from streamdp.page.hub import Hub, Questions
from streamdp.page.view import View

SCORES = 10.0, 4.0
"""Texts that are scored at once, and in a second in the long run."""

CLOSING = 5.0
"""Seconds that the server is waited for."""


class PageError(StreamdpError):
    """The page cannot be served."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNAVAILABLE)


class Page:
    """Serves a view from a daemon thread, until closed.

    Parameters
    ----------
    view
        What is shown.
    host, port
        Where; port 0 takes any free one, and ``port`` is the one taken.
    token
        What strangers must know where the address can be reached from other machines; None: one is made up.

    Raises PageError.
    """

    def __init__(self, view: View, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        self.view, self.questions, self.host = view, Questions(), host
        self.token = (token or secrets.token_urlsafe(24)) if not is_loopback(host) or token else None
        self._own_token = token is not None
        self.hub = Hub(secrets.token_hex(4), view.first_tick)
        self._transports: dict[Any, asyncio.Transport] = {}
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        api = Api(view, self.hub, self.questions, self._drop, Allowance(*SCORES))
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        config = uvicorn.Config(
            Guard(api.app(), host, self.token),
            http=self._protocol(),
            ws="none",
            loop="asyncio",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=128,
            limit_concurrency=256,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
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
        return f"http://{named}:{self.port}/{shown}"

    def _run(self) -> None:
        async def serve() -> None:
            self.hub.begin()
            self._began.set()
            await self._server.serve(sockets=[self._socket])

        with contextlib.suppress(SystemExit):
            asyncio.run(serve())

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self.hub.close()
        self._server.should_exit = True
        self._thread.join(CLOSING)
        self._socket.close()

    def _drop(self, client: Any) -> None:
        """Cut off a browser that does not read: what waits for it is thrown away."""
        transport = self._transports.pop(client, None)
        if transport is not None:
            transport.abort()

    def _protocol(self) -> type[H11Protocol]:
        """HTTP/1.1 by a protocol whose connections can be found by their client's address."""
        known = self._transports

        class Protocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    known[tuple(self.client)] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                if self.client is not None:
                    known.pop(tuple(self.client), None)
                super().connection_lost(exc)

        return Protocol


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
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
        return f"cannot serve the page: {port} is not a port, choose another with --page"
    if error.errno == errno.EADDRINUSE:
        return f"cannot serve the page: port {port} on {host} is taken, choose another with --page"
    return f"cannot serve the page on {host}, port {port}: {error.strerror or error}"
