"""Records in, assignments out: a pure function of what was seen before.

The engine has no clock and does no input or output. Its answers and its state do not depend on how
the records were cut into batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.describe import events_of
from streamdp.answers.templates import Templates
from streamdp.beam.adapt import adapt
from streamdp.beam.cluster_facts import Facts
from streamdp.beam.facts import facts_of, state_of
from streamdp.beam.model import REVIEW_EVERY
from streamdp.beam.review import review
from streamdp.beam.search import BeamSearch
from streamdp.beam.state import Output
from streamdp.encode.bag_encoder import BagEncoder
from streamdp.encode.choice import STRAYS, encode_all, kind_of, meant_for, order_of, tokenizer_of
from streamdp.encode.encoders import Encoder, VectorEncoder
from streamdp.encode.order import Ready, refuse
from streamdp.encode.vocabulary import EVICT_EVERY, Vocabulary
from streamdp.inside import Inside
from streamdp.likelihoods.base import Likelihood, Moments
from streamdp.offline.passes import Passes
from streamdp.priors import DistanceDependent
from streamdp.priors.base import Prior
from streamdp.records import Answers, Record, Reject, Value, all_plain
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint
from streamdp.state import codec
from streamdp.state.codec import Parts
from streamdp.state.retained import Labelled, Retained
from streamdp.state.sound import check_parts, refusing


def new_search(
    settings: Settings | Blueprint, moments: Moments | None, facts: Facts | None = None
) -> BeamSearch:
    """The beam that the settings mean, for words where there are no moments of vectors.

    It goes on from ``facts`` where they are given; UnsoundError where they are not those of such a beam.
    """
    blueprint = settings if isinstance(settings, Blueprint) else Blueprint(settings)
    likelihood = blueprint.likelihood_for(moments)
    model = blueprint.model(likelihood)
    return BeamSearch(model, likelihood, None if facts is None else state_of(facts, model, likelihood))


def _untimed(stage: str) -> None:
    """Nobody asks how long it takes."""


class Engine(Inside):
    """Clusters a stream.

    Parameters
    ----------
    settings
        Model, search, text, time and engine settings; None: the defaults.
    prior, likelihood
        In the place of what the settings say: names, or objects of ``streamdp.priors`` and
        ``streamdp.likelihoods``. Of vectors, an object learns nothing from the first of them.
    final_only
        Answer each record once, when its assignment is final (or at :meth:`finish`).
    with_events
        Whether cluster events are reported.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        prior: Prior | str | None = None,
        likelihood: Likelihood | str | None = None,
        final_only: bool = False,
        with_events: bool = False,
    ) -> None:
        self._blueprint = Blueprint.of(settings, prior, likelihood)
        self.settings = settings = self._blueprint.settings
        tokenizer_of(settings)  # what is wrong is said now, not at the first record
        self._retained = Retained(settings.retain)
        self._templates = Templates.of(settings, self._retained, final_only=final_only)
        if self._templates is None:
            self._blueprint.check()
        self.with_events = self._remember_ended = with_events
        self.stage: Callable[[str], None] = _untimed
        """Told when the search (kernel), its answers (announce) and encoding (encode) begin, by the batch."""
        self._order = order_of(settings)
        self._encoder: Encoder | None = None
        self._moments: Moments | None = None
        self._search: BeamSearch | None = None
        self._pending: list[tuple[float, Record]] = []  # encoded, not yet absorbed
        self._strays: list[tuple[float, Record]] = []  # of another kind than the first, who may be wrong
        self._age = 0
        self._passes = Passes.of(settings)
        if self._templates is not None:
            self._adaptive, self._announcer = None, self._templates.announcer
            return
        prior = self._blueprint.prior_for(sparse=True)
        linked = prior.by_distance is not None
        self._adaptive: DistanceDependent | None = None
        self._announcer = Announcer(self._retained, final_only=final_only, linked=linked)

    # ---------------------------------------------------------------- records in

    def advance(self, records: Iterable[Record | Reject | Value]) -> Answers:
        """Take records in order of arrival; return what is known of them now.

        Texts, vectors and mappings from names to numbers are records without time or id; their position is
        the number of their arrival. What was refused before it came here passes through, so that all
        rejects keep one order. TypeError, before any record is taken, where one is none.

        Examples
        --------
        >>> engine = Engine(Settings(beam=4))
        >>> [a.cluster for a in engine.advance(["storm over the coast", "coast storm"]).assignments]
        [0, 0]
        """
        answers = Answers([], [], [])
        ready: Ready = []
        needs_time = self.settings.distance == "seconds"
        for record in all_plain(records, self._order.arrivals):
            if isinstance(record, Reject):
                ready.append((0.0, record))
            elif needs_time and record.time is None:
                detail = "it has no time, and distance is measured in seconds"
                ready.append((0.0, refuse(record, "missing_time", detail)))
            else:
                self._order.push(record, ready)
        self._encode(ready, answers)
        self._run(answers)
        return answers

    def finish(self) -> Answers:
        """End the stream: nothing is held back any more, and every assignment is final.

        Nothing can be advanced after this; a state that shall go on is dumped before.
        """
        answers = Answers([], [], [])
        ready: Ready = []
        self._order.drain(ready)
        self._encode(ready, answers)
        if self._pending and self._search is None and self._templates is None:
            self._end_warmup(answers)
        self._run(answers)
        if self._search is not None:
            self._look_back(self._search, answers, last=True)
        self._announcer.finish(self.seq - 1, answers.lines)
        return answers

    def flush(self) -> Answers:
        """Answer what is held back for its turn: nothing has come for long. Later records may come too late.

        Vectors of the warm-up stay, and what came among them: scale and kind are learned once.
        """
        answers = Answers([], [], [])
        ready: Ready = []
        self._order.drain(ready)
        self._encode(ready, answers)
        self._run(answers)
        return answers

    # ---------------------------------------------------------------- inside

    @property
    def seq(self) -> int:
        """Number of the next record."""
        if self._templates is not None:
            return self._templates.seq
        return 0 if self._search is None else self._search.seq

    def _encode(self, ready: Ready, answers: Answers) -> None:
        """Encode records whose turn has come; run them where words may be evicted after the last."""
        if self._templates is not None:
            self._pending += self._templates.texts(ready, answers)
            return
        at = 0
        while at < len(ready):
            room = REVIEW_EVERY - (self.seq + len(self._pending)) % REVIEW_EVERY
            if self._search is None:
                room = 1  # each may change what kind of stream this is
            self._take(ready[at : at + room], answers)
            at += room
            if self._search is None:
                if self._pending and len(self._pending) >= self._blueprint.warmup:
                    self._end_warmup(answers)
            elif self._pending and (self.seq + len(self._pending)) % REVIEW_EVERY == 0:
                self._run(answers)

    def _take(self, ready: Ready, answers: Answers) -> None:
        """Encode records, so many that nothing is to be done between them; refused ones pass through."""
        records = [record for _, record in ready if isinstance(record, Record)]
        outcomes = iter(self._encoded(records))
        for time, record in ready:
            if isinstance(record, Record):
                reject = next(outcomes)
                if reject is None:
                    self._pending.append((time, record))
                elif self._may_be_right(record, reject):
                    self._strays.append((time, record))
                    self._change_kind(record, answers)
                else:
                    answers.rejects.append(reject)
            else:
                answers.rejects.append(record)

    def _encoded(self, records: list[Record]) -> list[Reject | None]:
        """Encode records; why each cannot be clustered. The first record of all comes alone."""
        sparse = self._blueprint.sparse
        encoder, outcomes = encode_all(records, self._encoder, self.settings, sparse)
        if self._encoder is None and encoder is not None and outcomes[0] is None:
            self._begin(encoder)
        return outcomes

    def _begin(self, encoder: Encoder) -> None:
        """The first record that could be encoded has said whether the stream holds words or vectors."""
        self._encoder = encoder
        if encoder.sparse:
            self._mean(encoder)
        if not encoder.waits:
            self._start(new_search(self._blueprint, None))

    def _mean(self, encoder: Encoder) -> None:
        """Let the model be that for such records, where the settings leave it to them."""
        self._blueprint = replace(self._blueprint, settings=meant_for(self.settings, encoder))
        prior = self._blueprint.prior_for(sparse=encoder.sparse)
        self._adaptive = prior.by_distance if self.settings.adapt else None

    def _may_be_right(self, record: Record, reject: Reject) -> bool:
        """Whether a refused record may be of the stream's kind, and the vectors of the warm-up not."""
        known = self._search is None and isinstance(self._encoder, VectorEncoder) and reject.reason in STRAYS
        return known and (self._blueprint.sparse is None or not isinstance(record.value, str))

    def _change_kind(self, record: Record, answers: Answers) -> None:
        """Let the stream be one of records like this, where they outnumber the vectors of the warm-up."""
        alike = [kind_of(stray) == kind_of(record) for _, stray in self._strays]
        if sum(alike) <= len(self._pending):
            return
        ours = list(itertools.compress(self._strays, alike))
        others = [waiting for waiting, ours in zip(self._strays, alike, strict=True) if not ours]
        others = [*self._pending, *others]
        self._encoder, self._pending, self._strays = None, [], []
        self._encode([*ours, *others], answers)

    def _end_warmup(self, answers: Answers) -> None:
        """Learn scales from the records held back so far; refuse what is of another kind."""
        assert self._encoder is not None
        refused = [self._encoder.add(record) for _, record in self._strays]
        answers.rejects.extend(reject for reject in refused if reject is not None)
        self._strays, self._moments = [], self._encoder.learn()
        self._start(new_search(self._blueprint, self._moments))

    def _start(self, search: BeamSearch) -> None:
        """Go on with a search; say how long its answers stay open to a second look."""
        self._search = search
        self._age = self._blueprint.second_look(search.likelihood)
        self._announcer.open_for = self.settings.retain if self._age or self._passes else 0

    def _run(self, answers: Answers) -> None:
        """Let the beam absorb what is encoded, announce what it says; vectors may wait for the warm-up."""
        if self._templates is not None:
            self._templates.take(self._pending, answers, tell=self.with_events)
            self._pending = []
            return
        search, encoder = self._search, self._encoder
        if search is None or encoder is None or not self._pending:
            return
        first, words = search.seq, encoder.vocabulary if isinstance(encoder, BagEncoder) else None
        records = [record for _, record in self._pending]
        decided = self._decided(search, records)
        batch = encoder.take(np.array([time for time, _ in self._pending]))
        self._pending = []
        labels, sizes = np.zeros(len(records), np.int64), encoder.sizes(batch)
        if words is not None:
            search.ensure_words(words.unknown + 1)
            words.touch(batch.words, batch.offsets, first)
        self._retained.append(Labelled(first, batch, labels))
        self.stage("kernel")
        for start, stop, out in search.run(batch, decided, tell=self.with_events):
            self.stage("announce")
            labels[start:stop] = out.answers["label"][start:stop]
            self._announcer.announce(
                out, start, first + start, records[start:stop], sizes[start:stop], answers.lines
            )
            if self.with_events:
                self._tell(search, out, first, [record.time for record in records], answers)
            self.stage("kernel")
        seq = first + len(records)
        if seq % REVIEW_EVERY == 0:
            self._look_back(search, answers)
            if self._adaptive is not None:
                adapt(search, self._adaptive, *self._retained.newest())
        if words is not None and seq % EVICT_EVERY == 0:
            self._evict(search, words)
        self.stage("encode")

    def _tell(
        self, search: BeamSearch, out: Output, first: int, times: Sequence[float | None], answers: Answers
    ) -> None:
        """Append events, which records from number ``first`` on, of these times, have caused."""
        events = events_of(search, out, first, times, self._words)
        if self._remember_ended:
            self._announcer.ended.extend(e for e in events if e.event in ("closed", "retired"))
        answers.events.extend(events)

    def _look_back(self, search: BeamSearch, answers: Answers, *, last: bool = False) -> None:
        """Look again at what has come of age; begin and adopt refinements."""
        age, tell = self._age, self.with_events
        held = self._retained.collect() if age and search.seq >= age + REVIEW_EVERY else None
        if held is not None:
            since = self._announcer.open_from(search.seq)
            looked = review(search, held.first, held.batch, held.labels, age, since, tell=tell, last=last)
            self._revise(search, looked, answers)
        if self._passes is not None:
            self._revise(search, self._passes.turn(self.stream, self.seq, tell=tell, last=last), answers)

    def _revise(self, search: BeamSearch, outputs: Iterable[Output], answers: Answers) -> None:
        """Tell of records that have moved, and of what became of clusters."""
        for out in outputs:
            self._announcer.revise(out, answers.lines)
            if self.with_events:
                time = self._retained.time if self._order.dated else None
                self._tell(search, out, search.seq - 1, [time], answers)

    def _evict(self, search: BeamSearch, vocabulary: Vocabulary) -> None:
        if vocabulary.wants_eviction():
            search.forget_words(vocabulary.evict(search.held_words(), self.seq - self.settings.retain))

    # ---------------------------------------------------------------- state

    def parts(self) -> Parts:
        """All state; what is in it changes as the engine goes on."""
        return Parts(
            self._order,
            self._encoder,
            self._pending,
            self._announcer.dump(),
            self._moments,
            self._retained,
            None if self._search is None else facts_of(self._search.state),
            None if self._passes is None else self._passes.dump(),
            self._strays,
            None if self._templates is None else self._templates.dump(),
        )

    @classmethod
    def of_parts(cls, settings: Settings, parts: Parts, **options: Any) -> Self:
        """An engine that goes on from a state, under the same model; options are those of the class."""
        self = cls(settings, **options)
        self._go_on(parts)
        return self

    def _go_on(self, parts: Parts) -> None:
        self._order, self._encoder, self._pending = parts.order, parts.encoder, parts.pending
        self._moments, self._strays = parts.moments, list(parts.strays)
        if parts.encoder is not None:
            self._mean(parts.encoder)
        self._retained = self._announcer.retained = parts.retained
        self._announcer.load(parts.announced)
        if self._passes is not None and parts.passes is not None:
            self._passes.load(parts.passes)
        if self._templates is not None and parts.templates is not None:
            self._templates.load(parts.templates)
        if parts.beam is not None:
            self._start(new_search(self._blueprint, parts.moments, parts.beam))
            if isinstance(parts.encoder, BagEncoder) and self._search is not None:
                self._search.ensure_words(parts.encoder.vocabulary.unknown + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        """An engine that is pickled or copied goes on from the same state."""
        plan, modes = self._blueprint, (self._announcer.final_only, self.with_events)
        return _revived, (plan.settings, plan.prior, plan.likelihood, *modes, self.dumps())

    def dumps(self) -> bytes:
        """All state as msgpack, the same bytes however the records came in batches."""
        return codec.dumps(self.parts())

    @classmethod
    def loads(cls, data: bytes, settings: Settings | None = None, **options: Any) -> Self:
        """The engine whose :meth:`dumps` gave ``data``, under the same model; options: those of the class.

        Raises SnapshotError where ``data`` is no such state: nothing in it is trusted unseen.
        """
        settings = settings or Settings()
        self = cls(settings, **options)  # what is wrong with these is no fault of the state
        with refusing():
            parts = codec.loads(data, settings)
            self._go_on(parts)
            check_parts(parts, self._search, self._announcer.open_for, list(self._announcer.undecided))
            if self._passes is not None and self._search is not None:
                self._passes.check(self.seq, int(self._search.state.beam.counters.next_label))
        return self


def _revived(
    settings: Settings, prior: Any, likelihood: Any, final_only: bool, with_events: bool, state: bytes
) -> Engine:
    modes = {"final_only": final_only, "with_events": with_events}
    return Engine.loads(state, settings, prior=prior, likelihood=likelihood, **modes)
