"""Stories of a store, read while it may be written."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from streamdp.errors import Exit
from streamdp.ledger.samples import shown
from streamdp.records import ClusterSummary
from streamdp.records.stored import VERSION, read_only, version_of
from streamdp.story.answers import StoriesError, statistics_of
from streamdp.story.clock import Clock
from streamdp.story.doubts import LATEST, doubts
from streamdp.story.gather import RECORDS, Kin, Known, stories_of, with_records
from streamdp.story.statistics import Statistics
from streamdp.story.story import Stories, Story, StoryEvent, StoryRecord
from streamdp.story.titles import short

LIVE, CLOSED = "ended IS NULL", "ended IN ('closed', 'retired')"
_OLDEST = "SELECT coalesce(min(seq), 0) FROM records"

READ = 50_000
"""Records, the latest, by whose words themes are made."""

_STORY = (
    "label, size, began, last, first_seq, last_seq, title, keywords, "
    "(SELECT text FROM records WHERE seq = first_seq), (SELECT text FROM records WHERE seq = last_seq)"
)
RECORD = "label, seq, id, time, text, probability, revision, fields"
_CALLED = (
    "(SELECT coalesce(s.title, (SELECT text FROM records WHERE seq = s.first_seq)) FROM stories s "
    "WHERE s.label = e.{})"
)
_EVENT = (
    f"number, event, label, coalesce(title, {_CALLED.format('label')}, 'cluster ' || label), size, "
    f"seq, NULL, time, other, {_CALLED.format('other')} FROM events e"
)
_OF_STORY = (
    "(label = ? OR (other = ? AND label IN "
    "(SELECT label FROM stories WHERE merged_into = ? OR split_from = ?)))"
)
_HOLDING = (
    "SELECT r.label FROM records_text JOIN records r ON r.seq = records_text.rowid WHERE records_text MATCH ?"
)


class StoreStories:
    """Stories of a store. Raises StoriesError where its tables are of another version, or damaged."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with self._sound():
            self._store = read_only(path)
            version = version_of(self._store)
            if version != VERSION:
                self._store.close()
                raise StoriesError(f"{path}: has tables of version {version}, not {VERSION}", Exit.CONFIG)
            (self._oldest,) = self._one(_OLDEST)
        self.lacking = _lacking(self._oldest)

    @contextlib.contextmanager
    def _sound(self) -> Iterator[None]:
        """Raise StoriesError for whatever damage, or somebody else's hand, makes of a store's tables."""
        try:
            yield
        except (sqlite3.Error, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            what = " ".join(str(error).split())
            raise StoriesError(f"{self._path}: the store is damaged: {what}", Exit.BAD_DATA) from error

    def _one(self, query: str, *given: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._store.execute(query, given).fetchone()
        return found

    def version(self) -> int:
        """Another number after each time that the store was written."""
        return int(self._one("PRAGMA data_version")[0])

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """The live stories, largest first, or those that ended, the latest first.

        Live ones that are ``muted`` are left out, unless they are asked for.
        """
        with self._sound():
            self._store.execute("BEGIN")  # all questions see one moment, whoever writes meanwhile
            try:
                return self._stories(closed, stretch, muted or closed)
            finally:
                self._store.execute("COMMIT")

    def _stories(self, closed: bool, stretch: float | None, every: bool) -> Stories:
        (records,) = self._one("SELECT coalesce(max(seq), -1) + 1 FROM records")
        which, order = (CLOSED, "last_seq DESC, label") if closed else (LIVE, "size DESC, label")
        rows = self._store.execute(
            f"SELECT {_STORY} FROM stories WHERE {which} AND size > 0 ORDER BY {order}"  # noqa: S608
        ).fetchall()
        if muted := set() if every else self._corrected("mute"):
            rows = [row for row in rows if row[0] not in muted]
        if not self._oldest:
            rows = self._as_they_are(rows)
        clock = self._clock(stretch, records)
        (templates,) = self._one("SELECT count(template) FROM (SELECT template FROM records LIMIT 100)")
        clusters = [_summary(row, templates=bool(templates)) for row in rows]
        titles = {row[0]: row[6] for row in rows if row[6] is not None}
        renamed = self._corrected("rename")
        known = Known(
            {label: title for label, title in titles.items() if label not in renamed} | self._untitled(which),
            {row[0]: row[7].split() for row in rows if row[7]},
            self._figures(clock),
            [Kin(*each) for each in self._store.execute(_KIN)],
            self._confused(),
            {label: title for label, title in titles.items() if label in renamed},
        )
        made = stories_of(clusters, known, clock, closed=closed)
        warnings = [] if closed or templates else self._doubts()
        kind = "lines" if templates else None
        statistics = (
            None if closed or templates else partial(self._statistics, {row[0]: row[1] for row in rows})
        )
        return Stories(made, clock, records, kind=kind, warnings=warnings, statistics=statistics)

    def _statistics(self, sizes: dict[int, int]) -> Statistics | None:
        with self._sound():
            query = "SELECT seq, label, text FROM records WHERE text IS NOT NULL ORDER BY seq DESC LIMIT ?"
            texts = [row for row in self._store.execute(query, (READ,)) if row[1] in sizes]
            return statistics_of(sizes, texts[::-1])

    def _corrected(self, what: str) -> set[int]:
        """Stories that somebody has corrected so, and nobody has lifted that since."""
        query = "SELECT number, what, stories, undone FROM corrections WHERE refused IS NULL"
        made = self._store.execute(query).fetchall()
        lifted = {undone for *_, undone in made if undone is not None}
        wanted = (
            msgspec.json.decode(of) for number, each, of, _ in made if each == what and number not in lifted
        )
        return {label for labels in wanted for label in labels}

    def _doubts(self) -> list[str]:
        query = "SELECT label, revision > 0 FROM records ORDER BY seq DESC LIMIT ?"
        latest = self._store.execute(query, (LATEST,)).fetchall()
        labels, revised = np.array(latest, np.int64).reshape(-1, 2).T
        return list(doubts(labels, float(revised.mean()) if len(revised) else 0.0, None))

    def _as_they_are(self, rows: list[Any]) -> list[Any]:
        """The same with the times of the records that stories have now, without those that left."""
        found = self._store.execute(
            "SELECT label, min(time), max(time), min(seq), max(seq) FROM records GROUP BY label"
        )
        held = {label: figures for label, *figures in found}
        return [(*row[:2], *held.get(row[0], row[2:6]), *row[6:]) for row in rows]

    def _clock(self, stretch: float | None, records: int) -> Clock:
        latest = self._store.execute("SELECT time FROM records ORDER BY seq DESC LIMIT 1001").fetchall()
        times = [time for (time,) in latest]
        dated = bool(times) and None not in times
        return Clock.of(np.array(times[::-1], float) if dated else None, records, stretch)

    def _figures(self, clock: Clock) -> Any:
        place = "time" if clock.dated else "seq"
        cells = self._store.execute(
            f"SELECT label, CAST((? - {place}) / ? AS INTEGER), count(*) FROM records "  # noqa: S608
            f"WHERE {place} IS NOT NULL GROUP BY 1, 2",
            (clock.time, clock.stretch),
        ).fetchall()
        if not cells:
            return {}
        (first,) = self._one(f"SELECT min({place}) FROM records")  # noqa: S608
        labels, back, counts = np.array(cells, np.int64).T
        return clock.figures_of(labels, back, counts, first)

    def _untitled(self, which: str) -> dict[int, str]:
        """What the first record of stories without a title says."""
        found = self._store.execute(
            "SELECT s.label, r.text FROM stories s JOIN records r ON r.seq = s.first_seq "  # noqa: S608
            f"WHERE s.title IS NULL AND {which}"
        )
        return {label: short(text) for label, text in found if text}

    def _confused(self) -> dict[int, list[tuple[int, int]]]:
        found = dict[int, list[tuple[int, int]]]()
        for label, other, count in self._store.execute(
            "SELECT label, first_label, count(*) FROM records WHERE first_label != label "
            "GROUP BY 1, 2 ORDER BY 3 DESC"
        ):
            found.setdefault(label, []).append((other, count))
        return found

    def in_full(self, story: Story) -> Story:
        """A story with the surest and the least sure of its records."""
        found = dict[int, StoryRecord]()
        with self._sound():
            for order in ("DESC", "ASC"):
                query = (
                    f"SELECT {RECORD} FROM records WHERE label = ? ORDER BY probability {order}, seq LIMIT ?"  # noqa: S608
                )
                rows = self._store.execute(query, (story.label, RECORDS))
                found |= {row[1]: record_of(row) for row in rows}
        return with_records(story, found.values())

    def records(self, labels: Collection[int], *, latest: bool = False) -> Iterator[tuple[int, StoryRecord]]:
        """All records of some stories that the store holds, by story and number; ``latest``: backwards."""
        for label in sorted(labels):
            order = "DESC" if latest else "ASC"
            query = f"SELECT {RECORD} FROM records WHERE label = ? ORDER BY seq {order}"  # noqa: S608
            with self._sound():
                for row in self._store.execute(query, (label,)):
                    yield label, record_of(row)

    def events(self, label: int | None, after: int, most: int, *, latest: bool) -> list[StoryEvent]:
        """Events after one, of a story or of all; ``latest``: before one, backwards."""
        if label is not None and label >= 1 << 63:
            return []
        chosen, given = ["number < ?" if latest and after else "number > ?"], [after]
        if label is not None:
            chosen.append(_OF_STORY)
            given += [label] * 4
        where, order = " AND ".join(chosen), "DESC" if latest else "ASC"
        query = f"SELECT {_EVENT} WHERE {where} ORDER BY number {order} LIMIT ?"
        with self._sound():
            rows = self._store.execute(query, (*given, most)).fetchall()
            found = [StoryEvent(**dict(zip(StoryEvent.__struct_fields__, row, strict=True))) for row in rows]
            return [msgspec.structs.replace(each, title=short(each.title)) for each in found]

    def named(self, name: str) -> tuple[int, StoryRecord] | None:
        """The story and the latest record of an id."""
        query = f"SELECT {RECORD} FROM records WHERE id = ? ORDER BY seq DESC LIMIT 1"  # noqa: S608
        with self._sound():
            row = self._store.execute(query, (name,)).fetchone()
            return None if row is None else (row[0], record_of(row))

    def placed(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The labels of all records that the store holds, and their times where all have one."""
        with self._sound():
            rows = self._store.execute("SELECT label, time FROM records ORDER BY seq").fetchall()
            times = np.array([time for _, time in rows], float)
            return np.array([label for label, _ in rows], np.int64), None if np.isnan(times).any() else times

    def templates(self) -> dict[int, str]:
        """The template of each story of lines, as its latest record has it."""
        query = "SELECT label, template, max(seq) FROM records WHERE template IS NOT NULL GROUP BY label"
        with self._sound():
            return {label: template for label, template, _ in self._store.execute(query)}

    def search(self, words: Sequence[str]) -> set[int]:
        """The stories of which some record holds all words."""
        with self._sound():
            found = self._store.execute(_HOLDING, (fts_of(words),)) if has_search(self._store) else ()
            return {label for (label,) in found}


def _lacking(oldest: int) -> str:
    """What a store does not hold any more, of which this is the first record."""
    if not oldest:
        return ""
    return f"the store holds records from number {oldest:,} on, and stories that have not ended before that"


def has_search(store: sqlite3.Connection) -> bool:
    """Whether the texts of a store are searchable."""
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'records_text'"
    return bool(store.execute(query).fetchone()[0])


def fts_of(words: Sequence[str]) -> str:
    """All of these words, as its search index takes them."""
    return " ".join('"' + word.replace('"', '""') + '"' for word in words)


_KIN = (
    "SELECT 'split', label, split_from FROM stories WHERE split_from IS NOT NULL "
    "UNION ALL SELECT 'merged', label, merged_into FROM stories "
    "WHERE merged_into IS NOT NULL AND title IS NOT NULL"
)


def _summary(row: tuple[Any, ...], *, templates: bool) -> ClusterSummary:
    label, size, began, last, first_seq, last_seq, title, _, first, latest = row
    return ClusterSummary(
        cluster=label,
        size=size,
        first_time=began,
        last_time=last,
        first_seq=first_seq,
        last_seq=last_seq,
        weight=0.0,
        samples=[shown(text) for text in (first, latest) if text],
        template=title if templates and title else msgspec.UNSET,
    )


def record_of(row: tuple[Any, ...]) -> StoryRecord:
    """The record of a row of the columns ``RECORD``."""
    names = ("seq", "id", "time", "text", "probability", "revision")
    kept = msgspec.json.decode(row[7]) if row[7] else {}
    return StoryRecord(**dict(zip(names, row[1:7], strict=True)), keep=kept)
