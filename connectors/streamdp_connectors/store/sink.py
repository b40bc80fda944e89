"""Write records, stories and events to a store, each once, whatever is killed when.

A batch is one transaction, with the number of answers and events that it ends with. A run that goes on from
a snapshot makes the same answers again: those that the store holds already are passed over.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from streamdp.errors import Exit
from streamdp.records import KEPT, POSITION, AnswerRows, Answers, Event
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.safe_files import lock
from streamdp_connectors.protocol import FullError, SinkError
from streamdp_connectors.store.carrier import Carrier
from streamdp_connectors.store.schema import check, open_store
from streamdp_connectors.store.tables import Bounds, Revision, Row, Tables

TRIM_EVERY = 20_000
"""Records between two removals of what is beyond the bounds, at most."""

TRIM_LEAST = 1000
"""The same at least, in a store of few rows."""

Changed = TypeVar("Changed")
"""What a change of the tables gives."""

FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
"""What SQLite says where the disk has no room for its files."""

SNAPSHOTS = 8
"""Latest snapshots that a run may resume from, as far as the marks of the source are concerned."""


class StoreLeft(msgspec.Struct, frozen=True):
    """What a snapshot remembers of a store.

    ``id`` is that of the store; answers, events and marks of the source are counted; ``waiting`` are the
    positions, as JSON, of records that wait for their answers, and what they say.
    """

    path: str
    id: str
    lines: int
    events: int
    marks: int
    waiting: list[tuple[str, str]]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> StoreLeft:
        """What a snapshot says. Raises SinkError where no store says that."""
        try:
            return msgspec.convert(stored, cls)
        except msgspec.ValidationError as error:
            raise SinkError(f"of its store: {error}", Exit.BAD_DATA) from None


_encode = msgspec.json.Encoder().encode


class StoreSink:
    """A store that is written.

    Parameters
    ----------
    path
        The file. Raises SinkError where it is something else, or another process writes it.
    left
        What ``state`` returned at the snapshot that a run resumes from; None for a new store.
    search
        Whether texts can be searched (SQLite's FTS5), in a store that is made.
    revisions
        Whether every revision is kept, in ``answers``.
    once
        Whether each record is answered once, however often its answer was revised.
    bounds
        What it holds at most.
    overwrite
        Whether a store that is there may be replaced.
    replayed
        Whether the records after the snapshot come again.
    ended
        Whether the snapshot is of an input that had come to its end: what was written then is taken back.
    """

    def __init__(
        self,
        path: str,
        left: Mapping[str, Any] | None = None,
        *,
        search: bool = True,
        revisions: bool = False,
        once: bool = False,
        bounds: Bounds = Bounds(),  # noqa: B008 - a tuple
        overwrite: bool = False,
        replayed: bool = True,
        ended: bool = False,
    ) -> None:
        self.path, self._bounds, self._once = path, bounds, once
        check(path)
        self._lock = self._locked()
        try:
            self._store = open_store(path, search=search, overwrite=overwrite, resumed=left is not None)
        except SinkError:
            os.close(self._lock)
            raise
        self._tables = Tables(self._store, revisions=revisions)
        # of records that wait for their answers: by position, which a file that was replaced has again
        self._texts: dict[bytes, list[str]] = {}
        self._batch: Columns | None = None  # the same of the last batch
        self._rows: list[Row] = []
        self._revisions: list[Revision] = []
        self._events: list[tuple[Event, int]] = []
        self._marks: list[tuple[int, str]] = []
        self._further: list[tuple[str, Mapping[str, Any]]] = []
        self._lines = self._happened = self._marked = self._since_trim = 0
        self._needed: deque[int] = deque(maxlen=SNAPSHOTS)
        self._keywords: dict[int, str] = {}
        self._ending = False
        self._carrier: Carrier | None = None
        self._trim_every = min(TRIM_EVERY, max(TRIM_LEAST, bounds.rows or TRIM_EVERY))
        self.removed: Counter[str] = Counter()
        """Rows that went beyond the bounds, of this process, by table; another thread may look."""
        self.marks: Sequence[Mapping[str, Any]] = ()
        self._resumable = left is not None
        if ended:
            self._transact(self._tables.take_back)
        self._go_on(None if left is None else StoreLeft.of(left))
        if self._skip_lines > 0 and not replayed:
            raise SinkError(
                f"{path} is ahead of the state, and the input cannot be read again: name a new --state and a "
                "new --store",
                Exit.BAD_DATA,
            )

    def _locked(self) -> int:
        """The file, locked. It stays open: SQLite's own locks would end with it."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            why = (
                f"there is no folder {os.path.dirname(self.path)}, make it first"
                if missing
                else error.strerror
            )
            raise SinkError(f"cannot create {self.path}: {why}", Exit.CANNOT_CREATE) from None
        if not lock(fd):
            os.close(fd)
            raise SinkError(
                f"{self.path}: another streamdp process writes to it; stop that one, or name another file",
                Exit.CANNOT_CREATE,
            )
        return fd

    def _go_on(self, left: StoreLeft | None) -> None:
        """Find out how far the store is ahead of the snapshot. Raises SinkError where it is behind."""
        held = dict(self._store.execute("SELECT name, value FROM meta"))
        if left is None:
            held = {"id": uuid.uuid4().hex, "lines": 0, "events": 0}
            self._store.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", held.items())
        elif held.get("id") != left.id:
            raise SinkError(
                f"{self.path} is not the store that this state wrote to ({left.path}): restore that one, "
                "or name a new --state",
                Exit.BAD_DATA,
            )
        else:
            self._lines, self._happened, self._marked = left.lines, left.events, left.marks
            after = "SELECT positions FROM marks WHERE number > ? ORDER BY number"
            found = self._store.execute(after, (self._marked,)).fetchall()
            self.marks = [msgspec.json.decode(positions) for (positions,) in found]
            for place, text in left.waiting:
                self._wait(place.encode(), text)
        self._id = held["id"]
        self._skip_lines = held["lines"] - self._lines
        self._skip_events = held["events"] - self._happened
        if self._skip_lines < 0 or self._skip_events < 0:
            raise SinkError(
                f"{self.path} lacks what this state has written: restore it, or name a new --state",
                Exit.BAD_DATA,
            )

    def check_reach(self, line: int, source: str) -> None:
        """Raise SinkError where records behind a line of their source, which ends there, are held."""
        (last,) = self._store.execute(
            "SELECT max(json_extract(position, '$.line')) FROM "
            "(SELECT position FROM records ORDER BY seq DESC LIMIT ?)",
            (self._skip_lines,),
        ).fetchone()
        if last is not None and last > line:
            raise self._of_others(f"record {last:,} of {source}, which ends with record {line:,}")

    def _check_same(self, again: Sequence[Row]) -> None:
        """Raise SinkError where records that are read again are not those that are held."""
        for seq, _, position, _, text, *_ in again:
            query = "SELECT position, text FROM records WHERE seq = ? AND text <> ''"  # those are erased
            row = self._store.execute(query, (seq,)).fetchone()
            if row is not None and row != (position, text):
                raise self._of_others(f"other records than those that are read, from {row[0]} on")

    def _of_others(self, what: str) -> SinkError:
        return SinkError(
            f"{self.path} holds {what}: restore that input, or begin anew with another --state and --store",
            Exit.BAD_DATA,
        )

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """The positions of records that were read and not answered yet."""
        return [msgspec.json.decode(place) for place, texts in self._texts.items() for _ in texts]

    def suit_service(self) -> None:
        """Make records quick to find by their id, and pauses rare, from now on. Raises SinkError."""
        self._transact(
            lambda: self._store.execute("CREATE INDEX IF NOT EXISTS records_by_id ON records (id)")
        )
        self._store.execute("PRAGMA wal_autocheckpoint = 32000")  # 125 MiB, if it must be
        self._carrier = Carrier(self.path)

    # ---------------------------------------------------------------- taken in

    def mark(self, positions: Mapping[str, Any]) -> None:
        """Store the source's positions after a read, before the answers to it are written."""
        if self._resumable:
            self._marked += 1
            self._marks.append((self._marked, _encode(positions).decode()))

    def taken(self, records: Columns) -> None:
        """These were read, and will be answered."""
        self._keep_batch()
        self._batch = records

    def _keep_batch(self) -> None:
        """Remember what the texts of the last batch say that were not answered at once."""
        batch, self._batch = self._batch, None
        if batch is not None:
            for place, text in zip(batch.positions(), batch.said(), strict=True):
                self._wait(place, text)

    def _wait(self, place: bytes, text: str) -> None:
        self._texts.setdefault(place, []).append(text)

    def _text_at(self, place: bytes) -> str:
        """What the record says that has waited longest of those at a position."""
        texts = self._texts.get(place, [""])
        if len(texts) == 1:
            self._texts.pop(place, None)
        return texts.pop(0)

    def write(self, answers: Answers) -> None:
        """Take in answers, revisions and events."""
        lines = answer_rows(answers.lines)
        fresh = lines if self._once else lines.first()
        rows = self._rows_of(fresh)
        self._lines += len(lines)
        if held := min(self._skip_lines, len(lines)):  # they are in the store already
            self._skip_lines -= held
            known = held if self._once else len(lines[:held].first())
            lines = lines[held:]
            self._check_same(rows[:known])
            rows = rows[known:]
        self._rows += rows
        if len(rows) < len(lines):
            again = lines.revised()
            columns = again.numbers("seq", "revision", "label", "probability")
            self._revisions += zip(*columns, again.templates(), strict=True)
        if answers.rejects:  # some of which were taken in, and wait for nothing any more
            self._keep_batch()
            for reject in answers.rejects:
                self._text_at(_encode(reject.position))
        for event in answers.events:
            self._happened += 1
            if self._skip_events > 0:
                self._skip_events -= 1
            else:
                self._events.append((event, self._happened))

    def put(self, table: str, row: Mapping[str, Any]) -> None:
        """Take in a row of another table than those of answers and events."""
        self._further.append((table, row))

    def texts(self, seqs: Sequence[int]) -> dict[int, str]:
        """What records of these numbers say, as far as they are held or were taken in."""
        wanted = set(seqs)
        query = "SELECT seq, text FROM records WHERE seq IN (SELECT value FROM json_each(?))"
        held = self._store.execute(query, (_encode([*wanted]).decode(),)).fetchall() if wanted else []
        return dict(held) | {row[0]: row[4] for row in self._rows if row[0] in wanted}

    def _rows_of(self, fresh: AnswerRows) -> list[Row]:
        """The rows of records that are answered for the first time, in order."""
        places, batch = fresh.written(POSITION), self._batch
        if batch is not None and not self._texts and places == batch.positions():  # as nearly always
            self._batch = None
            texts = batch.said()
        else:
            self._keep_batch()
            texts = [self._text_at(place) for place in places]
        seqs, labels, *shares, revisions = fresh.numbers("seq", "label", "probability", "novelty", "revision")
        ids = [name if name is None or name.__class__ is str else str(name) for name in fresh.ids()]
        of_record = seqs, ids, fresh.of(POSITION), fresh.times(), texts, fresh.of(KEPT)
        return [*zip(*of_record, labels, labels, *shares, revisions, fresh.templates(), strict=True)]

    # ---------------------------------------------------------------- written

    def note_keywords(self, keywords: Mapping[int, Sequence[str]]) -> None:
        """Keywords of stories by label, as they are at the end of the input."""
        self._keywords = {label: " ".join(words) for label, words in keywords.items() if words}

    def ending(self) -> None:
        """The input has come to its end: what is written now is taken back if it goes on after all."""
        self.flush(sync=False)
        self._ending = True

    def flush(self, sync: bool) -> None:
        """Write what was taken in as one transaction; with ``sync`` to the disk. Raises SinkError.

        On a full disk that is FullError: all of it is held, and may be flushed again.
        """
        if any((self._rows, self._revisions, self._events, self._marks, self._further, self._keywords)):
            self._transact(self._write_all)
            self._since_trim += len(self._rows)
            self._rows, self._revisions, self._events, self._marks = [], [], [], []
            self._further, self._keywords = [], {}
        if self._since_trim >= self._trim_every and not self._ending:
            self._trim()
        if sync:
            self._sync()

    def _trim(self) -> None:
        """Remove what is beyond the bounds."""
        if not self._bounds.none:
            self.removed.update(self._transact(lambda: self._tables.remove_old(self._bounds)))
        self._since_trim = 0

    def _write_all(self) -> None:
        run = self._store.executemany
        if self._ending:
            self._tables.remember(self._rows, self._revisions, self._events, self._keywords)
        run("INSERT OR REPLACE INTO marks VALUES (?, ?)", self._marks)
        if len(self._needed) == SNAPSHOTS:
            run("DELETE FROM marks WHERE number <= ?", [(self._needed[0],)])
        self._tables.add(self._rows, self._revisions)
        for event, number in self._events:
            self._tables.tell(event, number)
        for table, row in self._further:
            self._tables.put(table, row)
        self._tables.retitle(self._rows, self._revisions)
        run("UPDATE stories SET keywords = ? WHERE label = ?", [(w, k) for k, w in self._keywords.items()])
        counted = (self._lines, "lines"), (self._happened, "events")
        run("UPDATE meta SET value = max(value, ?) WHERE name = ?", counted)

    def lasting(self) -> Callable[[], None]:
        """Return a function that brings everything written so far to the disk; for any thread."""
        return self._sync

    def _sync(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(f"{self.path}-wal", "rb") as file:
            os.fsync(file.fileno())
        os.fsync(self._lock)

    def state(self) -> dict[str, Any]:
        """Return what a snapshot stores; to be called after a flush."""
        self._keep_batch()
        self._resumable = True
        self._needed.append(self._marked)
        return {
            "path": os.path.abspath(self.path),
            "id": self._id,
            "lines": self._lines,
            "events": self._happened,
            "marks": self._marked,
            "waiting": [[place.decode(), text] for place, texts in self._texts.items() for text in texts],
        }

    def close(self) -> None:
        """Write what was taken in, and close the store; again is harmless."""
        if self._lock < 0:
            return
        try:
            if self._carrier is not None:
                self._carrier.close()
            self.flush(sync=False)
            self._trim()
            self._store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._store.close()
            os.close(self._lock)
            self._lock = -1

    def _transact(self, change: Callable[[], Changed]) -> Changed:
        """Change the tables, all or nothing. Raises SinkError."""
        try:
            self._store.execute("BEGIN IMMEDIATE")
            found = change()
            self._store.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self._store.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and error.sqlite_errorcode in FULL:
                raise FullError(f"cannot write to {self.path}: the disk is full", Exit.IO_ERROR) from error
            if isinstance(error, sqlite3.Error):
                raise SinkError(f"cannot write to {self.path}: {error}", Exit.IO_ERROR) from error
            raise
        return found
