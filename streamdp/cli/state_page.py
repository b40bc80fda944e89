"""A page of a state without a running stream: ``streamdp stories STATE --page PORT``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from streamdp.cli.stories import SECONDS
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.reports.source import append_correction, open_state, opened
from streamdp.run.observers import open_page, say_where, show_snapshot
from streamdp.run.pace import EVERY
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import Serving
from streamdp.settings.schema import Classes
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import written_at


def serve_state(state: str, at: Serving, classes: Classes) -> None:
    """Serve the newest snapshot until a signal comes. Raises StreamdpError."""
    seen = written_at(state)
    header, engine, _ = opened(state, classes)
    page = open_page(at, state, automatic(engine.settings))
    page.view.state = state
    figures: dict[str, Any] = {"state": "snapshot", "written": header.written}

    def show_again() -> None:
        nonlocal header, engine
        header, engine, _ = opened(state, classes)
        figures["written"] = header.written
        show_snapshot(page, engine, figures)

    def give(_: Engine, correction: Correction) -> Correction:
        made = append_correction(state, open_state(state, classes)[1], correction)
        show_again()
        return made

    try:
        if at.page_corrections and not Path(state).is_dir():
            raise ConfigError(f"{state}: corrections are kept in the folder of a state", Exit.USAGE)
        if at.page_corrections:
            page.view.give = give
        say_where(page, at)
        show_snapshot(page, engine, figures)
        looked = ticked = time.monotonic()
        while True:
            page.questions.answer(engine)
            time.sleep(0.05)
            now = time.monotonic()
            if now - looked >= SECONDS:
                looked = now
                if seen != (seen := written_at(state)):
                    show_again()
            if now - ticked >= 10 * EVERY:  # what was not described yet is, by and by
                ticked = now
                page.hub.publish(page.view.look(engine, now, figures))
    finally:
        page.close()
