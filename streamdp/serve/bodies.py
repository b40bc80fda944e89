"""Bodies of requests to records, each a line of the journal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import zlib
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec
from starlette.requests import Request

from streamdp.decode.objects import in_strict_json
from streamdp.decode.outline import STRETCH, elements, occurrences
from streamdp.page.errors import AskError, whole
from streamdp.serve.told import Answer
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

_STEP, _OUT = 1 << 14, 1 << 20
"""Bytes of gzip that are unpacked together, and bytes that they may become at once."""

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

    So nobody who sends much, or without end, keeps others out. Bodies that are packed, or not small, are
    read one at a time.
    """

    def __init__(self, most: int = UNDER_WAY) -> None:
        self._most, self._reading = most, asyncio.Lock()
        self._sizes: dict[asyncio.Task[object], int] = {}  # bytes that have come, by request
        self._coming: set[asyncio.Task[object]] = set()

    async def whole(self, request: Request, most: int) -> bytes:
        """A body, once all of it has come. Raises AskError."""
        task = asyncio.current_task()
        assert task is not None
        self._coming.add(task)
        try:
            return await whole(request, most, grown=lambda size: self._grow(task, size))
        except asyncio.CancelledError:
            if task in self._coming:
                raise
            task.uncancel()
            raise _too_much() from None
        finally:
            self._coming.discard(task)
            self._sizes.pop(task, None)

    async def read(self, request: Request, work: Callable[[bytes], _T]) -> _T:
        """What ``work`` makes of a body without its content encoding. Raises AskError."""
        packed = await self.whole(request, SERVICE.body)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity") and len(packed) <= SMALL:
            return work(packed)
        task = asyncio.current_task()
        assert task is not None
        self._sizes[task] = len(packed)
        try:
            async with self._reading:
                return await asyncio.to_thread(lambda: work(unpacked(packed, encoding)))
        finally:
            del self._sizes[task]

    def _grow(self, task: asyncio.Task[object], size: int) -> None:
        self._sizes[task] = size
        if sum(self._sizes.values()) > self._most:
            largest = max(self._coming, key=lambda one: self._sizes.get(one, 0))
            if largest is task:
                raise _too_much()
            self._coming.discard(largest)
            del self._sizes[largest]
            largest.cancel()


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
    made, members, at = io.BytesIO(), 0, 0
    unpacker = zlib.decompressobj(31)
    while at < len(body):
        try:
            made.write(unpacker.decompress(body[at : at + _STEP], _OUT))
        except zlib.error:
            raise AskError(400, "the body is no gzip, or damaged: nothing was taken") from None
        at = min(at + _STEP, len(body)) - len(unpacker.unused_data or unpacker.unconsumed_tail)
        if made.tell() > UNPACKED:
            raise AskError(413, f"unpacked, a body has at most {UNPACKED:,} bytes: nothing was taken")
        if unpacker.eof and at < len(body):
            unpacker, members = zlib.decompressobj(31), members + 1
            if members >= MEMBERS:
                raise AskError(413, f"a body has at most {MEMBERS:,} members of gzip: nothing was taken")
    if body and not unpacker.eof:
        raise AskError(400, "the gzip body is cut off: nothing was taken")
    return made.getvalue()


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
    if form == "lines":
        shape: Shape = "lines"
        found = [_fit(line, most) for line in _lines(body.removeprefix(b"\xef\xbb\xbf"))]
        if not of_text:
            found = [part if isinstance(part, Answer) else _strict(part) or part for part in found]
    else:
        shape = "array" if body.lstrip()[:1] == b"[" else "one"
        found = [
            part if isinstance(part, Answer) else _line(part, of_text=of_text)
            for part in _parts(body, shape, most)
        ]
    if len(found) > MOST:
        raise too_many()
    if not found:
        raise AskError(400, "the body holds no record")
    return shape, found


def _fit(part: bytes, most: int) -> bytes | Answer:
    """The same, unless it is too long."""
    if len(part) <= most:
        return part
    return _refused("too_large", f"the record has {len(part)} bytes; the limit is {most}")


def _lines(body: bytes) -> list[bytes]:
    """The lines that are not blank; a few more than are allowed where there are more."""
    found: list[bytes] = []
    at = 0
    while at < len(body) and len(found) <= MOST:
        end = body.find(b"\n", at + STRETCH) + 1 or len(body)
        lines = filter(None, body[at:end].split(b"\n"))
        found += (line.removesuffix(b"\r") for line in lines if not line.isspace())
        at = end
    return found


def _parts(body: bytes, shape: Shape, most: int) -> list[bytes | Answer]:
    """The values of JSON that are records; those that are too long in their places. Raises AskError."""
    try:
        if shape == "array" and occurrences(body, b",") < MOST:
            with contextlib.suppress(msgspec.DecodeError):
                return [_fit(bytes(part), most) for part in msgspec.json.decode(body, type=list[msgspec.Raw])]
        parts = [body] if shape == "one" else elements(body, MOST)
        if parts is None:
            raise too_many()
        found = [_fit(part.strip(), most) for part in parts]
        for i, part in enumerate(found):
            if isinstance(part, bytes):
                found[i] = _strict(part) or msgspec.json.decode(part)  # which says what is wrong
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AskError(400, f"the body is no JSON: {error}; nothing was taken") from None
    return found


def _strict(part: bytes) -> bytes | None:
    """A value of JSON as the standard wants it; None for no JSON, and for what is nested too deeply."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        msgspec.json.decode(part, type=msgspec.Raw)
        return part
    return in_strict_json(part)


def _line(part: bytes, *, of_text: bool) -> bytes | Answer:
    """A value of JSON on one line: line ends stand only between its parts. Of text, what the string says."""
    if not of_text:
        return part.translate(_ON_ONE_LINE)
    try:
        said = msgspec.json.decode(part, type=str).encode()
    except (msgspec.DecodeError, UnicodeError):
        return _refused("wrong_type", "records are lines of text here: send strings")
    if not said or said.isspace():
        return _refused("empty", "a line of text is not blank")
    if b"\n" in said or b"\r" in said:
        return _refused("several_lines", "a record is one line: send each as a string of its own")
    return said


def _refused(reason: str, detail: str) -> Answer:
    return Answer(status="refused", reason=reason, detail=detail)
