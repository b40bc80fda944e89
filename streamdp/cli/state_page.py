"""A page of a state without a running stream: ``streamdp stories STATE --page PORT``."""

from __future__ import annotations

from pathlib import Path

from streamdp.errors import ConfigError, Exit
from streamdp.reports.source import opened
from streamdp.run.observers import open_page, say_where, serve_still, show_still
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import Serving
from streamdp.settings.schema import Classes
from streamdp.state.snapshot import written_at


def serve_state(state: str, at: Serving, classes: Classes) -> None:
    """Serve the newest snapshot until a signal comes. Raises StreamdpError."""
    seen = written_at(state)
    header, engine, _ = opened(state, classes)
    page = open_page(at, state, automatic(engine.settings))
    page.view.state = state
    try:
        if at.page_corrections and not Path(state).is_dir():
            raise ConfigError(f"{state}: corrections are kept in the folder of a state", Exit.USAGE)
        say_where(page, at)
        figures = {"state": "snapshot", "written": header.written}
        show_still(page, engine, figures)
        serve_still(page, engine, figures, corrects=at.page_corrections, seen=seen)
    finally:
        page.close()
