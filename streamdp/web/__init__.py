"""What every server checks: the host names in requests, and the number of connections."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

PATIENCE = 10.0
"""Seconds that a client may take for a request, or between two."""


class Limits(NamedTuple):
    """What a server bears: bytes of a body, connections at once, and of one address."""

    body: int = 64_000
    connections: int = 200
    each: int = 100


PAGE = Limits()
"""Those of a page, which people look at."""


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str | None:
    """The host in a Host header, without its port; None where it is none."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", header)
    return None if match is None else match[1].strip("[]").lower()


class Hosts:
    """The names by which a server may be called that listens at ``host``.

    At an address of this machine alone they are its own, so that no page of the web can have a name of its
    own point here (DNS rebinding); else those of the machine, and all addresses.
    """

    def __init__(self, host: str) -> None:
        own = {socket.gethostname().lower(), socket.getfqdn().lower()} if not is_loopback(host) else set()
        self._names = {"localhost", host.lower(), *own}
        self._any_address = not is_loopback(host)

    def have(self, header: str) -> bool:
        """Whether a Host header names this server."""
        host = host_of(header)
        if host is None or host in self._names:
            return host is not None
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._any_address or address.is_loopback


T = TypeVar("T")


class ConnectionLimiter(Generic[T]):
    """Connections in order of arrival: ``most`` in all, and no more than ``each`` that wait of one address.

    Where there are more, the oldest that waits for its client (``idle``) has to go: one that asks is answered
    within moments, so that who only holds connections cannot shut others out.
    """

    def __init__(self, most: int, each: int, idle: Callable[[T], bool]) -> None:
        self._most, self._each, self._idle = most, each, idle
        self._addresses: dict[T, str] = {}
        self._counts: Counter[str] = Counter()  # connections by address

    def __len__(self) -> int:
        return len(self._addresses)

    def all(self) -> list[T]:
        """Who is here, the oldest first."""
        return list(self._addresses)

    def enter(self, one: T, address: str) -> T | None:
        """Take a connection in; the one that has to go for it, which may be itself."""
        counts = self._counts
        gone: T | None = None
        if counts[address] >= self._each or len(self) >= self._most:
            where = address if counts[address] >= self._each else counts.most_common(1)[0][0]
            among = (other for other, of in self._addresses.items() if of == where and self._idle(other))
            gone = next(among, one if len(self) >= self._most else None)
            if gone is one:
                return one
            if gone is not None:
                self.leave(gone)
        self._addresses[one] = address
        counts[address] += 1
        return gone

    def leave(self, one: T) -> None:
        """A connection has ended."""
        address = self._addresses.pop(one, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]
