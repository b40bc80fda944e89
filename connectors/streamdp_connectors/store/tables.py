"""The rows of a store: how answers and events become them, and how they are taken back or removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from streamdp.records import Event

DAY = 86_400.0
"""Seconds."""

KEYS = {"records": "seq", "stories": "label", "events": "number", "meta": "name"}
"""The key of each table whose rows may be taken back."""

ENDS = ("closed", "retired", "merged", "vanished")
"""Events after which a story has ended."""

WORDS = 6
"""Keywords of a story."""

TOGETHER = 50
"""Records that one statement adds: it costs a fifth less than one for each."""

_encode = msgspec.json.Encoder().encode


Row = tuple[
    int, str | None, str | None, float | None, str, str | None, int, int, float, float, int, str | None
]
"""A row of ``records``, in the order of its columns: seq, id, position, time, text, fields, label, first
label, probability, novelty, revision, template."""

Revision = tuple[int, int, int, float, str | None]
"""A later answer to a record: seq, revision, label, probability, template."""


class Bounds(NamedTuple):
    """What a store holds at most: days of event time, and records; None for no bound.

    The last ``open_for`` records stay: their answers may be revised yet.
    """

    days: float | None = None
    rows: int | None = None
    open_for: int = 0

    @property
    def none(self) -> bool:
        """Whether everything stays."""
        return self.days is None and self.rows is None


_PLACES = f"({', '.join('?' * 12)})"
_ADD_ONE = f"INSERT INTO records VALUES {_PLACES}"  # noqa: S608
_ADD_MANY = f"{_ADD_ONE}{f', {_PLACES}' * (TOGETHER - 1)}"
_INTO_STORIES = "INSERT INTO stories (label, size, began, last, first_seq, last_seq)"
_FORGOTTEN = """
DELETE FROM stories WHERE ended IS NOT NULL AND last_seq <= ?
  AND NOT EXISTS (SELECT 1 FROM events WHERE events.label = stories.label)
  AND label NOT IN (SELECT other FROM events WHERE other IS NOT NULL)
  AND label NOT IN (SELECT value FROM corrections, json_each(corrections.stories))
"""
"""Stories go that have ended, once no record, event or correction that is kept names them.

A label is never given again, so it does not matter when that is done.
"""

_JOINED = (
    "ON CONFLICT (label) DO UPDATE SET size = size + excluded.size, "
    "began = min(coalesce(began, excluded.began), coalesce(excluded.began, began)), "
    "last = max(coalesce(last, excluded.last), coalesce(excluded.last, last)), "
    "first_seq = min(first_seq, excluded.first_seq), last_seq = max(last_seq, excluded.last_seq)"
)
"""Records join stories, which they may begin."""


class Tables:
    """The tables of an open store. ``revisions`` says whether ``answers`` is filled."""

    def __init__(self, store: sqlite3.Connection, *, revisions: bool) -> None:
        self._store, self._revisions = store, revisions
        found = store.execute("SELECT 1 FROM sqlite_master WHERE name = 'records_text'")
        self._search = found.fetchone() is not None

    def add(self, rows: Sequence[Row], revisions: Sequence[Revision]) -> None:
        """Add records, and then apply revisions, of these records and of earlier ones."""
        run = self._store.executemany
        whole = len(rows) - len(rows) % TOGETHER
        for at in range(0, whole, TOGETHER):
            self._store.execute(_ADD_MANY, [*chain.from_iterable(rows[at : at + TOGETHER])])
        run(_ADD_ONE, rows[whole:])
        if self._search and rows:
            self._store.execute(
                "INSERT INTO records_text (rowid, text) SELECT seq, text FROM records WHERE seq >= ?",
                rows[0][:1],
            )
        if self._revisions:
            first = [(row[0], row[10], row[6], row[8]) for row in rows]
            run("INSERT INTO answers VALUES (?, ?, ?, ?)", [*first, *(each[:4] for each in revisions)])
        counts: dict[int, list[Any]] = {}
        for row in rows:
            _count(counts, row[6], row[0], row[3])
        left = self._revise(revisions, counts)
        moved = [(label, *figures) for label, figures in counts.items()]
        run(f"{_INTO_STORIES} VALUES (?, ?, ?, ?, ?, ?) {_JOINED}", moved)
        run("UPDATE stories SET size = size - 1 WHERE label = ?", left)

    def retitle(self, rows: Sequence[Row], revisions: Sequence[Revision]) -> None:
        """Call stories by the templates of their latest records, but those that somebody has named."""
        titles = {row[6]: row[11] for row in rows if row[11]}
        titles |= {each[2]: each[4] for each in revisions if each[4]}
        self._store.executemany(
            "UPDATE stories SET title = ? WHERE label = ? AND title IS NOT ? "
            "AND label NOT IN (SELECT value FROM corrections, json_each(stories) WHERE what = 'rename' "
            "AND refused IS NULL AND number NOT IN (SELECT coalesce(undone, -1) FROM corrections))",
            [(title, label, title) for label, title in titles.items()],
        )

    def _revise(self, revisions: Sequence[Revision], counts: dict[int, list[Any]]) -> list[tuple[int]]:
        """Apply revisions and count records into other stories; returns the labels that they leave."""
        left = []
        for seq, revision, label, probability, template in revisions:
            found = self._store.execute("SELECT label, time FROM records WHERE seq = ?", (seq,))
            before, time = found.fetchone()
            self._store.execute(
                "UPDATE records SET revision = ?, label = ?, probability = ?, "
                "template = coalesce(?, template) WHERE seq = ?",
                (revision, label, probability, template, seq),
            )
            if before != label:
                left.append((before,))
                _count(counts, label, seq, time)
        return left

    def put(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row; one that comes again, in a replay, is the same row."""
        names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._store.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})", row)  # noqa: S608

    def tell(self, event: Event, number: int) -> None:
        """Add an event, and what it says of its story."""
        told = event.template if event.title is msgspec.UNSET else event.title
        title = told if isinstance(told, str) else None
        row = (event.event, event.seq, event.time, event.cluster, event.other, event.size, title)
        more = _encode(event).decode()
        self._store.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row, more))
        words = " ".join(word for word, _ in event.words[:WORDS]) if event.words else None
        ended = event.event if event.event in ENDS else None
        split = event.other if event.event == "split" else None
        merged = event.other if event.event in ("merged", "vanished") else None
        self._store.execute(
            "INSERT INTO stories "
            "(label, title, keywords, ended, split_from, merged_into, first_seq, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (label) DO UPDATE SET "
            "title = coalesce(excluded.title, title), keywords = coalesce(excluded.keywords, keywords), "
            "ended = coalesce(excluded.ended, ended), "
            "split_from = coalesce(excluded.split_from, split_from), "
            "merged_into = coalesce(excluded.merged_into, merged_into)",
            (event.cluster, title, words, ended, split, merged, event.seq, event.seq),
        )

    def remove_old(self, bounds: Bounds) -> dict[str, int]:
        """Remove records and events beyond the bounds, and stories that ended with them: how many rows.

        Other stories keep their counts.
        """
        (newest,) = self._store.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
        through = -1
        if bounds.days is not None:
            found = self._store.execute(
                "SELECT coalesce(max(seq), -1) FROM records WHERE time < (SELECT max(time) FROM records) - ?",
                (bounds.days * DAY,),
            )
            (through,) = found.fetchone()
        if bounds.rows is not None:
            through = max(through, newest - bounds.rows)
        through = min(through, newest - bounds.open_for)
        if self._search:
            self._store.execute(
                "INSERT INTO records_text (records_text, rowid, text) "
                "SELECT 'delete', seq, text FROM records WHERE seq <= ?",
                (through,),
            )
        removed = {
            place: self._store.execute(f"DELETE FROM {place} WHERE seq <= ?", (through,)).rowcount  # noqa: S608
            for place in ("records", "answers", "events")
        }
        return removed | {"stories": self._store.execute(_FORGOTTEN, (through,)).rowcount}

    # ---------------------------------------------------------------- the end of an input

    def remember(
        self,
        rows: Sequence[Row],
        revisions: Sequence[Revision],
        events: Sequence[tuple[Event, int]],
        described: Iterable[int],
    ) -> None:
        """Keep the rows that these will change as they are."""
        seqs = [row[0] for row in rows] + [each[0] for each in revisions]
        labels = {row[6] for row in rows} | {each[2] for each in revisions}
        labels |= {event.cluster for event, _ in events}.union(described)
        for seq in seqs:
            found = self._store.execute("SELECT label FROM records WHERE seq = ?", (seq,)).fetchone()
            labels |= {found[0]} if found else set()
        self._keep("records", seqs)
        self._keep("stories", sorted(labels))
        self._keep("events", [number for _, number in events])
        self._keep("meta", ["lines", "events"])

    def _keep(self, place: str, keys: Sequence[Any]) -> None:
        for key in dict.fromkeys(keys):
            found = self._store.execute(f"SELECT * FROM {place} WHERE {KEYS[place]} = ?", (key,)).fetchone()  # noqa: S608
            was = None if found is None else _encode(found).decode()
            self._store.execute("INSERT INTO before_end VALUES (?, ?, ?)", (place, key, was))

    def take_back(self) -> None:
        """Make the tables as they were before the end of the input."""
        run = self._store.execute
        kept = run("SELECT place, key, was FROM before_end ORDER BY rowid DESC").fetchall()
        for place, key, was in kept:
            if place not in KEYS:
                continue  # what a file says is no name of a table
            if place == "records" and was is None and self._search:
                run(
                    "INSERT INTO records_text (records_text, rowid, text) "
                    "SELECT 'delete', seq, text FROM records WHERE seq = ?",
                    (key,),
                )
            run(f"DELETE FROM {place} WHERE {KEYS[place]} = ?", (key,))  # noqa: S608
            if was is not None:
                row = msgspec.json.decode(was)
                run(f"INSERT INTO {place} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        run(
            "DELETE FROM answers WHERE revision > "
            "coalesce((SELECT revision FROM records WHERE records.seq = answers.seq), -1)"
        )
        run("DELETE FROM before_end")


def _count(counts: dict[int, list[Any]], label: int, seq: int, time: float | None) -> None:
    """Count a record into a story: how many, and the first and last of times and numbers."""
    held = counts.get(label)
    if held is None:
        counts[label] = [1, time, time, seq, seq]
        return
    held[0] += 1
    if time is not None:
        held[1] = time if held[1] is None else min(held[1], time)
        held[2] = time if held[2] is None else max(held[2], time)
    held[3], held[4] = min(held[3], seq), max(held[4], seq)
