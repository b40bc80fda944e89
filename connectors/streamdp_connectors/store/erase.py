"""Erase records from a store: rows, search index, write-ahead log and freed pages, while others read it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from streamdp.errors import Exit
from streamdp.records.erased import Erased, texts_of
from streamdp.records.stored import refuse_programs
from streamdp_connectors.protocol import SinkError
from streamdp_connectors.store.schema import check, upgrade

PATIENCE = 30.0
"""Seconds for which readers are waited for."""

MANY = 500
"""Rows that one question names, at most."""


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


def found_in(path: str, gone: Erased) -> Erased:
    """What a store knows of records: numbers of ids, ids of numbers, texts."""
    with _opened(path) as store:
        columns = "SELECT seq, id, text, fields, position FROM records"
        if gone.where:
            rows = list(store.execute(f"{columns} WHERE fields IS NOT NULL"))
            rows = [row for row in rows if gone.meant(msgspec.json.decode(row[3]))]
        else:
            rows = []
        for name, wanted in (("id", sorted(gone.ids)), ("seq", sorted(gone.seqs))):
            for some in _portions(wanted):
                rows += store.execute(f"{columns} WHERE {name} IN ({', '.join('?' * len(some))})", some)
        for seq, name, text, fields, position in rows:
            kept = msgspec.json.decode(fields).values() if fields else ()
            ids, places = [] if name is None else [name], [msgspec.json.decode(position)]
            gone = gone.with_more(ids=ids, seqs=[seq], texts=[text, *texts_of(kept)], places=places)
    return gone


def _portions(wanted: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(wanted), MANY):
        yield wanted[start : start + MANY]


def is_ahead(path: str, left: Mapping[str, Any]) -> bool:
    """Whether the store of a snapshot holds more than that covers, but for what its end has added."""
    with _opened(path) as store:
        held = dict(store.execute("SELECT name, value FROM meta"))
        before = "SELECT key, was FROM before_end WHERE place = 'meta' ORDER BY rowid DESC"
        for name, was in store.execute(before):
            held[name] = msgspec.json.decode(was)[1]
    return held["id"] == left["id"] and bool(held["lines"] > left["lines"] or held["events"] > left["events"])


def erase(path: str, gone: Erased) -> int:
    """Erase records, in one transaction; how many rows of records there were. Raises SinkError.

    Then the file is written anew, and the log emptied: nothing is left in pages that are free. Readers go on;
    one that holds on to what was is waited for.
    """
    with _opened(path) as store:
        store.execute("PRAGMA secure_delete = ON")
        upgrade(store)
        store.create_function(
            "said", 1, lambda text: text is not None and gone.said(text), deterministic=True
        )
        store.create_function("scrubbed", 1, lambda text: _scrubbed(gone, text), deterministic=True)
        store.create_function("others", 1, gone.words_left, deterministic=True)
        store.execute("BEGIN IMMEDIATE")
        rows = _erase_rows(store, gone)
        store.execute("COMMIT")
        store.execute("VACUUM")
        busy, _, _ = store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise SinkError(
                f"{path}: a reader holds on to what was, in {path}-wal: let it end, and erase again",
                Exit.UNAVAILABLE,
            )
    return rows


def _erase_rows(store: sqlite3.Connection, gone: Erased) -> int:
    run, rows = store.execute, 0
    search = run("SELECT 1 FROM sqlite_master WHERE name = 'records_text'").fetchone() is not None
    for seq in sorted(gone.seqs):
        if search:
            run(
                "INSERT INTO records_text (records_text, rowid, text) "
                "SELECT 'delete', seq, text FROM records WHERE seq = ?",
                (seq,),
            )
        run("UPDATE stories SET keywords = NULL WHERE size <= 1 AND first_seq = ?", (seq,))
        rows += run(
            "UPDATE records SET id = NULL, text = '', fields = NULL, "
            "template = CASE WHEN said(template) THEN '' ELSE template END WHERE seq = ?",
            (seq,),
        ).rowcount
    run("UPDATE stories SET title = NULL WHERE said(title)")
    run("UPDATE stories SET keywords = others(keywords) WHERE keywords <> others(keywords)")
    run("UPDATE stories SET keywords = NULL WHERE said(keywords)")  # a whole text, by chance
    run("UPDATE events SET title = '' WHERE said(title)")
    run("UPDATE events SET more = scrubbed(more) WHERE more <> scrubbed(more)")
    run("UPDATE corrections SET title = '' WHERE said(title)")
    run("UPDATE corrections SET records = scrubbed(records) WHERE records <> scrubbed(records)")
    for number, place, was in run(
        "SELECT rowid, place, was FROM before_end WHERE was IS NOT NULL"
    ).fetchall():
        left = _row_left(gone, place, msgspec.json.decode(was))
        run("UPDATE before_end SET was = ? WHERE rowid = ?", (msgspec.json.encode(left).decode(), number))
    if search:
        run("INSERT INTO records_text (records_text) VALUES ('optimize')")
    return rows


def _scrubbed(gone: Erased, written: str | None) -> str | None:
    """Some JSON without what is the records'; the same text where there is nothing."""
    if written is None:
        return None
    value = msgspec.json.decode(written)
    if isinstance(value, list):  # of ids
        left: Any = [name for name in value if isinstance(name, int) or not gone.named(name)]
        return written if len(left) == len(value) else msgspec.json.encode(left).decode()
    left = gone.scrubbed(value)
    return written if left is value else msgspec.json.encode(left).decode()


def _row_left(gone: Erased, place: str, row: list[Any]) -> list[Any]:
    """A row that is kept for taking back what an end has changed, as the row itself is now."""
    if place == "records" and row[0] in gone.seqs:
        row[1], row[4], row[5] = None, "", None
        row[11] = "" if row[11] is not None and gone.said(row[11]) else row[11]
    elif place == "stories":
        row[1] = None if row[1] is not None and gone.said(row[1]) else row[1]
        alone = row[3] <= 1 and row[6] in gone.seqs
        row[2] = None if alone else gone.words_left(row[2])
        row[2] = None if row[2] is not None and gone.said(row[2]) else row[2]
    elif place == "events":
        row[7] = "" if row[7] is not None and gone.said(row[7]) else row[7]
        row[8] = _scrubbed(gone, row[8])
    return row
