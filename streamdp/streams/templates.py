"""The stream of lines of a log: templates, and what there is to say of each line."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.assignments import assignments
from streamdp.answers.describe import Candidate, Census, census_of_all
from streamdp.answers.rates import SECONDS, Rates
from streamdp.beam.data.state import ANSWER
from streamdp.encode.batch import Batch
from streamdp.encode.order import ReorderBuffer, refuse
from streamdp.kernels.packed import as_type, pack_all, unpack_all
from streamdp.kernels.rows import new_rows
from streamdp.kernels.sound import require
from streamdp.ledger.lines import as_member
from streamdp.lines.closed_places import Rule
from streamdp.lines.facts import facts_of, state_of
from streamdp.lines.forgotten import forget
from streamdp.lines.holes import Past, past_of
from streamdp.lines.masks import MASKED
from streamdp.lines.shown import filled, founders, holes
from streamdp.lines.state import roots
from streamdp.lines.stream import LineStream, Stretch
from streamdp.lines.values import NO_LEVELS, Levels
from streamdp.records import TURNS, Answers, Assignment, ClusterSummary, Event, Lines, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.assemble import template_bounds, template_masks, template_terms
from streamdp.state.corrections import Correction
from streamdp.state.sound import check_labelled
from streamdp.streams.corrections import refused
from streamdp.streams.intake import left_of
from streamdp.streams.readings import Readings, last_of
from streamdp.streams.stream import Stream

TOLD = ("label", "founded", "probability", "new_probability", "log_predictive")
"""What is said of a line, of a row of its answer."""


class _Telling:
    """Answers to the records of a batch, numbered from ``first``, in order; they go to ``lines``."""

    def __init__(self, announcer: Announcer, records: Columns, first: int, lines: Lines) -> None:
        self._announcer, self.records, self.lines = announcer, records, lines
        self.answered = 0
        """Records that have an answer, which may wait still."""
        self._told = 0
        self._rows, self._sizes = new_rows(len(records), ANSWER, link=-1), np.zeros(len(records), np.int64)
        self._rows["decided"] = np.arange(first, first + len(records))
        self._templates: list[bytes] = []
        self._values: list[bytes] = []

    def add(
        self, rows: np.ndarray, sizes: np.ndarray, templates: Sequence[bytes], values: Sequence[bytes]
    ) -> None:
        """Answer the next texts, each with its template, and the values of its holes where they are shown."""
        stretch = slice(self.answered, self.answered + len(rows))
        for name in TOLD:
            self._rows[name][stretch] = rows[name]
        self._sizes[stretch] = sizes
        self._templates += templates
        self._values += values
        self.answered = stretch.stop

    def finish(self) -> None:
        """Tell what waits."""
        if not self._templates:
            return
        stretch = slice(self._told, self.answered)
        texts, shown = self.records[stretch], (self._templates, self._values)
        self._announcer.announce(self._rows[stretch], self._sizes[stretch], texts, self.lines, shown=shown)
        self._told, self._templates, self._values = self.answered, [], []


class TemplateStream(Stream):
    """Clusters records that are texts by their templates.

    Parameters
    ----------
    settings
        Those of the engine. ConfigError for those without a meaning with templates.
    order
        What puts records in order.
    final_only
        Answer each record once, when its label is final.
    """

    kind = "lines"

    def __init__(self, settings: Settings, order: ReorderBuffer, *, final_only: bool) -> None:
        super().__init__(settings, order, Announcer(settings, final_only=final_only, linked=False))
        self.announcer.ledger.keep_open(settings.retain)
        self.masks, split = template_masks(settings), settings.split_by
        self.lines = LineStream(
            template_terms(settings), bounds=template_bounds(settings), masks=self.masks, split=split
        )
        self._rates = Rates(SECONDS if settings.rate_window is None else settings.rate_window)
        self.readings = Readings(self.masks)

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return self.lines.records

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence in nats: the sum of log p(line | past)."""
        return self.lines.log_evidence

    def take(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        """Learn texts at these times, and append what there is to say of them."""
        which = left_of(given, _no_texts(given), answers)
        if len(which):
            self._learn(given.take(which) if len(which) < len(given) else given, times[which], answers)

    def _learn(self, records: Columns, times: np.ndarray, answers: Answers) -> None:
        """Learn records at these times."""
        assert records.values is not None
        letters, ends, *_ = records.values
        written = letters, np.concatenate([[records.begin], ends])
        lines, events = answers.lines, answers.events if self.with_events else None
        first, offsets = self.seq, np.zeros(len(records) + 1, np.int64)
        self.retained.append(first, Batch(offsets, times=times))
        telling = _Telling(self.announcer, records, first, lines)
        done, dated = 0, records.time(0) is not None
        levels = _levels_of(records) if "level" in self.settings.kept else NO_LEVELS
        for part in self.lines.take_bytes(*written, times, levels, dated=dated):
            if len(part.retired):
                self._retire(first + done, records.time(done), events)
                continue
            n, untold = len(part.answers), -1
            turned = self._turned(part, times, first, done, records, dated=dated)
            if events is not None:
                events.extend(turned)
            if part.changed:  # the last line changed a template: the others are reported as it was
                self._tell(telling, part, 0, n - 1)
                untold = self._changed(records.text(done + n - 1), part)
            self._tell(telling, part, n - 1 if part.changed else 0, n)
            done += n
            last, seq = records.time(done - 1) if part.changed else None, first + done - 1
            if part.changed and events is not None and part.answers["founded"][-1]:
                events.append(self._event("born", int(part.answers["label"][-1]), seq, last))
            for younger, older in part.changes.tolist():
                if younger == untold:
                    continue
                telling.finish()
                self._one_label(younger, older, seq, last, lines, events)
        telling.finish()

    def score(self, records: Sequence[Record | Reject], first: int, answers: Answers) -> None:
        """Append answers that teach nothing, numbered from ``first``."""
        given = Columns.of(records)
        taken = given.take(left_of(given, _no_texts(given), answers))
        part = self.lines.score(taken.said())
        numbers = self.announcer.numbers(part.answers, part.sizes)
        answers.lines.extend(self._answers(part.answers, numbers, first, taken))

    def end(self, answers: Answers) -> None:
        """Nothing waits, and merges are found as they come."""

    def whereto(self, record: Record, most: int) -> list[Candidate] | Reject:
        """The template that a line fits, or a new one (-1); learns nothing."""
        answers = Answers(Lines(), [], [])
        self.score([record], 0, answers)
        found = [Candidate(cluster=a.cluster, probability=a.probability) for a in answers.assignments]
        return found or answers.rejects[0]

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries; templates of one label are one cluster."""
        labels = roots(self.lines.state.clusters["older"][: int(self.lines.state.counters.clusters)])
        return self.lines.counters() | {"clusters_live": len(np.unique(labels[self._living()]))}

    def _living(self) -> list[int]:
        """The templates that live."""
        rows = self.lines.state.clusters[: int(self.lines.state.counters.clusters)]
        found: list[int] = np.flatnonzero(rows["alive"]).tolist()
        return found

    def _changed(self, text: str, part: Stretch) -> int:
        """A line has founded a template, or made a hole of a constant, or templates one.

        Returns the label of one that became an older one at once, so that it is never told; else -1.
        """
        cluster, clusters = int(part.answers["cluster"][-1]), self.lines.state.clusters
        founded = self.readings.found(cluster, text)
        self.readings.keep_living(self.lines.state)
        self.readings.show(self.lines.state, last_of(clusters["into"], cluster))
        return cluster if founded and not part.answers["founded"][-1] else -1

    def _answers(
        self,
        rows: np.ndarray,
        numbers: np.ndarray,
        first: int,
        records: Sequence[Record],
    ) -> list[Assignment]:
        """The answers to records, which are numbered from ``first``."""
        unset, own = msgspec.UNSET, self.lines.state.clusters
        params: Iterable[Any] = repeat(unset)
        clusters = rows["cluster"].tolist()
        labels = rows["label"].tolist()
        if self.settings.params:
            params = [
                [] if label < 0 else self.readings.values(own, str(record.value), cluster)
                for record, label, cluster in zip(records, labels, clusters, strict=True)
            ]
        links, named = self._shown(rows)
        templates = [
            unset if label < 0 else self.readings.template(links, each)
            for label, each in zip(labels, named, strict=True)
        ]
        more = {"templates": templates, "params": params}
        return assignments(rows, numbers, records, first, **more)

    def _shown(self, rows: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """Whose templates answers have, labels or the clusters that values are for, and their links."""
        clusters = self.lines.state.clusters
        if self.settings.params:
            return clusters["into"], rows["cluster"].tolist()
        return clusters["older"], rows["label"].tolist()

    def _tell(self, telling: _Telling, part: Stretch, start: int, stop: int) -> None:
        """Answer some lines of a stretch with their templates as they are now."""
        if start == stop:
            return
        rows, sizes, texts = part.answers[start:stop], part.sizes[start:stop], telling.records
        known, own, params = self.readings.written, self.lines.state.clusters, self.settings.params
        links, named = self._shown(rows)
        templates = [
            known.get(each) or as_member("template", self.readings.template(links, each)) for each in named
        ]
        values: list[bytes] = []
        if params:
            clusters = enumerate(named, telling.answered)
            values = [
                as_member("params", self.readings.values(own, texts.text(i), cluster))
                for i, cluster in clusters
            ]
        telling.add(rows, sizes, templates, values)

    def _one_label(
        self,
        younger: int,
        older: int,
        seq: int,
        time: float | None,
        lines: Lines,
        events: list[Event] | None,
    ) -> None:
        """Two labels are one: revise what is open, and report it."""
        label = last_of(self.lines.state.clusters["older"], older)
        self._rates.unite(younger, label)
        of_label = functools.cache(lambda: sorted(self._families(self._living())[label]))
        self.announcer.unite(
            younger,
            label,
            self.readings.shown[label],
            lambda template, values: self.readings.refilled(of_label(), template, values),
            lines,
        )
        if events is not None:
            event = self._event("merged", younger, seq, time)
            merged = msgspec.structs.replace(event, other=label, moved=[(label, event.size)])
            events.append(merged)
            self.note([merged])

    # ---------------------------------------------------------------- corrections

    def constrain(self, correction: Correction, answers: Answers | None) -> None:
        """Merge two templates, or close a hole of one: from the next line on. Raises CorrectionError."""
        if correction.what not in ("merge", "split", "close"):
            super().constrain(correction, answers)
        held, clusters = self.corrections, self.lines.state.clusters
        rule = None if correction.what == "merge" else self._rule_of(correction)
        held.begin(correction, rule=rule)
        if answers is not None and rule is not None:
            self.lines.close([*held.rules.values()])
            self._rates.forget(np.array(correction.stories))
        elif answers is not None:
            older, younger = sorted(correction.stories)
            clusters["older"][younger] = older
            time, events = self.retained.time if self.order.dated else None, answers.events
            said = events if self.with_events else None
            self._one_label(younger, older, self.seq - 1, time, answers.lines, said)

    def _rule_of(self, correction: Correction) -> Rule:
        """What closes a hole of a template as it reads now, for a value or all. Raises CorrectionError."""
        (label,), nth, value = correction.stories, correction.hole or 0, correction.value
        if not nth:
            raise refused(f"split a template by a value: split {label} hole 2 VALUE, or close {label} hole 2")
        tokens, are_holes = founders(self.lines.state, label), holes(self.lines.state, label)
        places = [
            place
            for place, (token, hole) in enumerate(zip(tokens, are_holes, strict=True))
            if hole or (hole is False and any(byte == 48 or byte >= MASKED for byte in token))
        ]
        """Of its holes, in their order: of tokens, or of what is folded in one."""
        if nth > len(places):
            raise refused(f"template {label} has {len(places)} holes that can be closed, and no hole {nth}")
        own = [None if hole else token for token, hole in zip(tokens, are_holes, strict=True)]
        made = Rule(tuple(own), places[nth - 1], None if value is None else value.encode())
        for number, rule in self.corrections.rules.items():
            if rule == made:
                raise refused(f"that is so already (correction {number})")
        return made

    def lift(self, correction: Correction) -> None:
        """Lines go where they went before it; those of templates that are merged only if both live."""
        super().lift(correction)
        rows, stories = self.lines.state.clusters, [*correction.stories]
        if correction.what in ("split", "close"):
            self.lines.close([*self.corrections.rules.values()])
        elif correction.what == "merge" and rows["alive"][stories].all():
            rows["older"][max(stories)] = max(stories)

    def _retire(self, seq: int, time: float | None, events: list[Event] | None) -> None:
        """Labels are gone: report it, and let go of what was held for their templates."""
        rows = self.lines.state.clusters
        gone = [cluster for cluster in self.readings.pieces if not rows["alive"][cluster]]
        families = self._families(gone)
        self._rates.forget(np.array(list(families)))
        if events is not None:
            retired = [
                self._event("retired", label, seq, time, members)
                for label, members in sorted(families.items())
            ]
            events.extend(retired)
            self.note(retired)
        self.readings.let_go(gone)

    def _turned(
        self,
        part: Stretch,
        times: np.ndarray,
        first: int,
        done: int,
        records: Columns,
        *,
        dated: bool,
    ) -> list[Event]:
        """Count lines; the events of templates whose rate has changed before them."""
        found = []
        labels = part.answers["label"]
        for turn in self._rates.take(labels, times[done : done + len(labels)], first + done, dated=dated):
            kind = TURNS[0] if turn.silent else TURNS[1]
            event = self._event(kind, turn.label, first + done + turn.at, records.time(done + turn.at))
            last = None if event.last_time is None else turn.last
            found.append(
                msgspec.structs.replace(
                    event, size=turn.size, last_time=last, lines=int(turn.lines), usual=round(turn.usual, 3)
                )
            )
        return found

    def _event(
        self, kind: str, label: int, seq: int, time: float | None, members: Sequence[int] = ()
    ) -> Event:
        """What happened to a label, of these templates; of its own alone where none are given."""
        part = self.lines.state.clusters[list(members) or [label]]
        dated = time is not None
        return Event(
            event=kind,
            seq=seq,
            time=time,
            cluster=label,
            other=None,
            size=int(part["size"].sum()),
            moved=None,
            first_time=_time(part["first_time"].min()) if dated else None,
            last_time=_time(part["last_time"].max()) if dated else None,
            template=self.readings.template(self.lines.state.clusters["older"], label),
        )

    def _families(self, clusters: Iterable[int]) -> dict[int, list[int]]:
        """Templates by their label."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        older = self.lines.state.clusters["older"]
        for cluster in clusters:
            found[last_of(older, cluster)].append(cluster)
        return found

    def said(self) -> Iterator[tuple[int, str]]:
        """Numbers of lines, and what these say: open answers with values, and lines around first ones."""
        for answer in self.announcer.undecided.values():
            if isinstance(answer.template, str) and isinstance(answer.params, list):
                yield answer.seq, filled(answer.template, answer.params, self.masks.named) or ""
        yield from self.lines.history.said(self.lines.state.clusters["first"], self.seq - 1)

    def forget(
        self, seqs: Collection[int], texts: Collection[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Let go of what lines say; returns templates and words that none but these have."""
        self.retained.blank(seqs, np.zeros(0))
        lines, pieces = self.lines, self.readings.pieces
        gone, words = forget(lines.state, lines.history, pieces, texts, max(len(seqs), 1))
        return gone, [word.casefold() for word in words]

    def past(self, among: Collection[int] | None = None) -> Past:
        """What the log was like, hour by hour; holes of all labels, or of those ``among`` alone."""
        pieces = self.readings.pieces
        own = pieces if among is None else {label: pieces[label] for label in among if label in pieces}
        return past_of(self.lines.state, self.lines.history, own, self.masks.named)

    def census(self) -> Census:
        """Figures of all labels, without their templates."""
        return census_of_all(self.summaries())

    def summaries(self, among: Collection[int] | None = None) -> list[ClusterSummary]:
        """The templates, those of one label as one, that of the most lines first; ``among``: those labels."""
        rows = self.lines.state.clusters
        found = []
        for label, members in self._families(self._living()).items():
            if among is not None and label not in among:
                continue
            part = rows[members]
            size = int(part["size"].sum())
            found.append(
                ClusterSummary(
                    cluster=label,
                    size=size,
                    first_time=_time(part["first_time"].min()),
                    last_time=_time(part["last_time"].max()),
                    first_seq=int(part["first"].min()),
                    last_seq=int(part["last"].max()),
                    weight=size - self.lines.terms.discount * len(members),
                    template=self.readings.shown[label],
                )
            )
        found.sort(key=lambda c: (-c.size, c.cluster))
        return found

    def dump(self) -> dict[str, Any]:
        """All state of its own, as plain values."""
        stored = pack_all(facts_of(self.lines.state))
        pieces = list(self.readings.pieces.items())
        templates = {"stream": stored, "pieces": pieces, "rates": self._rates.settled()}
        return {"templates": templates | {"history": self.lines.history.dump()}}

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        templates = stored["templates"]
        arrays, lines = unpack_all(templates["stream"]), self.lines
        self.lines = LineStream(lines.terms, state_of(arrays), lines.bounds, self.masks, lines.split)
        self.lines.close([*self.corrections.rules.values()])
        self.lines.history.load(templates["history"], len(arrays["clusters"]))
        seconds, self._rates = self._rates.seconds, as_type(templates["rates"], Rates)
        self._rates.seconds = seconds
        require(len(self._rates.rows) <= len(arrays["clusters"]), "rates of other templates")
        self.readings.pieces = dict(templates["pieces"])
        living = self._living()
        require(sorted(self.readings.pieces) == living, "templates are shown otherwise")
        for cluster in living:
            self.readings.show(self.lines.state, cluster)
        check_labelled(self.retained.collect(), self.seq, len(arrays["clusters"]))
        self.check_announced(max(-1, self.seq - 1 - self.announcer.ledger.modes.open_for))


def _no_texts(given: Columns) -> list[tuple[int, Reject]]:
    """Those of some records that are no texts, refused."""
    if given.are_texts:
        return []
    detail = "it holds no text, and templates are of lines of text"
    none = [i for i, record in enumerate(given) if not isinstance(record.value, str)]
    return [(i, refuse(given[i], "wrong_kind", detail)) for i in none]


def _levels_of(records: Columns) -> Levels:
    """The level of each record, where it is kept."""
    if "level" not in records.keep:
        return NO_LEVELS
    data = records.given.data
    places = records.given.kept[:, records.keep.index("level")].copy()
    there = np.flatnonzero(places[:, 0] >= 0)
    quoted = there[data[places[there, 0]] == ord('"')]
    places[quoted] += (1, -1)
    return Levels(data, places)


def _time(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
