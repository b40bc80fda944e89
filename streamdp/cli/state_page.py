"""``streamdp page``: a page of a state without a running stream; it follows newer snapshots."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamdp.cli.board import EVERY
from streamdp.cli.config import automatic
from streamdp.cli.show import as_it_ended, open_state
from streamdp.cli.watch import open_page
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.settings.places import Serving
from streamdp.settings.schema import Classes
from streamdp.state.corrections import Correction, CorrectionsFile
from streamdp.state.snapshot import written_at

if TYPE_CHECKING:
    from streamdp.page.server import Page

LOOK = 2.0
"""Seconds between two looks for a newer snapshot."""


def serve_state(state: str, at: Serving, classes: Classes) -> None:
    """Serve the newest snapshot until a signal comes. Raises StreamdpError."""
    seen = written_at(state)
    opened = open_state if at.page_corrections else as_it_ended  # what has ended takes no corrections
    header, engine = opened(state, classes)
    page = open_page(at, state, automatic(engine.settings))
    page.view.state = state
    figures: dict[str, Any] = {"state": "snapshot", "written": header.written}
    try:
        if Path(state).is_dir():
            taken = engine.corrections.taken
            _take_corrections(page, state, taken, corrects=at.page_corrections)
        elif at.page_corrections:
            raise ConfigError(f"{state}: corrections are kept in the folder of a state", Exit.USAGE)
        _publish(page, engine, figures)
        looked = ticked = time.monotonic()
        while True:
            page.questions.answer(engine)
            time.sleep(0.05)
            now = time.monotonic()
            if now - looked >= LOOK:
                looked = now
                if seen != (seen := written_at(state)):
                    header, engine = opened(state, classes)
                    figures["written"] = header.written
                    page.view.restart()
                    _publish(page, engine, figures)
            if now - ticked >= 10 * EVERY:  # what was not described yet is, by and by
                ticked = now
                page.hub.publish(page.view.look(engine, now, figures))
    finally:
        page.close()


def _take_corrections(page: Page, state: str, taken: int, *, corrects: bool) -> None:
    """List the corrections of a state, and take more, like ``streamdp correct``, where that was asked for.

    ``figures`` are those of the page's status.
    """
    from streamdp.page.desk import Desk

    file = CorrectionsFile(state, taken)

    def give(engine: Engine, correction: Correction) -> Correction:
        engine.correct(correction, check=True)
        made = file.append(correction)
        page.view.answered(engine.correct(made), 0)
        page.hub.publish(
            page.view.look(engine, time.monotonic(), {"state": "snapshot", "written": written_at(state)})
        )
        return made

    def listed() -> list[tuple[Correction, int | None]]:
        held = CorrectionsFile(state, taken)
        held.read()
        return [(each, held.marks.get(each.number)) for each in held.corrections]

    page.view.desk = Desk(give if corrects else None, listed)


def _publish(page: Page, engine: Engine, figures: dict[str, Any]) -> None:
    page.view.begin(engine)
    for _ in range(50):  # what a run describes over some time is described at once
        tick = page.view.look(engine, time.monotonic(), figures)
        if not page.view.table.behind:
            break
    page.hub.publish(tick)
