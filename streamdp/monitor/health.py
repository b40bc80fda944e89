"""An HTTP server for the metrics of a run and for probes of its health."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from streamdp.errors import Exit, StreamdpError
from streamdp.monitor.metrics import Metrics
from streamdp.web import PATIENCE, ConnectionLimiter, Hosts, is_loopback

_log = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"

MOST, EACH = 64, 32
"""Connections at once, and of one address."""


class HealthError(StreamdpError):
    """The server cannot start."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNAVAILABLE)


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
    """Serves that from a daemon thread, until closed. Port 0 takes any; ``port`` is the one taken."""

    def __init__(self, metrics: Metrics, host: str = "127.0.0.1", port: int = 0, **how: Any) -> None:
        super().__init__(metrics, **how)
        try:
            self._server = _Server(self, host, port)
        except (OSError, OverflowError) as error:
            raise HealthError(_refusal(host, port, error)) from error
        self.host = host
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="streamdp-health", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving and free the port; again is harmless."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _verdict(good: bool, otherwise: str) -> tuple[HTTPStatus, bytes, str]:
    if good:
        return HTTPStatus.OK, b"ok\n", PLAIN
    return HTTPStatus.SERVICE_UNAVAILABLE, f"{otherwise}\n".encode(), PLAIN


def _refusal(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"cannot serve metrics: {port} is not a port, choose another with --metrics-port"
    if error.errno == errno.EADDRINUSE:
        return f"cannot serve metrics: port {port} on {host} is taken, choose another with --metrics-port"
    reason = error.strerror or str(error)
    return f"cannot serve metrics on {host}, port {port} (--metrics-port): {reason}"


def _cut(request: socket.socket) -> None:
    """End a connection: the thread that waits for it goes on, and finds it closed."""
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, health: HealthServer, host: str, port: int) -> None:
        self.health = health
        self._hosts = Hosts(host) if is_loopback(host) else None
        self._crowd: ConnectionLimiter[socket.socket] = ConnectionLimiter(MOST, EACH, lambda one: True)
        self._ends: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of the host's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; where there are too many, the oldest has to go."""
        with self._lock:
            gone = self._crowd.enter(request, str(client_address[0]))
            self._ends[request] = time.monotonic() + PATIENCE
            if gone is not None:
                _cut(gone)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has been answered."""
        with self._lock:
            self._crowd.leave(request)
            self._ends.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut slow connections; called ten times a second."""
        now = time.monotonic()
        with self._lock:
            for request, end in self._ends.items():
                if now > end:
                    _cut(request)

    def knows(self, host: str | None) -> bool:
        """Whether a Host header, or none, is one for this server."""
        return self._hosts is None or host is None or self._hosts.have(host)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let clients go away without a word; of anything else, say it in a line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            _log.error("a request for metrics or health failed: %s: %s", type(error).__name__, error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "streamdp"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        accept = self.headers.get("Accept", "")
        if self.server.knows(self.headers.get("Host")):
            status, body, content_type = self.server.health.answer(self.path.partition("?")[0], accept)
        else:
            status, body, content_type = HTTPStatus.MISDIRECTED_REQUEST, b"no name of this server\n", PLAIN
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No access log."""
