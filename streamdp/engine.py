"""Records in, assignments out: a pure function of what was seen before.

The engine has no clock and does no input or output. Its answers and its state do not depend on how
the records were cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.describe import event_of, summarise
from streamdp.beam.search import BeamSearch
from streamdp.beam.state import EVENTS, Output
from streamdp.encode.encoders import Encoded, Encoder, VectorEncoder, WordEncoder, load_encoder
from streamdp.encode.order import ReorderBuffer, dump_record, load_record, refuse
from streamdp.encode.text import Tokenizer
from streamdp.encode.vocabulary import EVICT_EVERY, Vocabulary
from streamdp.records import Answers, ClusterSummary, Event, Record, Reject
from streamdp.settings import Settings
from streamdp.settings.assemble import (
    OFFLINE_FAMILIES,
    build_model,
    build_prior,
    build_vectors,
    build_words,
    is_sparse,
    warmup_length,
)
from streamdp.settings.load import ConfigError
from streamdp.state.arrays import pack, unpack
from streamdp.state.retained import Labelled, Retained
from streamdp.state.transfer import dump_state, load_state


class Engine:
    """Clusters a stream.

    Parameters
    ----------
    settings
        Model, search, text, time and engine settings.
    final_only
        Answer each record once, when its assignment is final (or at :meth:`finish`).
    with_events
        Whether cluster events are reported.
    """

    def __init__(self, settings: Settings, *, final_only: bool = False, with_events: bool = False) -> None:
        self.settings = settings
        self.with_events = with_events
        self._tokenizer = Tokenizer(
            stem=settings.stem,
            ngrams=settings.ngrams,
            urls=settings.urls,
            mentions=settings.mentions,
            hashtags=settings.hashtags,
        )
        self._order = ReorderBuffer(settings.max_lateness, settings.max_ahead)
        self._retained = Retained(settings.retain)
        self._encoder: Encoder | None = None
        self._search: BeamSearch | None = None
        self._pending: list[tuple[float, Record]] = []  # encoded, not yet absorbed
        linked = settings.prior in ("auto", "distance-dependent")
        self._announcer = Announcer(self._retained, final_only=final_only, linked=linked)
        self._moments: tuple[np.ndarray, np.ndarray] | None = None
        # a wrong setting is told now, not at the first record
        if settings.likelihood in OFFLINE_FAMILIES:
            raise ConfigError(
                f"the {settings.likelihood} likelihood is for `streamdp fit`, not for streams: choose another"
            )
        if is_sparse(settings):
            build_words(settings)
        elif is_sparse(settings) is False:
            build_vectors(settings, np.zeros(1), np.ones(1))
        build_prior(settings, sparse=is_sparse(settings) is not False)

    @classmethod
    def of_clustering(
        cls,
        settings: Settings,
        encoded: Encoded,
        labels: np.ndarray,
        names: np.ndarray | None = None,
        minted: int = 0,
    ) -> Engine:
        """An engine that has seen these records and clustered them so.

        A cluster that the prior would have closed in between is founded anew.

        Parameters
        ----------
        settings, encoded
            The model, and the records in time order.
        labels
            The cluster of every record, shape (N,), numbered from 0 by first members.
        names, minted
            The label of each cluster, shape (K,), all of them below ``minted``; None: the numbers.
        """
        self = cls(settings)
        self._encoder, self._moments = encoded.encoder, encoded.moments
        search = self._search = self._new_search()
        n, batch = len(labels), encoded.batch
        first = np.unique(labels, return_index=True)[1]
        if isinstance(self._encoder, WordEncoder):
            search.ensure_words(len(self._encoder.vocabulary.words) + 1)
            self._encoder.vocabulary.touch(batch.words, batch.rows)
        announced = np.zeros(n, np.int64)
        for start, stop, out in search.run(batch, first[labels]):
            announced[start:stop] = out.label[start:stop]
        if names is not None:
            announced = search.rename(announced, np.asarray(names)[labels], minted)
        self._retained.append(Labelled(0, batch, announced))
        assert batch.times is not None
        self._order.latest = self._order.released = float(batch.times[-1])
        self._announcer.final = n - 1
        return self

    def retained(self) -> tuple[Encoded, np.ndarray]:
        """The records still held and their newest labels, shape (n,).

        ValueError where there are none, or older ones have been let go.
        """
        held = self._retained.collect()
        if held is None or self._encoder is None:
            raise ValueError("the state holds no records: it was made with --retain 0, or before the first")
        if held.first > 0:
            raise ValueError(
                f"the state holds only the last {len(held.labels):,} of {self.seq:,} records, and the "
                "others are in its clusters too: make it with a larger --retain"
            )
        return Encoded(self._encoder, held.batch, self._moments), held.labels

    # ---------------------------------------------------------------- records in

    def advance(self, records: Iterable[Record | Reject]) -> Answers:
        """Take records in order of arrival; return what is known of them now.

        What was refused before it came here passes through, so that all rejects keep one order.
        """
        answers = Answers([], [], [])
        ready: list[tuple[float, Record]] = []
        needs_time = self.settings.distance == "seconds"
        for record in records:
            if isinstance(record, Reject):
                answers.rejects.append(record)
                continue
            if needs_time and record.time is None:
                detail = "it has no time, and distance is measured in seconds"
                answers.rejects.append(refuse(record, "missing_time", detail))
                continue
            reject = self._order.push(record, ready)
            if reject is not None:
                answers.rejects.append(reject)
            elif ready:
                self._encode(ready, answers)
        self._run(answers)
        return answers

    def finish(self) -> Answers:
        """End the stream: nothing is held back any more, and every assignment is final.

        Nothing can be advanced after this; a state that shall go on is dumped before.
        """
        answers = Answers([], [], [])
        ready: list[tuple[float, Record]] = []
        self._order.drain(ready)
        self._encode(ready, answers)
        if self._pending and self._search is None:
            self._end_warmup()
        self._run(answers)
        self._announcer.finish(self.seq - 1, answers.lines)
        return answers

    def score(self, records: Iterable[Record | Reject]) -> Answers:
        """Answer without learning anything; ``cluster`` is -1 where a new one is likelier than any."""
        answers = Answers([], [], [])
        if self._encoder is None or self._search is None:
            for record in records:
                if isinstance(record, Record):
                    record = refuse(record, "untrained", "nothing has been learned yet")
                answers.rejects.append(record)
            return answers
        encoder: Encoder
        if isinstance(self._encoder, WordEncoder):
            encoder = WordEncoder(self._tokenizer, self._encoder.vocabulary, frozen=True)
        else:
            encoder = VectorEncoder(self._encoder.dimension, self._encoder.names)
        taken: list[Record] = []
        for record in records:
            reject = record if isinstance(record, Reject) else encoder.add(record)
            if reject is not None:
                answers.rejects.append(reject)
            elif isinstance(record, Record):
                taken.append(record)
        if not taken:
            return answers
        times = np.array([self._order.latest if r.time is None else r.time for r in taken])
        out = self._search.score(encoder.take(times))
        self._announcer.announce_frozen(out, taken, answers.lines)
        return answers

    # ---------------------------------------------------------------- inside

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return 0 if self._search is None else self._search.seq

    def _encode(self, ready: list[tuple[float, Record]], answers: Answers) -> None:
        """Encode records whose turn has come; run them where words may be evicted after the last."""
        for time, record in ready:
            encoder = self._encoder or self._encoder_for(record)
            if encoder is None:
                detail = "it holds a text, and the settings are for vectors"
                answers.rejects.append(refuse(record, "wrong_kind", detail))
                continue
            reject = encoder.add(record)
            if reject is not None:
                answers.rejects.append(reject)
                continue
            if self._encoder is None:
                self._begin(encoder)
            self._pending.append((time, record))
            if self._search is None:
                if len(self._pending) >= max(warmup_length(self.settings), 1):
                    self._end_warmup()
            elif (self.seq + len(self._pending)) % EVICT_EVERY == 0:
                self._run(answers)
        ready.clear()

    def _encoder_for(self, record: Record) -> Encoder | None:
        """An encoder for streams of this record's kind; None where the settings are for another."""
        settings = self.settings
        sparse = is_sparse(settings)
        if sparse is None:
            sparse = isinstance(record.value, str)
        if not sparse:
            return None if isinstance(record.value, str) else VectorEncoder.like(record)
        limit = settings.max_words
        if settings.vocabulary_size is not None:
            limit = min(limit, settings.vocabulary_size)
        return WordEncoder(self._tokenizer, Vocabulary(limit))

    def _begin(self, encoder: Encoder) -> None:
        """The first record that could be encoded has said whether the stream holds words or vectors."""
        self._encoder = encoder
        if isinstance(encoder, WordEncoder):
            self._search = self._new_search()

    def _end_warmup(self) -> None:
        """Learn location and scale from the vectors held back so far."""
        assert isinstance(self._encoder, VectorEncoder)
        rows = np.array(self._encoder.rows, float)
        variance = rows.var(axis=0)
        typical = float(variance.mean())
        variance = np.maximum(variance, 1e-6 * typical if typical > 0.0 else 1.0)
        self._moments = (rows.mean(axis=0), variance)
        self._search = self._new_search()

    def _new_search(self) -> BeamSearch:
        """A search that has seen nothing; vectors need the moments of the warm-up."""
        settings = self.settings
        if self._moments is None:
            model = build_model(settings, build_prior(settings, True), build_words(settings))
        else:
            likelihood = build_vectors(settings, *self._moments)
            model = build_model(settings, build_prior(settings, False), likelihood)
        return BeamSearch(model)

    def _run(self, answers: Answers) -> None:
        """Let the beam absorb what is encoded, announce what it says; vectors may wait for the warm-up."""
        search, encoder = self._search, self._encoder
        if search is None or encoder is None or not self._pending:
            return
        pending, self._pending = self._pending, []
        batch = encoder.take(np.array([time for time, _ in pending]))
        first = search.seq
        labels = np.zeros(len(pending), np.int64)
        if isinstance(encoder, WordEncoder):
            vocabulary = encoder.vocabulary
            search.ensure_words(len(vocabulary.words) + 1)  # one to spare for unknown words while frozen
            vocabulary.touch(batch.words, first + batch.rows)
        self._retained.append(Labelled(first, batch, labels))
        for start, stop, out in search.run(batch):
            labels[start:stop] = out.label[start:stop]
            records = [record for _, record in pending[start:stop]]
            self._announcer.announce(out, start, first + start, records, answers.lines)
            if self.with_events:
                answers.events.extend(self._describe_events(out, first, pending))
        if (
            isinstance(encoder, WordEncoder)
            and search.seq % EVICT_EVERY == 0
            and encoder.vocabulary.wants_eviction()
        ):
            self._evict(encoder.vocabulary)

    def _evict(self, vocabulary: Vocabulary) -> None:
        assert self._search is not None
        index = self._search.state.inverted
        gone = vocabulary.evict(index.length > 0, self.seq - self.settings.retain)
        index.totals[0] -= index.base[gone].sum()
        index.totals[1] -= np.count_nonzero(index.base[gone])
        index.base[gone] = 0
        index.most[gone] = 0

    def _describe_events(self, out: Output, first: int, pending: list[tuple[float, Record]]) -> list[Event]:
        words = self._words()
        events = []
        for e in range(int(out.meta[EVENTS])):
            time = pending[int(out.event_by[e]) - first][1].time
            events.append(event_of(out, e, time, words))
        return events

    def _words(self) -> list[str | None] | None:
        """The word of each id; None for vectors."""
        return self._encoder.vocabulary.words if isinstance(self._encoder, WordEncoder) else None

    # ---------------------------------------------------------------- looking in

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        counts = {} if self._search is None else self._search.counters()
        counts["held_back"] = len(self._order.heap) + len(self._pending)
        if isinstance(self._encoder, WordEncoder):
            vocabulary = self._encoder.vocabulary
            counts |= {
                "words": len(vocabulary),
                "words_dropped": vocabulary.dropped,
                "words_evicted": vocabulary.evicted,
            }
        return counts

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence in nats: the sum of log p(x_t | past)."""
        return 0.0 if self._search is None else self._search.log_evidence

    @property
    def log_joint(self) -> float:
        """log p(z, x) of the best hypothesis, in nats."""
        return 0.0 if self._search is None else float(self._search.log_joints[self._search.head])

    def clusters(self) -> list[ClusterSummary]:
        """The live clusters of the best hypothesis, largest first."""
        if self._search is None:
            return []
        return summarise(self._search, self._words())

    # ---------------------------------------------------------------- state

    def dumps(self) -> bytes:
        """All state as msgpack, the same bytes however the records came in batches."""
        body: dict[str, Any] = {
            "order": self._order.dump(),
            "encoder": None if self._encoder is None else self._encoder.dump(),
            "pending": [(time, dump_record(record)) for time, record in self._pending],
            "announced": self._announcer.dump(),
            "moments": None if self._moments is None else [pack(m) for m in self._moments],
            "retained": self._retained.dump(),
            "state": None if self._search is None else dump_state(self._search.state),
        }
        return msgspec.msgpack.encode(body)

    @classmethod
    def loads(
        cls, data: bytes, settings: Settings, *, final_only: bool = False, with_events: bool = False
    ) -> Engine:
        """The engine whose :meth:`dumps` gave ``data``, under the same model settings."""
        self = cls(settings, final_only=final_only, with_events=with_events)
        body = msgspec.msgpack.decode(data)
        self._order.load(body["order"])
        self._announcer.load(body["announced"])
        self._retained.load(body["retained"])
        if body["encoder"] is not None:
            self._encoder = load_encoder(body["encoder"], self._tokenizer)
        for time, record in body["pending"]:
            known = load_record(record)
            self._pending.append((time, known))
            assert self._encoder is not None
            self._encoder.add(known)
        if body["moments"] is not None:
            mean, variance = (unpack(m) for m in body["moments"])
            self._moments = (mean, variance)
        if body["state"] is not None:
            self._search = self._new_search()
            self._search.state = load_state(body["state"])
        return self
