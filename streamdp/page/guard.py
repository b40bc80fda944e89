"""Who may ask: hosts, origins, a token where strangers could reach the page; how often texts are scored."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from streamdp.web import PAGE, Hosts, Limits

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

MORE = {405: [(b"allow", b"GET, HEAD, POST")], 429: [(b"retry-after", b"1")]}
"""What else a refusal says, by its status."""

HEALTH = ("/livez", "/readyz")
"""What whoever can reach a service may ask of it without a token: whether it lives."""

ASKS = 1000.0, 200.0
"""Questions without a body (GET) of one address at once, and a second in the long run."""

ADDRESSES = 1200
"""Addresses of which that is known: those that asked latest."""

Scope = dict[str, Any]


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


LACKING = (
    "a token is needed: send Authorization: Bearer TOKEN, or in a browser add ?token=TOKEN to the address"
)
WRONG = "this token is not the one that the run printed, or was given"
"""What is said to those who send no token, and another one."""


class Guard:
    """Stands before the application, as ASGI has it.

    On an address of this machine alone, only its own names are answered, so that no page of the web can have
    a name of its own point here (DNS rebinding). On any other, a token is asked for: in a header
    (``Authorization: Bearer``), or once in the address, which leaves a cookie.
    """

    def __init__(self, app: Any, host: str, token: str | None, limits: Limits = PAGE) -> None:
        self._app, self._token, self._hosts, self._limits = app, token, Hosts(host), limits
        self._asked: dict[str, Allowance] = {}

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

        as_json = scope["path"].startswith("/v1/")
        refused = self._refusal(scope, headers)
        if refused is not None:
            more = MORE.get(refused[0], [])
            await _answer(guarded, *refused, [(b"connection", b"close"), *more], as_json=as_json)
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
            await _answer(guarded, 401, WRONG, as_json=as_json)
            return
        if self._token is not None and not self._known(headers) and scope["path"] not in HEALTH:
            what = WRONG if "authorization" in headers else LACKING
            await _answer(guarded, 401, what, as_json=as_json)
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        for_programs = scope["path"].startswith("/v1/")  # its own paths say which methods they have
        if scope["method"] not in ("GET", "HEAD", "POST") and not for_programs:
            return 405, "this page only reads"
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers and "content-length" in headers:
            return 400, "a request has one length"
        if (
            scope["method"] in ("GET", "HEAD")
            and not for_programs
            and (length != "0" or "transfer-encoding" in headers)
        ):
            return 413, "a question has no body"
        if len(length) > 9 or int(length) > self._limits.body:
            return 413, f"a request has at most {self._limits.body:,} bytes"
        if not self._hosts.have(headers.get("host", "")):
            return 421, "this is no name of the machine that serves this page"
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers["host"].lower():
            return 403, "another site may not ask"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and (
            scope["method"] == "POST" or scope["path"].startswith(("/api/", "/v1/"))
        ):
            return 403, "another site may not ask"
        if scope["method"] != "POST" and self._too_many(scope):
            return 429, "too many questions at once: wait a moment"
        return None

    def _too_many(self, scope: Scope) -> bool:
        """Whether an address asks too much: the connection is closed then, and what it sent ahead dropped."""
        address = (scope.get("client") or ("",))[0]
        held = self._asked.pop(address, None) or Allowance(*ASKS)
        self._asked[address] = held  # the latest is the last
        if len(self._asked) > ADDRESSES:
            del self._asked[next(iter(self._asked))]
        return held.take() > 0.0

    def _known(self, headers: dict[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._right(token.strip()):
            return True
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == COOKIE and self._right(value) for name, _, value in cookies)

    def _right(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())


async def _answer(
    send: Any, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = (), *, as_json: bool = False
) -> None:
    body = msgspec.json.encode({"error": text}) if as_json else f"{text}\n".encode()
    kind = b"application/json" if as_json else b"text/plain; charset=utf-8"
    plain = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *headers]})
    await send({"type": "http.response.body", "body": body})
