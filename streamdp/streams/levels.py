"""What a stream of lines hands to its history, and how that is stored: levels are fields that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.kernels.packed import pack_all, unpack_all
from streamdp.lines.history import History
from streamdp.lines.values import NO_LEVELS, Levels
from streamdp.records.columns import Columns


def written_levels(records: Columns, keep: Sequence[str]) -> Levels:
    """The level of each record, where it is kept; ``keep`` are the fields that are."""
    if "level" not in keep or "level" not in records.keep:
        return NO_LEVELS
    data = records.columns.data
    places = records.columns.kept[:, records.keep.index("level")].copy()
    there = np.flatnonzero(places[:, 0] >= 0)
    quoted = there[data[places[there, 0]] == ord('"')]
    places[quoted] += (1, -1)
    return Levels(data, places)


def stored_history(history: History) -> dict[str, Any]:
    """A history as plain values."""
    plain, held = history.dump()
    return {"plain": plain, "arrays": pack_all(held)}


def load_history(history: History, stored: dict[str, Any] | None, clusters: int) -> None:
    """The inverse of it, of so many templates; a state that has none begins one. Raises UnsoundError."""
    if stored is not None:
        history.load(stored["plain"], unpack_all(stored["arrays"]), clusters)
