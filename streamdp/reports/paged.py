"""What a page asks of a store: stories that ended, and the records of one, a page at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamdp.records.stored import read_only
from streamdp.reports.store import CLOSED, fts_of, has_search
from streamdp.story.titles import short

_STORY = (
    "label, coalesce(title, (SELECT text FROM records WHERE seq = first_seq)), keywords, size, began, last, "
    "last_seq"
)


class PagedStore:
    """Pages of a store, by one connection; from any thread."""

    def __init__(self, path: str | Path) -> None:
        self._store = read_only(path)
        self._lock = threading.Lock()
        self.lacking = ""

    def _ask(self, query: str, given: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._store.execute(query, given).fetchall()

    def ended(self, words: Sequence[str], start: int, most: int) -> tuple[int, list[dict[str, Any]]]:
        """Stories that ended, the latest first; each word in the title, the keywords or some record."""
        where, given = [CLOSED, "size > 0"], []
        with self._lock:
            searchable = has_search(self._store)
        for word in words:
            own = "instr(lower(coalesce(title, '') || ' ' || coalesce(keywords, '') || ' ' || label), ?)"
            given.append(word)
            if searchable:
                own += (
                    " OR label IN (SELECT r.label FROM records_text JOIN records r "
                    "ON r.seq = records_text.rowid WHERE records_text MATCH ?)"
                )
                given.append(fts_of([word]))
            where.append(f"({own})")
        chosen = f"FROM stories WHERE {' AND '.join(where)}"
        ((found,),) = self._ask(f"SELECT count(*) {chosen}", given)
        query = f"SELECT {_STORY} {chosen} ORDER BY last_seq DESC, label LIMIT ? OFFSET ?"
        return found, [_ended(row) for row in self._ask(query, [*given, most, start])]

    def records(self, label: int, start: int, most: int) -> tuple[int, list[dict[str, Any]]]:
        """Records of a story, the latest first."""
        ((found, oldest),) = self._ask(
            "SELECT count(*), (SELECT coalesce(min(seq), 0) FROM records) FROM records WHERE label = ?",
            (label,),
        )
        self.lacking = f"the store holds records from number {oldest:,} on" if oldest else ""
        query = (
            "SELECT seq, id, time, text, probability, revision FROM records "
            "WHERE label = ? ORDER BY seq DESC LIMIT ? OFFSET ?"
        )
        names = "seq", "id", "time", "text", "probability", "revision"
        rows = [dict(zip(names, row, strict=True)) for row in self._ask(query, (label, most, start))]
        for row in rows:
            row["id"], row["text"] = str(row["id"] or "")[:80], row["text"][:300]
        return found, rows

    def close(self) -> None:
        """Close the connection."""
        self._store.close()


def _ended(row: tuple[Any, ...]) -> dict[str, Any]:
    label, title, keywords, size, began, last, last_seq = row
    return {
        "cluster": label,
        "name": short(title or "") or f"cluster {label}",
        "size": size,
        "first_time": began,
        "last_time": last,
        "last_seq": last_seq,
        "keywords": (keywords or "").split()[:6],
    }
