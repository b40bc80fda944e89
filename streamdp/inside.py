"""What an engine shows of itself: counts, clusters, log probabilities. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.census import Census, census_of, census_of_all
from streamdp.answers.describe import described, of_closed, summarise
from streamdp.answers.listing import ClusterList
from streamdp.answers.templates import Templates
from streamdp.answers.whereto import Candidate, candidates
from streamdp.beam.adapt import Adapted, adapted
from streamdp.beam.search import NO_FOUNDERS, BeamSearch
from streamdp.encode.bag_encoder import BagEncoder
from streamdp.encode.encoders import Encoded, Encoder
from streamdp.encode.order import Lateness, ReorderBuffer, refuse
from streamdp.encode.word_encoder import WordEncoder
from streamdp.likelihoods.base import Moments
from streamdp.offline.passes import Passes
from streamdp.offline.task import Stream
from streamdp.priors import DistanceDependent, Exponential
from streamdp.records import Answers, Assignment, Record, Reject, Value, all_plain
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint
from streamdp.state.retained import Retained


class Inside:
    """The parts of an engine, and what can be read off them."""

    settings: Settings
    with_events: bool
    _blueprint: Blueprint
    _order: ReorderBuffer
    _retained: Retained
    _encoder: Encoder | None
    _moments: Moments | None
    _search: BeamSearch | None
    _pending: list[tuple[float, Record]]
    _strays: list[tuple[float, Record]]
    _announcer: Announcer
    _passes: Passes | None
    _templates: Templates | None
    _adaptive: DistanceDependent | None

    @property
    def _words(self) -> Sequence[str | None] | None:
        """The words of the vocabulary by id; None for vectors."""
        return None if self._encoder is None else self._encoder.words

    @property
    def search(self) -> BeamSearch | None:
        """The beam, once it has begun."""
        return self._search

    @property
    def held_back(self) -> int:
        """Records that are not answered yet: out of order, or vectors of the warm-up."""
        return self._order.held + len(self._pending) + len(self._strays)

    @property
    def out_of_turn(self) -> int:
        """Records that wait for others to come before them, or to confirm their time."""
        return self._order.held

    @property
    def lateness(self) -> Lateness:
        """How late records came since this engine was made."""
        return self._order.lateness

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        counts = {} if self._search is None else self._search.counters()
        if self._templates is not None:
            counts = self._templates.counters()
        counts["held_back"] = self.held_back
        if isinstance(self._encoder, BagEncoder):
            counts |= self._encoder.vocabulary.counters()
        return counts

    def _decided(self, search: BeamSearch, records: Sequence[Record]) -> np.ndarray:
        """What was decided elsewhere of the next records, as ``BeamSearch.run`` takes it."""
        return NO_FOUNDERS

    def levels(self) -> dict[str, float]:
        """How the stream stands: records, evidence, how far the hypotheses agree, what is not final yet.

        ``revisions`` counts those of this engine since it was made or loaded.
        """
        found = {"stream_records": 0.0, "log_evidence": self.log_evidence, "agreement": 1.0}
        if self._search is not None:
            seq, pool = self._search.seq, self._search.state.pool.counters
            found["stream_records"] = seq
            found["final_lag"] = seq - 1 - self._announcer.final
            found["agreement"] = 1.0 - pool.contested / max(pool.used, 1)
        return found | {"revisions": self._announcer.revised}

    def tell_events(self) -> None:
        """Report cluster events from now on, whatever was asked for; the state stays as it would be."""
        self.with_events = True

    def close_answers(self) -> None:
        """Revise nothing that was answered so far: whoever runs the search tells of it otherwise."""
        self._announcer.finish((-1 if self._search is None else self._search.seq - 1), [])

    def refined(self) -> dict[str, float]:
        """What refinements have come to; nothing where there are none."""
        return {} if self._passes is None else self._passes.counters()

    def score(self, records: Iterable[Record | Reject | Value], first: int = 0) -> Answers:
        """Answer without learning anything; ``cluster`` is -1 where a new one is likelier than any.

        ``seq`` counts the answers from ``first`` on.
        """
        answers = Answers([], [], [])
        if self._templates is not None:
            self._templates.score(all_plain(records), first, answers)
            return answers
        encoder = None if self._encoder is None or self._search is None else self._encoder.for_scoring()
        given = list(all_plain(records))
        read = [record for record in given if isinstance(record, Record)]
        outcomes: list[Reject | None]
        if encoder is None:
            outcomes = [refuse(record, "untrained", "nothing has been learned yet") for record in read]
        else:
            outcomes = encoder.add_all(read)
        told = iter(outcomes)
        taken: list[Record] = []
        for record in given:
            if isinstance(record, Reject):
                answers.rejects.append(record)
            elif (reject := next(told)) is None:
                taken.append(record)
            else:
                answers.rejects.append(reject)
        if taken and encoder is not None and self._search is not None:
            times = np.array([self._order.latest if r.time is None else r.time for r in taken])
            batch = encoder.take(times)
            out = self._search.score(batch)
            self._announcer.announce_frozen(out, taken, encoder.sizes(batch), first, answers.lines)
        return answers

    def stream(self) -> Stream | None:
        """The records that are retained and the beam, as refinements take them; None where there are none."""
        held, encoder, search = self._retained.collect(), self._encoder, self._search
        if held is None or encoder is None or search is None:
            return None
        prior, now = self._blueprint.prior_for(search.sparse), self.adapted
        if now is not None and (linked := prior.by_distance) is not None:
            decay = Exponential(now.decay_scale)
            prior = replace(linked, concentration=now.concentration, decay=decay)
        encoded, since = Encoded(encoder, held.batch, self._moments), self._announcer.open_from(search.seq)
        return Stream(self.settings, prior, encoded, held, search, since)

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence in nats: the sum of log p(x_t | past)."""
        if self._templates is not None:
            return self._templates.stream.log_evidence
        return 0.0 if self._search is None else self._search.log_evidence

    @property
    def log_joint(self) -> float:
        """log p(z, x) of the best hypothesis, in nats."""
        return 0.0 if self._search is None else float(self._search.log_joints[self._search.head])

    @property
    def nats_won(self) -> float:
        """By how much second looks have raised the log joint."""
        return 0.0 if self._search is None else float(self._search.state.beam.counters.gained)

    def whereto(self, record: Record | Value, most: int = 5) -> list[Candidate] | Reject:
        """The likeliest clusters of a record that may come next, a new one (-1) among them; learns nothing.

        Of lines of logs there is one, the template that it fits.
        """
        if self._templates is not None:
            scored = self.score([record])
            told = [Candidate(cluster=a.cluster, probability=a.probability) for a in scored.assignments]
            return told or scored.rejects[0]
        (made,) = all_plain([record])
        if isinstance(made, Reject):
            return made
        if self._encoder is None or self._search is None:
            return refuse(made, "untrained", "nothing has been learned yet")
        encoder = self._encoder.for_scoring()
        reject = encoder.add(made)
        if reject is not None:
            return reject
        batch = encoder.take(np.array([self._order.latest if made.time is None else made.time]))
        return candidates(self._search, batch, self._words, most)

    def census(self) -> Census:
        """Figures of all live clusters of the best hypothesis, without what they are about."""
        if self._templates is not None:
            found = census_of_all(self._templates.summaries())
        elif self._search is None:
            found = census_of_all([])
        else:
            found = census_of(self._search)
        if self._order.dated:
            return found
        return found._replace(
            first_time=np.full(len(found.label), np.nan), last_time=np.full(len(found.label), np.nan)
        )

    def base_of(self, words: Iterable[str]) -> dict[str, float]:
        """Share of each word in the base measure that all clusters have learned; {} where there is none."""
        if self._search is None or not isinstance(self._encoder, WordEncoder):
            return {}
        learned, ids = self._search.words.learned, self._encoder.vocabulary.ids
        total = float(learned.counters.total)
        known = {word: ids[word] for word in words if word in ids}
        return {word: float(learned.counts[i]) / total for word, i in known.items()} if total else {}

    def tokens_of(self, label: int) -> int:
        """Words, repetitions counted, of a live cluster of words; 0 for any other."""
        if self._search is None or not self._search.sparse:
            return 0
        slots = self._search.head_slots()
        lineages = self._search.state.pool.slots["lineage"][slots]
        mine = slots[self._search.state.lineages.rows["label"][lineages] == label]
        return int(self._search.words.inverted.tokens[mine].sum())

    def lately(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The newest label of each retained record, and its time where records have one."""
        labels, times = self._retained.newest()
        return labels, times if self._order.dated else None

    def spoken(self) -> list[tuple[int, int, str, Assignment | None]]:
        """What some records say: seq, label, text, and the answer where it is open still."""
        undecided = self._announcer.undecided
        return [(seq, label, text, undecided.get(seq)) for seq, label, text in self._announcer.samples.all()]

    def clusters(self, among: Collection[int] | None = None) -> ClusterList:
        """The live clusters of the best hypothesis, largest first; ``among``: those labels, None: all."""
        if self._templates is not None:
            lines, samples = self._templates.summaries(), self._announcer.samples
            lines = [line for line in lines if among is None or line.cluster in among]
            return ClusterList(described(lines, self._retained, samples, dated=self._order.dated))
        if self._search is None or self._encoder is None:
            return ClusterList()
        found = summarise(self._search, self._words, among)
        dated = self._order.dated
        return ClusterList(described(found, self._retained, self._announcer.samples, dated=dated))

    def closed(self) -> ClusterList:
        """The clusters that closed or retired last, the latest first; none where no events were asked for."""
        samples = self._announcer.samples
        return ClusterList(of_closed(event, samples) for event in reversed(self._announcer.ended))

    @property
    def adapted(self) -> Adapted | None:
        """Concentration and scale of the decay as they are now; None where they do not follow the stream."""
        if self._adaptive is None or self._search is None:
            return None
        return adapted(self._search, self._adaptive)
