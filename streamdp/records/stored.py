"""How a store, the SQLite file of records and stories, is told from other files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

APPLICATION = 0x53445031  # SDP1
VERSION = 2
"""Of the tables that this streamdp writes."""

_OURS = "meta", "records", "answers", "stories", "events", "corrections", "marks", "before_end"
"""The tables that are read and written."""

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


def read_only(path: str | Path) -> sqlite3.Connection:
    """A connection that only reads, for one thread at a time. sqlite3.Error for what is no sound store."""
    where = Path(path).absolute().as_uri()
    store = sqlite3.connect(f"{where}?mode=ro", uri=True, check_same_thread=False)
    refuse_programs(store)
    return store


def refuse_programs(store: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if something in a store would run whenever that is read or written.

    That is a trigger, or a view in the place of a table.
    """
    store.execute("PRAGMA trusted_schema = OFF")
    names = ", ".join("?" * len(_OURS))
    query = (
        f"SELECT type, name FROM sqlite_master WHERE type = 'trigger' OR type = 'view' AND name IN ({names})"  # noqa: S608
    )
    for kind, name in store.execute(query, _OURS):
        raise sqlite3.DatabaseError(f"its {kind} {name} is not of streamdp, and would run: drop it")
