"""``streamdp page``: a state that nobody runs, as a page."""

from __future__ import annotations

import time
from typing import Any

from streamdp.cli.config import automatic
from streamdp.cli.live import EVERY, PageAt, open_page
from streamdp.cli.show import open_state, written_at
from streamdp.engine import Engine
from streamdp.page.view import View

LOOK = 2.0
"""Seconds between two looks for a newer snapshot."""


def serve_state(state: str, at: PageAt) -> None:
    """Serve the newest snapshot until a signal comes."""
    seen = written_at(state)
    header, engine = open_state(state)
    page = open_page(at, state, automatic(engine.settings))
    try:
        told: dict[str, Any] = {"state": "snapshot", "written": header.written}
        _tell(page, engine, told)
        looked = ticked = time.monotonic()
        while True:
            page.questions.answer(engine)
            time.sleep(0.05)
            now = time.monotonic()
            if now - looked >= LOOK:
                looked = now
                if seen != (seen := written_at(state)):
                    header, engine = open_state(state)
                    told["written"] = header.written
                    page.view.restart()
                    _tell(page, engine, told)
            if now - ticked >= 10 * EVERY:  # what was not described yet is, by and by
                ticked = now
                page.hub.publish(page.view.look(engine, now, told))
    finally:
        page.close()


def _tell(page: Any, engine: Engine, told: dict[str, Any]) -> None:
    view: View = page.view
    view.begin(engine)
    for _ in range(50):  # what a run describes over some time is described at once
        tick = view.look(engine, time.monotonic(), told)
        if not view.table.behind:
            break
    page.hub.publish(tick)
