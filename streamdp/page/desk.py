"""Corrections by hand on the page: who may make them, and the answers of /api/corrections."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.page.errors import AskError, Asks, as_json, json_of
from streamdp.page.guard import Allowance
from streamdp.state.corrections import Correction, CorrectionError, Wanted

TAKEN = 20.0, 2.0
"""Corrections that are taken at once, and in a second in the long run."""

LISTED = 200
"""Corrections that are listed: the latest."""

CLOSED = "this page does not correct: begin the run with --page-corrections"

Listed = Sequence[tuple[Correction, int | None]]
"""Corrections in order, and at which record each was applied; None where it was not yet."""


class Desk(NamedTuple):
    """Where corrections of a page go, and where all of them are.

    ``give`` is called by the thread that runs the stream; it returns the correction with its number, or
    raises CorrectionError. None: nothing is corrected from the page, and ``why`` says so.
    """

    give: Callable[[Engine, Correction], Correction] | None = None
    listed: Callable[[], Listed] = list
    why: str = CLOSED


async def given(api: Asks, desk: Desk, correction: Correction) -> Correction:
    """What the stream makes of a correction: with its number. Raises AskError."""
    give = desk.give
    if give is None:
        raise AskError(403, desk.why)
    try:
        made: Correction = await api.ask(lambda engine: give(engine, correction))
    except CorrectionError as error:
        if error.exit_code != Exit.USAGE:
            raise unusable(error) from None
        raise AskError(409, error.message) from None
    return made


def unusable(error: CorrectionError) -> AskError:
    """The file of corrections cannot be read or written."""
    full = getattr(error.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return AskError(507 if full else 503, error.message, 5.0)


class Corrected:
    """The answers about corrections. ``desk`` gives the desk of the moment."""

    def __init__(self, api: Asks, desk: Callable[[], Desk]) -> None:
        self._api, self._desk, self._allowance = api, desk, Allowance(*TAKEN)

    async def show(self, request: Request) -> Response:
        """All corrections, the latest first."""
        desk = self._desk()
        held = self._api.view.in_force
        rows = [
            {**row_of(correction, at), "in_force": correction.number in held}
            for correction, at in reversed(desk.listed()[-LISTED:])
        ]
        told = {"allowed": desk.give is not None, "why": "" if desk.give else desk.why, "corrections": rows}
        return as_json(msgspec.json.encode(told))

    async def take(self, request: Request) -> Response:
        """Check a correction, note it, and apply it."""
        desk = self._desk()
        if desk.give is None:
            raise AskError(403, desk.why)
        wanted, large = 'send {"what": "...", "stories": [...]}', "a correction that long is none"
        asked = await json_of(request, Wanted, wanted, self._allowance, large)
        try:
            correction = asked.correction("page")
        except ValueError as error:
            raise AskError(400, str(error)) from None
        made = await given(self._api, desk, correction)
        return as_json(msgspec.json.encode(row_of(made, None)))


def row_of(correction: Correction, at: int | None) -> dict[str, Any]:
    """A correction as pages get it."""
    return {
        "number": correction.number,
        "what": correction.what,
        "stories": correction.stories,
        "ids": correction.ids[:20],
        "seqs": correction.seqs[:20],
        "title": correction.title,
        "undone": correction.undone,
        "who": correction.who,
        "when": correction.when,
        "at": at,
        "told": str(correction),
    }
