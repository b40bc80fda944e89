"""Corrections by hand over HTTP: listed, and taken as ``streamdp correct`` takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.page.api import Api
from streamdp.page.desk import TAKEN, given, unusable
from streamdp.page.errors import AskError, allow, as_json, integer, kind_of
from streamdp.page.guard import Allowance
from streamdp.serve.bodies import Uploads
from streamdp.serve.stored import Stands
from streamdp.serve.told import CorrectionList, Noted
from streamdp.state.corrections import Correction, CorrectionError, CorrectionsFile, Wanted

BODY = 1 << 20
"""Bytes of a correction."""


class Correcting:
    """Answers to ``/v1/corrections``: ``page`` asks the stream, ``stands`` says where its state is.

    ``uploads`` takes their bodies.
    """

    def __init__(self, page: Api, stands: Callable[[], Stands], uploads: Uploads) -> None:
        self._page, self._stands, self._uploads = page, stands, uploads
        self._allowance, self._one = Allowance(*TAKEN), asyncio.Lock()
        self._file: CorrectionsFile | None = None

    async def show(self, request: Request) -> Response:
        """The corrections of the state, in order."""
        state = self._stands().state
        after, most = integer(request, "after", 0, 0, 10**12), integer(request, "limit", 100, 1, 1000)
        async with self._one:
            try:
                file = await asyncio.to_thread(self._read, state)
            except CorrectionError as error:
                raise unusable(error) from None
        return as_json(msgspec.json.encode(CorrectionList.of(file, after, most)))

    def _read(self, state: str) -> CorrectionsFile:
        if self._file is None:
            self._file = CorrectionsFile(state)
        if self._file.changed():
            self._file.read()
        return self._file

    async def take(self, request: Request) -> Response:
        """One more, which the stream takes at once, as from a page."""
        self._stands()
        desk, wanted = self._page.view.desk, wanted_of(await self._uploads.whole(request, BODY), request)
        allow(self._allowance, "corrections")
        made = await given(self._page, desk, wanted)
        at = next((at for each, at in desk.listed() if each.number == made.number), None)
        return as_json(msgspec.json.encode(Noted.of(made, at)))


def wanted_of(body: bytes, request: Request) -> Correction:
    """The correction that somebody has sent. Raises AskError."""
    if kind_of(request) != "application/json":
        raise AskError(415, 'send JSON: {"what": "rename", "stories": [7], "title": "..."}')
    try:
        sent = msgspec.json.decode(body, type=Wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AskError(400, f"this is no correction: {error}") from None
    try:
        return sent.correction()
    except ValueError as error:
        raise AskError(422, str(error)) from None
