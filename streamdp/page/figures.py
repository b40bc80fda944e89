"""Figures of an engine, and short forms of them, as the page reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamdp.engine import Engine
from streamdp.kernels.compilation import compiling


def of_kind(chosen: Sequence[str], engine: Engine) -> list[str]:
    """What was chosen for records like those of the stream, once it is known what they are."""
    other = {"texts": "vectors:", "categories": "vectors:", "vectors": "texts:"}.get(engine.kind or "")
    return [line for line in chosen if other is None or not line.startswith(other)]


def rounded(value: float, digits: int) -> float | None:
    """A number with so many digits; None where it is not known."""
    return None if np.isnan(value) else round(value, digits)


def counted(engine: Engine) -> dict[str, Any]:
    """What the engine counts."""
    counts, levels, refined = engine.counters(), engine.levels(), engine.refined()
    return {
        "kind": engine.kind,
        "records": engine.seq,
        "announced": counts.get("clusters_created", 0),
        "held_back": engine.held_back,
        "agreement": round(float(levels["agreement"]), 4),
        "not_final": int(levels.get("final_lag", 0)),
        "moved": counts.get("records_moved", 0),
        "refined": refined if refined.get("refinements") else None,
    }


def levels_of(engine: Engine) -> dict[int, str]:
    """The level of most lines of each template, where lines have levels."""
    past = engine.past()
    levels = {} if past is None else {label: past.levels(label) for label in past.holes}
    most = {label: max(own, key=lambda name: own[name]) for label, own in levels.items() if own}
    return {label: name for label, name in most.items() if name}


def waits(status: Mapping[str, Any]) -> str:
    """What a page waits for while there is nothing to show; empty where there is something."""
    if status.get("records"):
        return ""
    if (busy := compiling()) is not None:
        return f"Kernels are being compiled, only this once: {busy}."
    if held := status.get("held_back"):
        return f"{held:,} records wait for their turn, or for more of them: none is answered yet."
    if refused := status.get("refused"):
        reason, number = next(iter(refused.items()))
        return f"{number:,} records were refused ({reason}), and none was answered yet."
    return f"Waiting for the first record of {status['stream']}."
