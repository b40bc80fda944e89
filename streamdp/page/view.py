"""What the page shows of a run: fed by the thread that runs the stream, read by the one that serves.

Memory is bounded whatever the stream does; a batch costs a few operations on arrays, and an object for each
record that may be shown. Once a second ``look`` takes a census of the clusters and gives the tick for pages.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamdp.engine import Engine
from streamdp.page.figures import counted, levels_of, of_kind, rounded, waits
from streamdp.page.graph import Graph
from streamdp.page.shown import Lives, Shown, ShownRecords
from streamdp.page.table import Table, beginning_of
from streamdp.questions.questions import ListEvents
from streamdp.records import GAP, POSITION, SMALL, AnswerRows, Answers
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import NOTHING, Columns
from streamdp.story.clock import Clock
from streamdp.story.gather import called, figures_of
from streamdp.story.story import Story, StoryEvent, noun_of
from streamdp.story.titles import short

WHOLE = 1000
"""Between two ticks so many records are taken whole, by the batch."""

SOME, ONE_IN = 40, 25
"""Of each batch beyond them so many at most, and one of so many: small batches come often."""

COUNTED = 100_000
"""Records that are counted no later than together."""

WAITING = 20_000
"""Records whose texts are remembered while they wait for their turn."""

REPORTED = {"records": 25, "revised": 12, "events": 25}
"""Of each kind, at most so many are in a tick: the latest."""

LEVELS_EVERY = 10
"""Ticks after which the levels of templates are looked at anew."""

LISTED = 200
"""Corrections in force that pages are told of: the latest."""

GONE = ("merged", "vanished")
"""Events that are no news of a cluster of one record: its label was a guess that did not last."""


class View:
    """The clusters, records and events of a run."""

    def __init__(self, stream: str, chosen: Sequence[str] = ()) -> None:
        self.lock = threading.Lock()
        self.stream, self.chosen = stream, list(chosen)
        self.version = 0
        self.source: str | None = None
        """The store, where there is one, which knows more of the past."""
        self.state: str | None = None
        """The state that the run writes, where there is one."""
        self.give: Callable[[Engine, Any], Any] | None = None
        """Takes a correction in the thread that runs the stream, which numbers it; None where none may."""
        self._texts: Sequence[str] = ()  # the fields that are texts, of records that are fields
        self.status: dict[str, Any] = {"stream": stream, "state": "starting", "chosen": self.chosen}
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.table, self.graph, self.lives, self.records = Table(), Graph(), Lives(), ShownRecords()
        self.refused: Counter[str] = Counter()
        self._first, self._room = 0, WHOLE
        self._labels: list[int] = []
        self._times: list[float | None] = []
        self._waiting: dict[bytes, str] = {}
        self._batch = NOTHING
        self._fresh: list[Shown] = []
        self._revised: list[Shown] = []
        self._happened: list[StoryEvent] = []
        self._records = self._revisions = 0
        self._levels: dict[int, str] = {}
        self._paces: list[tuple[float, int]] = []

    # ---------------------------------------------------------------- fed

    def begin(self, engine: Engine) -> None:
        """Show what a state remembers of the records before: the run goes on from there."""
        self._texts = engine.settings.texts
        labels, times = engine.lately()
        stories, closed = engine.stories(records=False), engine.closed()
        with self.lock:
            for story in stories:
                if story.records > 1:
                    self.table.entitle(story.label, story.title)
            self.table.describe(closed)
            if len(labels):
                first = engine.seq - len(labels)
                self.graph.add([None] * len(labels) if times is None else times.tolist(), first, labels)
            self.records.add(
                Shown(
                    seq,
                    None if open_still is None else open_still.time,
                    label,
                    np.nan if open_still is None else open_still.probability,
                    False,
                    short(text, 300),
                    "",
                )
                for seq, label, text, open_still in engine.spoken()
            )

    def taken(self, records: Columns) -> None:
        """These were read, and will be answered."""
        if self._batch:
            self._remember()
        self._batch = records

    def _remember(self) -> None:
        """Keep what the records say that wait for their turn."""
        for place, record in zip(self._batch.positions(), self._batch, strict=True):
            self._waiting[place] = beginning_of(record, self._texts)
        while len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._batch = NOTHING

    def answered(self, answers: Answers, held_back: int) -> None:
        """These were written; so many records wait for their turn."""
        lines = answer_rows(answers.lines)
        first = lines.first()
        with self.lock:
            for reject in answers.rejects:
                if reject.reason != GAP:
                    self.refused[reject.reason] += 1
            if len(first):
                self._count(first)
            if len(first) < len(lines):
                self._revise(lines.revised())
            for event in answers.events:
                name = called(event)
                self.table.call(event.cluster, name)
                if event.title:
                    name = event.title
                    self.table.entitle(event.cluster, name)
                happening = self.lives.add(event, name)
                if event.size > 1 or event.event not in GONE:
                    self._happened.append(happening)
            del self._happened[: -REPORTED["events"]]
        if held_back:
            self._remember()
        else:
            self._batch = NOTHING
            self._waiting.clear()

    def _count(self, first: AnswerRows) -> None:
        if not self._labels:
            self._first = int(first.rows["seq"][0])
        self._labels += first.rows["label"].tolist()
        self._times += [None] * len(first) if self.graph.undated else first.times()
        if len(self._labels) > COUNTED:
            self._sum_up()
        self._records += len(first)
        places = range(len(first))
        self._room -= len(first)
        if self._room < 0:
            some = min(SOME, 1 + len(first) // ONE_IN)
            places = places[-1 :: -(len(first) // some)][:some][::-1]
        which = np.array(places, np.int64)
        batch, chosen = self._batch, first[which]
        texts = self._texts_of(chosen, batch.take(which) if len(batch) == len(first) else NOTHING)
        names = ("seq", "label", "probability", "founded")
        own = chosen.times(), chosen.ids(), *chosen.numbers(*names), texts
        made = [
            Shown(seq, time, label, share, bool(new), text, "" if name is None else str(name)[:80])
            for time, name, seq, label, share, new, text in zip(*own, strict=True)
        ]
        self.records.add(made)
        self._fresh = [*self._fresh, *made][-REPORTED["records"] :]

    def _sum_up(self) -> None:
        """Count the records that came since the last time."""
        if self._labels:
            labels = np.array(self._labels, np.int64)
            self.graph.add(self._times, self._first, labels)
            self._labels, self._times = [], []

    def _texts_of(self, chosen: AnswerRows, records: Columns) -> list[str]:
        """What the records of some answers say: these records, if nothing of the batch had to wait."""
        places = chosen.written(POSITION)
        if places == records.positions():
            found = [beginning_of(record, self._texts) for record in records]
        else:
            self._remember()
            found = [self._waiting.get(place, "") for place in places]
        return [short(text, 300) for text in found]

    def _revise(self, revised: AnswerRows) -> None:
        self._revisions += len(revised)
        own = revised.numbers("seq", "label", "probability")
        found = [self.records.revise(*each) for each in zip(*own, strict=True)]
        self._revised = [*self._revised, *filter(None, found)][-REPORTED["revised"] :]

    # ---------------------------------------------------------------- once a second

    def look(self, engine: Engine, now: float, status: Mapping[str, Any]) -> dict[str, Any]:
        """Take a census at a time in seconds; the tick that pages are sent, with a run's own ``status``."""
        census, (labels, times) = engine.census(), engine.lately()
        corrections = engine.corrections
        clock = Clock.of(times, engine.seq)
        with self.lock:
            self._sum_up()
            self.table.take(census, corrections.muted)
            self.table.pinned = frozenset(corrections.pinned)
            self.table.figures = figures_of(clock, labels, times, engine.seq - len(labels))
            self.graph.choose(self.table, last=status.get("state") != "running")
            stale = self.table.stale(self.graph.drawn)
        clusters = engine.clusters(stale)
        figures = counted(engine)
        if engine.kind == "lines" and self.version % LEVELS_EVERY == 0:
            self._levels = levels_of(engine)
        with self.lock:
            self.table.describe(clusters)
            self.table.levels = self._levels
            self.version += 1
            self._room = WHOLE
            self.status = {
                "stream": self.stream,
                "chosen": of_kind(self.chosen, engine),
                **figures,
                "live": len(census.label),
                "larger": int((census.size > SMALL).sum()),
                "rate": self._rate(now),
                "stretch": clock.words,
                "time": clock.time if clock.dated else None,
                "nouns": [noun_of(engine.kind, 1), noun_of(engine.kind, 2)],
                "warnings": engine.doubts(),
                "corrections": len(corrections.held),
                "in_force": sorted(corrections.held)[-LISTED:],
                "corrects": self.give is not None,
                "stored": self.source is not None,
                "revisions": self._revisions,
                "refused": dict(sorted(self.refused.items(), key=lambda item: (-item[1], item[0]))[:12]),
                **status,
            }
            self.status["waits"] = waits(self.status)
            tick = {
                "status": self.status,
                "graph": self.graph.drawing(self.table),
                "records": [self.record_row(record) for record in reversed(self._fresh)],
                "revised": [self.record_row(record) for record in reversed(self._revised)],
                "events": [self._called(event) for event in reversed(self._happened)],
                "titles": self.table.renamed(r.cluster for r in (*self.records.latest, *self._revised)),
            }
            self._fresh, self._revised, self._happened = [], [], []
        return tick

    def _rate(self, now: float) -> float:
        """Records a second over the last five."""
        self._paces.append((now, self._records))
        while len(self._paces) > 2 and now - self._paces[1][0] >= 5.0:
            del self._paces[0]
        (then, before), span = self._paces[0], max(now - self._paces[0][0], 1e-9)
        return round((self._records - before) / span, 2) if now > then else 0.0

    # ---------------------------------------------------------------- asked

    def record_row(self, record: Shown) -> dict[str, Any]:
        """A record, as pages get it; the lock is held."""
        titles = {label: self.table.name(label) for label in (record.cluster, *record.was)}
        return {
            "seq": record.seq,
            "id": record.id,
            "time": record.time,
            "text": record.text,
            "label": record.cluster,
            "title": titles[record.cluster],
            "slot": self.graph.colours.of(record.cluster),
            "probability": rounded(record.probability, 4),
            "new": record.new,
            "was": [{"label": label, "title": titles[label]} for label in record.was],
        }

    def _called(self, event: StoryEvent) -> StoryEvent:
        """An event, as pages get it; the lock is held."""
        return event if event.other is None else event.called({event.other: self.table.name(event.other)})

    def now(self) -> dict[str, Any]:
        """The state of the run, and what is waited for just now."""
        return {**self.status, "waits": waits(self.status)}

    def first_tick(self) -> dict[str, Any]:
        """What a page that opens is sent: the state, and the latest of everything."""
        with self.lock:
            return {
                "status": self.now(),
                "graph": self.graph.drawing(self.table),
                "records": [self.record_row(record) for record in reversed(self.records.latest)],
                "revised": [],
                "events": [self._called(event) for event in reversed(list(self.lives.latest)[-25:])],
                "slots": self.graph.colours.all(),
            }

    def drawing(self, begin: float | None, end: float | None, bins: int) -> dict[str, Any]:
        """The graph between two places."""
        with self.lock:
            return self.graph.drawing(self.table, begin, end, bins)

    def shown(self, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
        """What the page alone knows of stories, by label."""
        with self.lock:
            return {label: self._shown(label) for label in labels}

    def _shown(self, label: int) -> dict[str, Any]:
        return {
            "slot": self.graph.colours.of(label),
            "level": self.table.levels.get(label),
            "pinned": label in self.table.pinned,
        }

    def cluster(self, label: int) -> dict[str, Any] | None:
        """What the page alone knows of a story; None where that is nothing."""
        with self.lock:
            life, about = self.lives.of(label), self.table.about.get(label)
            if not life and about is None and not self.records.of(label):
                return None
            live = bool((self.table.census.label == label).any())
            merged = (e.other for e in reversed(life) if e.event == "merged" and e.label == label)
            into = None if live else next(merged, None)
            return {
                **self._shown(label),
                "title": self.table.name(label) if about or not life else life[-1].title,
                "merged_into": None if into is None else {"label": into, "title": self.table.name(into)},
                "near": [
                    {"label": other, "title": self.table.name(other), "likeness": likeness}
                    for other, likeness in self.table.near(label)
                ],
                "words": [] if about is None else about.words,
                "mean": None if about is None else about.mean,
                "over_time": self.graph.of(label),
            }

    def entitle(self, stories: Iterable[Story]) -> None:
        """Call stories as they are called in answers to questions."""
        with self.lock:
            for story in stories:
                self.table.entitle(story.label, story.title)

    def texts(self, cluster: int) -> dict[int, str]:
        """What the records of a cluster say that the page remembers, by number."""
        with self.lock:
            return {record.seq: record.text for record in self.records.of(cluster)}

    def events(self, asked: ListEvents) -> list[StoryEvent]:
        """The events that are asked for and one more, as far as the page remembers them."""
        with self.lock:
            found = self.lives.latest if asked.label is None else self.lives.of(asked.label)
            ordered = reversed(found) if asked.latest else iter(found)
            after, latest = asked.after, asked.latest
            left = [e for e in ordered if not after or (e.number < after if latest else e.number > after)]
            return [self._called(event) for event in left[: asked.limit + 1]]
