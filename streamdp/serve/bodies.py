"""Bodies of requests to records, each a line of the journal."""

from __future__ import annotations

import zlib
from typing import Literal

import msgspec
from starlette.requests import Request

from streamdp.page.errors import AskError, whole
from streamdp.serve.told import Answer
from streamdp.web import Limits

SERVICE = Limits(body=16 << 20, connections=1200, each=1200)
"""What the service bears of its clients."""

UNPACKED = 64 << 20
"""Bytes of a body that came packed, at most."""

MOST = 10_000
"""Records of a body."""

Shape = Literal["one", "array", "lines"]
"""How records came, and how their answers go back."""

KINDS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "application/x-jsonlines": "lines",
    "text/plain": "lines",
}


async def body_of(request: Request) -> bytes:
    """A body without its content encoding, once all of it has come. Raises AskError."""
    packed = await whole(request, SERVICE.body)
    return unpacked(packed, request.headers.get("content-encoding", "").strip().lower())


def unpacked(body: bytes, encoding: str) -> bytes:
    """A body without its content encoding. Raises AskError; nothing of such a body is taken."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise AskError(415, "content-encoding: gzip, or none")
    parts, left = [], UNPACKED
    while body:
        unpacker = zlib.decompressobj(31)
        try:
            part = unpacker.decompress(body, left + 1)
        except zlib.error:
            raise AskError(400, "the body is no gzip, or damaged: nothing was taken") from None
        left -= len(part)
        if left < 0:
            raise AskError(413, f"unpacked, a body has at most {UNPACKED:,} bytes: nothing was taken")
        if not unpacker.eof:
            raise AskError(400, "the gzip body is cut off: nothing was taken")
        parts.append(part)
        body = unpacker.unused_data
    return b"".join(parts)


def records_of(body: bytes, kind: str, *, of_text: bool) -> tuple[Shape, list[bytes | Answer]]:
    """The records of a body, in order, each as a line, or as why it is none; and how they came.

    ``of_text`` says that records are lines of text, which JSON has as strings. Raises AskError.
    """
    form = KINDS.get(kind)
    if form is None:
        raise AskError(415, f"say what the body is, with content-type: one of {', '.join(KINDS)}")
    if form == "lines":
        lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        found: list[bytes | Answer] = [
            line.removesuffix(b"\r") for line in lines if line and not line.isspace()
        ]
        shape: Shape = "lines"
    else:
        shape = "array" if body.lstrip()[:1] == b"[" else "one"
        try:
            if shape == "array":
                parts = msgspec.json.decode(body, type=list[msgspec.Raw])
            else:
                parts = [msgspec.json.decode(body, type=msgspec.Raw)]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AskError(400, f"the body is no JSON: {error}; nothing was taken") from None
        found = [_line(bytes(part), of_text=of_text) for part in parts]
    if len(found) > MOST:
        raise AskError(413, f"a body has at most {MOST:,} records: nothing was taken")
    if not found:
        raise AskError(400, "the body holds no record")
    return shape, found


def _line(part: bytes, *, of_text: bool) -> bytes | Answer:
    """A value of JSON on one line: line ends stand only between its parts. Of text, what the string says."""
    if not of_text:
        return part.replace(b"\n", b" ").replace(b"\r", b" ")
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
