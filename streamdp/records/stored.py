"""How a store, the SQLite file of records and stories, is told from other files."""

from __future__ import annotations

from pathlib import Path

APPLICATION = 0x53445031  # SDP1
VERSION = 2
"""Of the tables that this streamdp writes."""

_HEAD = 72
_MAGIC = b"SQLite format 3\0"


def store_version(path: str | Path) -> int | None:
    """The version of a store's tables, by its first bytes; None for any other file."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if not head.startswith(_MAGIC) or head[68:72] != APPLICATION.to_bytes(4, "big"):
        return None
    return int.from_bytes(head[60:64], "big")
