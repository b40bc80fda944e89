"""Corrections name records by ``ids`` and ``seqs``, which were one list of texts."""

from __future__ import annotations

from typing import Any

from streamdp.state.corrections import addressed


def convert(stored: dict[str, Any]) -> dict[str, Any]:
    """The same, of version 2 of ``corrections``."""
    corrections = stored["corrections"]
    held = [[addressed(plain), sides] for plain, sides in corrections["held"]]
    return stored | {"corrections": corrections | {"held": held}}
