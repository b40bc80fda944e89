"""Who may ask: hosts, origins, a token where strangers could reach the page; how often texts are scored."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

COOKIE = "streamdp-token"

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
"""With every answer: a page may load and ask nothing but this server, and no page may frame it."""

Scope = dict[str, Any]


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


class Allowance:
    """So many at once, and so many a second in the long run."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._rate, self._clock = burst, rate, clock
        self._left, self._at = burst, clock()

    def take(self) -> float:
        """Take one: 0, or in how many seconds there will be one."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1.0:
            self._left -= 1.0
            return 0.0
        return (1.0 - self._left) / self._rate


class Guard:
    """Stands before the application, as ASGI has it.

    On an address of this machine alone, only its own names are answered, so that no page of the web can have
    a name of its own point here (DNS rebinding). On any other, a token is asked for: in a header
    (``Authorization: Bearer``), or once in the address, which leaves a cookie.
    """

    def __init__(self, app: Any, host: str, token: str | None) -> None:
        self._app, self._token = app, token
        names = {"localhost", host.lower()} if is_loopback(host) else {host.lower(), *_own_names()}
        self._names, self._any_address = names, not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}

        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(guarded, *refused)
            return
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        if self._token is not None and "token" in given:
            if self._right(given.pop("token")):
                path = scope["path"] + (f"?{urlencode(given)}" if given else "")
                cookie = f"{COOKIE}={self._token}; Path=/; HttpOnly; SameSite=Strict"
                await _answer(
                    guarded, 303, "", [(b"location", path.encode()), (b"set-cookie", cookie.encode())]
                )
                return
            await _answer(guarded, 401, "this is not the token that the run printed")
            return
        if self._token is not None and not self._known(headers):
            await _answer(guarded, 401, "a token is needed: open the address that the run printed")
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "this page only reads"
        host = host_of(headers.get("host", ""))
        if host is None or not self._is_ours(host):
            return 421, "this is no name of the machine that serves this page"
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers["host"].lower():
            return 403, "another site may not ask"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and (
            scope["method"] == "POST" or scope["path"].startswith("/api/")
        ):
            return 403, "another site may not ask"
        return None

    def _is_ours(self, host: str) -> bool:
        if host in self._names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._any_address or address.is_loopback

    def _known(self, headers: dict[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._right(token.strip()):
            return True
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == COOKIE and self._right(value) for name, _, value in cookies)

    def _right(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())


def _own_names() -> Iterable[str]:
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}


async def _answer(send: Any, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = f"{text}\n".encode()
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *headers]})
    await send({"type": "http.response.body", "body": body})
