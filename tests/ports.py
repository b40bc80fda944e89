"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket

_CHOSEN = random.SystemRandom()  # seeds of tests must not make two processes choose alike


def free_port() -> int:
    """A port of this host that nobody uses.

    It lies below those that the system chooses from for connections and for port 0. So no connection takes it
    before the server is there, or while the server is stopped.
    """
    while True:
        port = _CHOSEN.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
