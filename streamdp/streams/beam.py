"""The stream of a beam: words, categories or vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.answers import describe, evidence
from streamdp.answers.announcer import Announcer
from streamdp.answers.describe import Candidate, Census
from streamdp.answers.evidence import Evidence
from streamdp.beam.data.state import REVIEW_EVERY, Output
from streamdp.beam.facts import facts_of
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Labelled
from streamdp.encode.encoders import Encoded, Encoder
from streamdp.encode.order import ReorderBuffer, placed, refuse
from streamdp.encode.vocabulary import EVICT_EVERY, BagEncoder
from streamdp.kernels.packed import pack_all, unpack_all
from streamdp.kernels.sound import require
from streamdp.likelihoods.base import Moments
from streamdp.priors import by_distance
from streamdp.records import Answers, ClusterSummary, Kind, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings.blueprint import Blueprint
from streamdp.state.corrections import Correction
from streamdp.state.sound import check_retained, check_words
from streamdp.story.beam import entitle, follow_themes, keywords_of
from streamdp.streams.forgotten import forget
from streamdp.streams.intake import Intake, left_of
from streamdp.streams.looks import Looks
from streamdp.streams.stream import Stream

if TYPE_CHECKING:
    from streamdp.offline.task import Stream as Refinable


class BeamStream(Stream):
    """Encodes records, lets a beam absorb them, looks back, announces.

    Parameters
    ----------
    blueprint
        The model and the settings. ConfigError where no model can be made of them.
    order
        What puts records in order.
    final_only
        Answer each record once, when its assignment is final.
    """

    def __init__(self, blueprint: Blueprint, order: ReorderBuffer, *, final_only: bool) -> None:
        blueprint.check()
        settings = blueprint.settings
        linked = by_distance(blueprint.prior_for(sparse=True)) is not None
        super().__init__(settings, order, Announcer(settings, final_only=final_only, linked=linked))
        self.intake = Intake(blueprint)
        self._looks = Looks(settings, self.announcer, self.corrections)

    @property
    def kind(self) -> Kind | None:
        """What its records are, once the beam has begun."""
        return self.encoder.kind if self.encoder is not None and self.seq else None

    @property
    def encoder(self) -> Encoder | None:
        """What makes words or vectors of records, once the first has come."""
        return self.intake.encoder

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return 0 if self.search is None else self.search.seq

    @property
    def waiting(self) -> int:
        """Vectors of the warm-up, and what came among them."""
        return len(self.intake.pending) + len(self.intake.strays)

    # ---------------------------------------------------------------- records

    def take(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        """Take records whose turn has come, at these times; what was refused among them passes through."""
        at = self._warm_up(given, times, answers) if self.search is None else 0
        if not len(given):
            answers.rejects.extend(reject for _, reject in given.refused)
        search, encoder = self.search, self.intake.encoder
        while search is not None and encoder is not None and at < len(given):
            room = REVIEW_EVERY - search.seq % REVIEW_EVERY
            part, placed_at = self.intake.add(given[at : at + room], times[at : at + room], answers)
            if len(part):
                self._absorb(search, encoder, part, placed_at, answers)
            at += room

    def _warm_up(self, given: Columns, times: np.ndarray, answers: Answers) -> int:
        """Take records one by one, since each may change what kind of stream this is; how many."""
        at = 0
        for record in given.all() if len(given) else ():
            if self.search is not None and at < len(given):
                break
            if isinstance(record, Reject):
                answers.rejects.append(record)
                continue
            again = self.intake.wait(float(times[at]), record, answers)
            at += 1
            if again:
                self.take(*placed([*again]), answers)
            if self.search is None:
                self._begin(answers)
        return at

    def _begin(self, answers: Answers, *, last: bool = False) -> None:
        """Start the search, where enough is known: from the first record of words, after the warm-up."""
        intake, encoder = self.intake, self.intake.encoder
        if encoder is None or not intake.pending:
            return
        if encoder.waits:
            if not last and not intake.enough:
                return
            intake.learn(answers)
        self._start(intake.blueprint.search(intake.moments))
        self._run(answers)
        if self._looks.began is not None and not last and self.search is not None and self.seq % REVIEW_EVERY:
            outputs = self._looks.follow(self.search, with_events=self.with_events)
            self._revise(self.search, outputs, answers)

    def _start(self, search: BeamSearch) -> None:
        """Go on with a search; say how long its answers stay open to a second look."""
        self.search = search
        self._looks.start(search, self.intake.blueprint, self.intake.moments)

    def end(self, answers: Answers) -> None:
        """The stream has ended: answer what waits, and look back for the last time."""
        if self.search is None:
            self._begin(answers, last=True)
        if self.search is not None:
            self._look_back(self.search, answers, last=True)

    def decided(self, search: BeamSearch, records: Columns) -> np.ndarray:
        """What was decided elsewhere of the next records, as ``BeamSearch.run`` takes it."""
        return NONE

    def _run(self, answers: Answers) -> None:
        """Let the beam absorb the records of the warm-up."""
        search, encoder, pending = self.search, self.intake.encoder, self.intake.pending
        if search is not None and encoder is not None and pending:
            self.intake.pending = []
            times = np.array([time for time, _ in pending])
            self._absorb(search, encoder, Columns.of(record for _, record in pending), times, answers)

    def _absorb(
        self,
        search: BeamSearch,
        encoder: Encoder,
        records: Columns,
        times: np.ndarray,
        answers: Answers,
    ) -> None:
        """Let the beam absorb records, which are encoded; announce what it says."""
        first, words = search.seq, encoder.vocabulary
        decided, batch = self.decided(search, records), encoder.take(times)
        sizes = encoder.absorbed(batch, first)
        if words is not None:
            search.ensure_words(words.unknown + 1)
        self.announcer.retain(first, batch)
        self.stage("kernel")
        for start, stop, out in search.run(batch, decided, with_events=self.with_events):
            self.stage("announce")
            part, rows = slice(start, stop), out.answers[start:stop]
            revisions = out.revisions[: out.counters.revisions]
            self.announcer.announce(rows, sizes[part], records[part], answers.lines, revisions)
            if self.with_events and out.counters.events:
                self._report(search, out, first, records.times(), answers)
            self.stage("kernel")
        seq = first + len(records)
        if seq % REVIEW_EVERY == 0:
            self.stage("looks")
            self._look_back(search, answers)
        if words is not None and seq % EVICT_EVERY == 0 and words.wants_eviction():
            search.forget_words(words.evict(search.held_words(), seq - self.settings.retain))
        self.stage("encode")

    def take_absorbed(self, part: Labelled, revised: np.ndarray, answers: Answers) -> None:
        """Retain records that the search has absorbed by itself, with what it revised; look back when due."""
        self.announcer.passed_by = True
        self.retained.append(part.first, part.batch)
        self.announcer.ledger.put_labels(part.first, part.labels)
        for seq, label in revised.tolist():
            self.announcer.ledger.relabel(seq, label)
        if self.search is not None and self.seq % REVIEW_EVERY == 0:
            self._look_back(self.search, answers)

    def _report(
        self, search: BeamSearch, out: Output, first: int, times: Sequence[float | None], answers: Answers
    ) -> None:
        """Append events, which records from number ``first`` on, of these times, have caused."""
        events = describe.events_of(search, out, first, times, self._words, self.announcer.ledger.samples)
        self.note(events)
        answers.events.extend(events)

    def _look_back(self, search: BeamSearch, answers: Answers, *, last: bool = False) -> None:
        """Look again at what has come of age; begin and adopt refinements."""
        outputs = self._looks.back(search, self.refinable, with_events=self.with_events, last=last)
        self._revise(search, outputs, answers)
        dated = self.order.dated if self.with_events else None
        kept = self._words, self.retained, self.announcer.ledger.samples, dated
        answers.events.extend(entitle(self.memory.titles, search, *kept))
        follow_themes(self.memory, search, self.settings.themes, last=last)

    def constrain(self, correction: Correction, answers: Answers | None) -> None:
        """Hold what a correction says of records; without ``answers`` only see whether it could be."""
        from streamdp.streams.constraints import hold, learn_classes  # which needs much of the offline passes

        stream = self.refinable()
        outputs = hold(stream, self.corrections, self.announcer, correction, self.with_events)
        if stream is not None and answers is not None:
            learn_classes(self.announcer, correction)
            self._revise(stream.search, outputs, answers)

    def _revise(self, search: BeamSearch, outputs: Iterable[Output], answers: Answers) -> None:
        """Report records that have moved, and what became of clusters."""
        for out in outputs:
            self.announcer.revise(out, answers.lines)
            if self.with_events:
                times = [self.retained.time if self.order.dated else None]
                self._report(search, out, search.seq - 1, times, answers)

    def _for_scoring(self) -> Encoder | None:
        encoder = self.intake.encoder
        return None if encoder is None or self.search is None else encoder.for_scoring()

    def score(self, records: Sequence[Record | Reject], first: int, answers: Answers) -> None:
        """Answer without learning anything; ``seq`` counts the answers from ``first`` on."""
        encoder, given = self._for_scoring(), Columns.of(records)
        if encoder is None:
            refused = [(i, _untrained(record)) for i, record in enumerate(given)]
        else:
            refused = encoder.add(given)
        taken = [given[i] for i in left_of(given, refused, answers).tolist()]
        if taken and encoder is not None and self.search is not None:
            batch = encoder.take(np.array([self.order.time_of(record) for record in taken]))
            out = self.search.score(batch)
            self.announcer.announce_frozen(out, taken, encoder.sizes(batch), first, answers.lines)

    def whereto(self, record: Record, most: int) -> list[Candidate] | Reject:
        """The likeliest clusters of a record, a new one (-1) among them; learns nothing."""
        encoder, search = self._for_scoring(), self.search
        if encoder is None or search is None:
            return _untrained(record)
        if refused := encoder.add(Columns.of([record])):
            return refused[0][1]
        times = np.array([self.order.time_of(record)])
        return describe.candidates(search, encoder.take(times), self._words, most)

    def together(self, a: Record, b: Record) -> Evidence | Reject:
        """What speaks for two records being of one cluster; learns nothing."""
        encoder, search = self._for_scoring(), self.search
        if encoder is None or search is None:
            return _untrained(a)
        if refused := encoder.add(Columns.of([a, b])):
            return refused[0][1]
        return evidence.together(search, encoder.take(np.zeros(2)), self._words)

    # ---------------------------------------------------------------- in clear

    def waiting_records(self) -> list[Record]:
        """Records that wait for the warm-up to end."""
        return [record for _, record in (*self.intake.pending, *self.intake.strays)]

    def forget(
        self, seqs: Collection[int], texts: Collection[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Let go of what records say, and of the words that only they had, which are returned."""
        own, search, encoder = [seq for seq in seqs if seq < self.seq], self.search, self.encoder
        if search is not None and isinstance(encoder, BagEncoder):
            return (), forget(search, encoder, self.retained, self.corrections.blank, own, texts)
        self.retained.blank(own, np.zeros(0))
        return (), ()

    # ---------------------------------------------------------------- clusters

    @property
    def _words(self) -> Sequence[str | None] | None:
        """The words of the vocabulary by id; None for vectors."""
        return None if self.intake.encoder is None else self.intake.encoder.words

    def census(self) -> Census:
        """Figures of all live clusters, without what they are about."""
        return describe.census_of_all([]) if self.search is None else describe.census_of(self.search)

    def summaries(self, among: Collection[int] | None = None) -> list[ClusterSummary]:
        """The live clusters of the best hypothesis, largest first; ``among``: those labels, None: all."""
        return [] if self.search is None else describe.summarise(self.search, self._words, among)

    def keywords(self) -> dict[int, list[str]]:
        """Words that are far more frequent in a live cluster than in the others, by label."""
        search, encoder = self.search, self.encoder
        return {} if search is None or encoder is None else keywords_of(search, encoder)

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        counts, encoder = {} if self.search is None else self.search.counters(), self.encoder
        words = None if encoder is None else encoder.vocabulary
        return counts if words is None else counts | words.counters()

    def levels(self) -> dict[str, float]:
        """How the stream stands: records, evidence, how far the hypotheses agree, what is not final yet."""
        found = super().levels()
        if self.search is not None:
            seq, pool = self.search.seq, self.search.state.pool.counters
            found |= {"stream_records": seq, "final_lag": seq - 1 - self.announcer.ledger.final}
            found["agreement"] = 1.0 - pool.contested / max(pool.used, 1)
        return found

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence in nats."""
        return 0.0 if self.search is None else self.search.log_evidence

    def refined(self) -> dict[str, float]:
        """What refinements have come to."""
        return self._looks.passes.counters() if self._looks.passes else {}

    def refinable(self) -> Refinable | None:
        """The records that are retained and the beam, as refinements take them; None where there are none."""
        held, encoder, search = self.retained.collect(), self.intake.encoder, self.search
        if held is None or encoder is None or search is None:
            return None
        prior = self.intake.blueprint.prior_for(search.sparse)
        from streamdp.offline.task import Stream as Refinable

        since, fixed = self.announcer.open_from(search.seq), self.corrections.fixed(held.first, held.labels)
        known = self.settings, prior, Encoded(encoder, held.batch, self.intake.moments), held, search
        return Refinable(*known, since, fixed, self._looks.began is not None)

    # ---------------------------------------------------------------- state

    def begin_with(self, encoder: Encoder, moments: Moments | None, search: BeamSearch) -> None:
        """Go on with a search that was made elsewhere."""
        self.intake.encoder, self.intake.moments = encoder, moments
        self._start(search)

    def dump(self) -> dict[str, Any]:
        """All state of its own, as plain values."""
        return {
            **self.intake.dump(),
            "state": None if self.search is None else pack_all(facts_of(self.search.state)),
            "learned": self._looks.learned(self.search),
            "passes": None if self._looks.passes is None else self._looks.passes.passed(),
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        self.intake.load(stored)
        encoder, facts, held = self.intake.encoder, stored["state"], self.retained.collect()
        if facts is None:
            require(held is None and not self.announcer.undecided, "records are retained without a beam")
            waits = encoder is None or encoder.waits
            require(waits and self.intake.moments is None, "words, or moments, without a beam")
            require(encoder is not None or not self.waiting, "records wait without an encoder")
            return
        require(encoder is not None, "a beam without an encoder")
        require(not self.intake.strays, "strays after the warm-up")
        learned = None if stored["learned"] is None else unpack_all(stored["learned"])
        search = self.intake.blueprint.search(self.intake.moments, unpack_all(facts), learned)
        assert encoder is not None
        require(encoder.sparse == search.sparse, "clusters of another kind")
        self._start(search)
        if isinstance(encoder, BagEncoder):
            check_words(encoder, search)
            search.ensure_words(encoder.vocabulary.unknown + 1)
        if held is not None:
            check_retained(held, search, encoder)
        open_for = self.announcer.ledger.modes.open_for
        through = max(-1, min(search.decided, search.seq - 1 - open_for)) if open_for else search.decided
        self.check_announced(through)
        self._looks.corrections = self.corrections
        self.corrections.check(self.seq, search.next_label)
        search.pin(self.corrections.pinned)
        if self._looks.passes is not None and stored["passes"] is not None:
            self._looks.passes.resume(stored["passes"], self.seq, search.next_label)


def _untrained(record: Record) -> Reject:
    return refuse(record, "untrained", "nothing has been learned yet")
