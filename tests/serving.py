"""A running service for tests, and clients of it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

from commands import start, wait_for


class Served:
    """``streamdp serve`` in a folder, at a port of its own."""

    def __init__(self, folder: Path, *more: str, ready: bool = True, **settings: str) -> None:
        self.folder, self.said = folder, bytearray()
        arguments = ["serve", "--state", "st", "--store", "news.db", "--port", "0", *more]
        self.process: subprocess.Popen[bytes] = start(folder, *arguments, **settings)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        wait_for(lambda: re.search(rb"service is at \w+://[^:]+:(\d+)/", self.said), self.process)
        found = re.search(rb"service is at \w+://[^:]+:(\d+)/", self.said)
        assert found is not None
        self.port = int(found[1])
        if ready:
            wait_for(lambda: self.ask("GET", "/readyz")[0] == 200, self.process)

    def _read(self) -> None:
        assert self.process.stderr is not None
        while part := self.process.stderr.read1(1 << 16):  # type: ignore[attr-defined]
            self.said += part

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", **more: str
    ) -> tuple[int, Any]:
        """Status, and the answer: of JSON, of lines of JSON, or as text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if body is not None:
            headers["content-type"] = kind
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data, is_of = answer.read(), answer.headers.get_content_type()
        finally:
            connection.close()
        if is_of == "application/json":
            return answer.status, json.loads(data)
        if is_of == "application/x-ndjson":
            return answer.status, [json.loads(line) for line in data.splitlines()]
        return answer.status, data.decode()

    def send(self, *records: Any, **more: str) -> tuple[int, Any]:
        """Send records as an array."""
        return self.ask("POST", "/v1/records", json.dumps(records).encode(), **more)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        code = self.process.wait(120)
        self.reader.join(120)
        return code


def stored(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a store says of records, stories and events."""
    with sqlite3.connect(path) as store:
        tables = ("records", "answers", "stories", "events")
        return {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
