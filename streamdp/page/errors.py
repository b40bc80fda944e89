"""How the page's paths answer and refuse: JSON, numbers of the query, bodies."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from streamdp.answers.listing import printable
from streamdp.encode.embedding import EmbeddingError
from streamdp.page.guard import Allowance
from streamdp.questions.asking import QuestionError

_log = logging.getLogger("streamdp")

Endpoint = Callable[[Request], Awaitable[Response]]


class AskError(Exception):
    """What was asked cannot be answered: a status and one line."""

    def __init__(self, status: int, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.message, self.wait = status, message, wait


class Asks(Protocol):
    """What asks the view, and the thread that runs the stream."""

    view: Any
    made: Allowance

    async def ask(self, question: Callable[[Any], Any], *, scores: bool = False) -> Any:
        """Ask the thread that runs the stream. Raises AskError where it has no time."""


def allow(allowance: Allowance, what: str = "questions") -> None:
    """Take one of what is allowed. Raises AskError."""
    wait = allowance.take()
    if wait:
        raise AskError(429, f"too many {what} at once: wait a moment", wait)


def kind_of(request: Request) -> str:
    """What a body is, as its sender says: its content type without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def only(request: Request, *names: str) -> None:
    """See that a query has no other fields than these. Raises AskError."""
    for name in request.query_params:
        if name not in names:
            there = ", ".join(names) or "none"
            raise AskError(400, f"{printable(name)[:40]}: there is no such field (there are: {there})")


def or_error(answer: Endpoint) -> Endpoint:
    """The same, with an AskError as JSON, and what nobody foresaw in the log."""

    @wraps(answer)
    async def answered(request: Request) -> Response:
        try:
            return await answer(request)
        except AskError as error:
            return as_json(msgspec.json.encode({"error": error.message}), error.status, headers_of(error))
        except QuestionError as error:
            return as_json(msgspec.json.encode({"error": error.message}), error.status)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            _log.warning("%s %s: %s", request.method, request.url.path, what)
            if isinstance(error, EmbeddingError):
                return as_json(b'{"error":"no text can be embedded now: the log says why"}', 503)
            return as_json(b'{"error":"the service has failed at this: its log says how"}', 500)

    return answered


def headers_of(error: AskError) -> dict[str, str]:
    """When to ask again; of too long a body, that what is still to come is not read."""
    headers = {"retry-after": str(math.ceil(error.wait))} if error.wait else {}
    return headers | ({"connection": "close"} if error.status == 413 else {})


def as_json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer of JSON, which nobody stores."""
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, "application/json")


async def whole(
    request: Request, most: int, large: str | None = None, grown: Callable[[int], None] = lambda size: None
) -> bytes:
    """The body, once all of it has come; ``large`` is what is said of one that is too large.

    ``grown`` is called with how many bytes have come. ClientDisconnect where the body is cut off: nothing of
    it is taken. Raises AskError.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        grown(len(body))
        if len(body) > most:
            raise AskError(413, large or f"a body has at most {most:,} bytes: nothing was taken")
    return bytes(body)
