"""Corrections by hand over HTTP: listed, and taken as ``streamdp correct`` takes them."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.kernels.compilation import beside
from streamdp.page.api import Api
from streamdp.page.errors import AskError, as_json, integer
from streamdp.page.guard import Allowance
from streamdp.reports.source import append_correction
from streamdp.serve.bodies import whole
from streamdp.serve.stands import Stands
from streamdp.serve.told import CorrectionList, Noted, Wanted
from streamdp.state.corrections import Correction, CorrectionError, CorrectionsFile

BODY = 1 << 20
"""Bytes of a correction."""

ALLOWED = 10.0, 1.0
"""Corrections at once, and in a second in the long run: each is tried on a copy of the stream first."""


class Correcting:
    """Answers to ``/v1/corrections``: ``page`` asks the stream, ``stands`` says where its state is."""

    def __init__(self, page: Api, stands: Callable[[], Stands]) -> None:
        self._page, self._stands = page, stands
        self._allowance, self._one = Allowance(*ALLOWED), asyncio.Lock()
        self._file: CorrectionsFile | None = None

    async def show(self, request: Request) -> Response:
        """The corrections of the state, in order."""
        state = self._stands().state
        after, most = integer(request, "after", 0, 0, 10**12), integer(request, "limit", 100, 1, 1000)
        async with self._one:
            try:
                file = await asyncio.to_thread(self._read, state)
            except CorrectionError as error:
                raise _unusable(error) from None
        return as_json(msgspec.json.encode(CorrectionList.of(file, after, most)))

    def _read(self, state: str) -> CorrectionsFile:
        if self._file is None:
            self._file = CorrectionsFile(state)
        if self._file.changed():
            self._file.read()
        return self._file

    async def take(self, request: Request) -> Response:
        """One more; the stream takes it before its next records."""
        state, wanted = self._stands().state, wanted_of(await whole(request, BODY), request)
        wait = self._allowance.take()
        if wait:
            raise AskError(429, "too many corrections at once: wait a moment", wait)
        async with self._one:
            make, stored = await self._page.ask(lambda engine: engine.__reduce__())
            try:
                made = await asyncio.to_thread(_append, state, lambda: make(*stored), wanted)
            except CorrectionError as error:
                if error.exit_code != Exit.USAGE:
                    raise _unusable(error) from None
                raise AskError(409, error.message) from None
        return as_json(msgspec.json.encode(Noted.of(made)))


def _append(state: str, copy: Callable[[], Engine], wanted: Correction) -> Correction:
    """In a thread beside that of the stream."""
    with beside():
        return append_correction(state, copy(), wanted)


def wanted_of(body: bytes, request: Request) -> Correction:
    """The correction that somebody has sent. Raises AskError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise AskError(415, 'send JSON: {"what": "rename", "stories": [7], "title": "..."}')
    try:
        sent = msgspec.json.decode(body, type=Wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AskError(400, f"this is no correction: {error}") from None
    try:
        return sent.correction()
    except ValueError as error:
        raise AskError(422, str(error)) from None


def _unusable(error: CorrectionError) -> AskError:
    """The file of corrections cannot be read or written."""
    full = getattr(error.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return AskError(507 if full else 503, error.message, 5.0)
