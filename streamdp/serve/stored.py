"""Questions to the store while it is written: answers by id, events, records; what a service stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streamdp.questions.answers import Answer
from streamdp.records.stored import read_only
from streamdp.serve.ingest import IngestQueue, Named
from streamdp.settings import Settings

MANY = 10_000
"""Ids that one question names, at most."""

_ANSWERS = """
SELECT r.id, r.seq, json_extract(r.position, '$.line'), r.time, r.label, s.first_seq = r.seq, r.probability,
  r.novelty, r.revision, r.template, r.text
FROM records r LEFT JOIN stories s ON s.label = r.first_label WHERE r.id IN ({}) ORDER BY r.seq DESC
"""  # ids as parameters: in a list of JSON, they would end at their first NUL
_ANSWER = ("id", "seq", "line", "time", "label", "new", "probability", "novelty", "revision", "template")


class Stored:
    """What a store holds, by one connection: for one thread at a time."""

    def __init__(self, path: str) -> None:
        self._store = read_only(path)

    def answers(self, ids: Sequence[str]) -> dict[str, tuple[Answer, Named]]:
        """The newest answers to the records of these ids that are there, and which these are, by id."""
        found = {}
        for some in (ids[at : at + MANY] for at in range(0, len(ids), MANY)):
            for *row, text in self._store.execute(_ANSWERS.format(", ".join("?" * len(some))), some):
                said = dict(zip(_ANSWER, row, strict=True))
                answer = Answer(status="answered", **{**said, "new": bool(said["new"])})
                found[row[0]] = answer, Named.of(row[0], text)
        return found  # of several records of one id the first

    def held_events(self) -> tuple[int, int]:
        """The numbers of the oldest event and of the newest; 1 and 0 where there is none."""
        found = self._store.execute("SELECT coalesce(min(number), 1), coalesce(max(number), 0) FROM events")
        first, last = found.fetchone()
        return int(first), int(last)

    def events(self, after: int, most: int) -> list[tuple[int, str, str]]:
        """Number, kind and JSON of events after one."""
        query = "SELECT number, event, more FROM events WHERE number > ? ORDER BY number LIMIT ?"
        return self._store.execute(query, (after, most)).fetchall()


class ServiceContext(NamedTuple):
    """The door; answers of the store; where store and state are; whether records are lines of text; how they
    are read.
    """

    door: IngestQueue
    stored: Stored
    store: str
    state: str
    of_text: bool
    settings: Settings
