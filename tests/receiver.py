"""Receivers of alerts for tests: one that keeps what it gets, and behaves as it is told; an Alertmanager."""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from commands import start, succeed, wait_for_size

from streamdp.alerts.outbox import Counts, Outbox

Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Keeps the body, and answers as the receiver says."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.attempts.append((self.path, dict(self.headers), body))
        self.server.behaviour(self)

    def take(self) -> None:
        """Accept the message."""
        self.server.taken.append(json.loads(self.server.attempts[-1][2]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def refuse(self, status: int, **headers: str) -> None:
        """Refuse the message."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def raw(self, data: bytes) -> None:
        """Answer with these bytes, and close the connection."""
        self.wfile.write(data)
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """The server of a receiver."""

    daemon_threads = True

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.attempts: list[tuple[str, dict[str, str], bytes]] = []
        self.taken: list[Any] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away."""


class Webhook:
    """A receiver; what it does may be changed while it runs."""

    def __init__(self, behaviour: Behaviour = Handler.take) -> None:
        self.server = Server(behaviour)
        self.port = int(self.server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def events(self) -> list[dict[str, Any]]:
        """All that it has taken, in order, of messages of JSON."""
        return [event for message in list(self.server.taken) for event in message["events"]]

    @property
    def keys(self) -> list[str]:
        """The keys of these."""
        return [event["key"] for event in self.events]


def killed_again_and_again(folder: Path, hook: Webhook, *run: str) -> None:
    """Kill a run that writes ``out`` four times, while every third message is refused; then let it end."""
    times = itertools.count(1)
    hook.server.behaviour = lambda handler: handler.take() if next(times) % 3 else handler.refuse(503)
    for size in range(200_000, 1_000_000, 200_000):
        process = start(folder, *run, "--follow")
        assert wait_for_size(process, folder / "out", size)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    hook.server.behaviour = Handler.take
    succeed(folder, *run)


def hang(handler: Handler) -> None:
    """Say nothing until the other side has had enough."""
    handler.connection.settimeout(60)
    try:
        handler.connection.recv(1)
    except OSError:
        time.sleep(0)
    handler.close_connection = True


def counts(box: Outbox) -> Counts:
    """What has become of the alert called ops."""
    return box.counts()["ops"]
