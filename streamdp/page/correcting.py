"""Corrections by hand over HTTP: listed, and taken for the stream; from the page, and from programs."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

from streamdp.errors import Exit
from streamdp.page.errors import AskError, Asks, allow
from streamdp.page.guard import Allowance
from streamdp.state.corrections import (
    CorrectionEntry,
    CorrectionError,
    CorrectionList,
    CorrectionRequest,
    CorrectionsFile,
)

TAKEN = 20.0, 2.0
"""Corrections that are taken at once, and in a second in the long run."""

CLOSED = "this page does not correct: begin the run with --page-corrections"

Answered = TypeVar("Answered")


class Correcting:
    """The answers about corrections of the state that the view names; the view's ``give`` takes them."""

    def __init__(self, api: Asks) -> None:
        self._api, self._one = api, asyncio.Lock()
        self._allowed = Allowance(*TAKEN)
        self._file: CorrectionsFile | None = None

    async def noted(self, after: int, most: int) -> CorrectionList:
        """Some, in order, for programs."""
        return await self._ask(lambda file: file.noted(after, most))

    async def given(self, sent: CorrectionRequest) -> CorrectionEntry:
        """One more: with its number, and where it was applied."""
        try:
            correction = sent.correction("program")
        except ValueError as error:
            raise AskError(400, str(error)) from None
        allow(self._allowed, "corrections")
        give = self._api.view.give
        if give is None:
            raise AskError(403, CLOSED)
        try:
            made = await self._api.ask(lambda engine: give(engine, correction))
        except CorrectionError as error:
            if error.exit_code != Exit.USAGE:
                raise _unusable(error) from None
            raise AskError(409, error.message) from None
        return CorrectionEntry.of(made, await self._ask(lambda file: file.marks.get(made.number)))

    async def _ask(self, question: Callable[[CorrectionsFile], Answered]) -> Answered:
        """Ask what the file holds by now; nothing without a state."""
        state = self._api.view.state
        if state is None:
            return question(CorrectionsFile(""))
        file = self._file = self._file or CorrectionsFile(state)

        def look() -> Answered:
            file.look()
            return question(file)

        async with self._one:
            try:
                return await asyncio.to_thread(look)
            except CorrectionError as error:
                raise _unusable(error) from None


def _unusable(error: CorrectionError) -> AskError:
    """The file of corrections cannot be read or written."""
    full = getattr(error.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return AskError(507 if full else 503, error.message, 5.0)
