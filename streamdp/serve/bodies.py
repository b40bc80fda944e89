"""Bodies of requests to records, each a line of the journal."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import zlib
from collections.abc import Callable
from itertools import islice
from typing import Literal, TypeVar

import msgspec
from starlette.requests import Request

from streamdp.decode.objects import in_strict_json
from streamdp.decode.outline import elements
from streamdp.page.errors import AskError, whole
from streamdp.questions.answers import Answer
from streamdp.web import Limits

SERVICE = Limits(body=16 << 20, connections=1200, each=1200)
"""What the service bears of its clients."""

FILES = 4096
"""Open files that it needs: for connections, those of which the handshake is under way, state and store."""

UNPACKED = 64 << 20
"""Bytes of a body that came packed, at most."""

MOST = 10_000
"""Records of a body."""

MEMBERS = 10_000
"""Members of a body of gzip, each of which may be empty."""

UNDER_WAY = 64 << 20
"""Bytes of all bodies that are coming or being read."""

SMALL = 16 << 10
"""Bytes that are read at once: more are read by a thread, so that others are answered meanwhile."""

_MEMBER = b"\x1f\x8b\x08"
"""How a member of gzip begins."""

_ON_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")

_T = TypeVar("_T")

Shape = Literal["one", "array", "lines"]
"""How records came, and how their answers go back."""

KINDS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "application/x-jsonlines": "lines",
    "text/plain": "lines",
}


class Uploads:
    """The bodies under way: ``most`` bytes in all, else the largest of those still coming is refused.

    Of equals that is the one that has been coming for longest. So nobody who sends much, or without end,
    keeps others out. Bodies that are packed, or not small, are read one at a time.
    """

    def __init__(self, most: int = UNDER_WAY) -> None:
        self._most, self._reading = most, asyncio.Lock()
        self._sizes: dict[asyncio.Task[object], int] = {}  # bytes that have come, by request
        self._coming: dict[asyncio.Task[object], None] = {}  # in order

    async def whole(self, request: Request, most: int) -> bytes:
        """A body, once all of it has come. Raises AskError."""
        task = _task()
        self._coming[task] = None
        try:
            return await whole(request, most, grown=lambda size: self._grow(task, size))
        except asyncio.CancelledError:
            if task in self._coming:
                raise
            task.uncancel()
            raise _too_much() from None
        finally:
            self._coming.pop(task, None)
            self._sizes.pop(task, None)

    async def read(self, request: Request, work: Callable[[bytes], _T]) -> _T:
        """What ``work`` makes of a body without its content encoding. Raises AskError."""
        packed = await self.whole(request, SERVICE.body)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity") and len(packed) <= SMALL:
            return work(packed)
        self._sizes[_task()] = len(packed)
        try:
            async with self._reading:
                return await asyncio.to_thread(lambda: work(unpacked(packed, encoding)))
        finally:
            del self._sizes[_task()]

    def _grow(self, task: asyncio.Task[object], size: int) -> None:
        self._sizes[task] = size
        if sum(self._sizes.values()) > self._most:
            largest = max(self._coming, key=lambda one: self._sizes.get(one, 0))
            if largest is task:
                raise _too_much()
            del self._coming[largest]
            del self._sizes[largest]
            largest.cancel()


def _task() -> asyncio.Task[object]:
    """The request that is being answered."""
    task = asyncio.current_task()
    assert task is not None
    return task


def _too_much() -> AskError:
    return AskError(503, "too much is being sent at once: send this again in a moment", 1.0)


def too_many() -> AskError:
    """The error of a body with more records than it may have."""
    return AskError(413, f"a body has at most {MOST:,} records: nothing was taken")


def unpacked(body: bytes, encoding: str) -> bytes:
    """A body without its content encoding. Raises AskError; nothing of such a body is taken."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise AskError(415, "content-encoding: gzip, or none")
    if body.count(_MEMBER) > MEMBERS:
        raise AskError(413, f"a body has at most {MEMBERS:,} members of gzip: nothing was taken")
    try:
        made = gzip.GzipFile(fileobj=io.BytesIO(body)).read(UNPACKED + 1)
    except EOFError:
        raise AskError(400, "the gzip body is cut off: nothing was taken") from None
    except (OSError, zlib.error):
        raise AskError(400, "the body is no gzip, or damaged: nothing was taken") from None
    if len(made) > UNPACKED:
        raise AskError(413, f"unpacked, a body has at most {UNPACKED:,} bytes: nothing was taken")
    return made


def records_of(
    body: bytes, kind: str, *, of_text: bool, most: int = UNPACKED
) -> tuple[Shape, list[bytes | Answer]]:
    """The records of a body, in order, each as a line, or as why it is none; and how they came.

    ``of_text`` says that records are lines of text, which JSON has as strings. Those of more than ``most``
    bytes are refused unread. Raises AskError.
    """
    form = KINDS.get(kind)
    if form is None:
        raise AskError(415, f"say what the body is, with content-type: one of {', '.join(KINDS)}")
    shape: Shape = "lines" if form == "lines" else "array" if body.lstrip()[:1] == b"[" else "one"
    parts: list[bytes] | None = [body]
    if shape == "lines":
        lines = (line for line in io.BytesIO(body.removeprefix(b"\xef\xbb\xbf")) if not line.isspace())
        parts = [line.removesuffix(b"\n").removesuffix(b"\r") for line in islice(lines, MOST + 1)]
    elif shape == "array":
        parts = elements(body, MOST)
    if parts is None or len(parts) > MOST:
        raise too_many()
    if not parts:
        raise AskError(400, "the body holds no record")
    try:
        return shape, [_record(part, shape, most, of_text=of_text) for part in parts]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AskError(400, f"the body is no JSON: {error}; nothing was taken") from None


def _record(part: bytes, shape: Shape, most: int, *, of_text: bool) -> bytes | Answer:
    """A part of a body as a line, or why it is none; raises what is wrong with JSON that is no line."""
    part = part if shape == "lines" else part.strip()
    if len(part) > most:
        return _refused("too_large", f"the record has {len(part)} bytes; the limit is {most}")
    if shape == "lines":
        return part if of_text else _strict(part) or part
    part = _strict(part) or msgspec.json.decode(part)  # which says what is wrong
    if not of_text:
        return part.translate(_ON_ONE_LINE)  # line ends stand only between its parts
    try:
        said = msgspec.json.decode(part, type=str).encode()
    except (msgspec.DecodeError, UnicodeError):
        return _refused("wrong_type", "records are lines of text here: send strings")
    if not said or said.isspace():
        return _refused("empty", "a line of text is not blank")
    if b"\n" in said or b"\r" in said:
        return _refused("several_lines", "a record is one line: send each as a string of its own")
    return said


def _strict(part: bytes) -> bytes | None:
    """A value of JSON as the standard wants it; None for no JSON, and for what is nested too deeply."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        msgspec.json.decode(part, type=msgspec.Raw)
        return part
    return in_strict_json(part)


def _refused(reason: str, detail: str) -> Answer:
    return Answer(status="refused", reason=reason, detail=detail)
