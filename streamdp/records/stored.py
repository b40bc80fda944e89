"""How a store, the SQLite file of records and stories, is told from other files, and read.

All of this goes by SQLite. Its locks are those of the system, which end with the first descriptor of the file
that the process closes. If a process that writes a store also opened the file in another way, the next reader
elsewhere would take the store for one that nobody uses, and remove its log.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

APPLICATION = 0x53445031  # SDP1
VERSION = 2
"""Of the tables that this streamdp writes."""

_OURS = "meta", "records", "answers", "stories", "events", "corrections", "marks", "before_end"
"""The tables that are read and written."""


def read_only(path: str | Path) -> sqlite3.Connection:
    """A connection that reads a store, for one thread at a time. sqlite3.Error for what is no sound store."""
    store = _opened(path)
    try:
        refuse_programs(store)
    except sqlite3.Error:
        store.close()
        raise
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


def version_of(store: sqlite3.Connection) -> int | None:
    """The version of a store's tables; None for any other file. Raises sqlite3.Error where none is read."""
    (application,), (version,) = (
        store.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return int(version) if application == APPLICATION else None


def store_version(path: str | Path) -> int | None:
    """The same of a file."""
    try:
        if not Path(path).is_file():
            return None
        with contextlib.closing(_opened(path)) as store:
            return version_of(store)
    except (OSError, sqlite3.Error):
        return None


def holds_nothing(path: str | Path) -> bool:
    """Whether a store was made, or begun, and nothing was written to it."""
    try:
        with contextlib.closing(_opened(path)) as store:
            tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
            if tables and version_of(store) is None:
                return False
            written = tables & {"records", "events", "corrections"}
            return not any(store.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in written)  # noqa: S608
    except sqlite3.Error:
        return False


def _opened(path: str | Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
