"""The tables of a store, which are a public schema: docs/stories.md."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from streamdp.errors import Exit
from streamdp.records.stored import APPLICATION, VERSION, holds_nothing, refuse_programs, store_version
from streamdp_connectors.protocol import SinkError

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE records (
  seq INTEGER PRIMARY KEY,  -- number in processing order
  id TEXT,
  position TEXT NOT NULL,   -- JSON: where the record stands in its source
  time REAL,                -- event time, seconds since 1970
  text TEXT NOT NULL,       -- what it says; JSON where it is no text
  fields TEXT,              -- JSON of the kept fields
  label INTEGER NOT NULL,   -- the story that it belongs to, by the newest answer
  first_label INTEGER NOT NULL,
  probability REAL NOT NULL,
  novelty REAL NOT NULL,
  revision INTEGER NOT NULL,
  template TEXT
);
CREATE INDEX records_by_label ON records (label);
CREATE INDEX records_by_time ON records (time);
CREATE TABLE answers (seq INTEGER, revision INTEGER, label INTEGER, probability REAL,
  PRIMARY KEY (seq, revision)) WITHOUT ROWID;
CREATE TABLE stories (
  label INTEGER PRIMARY KEY,
  title TEXT,
  keywords TEXT,            -- separated by blanks
  size INTEGER NOT NULL DEFAULT 0,
  began REAL, last REAL,    -- event times
  first_seq INTEGER, last_seq INTEGER,
  ended TEXT,               -- closed, retired, merged or vanished
  split_from INTEGER, merged_into INTEGER
);
CREATE TABLE events (
  number INTEGER PRIMARY KEY,
  event TEXT NOT NULL, seq INTEGER, time REAL, label INTEGER, other INTEGER, size INTEGER, title TEXT,
  more TEXT                 -- the event as JSON
);
CREATE INDEX events_by_label ON events (label);
CREATE TABLE corrections (
  number INTEGER PRIMARY KEY,
  what TEXT NOT NULL,       -- rename, merge, split, move, keep-apart, pin, mute or undo
  stories TEXT NOT NULL,    -- JSON: labels
  records TEXT NOT NULL,    -- JSON: ids as texts, and numbers of records
  title TEXT,
  undone INTEGER,           -- the number of the correction that was lifted
  who TEXT, made TEXT,      -- ISO 8601
  seq INTEGER NOT NULL,     -- so many records had been taken before it
  refused TEXT              -- why it was not applied
);
CREATE TABLE marks (number INTEGER PRIMARY KEY, positions TEXT NOT NULL);  -- how the source was read
CREATE TABLE before_end (place TEXT, key INTEGER, was TEXT);  -- rows before the end of the input changed them
CREATE VIEW clock AS SELECT max(last) AS now FROM stories;
CREATE VIEW story_now AS
  SELECT s.label, s.title, s.keywords, s.size AS records,
    strftime('%Y-%m-%dT%H:%M:%SZ', s.began, 'unixepoch') AS began,
    strftime('%Y-%m-%dT%H:%M:%SZ', s.last, 'unixepoch') AS last,
    (SELECT count(*) FROM records r WHERE r.label = s.label AND r.time > clock.now - 3600) AS last_hour,
    (SELECT count(*) FROM records r WHERE r.label = s.label AND r.time > clock.now - 86400) AS last_day
  FROM stories s, clock WHERE s.ended IS NULL AND s.size > 0;
CREATE VIEW story_by_hour AS
  SELECT r.label, s.title, strftime('%Y-%m-%dT%H:00:00Z', r.time, 'unixepoch') AS hour, count(*) AS records
  FROM records r JOIN stories s ON s.label = r.label GROUP BY r.label, hour;
"""

SEARCH = """
CREATE VIRTUAL TABLE records_text USING fts5(text, content='records', content_rowid='seq');
"""


def open_store(path: str, *, search: bool, overwrite: bool, resumed: bool) -> sqlite3.Connection:
    """Open a store to write, and make it of an empty file. Raises SinkError.

    A file that is there is refused unless a state goes on with it (``resumed``), or it may be replaced, as
    one may that holds nothing: the start of a run was cut off.
    """
    exists = os.path.getsize(path) > 0
    if exists and not resumed:
        if not overwrite and not holds_nothing(path):
            raise SinkError(
                f"{path} exists: --overwrite replaces it, --state continues an earlier run",
                Exit.CANNOT_CREATE,
            )
        for ending in ("-wal", "-shm"):
            Path(path + ending).unlink(missing_ok=True)
        os.truncate(path, 0)
        exists = False
    try:
        opened = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        refuse_programs(opened)
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA synchronous = NORMAL")
        opened.execute("PRAGMA cache_size = -16384")  # four times that saves no time, of 300,000 records
        opened.execute("PRAGMA wal_autocheckpoint = 4000")  # pages that change again and again go over once
        if not exists:
            opened.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
                f"{TABLES}{SEARCH if search else ''}COMMIT; "
                "PRAGMA wal_checkpoint(TRUNCATE);"
            )  # readers recognise the file by its head
    except sqlite3.Error as error:
        what = "write to" if exists else "create"
        raise SinkError(f"cannot {what} {path}: {error}", Exit.CANNOT_CREATE) from error
    return opened


def check(path: str) -> None:
    """Check that a file is a store of a version that is known, or empty. Raises SinkError."""
    if not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
        return
    version = store_version(path)
    if version is None and holds_nothing(path):
        return
    if version is None:
        raise SinkError(f"{path} is no store of streamdp: name another file", Exit.BAD_DATA)
    if version != VERSION:
        advice = "upgrade it" if version > VERSION else "begin anew with another --state and --store"
        raise SinkError(
            f"{path} has schema {version}; this streamdp writes {VERSION} only: {advice}", Exit.CONFIG
        )
