"""The rows of a store, read and changed in place while others read it.

Of what is changed nothing is left in the search index, the write-ahead log and the pages that are free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp.records.stored import refuse_programs
from streamdp_connectors.protocol import SinkError
from streamdp_connectors.store.schema import check
from streamdp_connectors.store.tables import KEYS

PATIENCE = 30.0
"""Seconds for which readers are waited for."""

MANY = 500
"""Rows that one question names, at most."""

_WRITTEN = frozenset(("position", "keep", "more", "records"))
"""Columns of JSON."""

_TABLES = {name: key for name, key in KEYS.items() if name != "meta"} | {"corrections": "number"}
"""The tables that say something of records, with their keys."""


@contextlib.contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """The store, which no run writes meanwhile. Raises SinkError."""
    check(path)
    lock = os.open(path, os.O_RDWR)
    store: sqlite3.Connection | None = None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        store = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        refuse_programs(store)
        yield store
    except BlockingIOError:
        raise SinkError(
            f"{path}: another streamdp process writes to it; stop it first", Exit.CANNOT_CREATE
        ) from None
    except sqlite3.Error as error:
        raise SinkError(f"{path}: cannot be changed: {error}", Exit.IO_ERROR) from error
    finally:
        if store is not None:
            store.close()
        os.close(lock)  # after SQLite, whose own locks end with any descriptor of the file


def rows(path: str, ids: Collection[str], seqs: Collection[int], *, every: bool) -> Iterator[dict[str, Any]]:
    """Records of these ids and numbers; ``every``: of others too, all that have kept fields."""
    with _opened(path) as store:
        if every:
            yield from _rows(store, "records", "WHERE fields IS NOT NULL")
        for name, wanted in (("id", sorted(ids)), ("seq", sorted(seqs))):
            yield from _some(store, name, wanted)


def _some(store: sqlite3.Connection, name: str, wanted: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The records of which a column has one of these values."""
    for start in range(0, len(wanted), MANY):
        some = wanted[start : start + MANY]
        yield from _rows(store, "records", f"WHERE {name} IN ({', '.join('?' * len(some))})", some)


def _rows(
    store: sqlite3.Connection, table: str, where: str = "", given: Sequence[Any] = ()
) -> Iterator[dict[str, Any]]:
    found = store.execute(f"SELECT * FROM {table} {where}", given)  # noqa: S608
    return (_row([column[0] for column in found.description], cells) for cells in found)


def _row(names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    """A row by its columns, with values for JSON, and kept fields as answers have them."""
    row = {"keep" if name == "fields" else name: cell for name, cell in zip(names, cells, strict=True)}
    return row | {
        name: msgspec.json.decode(row[name]) for name in _WRITTEN & row.keys() if row[name] is not None
    }


def _cells(row: Mapping[str, Any], left: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a row, as its table has it."""
    found = {}
    for name in row:
        cell = left.get(name)
        if name in _WRITTEN and cell is not None:
            cell = msgspec.json.encode(cell).decode()
        elif name == "text" and cell is None:
            cell = ""
        elif name in ("title", "keywords") and "keywords" in row:
            cell = cell or None
        found["fields" if name == "keep" else name] = cell
    return found


def is_ahead(path: str, left: Mapping[str, Any]) -> bool:
    """Whether the store of a snapshot holds more than that covers, but for what its end has added."""
    with _opened(path) as store:
        held = dict(store.execute("SELECT name, value FROM meta"))
        before = "SELECT key, was FROM before_end WHERE place = 'meta' ORDER BY rowid DESC"
        for name, was in store.execute(before):
            held[name] = msgspec.json.decode(was)[1]
    return held["id"] == left["id"] and bool(held["lines"] > left["lines"] or held["events"] > left["events"])


def rewrite(path: str, seqs: Collection[int], left_of: Callable[[Any], Any]) -> int:
    """Change what stays of records of these numbers, and of all else, in one transaction.

    Returns how many records were there. Then the file is written anew, and the log emptied. Readers go on;
    one that holds on to what was is waited for. Raises SinkError.
    """
    with _opened(path) as store:
        store.execute("PRAGMA secure_delete = ON")
        store.execute("BEGIN IMMEDIATE")
        count = _rewrite(store, seqs, left_of)
        store.execute("COMMIT")
        store.execute("VACUUM")
        busy, _, _ = store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise SinkError(
                f"{path}: a reader holds on to what was, in {path}-wal: let it end, and erase again",
                Exit.UNAVAILABLE,
            )
    return count


def _rewrite(store: sqlite3.Connection, seqs: Collection[int], left_of: Callable[[Any], Any]) -> int:
    run = store.execute
    search = run("SELECT 1 FROM sqlite_master WHERE name = 'records_text'").fetchone() is not None
    records = list(_some(store, "seq", sorted(seqs)))
    for row in records if search else ():
        run(
            "INSERT INTO records_text (records_text, rowid, text) VALUES ('delete', ?, ?)",
            (row["seq"], row["text"]),
        )
    for table, key in _TABLES.items():
        held = records if table == "records" else _rows(store, table)
        changed = [_cells(row, left) for row in held if (left := left_of(row)) is not row]
        for cells in changed:
            names = ", ".join(f"{name} = :{name}" for name in cells)
            run(f"UPDATE {table} SET {names} WHERE {key} = :{key}", cells)  # noqa: S608
    for number, place, was in run("SELECT rowid, place, was FROM before_end").fetchall():
        if place in _TABLES and was is not None:
            columns = [each[1] for each in run(f"PRAGMA table_info({place})")]
            row = _row(columns, msgspec.json.decode(was))
            kept = [*_cells(row, left_of(row)).values()]
            written = msgspec.json.encode(kept).decode()
            run("UPDATE before_end SET was = ? WHERE rowid = ?", (written, number))
    if search:
        run("INSERT INTO records_text (records_text) VALUES ('optimize')")
    return len(records)
