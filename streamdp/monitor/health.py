"""An HTTP server for the metrics of a run and for probes of its health."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from streamdp.errors import Exit, StreamdpError
from streamdp.monitor.metrics import Metrics
from streamdp.web import Hosts, Limits, is_loopback

PLAIN = "text/plain; charset=utf-8"

LIMITS = Limits(connections=64, each=32)
"""Connections at once, and of one address."""


class HealthError(StreamdpError):
    """The server cannot start."""

    def __init__(self, message: str, exit_code: Exit = Exit.UNAVAILABLE) -> None:
        super().__init__(message, exit_code)


class Health:
    """What is answered of a run at /metrics, /livez and /readyz.

    Until the first beat a run waits for what it needs, and counts as alive. ``busy`` says why no records are
    taken just now, where that will pass.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        stale_after: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._metrics = metrics
        self._stale_after = stale_after
        self._clock = clock
        self._busy = busy
        self._beaten: float | None = None

    def beat(self) -> None:
        """Say that the loop is alive."""
        self._beaten = self._clock()

    @property
    def live(self) -> bool:
        """Whether the last beat, if there was one, is recent."""
        return self._beaten is None or self._clock() - self._beaten <= self._stale_after

    def close(self) -> None:
        """Stop serving, where anything is served; again is harmless."""

    def _hindrance(self) -> str | None:
        """Why no records are taken; None where they are."""
        if self._metrics.standing_by:
            return "standing by"
        if not self._metrics.ready:
            return "not ready"
        return "source down" if self._metrics.source_up is False else self._busy()

    def answer(self, path: str, accept: str) -> tuple[HTTPStatus, bytes, str]:
        """Status, body and content type for a path.

        Metrics are OpenMetrics where ``accept``, a header as HTTP has it, ranks that first.
        """
        match path:
            case "/metrics":
                return HTTPStatus.OK, *self._metrics.render(accept)
            case "/livez":
                return _verdict(self.live, "stalled")
            case "/readyz":
                hindrance = self._hindrance()
                return _verdict(hindrance is None, hindrance or "")
            case _:
                return HTTPStatus.NOT_FOUND, b"not found\n", PLAIN


class HealthServer(Health):
    """Serves that from a daemon thread, until closed. Port 0 takes any; ``port`` is the one taken.

    Raises HealthError, and ImportError where the package that serves is not there.
    """

    def __init__(self, metrics: Metrics, host: str = "127.0.0.1", port: int = 0, **how: Any) -> None:
        from streamdp.web.server import Server, refusal

        super().__init__(metrics, **how)
        self._hosts = Hosts(host) if is_loopback(host) else None
        try:
            self._server = Server(host, port, LIMITS)
        except (OSError, OverflowError) as error:
            raise HealthError(refusal("metrics", "--metrics-port", host, port, error)) from error
        self.host, self.port, self.connections = host, self._server.port, self._server.connections
        self._server.start(self._app, "streamdp-health")

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer as ASGI has it."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] not in ("GET", "HEAD"):
            status, body, kind = HTTPStatus.METHOD_NOT_ALLOWED, b"metrics are only read\n", PLAIN
        elif self._hosts is not None and not self._hosts.have(headers.get(b"host", "localhost")):
            status, body, kind = HTTPStatus.MISDIRECTED_REQUEST, b"no name of this server\n", PLAIN
        else:
            status, body, kind = self.answer(scope["path"], headers.get(b"accept", ""))
        said = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": int(status), "headers": said})
        await send({"type": "http.response.body", "body": body})

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self._server.close()


def _verdict(good: bool, otherwise: str) -> tuple[HTTPStatus, bytes, str]:
    if good:
        return HTTPStatus.OK, b"ok\n", PLAIN
    return HTTPStatus.SERVICE_UNAVAILABLE, f"{otherwise}\n".encode(), PLAIN
