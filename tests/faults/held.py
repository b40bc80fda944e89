"""A broker behind a proxy that can hold back what clients ask it to write."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from pathlib import Path

from broker.process import Broker
from broker.topics import contents, produce
from ports import free_port

PRODUCE = 0

_LISTENERS = """
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},BEHIND://127.0.0.1:{behind}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},BEHIND://127.0.0.1:{proxy}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""


class Held(Broker):
    """``bootstrap`` leads straight to the broker, ``proxied`` through the proxy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._behind = free_port()
        self._listener = socket.create_server(("127.0.0.1", 0))
        proxy = self._listener.getsockname()[1]
        self.proxied = f"127.0.0.1:{proxy}"
        text = self.properties.read_text()
        ports = {"plain": self.port, "controller": self.controller, "behind": self._behind, "proxy": proxy}
        self.properties.write_text(text + _LISTENERS.format(**ports))
        self._open = threading.Event()
        self._open.set()
        self.held = 0
        """Requests to write that wait in the proxy now."""
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Let no request to write through, from now on."""
        self._open.clear()

    def release(self) -> None:
        """Let all through, also those of clients that are gone."""
        self._open.set()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._behind))
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), client.makefile("rb") as requests:
            while len(length := requests.read(4)) == 4:
                request = requests.read(struct.unpack(">i", length)[0])
                if struct.unpack(">h", request[:2])[0] == PRODUCE and not self._open.is_set():
                    self.held += 1
                    self._open.wait()
                    self.held -= 1
                server.sendall(length + request)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := server.recv(1 << 16):
                with contextlib.suppress(OSError):  # whoever asked may be gone
                    client.sendall(chunk)


def fill(broker: Held, topic: str, count: int, first: int = 0) -> None:
    """Produce so many records of a few words."""
    values = (b'{"id": %d, "text": "storm over coast %d"}' % (i, i % 5) for i in range(first, first + count))
    produce(broker.bootstrap, topic, ((0, value) for value in values))


def command(bootstrap: str, topic: str, output: str, state: str = "state") -> list[str]:
    """A run from topic to topic."""
    where = ["--topic", topic, "--bootstrap", bootstrap, "--state", state]
    return ["consume", *where, "--output-topic", output, "--rejects", f"{state}.rejects"]


def assert_once(held: Held, output: str, count: int) -> None:
    """Every number of the output, and every record's first answer, is there once, in order."""
    found = contents(held.bootstrap, output)
    numbers = [int(dict(record.headers)["out_seq"]) for record in found]
    assert numbers == list(range(len(found)))
    assert sum(b'"revision":0' in record.value for record in found) == count
