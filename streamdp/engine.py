"""Records in, assignments out: a pure function of what was seen before.

The engine has no clock and does no input or output. Its answers and its state do not depend on how
the records were cut into batches. It puts records in order, applies corrections at their positions, and
tells of clusters. What clusters the records is a beam, or templates of log lines.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from streamdp.answers.describe import (
    Candidate,
    Census,
    base_of,
    described,
    of_closed,
    tokens_of,
)
from streamdp.answers.evidence import Evidence
from streamdp.answers.listing import ClusterList, paragraph
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.encode.embedding import load_embedding
from streamdp.encode.encoders import Encoder, order_of, tokenizer_of
from streamdp.encode.order import Lateness, Ready, ReorderBuffer, placed
from streamdp.encode.rows import Rows
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.encode.word_encoder import WordEncoder
from streamdp.kernels.packed import as_type, encoded
from streamdp.kernels.sound import require
from streamdp.ledger.samples import text_of
from streamdp.likelihoods.base import Likelihood, Moments
from streamdp.lines.holes import Past
from streamdp.priors.base import Prior
from streamdp.records import (
    RENAMED,
    Answers,
    Assignment,
    Event,
    Kind,
    Lines,
    Record,
    Reject,
    Value,
    all_plain,
)
from streamdp.records.columns import Columns
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.load import UNNAMED
from streamdp.state.corrections import Correction, CorrectionError
from streamdp.state.sound import refusing
from streamdp.state.stamp import checked, stamped
from streamdp.story.beam import statistics_of
from streamdp.story.clock import Clock
from streamdp.story.doubts import doubts
from streamdp.story.gather import Known, called, figures_of, record_of, stories_of, with_records
from streamdp.story.memory import Memory
from streamdp.story.story import Stories, StoryRecord
from streamdp.streams.beam import BeamStream
from streamdp.streams.corrections import Corrections, refused
from streamdp.streams.stream import Stream
from streamdp.streams.templates import TemplateStream
from streamdp.threads import OneThreadAtATime

if TYPE_CHECKING:
    from streamdp.offline.task import Stream as Refinable


_IN_CLEAR = (
    ("order", "heap"),
    ("order", "leaps"),
    ("pending",),
    ("strays",),
    ("ledger", "open"),
    ("ledger", "samples"),
    ("stories", "ended"),
    ("stories", "titles"),
    ("corrections", "held"),
    ("templates", "history", "plain"),
)
"""Where a state has words of records, and ids."""


class Engine(OneThreadAtATime, but=("advance", "score", "search")):
    """Clusters a stream. Threads may share it: each call waits for the one before it.

    Parameters
    ----------
    settings
        Model, search, text, time and engine settings; None: the defaults, and those ``given``.
    prior, likelihood
        In the place of what the settings say: names, or objects of ``streamdp.priors`` and
        ``streamdp.likelihoods``. Of vectors, an object learns nothing from the first of them.
    final_only
        Answer each record once, when its assignment is final (or at :meth:`finish`).
    with_events
        Whether cluster events are reported.
    given
        Settings by name in the place of ``settings``: ``Engine(beam=4)``.

    Examples
    --------
    >>> engine = Engine(beam=4)
    >>> answers = engine.advance(["storm over the coast", "late goal wins", "coast storm"])
    >>> engine.newest()
    {0: 0, 1: 1, 2: 0}
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        prior: Prior | str | None = None,
        likelihood: Likelihood | str | None = None,
        final_only: bool = False,
        with_events: bool = False,
        **given: Any,
    ) -> None:
        self._blueprint = Blueprint.of(settings, prior, likelihood, given)
        self.settings = settings = self._blueprint.settings
        tokenizer_of(settings)  # what is wrong is said now, not at the first record
        if settings.embed is not None and not settings.embed.startswith(UNNAMED):
            load_embedding(settings.embed)
        self._rows = Rows(settings)
        self._stream = self._stream_of(self._blueprint, order_of(settings), final_only=final_only)
        self._stream.with_events = self._stream.remember_ended = with_events

    def _stream_of(self, blueprint: Blueprint, order: ReorderBuffer, *, final_only: bool) -> Stream:
        """The stream that the settings mean. Raises ConfigError."""
        if blueprint.settings.of_lines:
            return TemplateStream(blueprint.settings, order, final_only=final_only)
        return BeamStream(blueprint, order, final_only=final_only)

    # ---------------------------------------------------------------- records in

    def advance(self, records: Iterable[Record | Reject | Value] | Columns) -> Answers:
        """Take records in order of arrival; return what is known of them now.

        Texts, vectors and mappings from names to numbers are records without time or id; their position is
        the number of their arrival. A mapping that holds the text field (or the vector, or the features) is
        read as a line of a file is, with its time and id. A data frame is its rows. What was refused before
        it came here passes through, so that all rejects keep one order. TypeError, before any record is
        taken, where one is none. EmbeddingError where a function of yours fails: some may have been taken
        then, so go on from a state of before.

        Examples
        --------
        >>> engine = Engine(beam=4)
        >>> [a.cluster for a in engine.advance(["storm over the coast", "coast storm"]).assignments]
        [0, 0]
        """
        answers, given = Answers(Lines(), [], []), records
        if not isinstance(given, list | Columns):
            given = [*rows_of(given)]  # which may wait for other threads
        with self._lock:
            if isinstance(given, list):
                given = Columns.of(all_plain(given, self._stream.order.arrivals, self._rows.read))
            for ready, times in self._stream.order.in_order(given):
                self._take(ready, times, answers)
            if answers.lines.ask is not None:
                answers.lines.ask = self._write
        return answers

    def _write(self) -> None:
        """Write down what waits, for whoever asks for lines."""
        with self._lock:
            self._stream.announcer.write()

    def finish(self) -> Answers:
        """End the stream: all is answered, and final. A state that shall go on is dumped before."""
        answers = self._drained(ended=True)
        since = len(answers.events)
        self._stream.end(answers)
        self._hear(answers, since)
        self._stream.announcer.finish(self.seq - 1, answers.lines)
        return answers

    def flush(self) -> Answers:
        """Answer what is held back for its turn: nothing has come for long. Later records may come too late.

        Vectors of the warm-up stay, and what came among them: scale and kind are learned once.
        """
        return self._drained(ended=False)

    def _drained(self, *, ended: bool) -> Answers:
        answers = Answers(Lines(), [], [])
        ready: Ready = []
        self._stream.order.drain(ready, ended=ended)
        self._take(*placed(ready), answers)
        self._stream.announcer.write()
        return answers

    def _take(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        """Take records whose turn has come, at these times, and apply corrections at their positions."""
        stream, waiting = self._stream, self._stream.corrections.waiting
        while waiting and len(given):
            room = max(waiting[0][0] - stream.seq - stream.waiting, 1)
            self._absorb(given[:room], times[:room], answers)
            given, times = given[room:], times[room:]
            while waiting and waiting[0][0] <= stream.seq:
                _, correction = waiting.popleft()
                try:
                    self._correct(correction, answers)
                except CorrectionError as error:
                    stream.corrections.refused.append((correction.number, error.message))

        if given:
            self._absorb(given, times, answers)

    def _absorb(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        since = len(answers.events)
        self._stream.take(given, times, answers)
        self._hear(answers, since)

    def _hear(self, answers: Answers, since: int) -> None:
        """Leave out the events, from one on, that nobody wants to hear of."""
        corrections = self._stream.corrections
        if corrections.held:
            answers.events[since:] = corrections.audible(answers.events[since:])

    def score(self, records: Iterable[Record | Reject | Value] | Columns, first: int = 0) -> Answers:
        """Answer without learning anything; ``cluster`` is -1 where a new one is likelier than any.

        ``seq`` counts the answers from ``first`` on.
        """
        answers = Answers(Lines(), [], [])
        rows = records if type(records) is list else rows_of(records)
        given = records.all() if isinstance(records, Columns) else all_plain(rows, form=self._rows.read)
        with self._lock:
            self._stream.score(given, first, answers)
        return answers

    def whereto(self, record: Record | Value, most: int = 5) -> list[Candidate] | Reject:
        """The likeliest clusters of a record that may come next, a new one (-1) among them; learns nothing.

        Of lines of logs there is one, the template that it fits.
        """
        (made,) = all_plain([record], form=self._rows.read)
        return made if isinstance(made, Reject) else self._stream.whereto(made, most)

    def together(self, a: Record | Value, b: Record | Value) -> Evidence:
        """What speaks for two records being of one cluster, word by word and by meaning; learns nothing.

        ValueError where one is refused, before the model has begun, and of lines of logs.

        Examples
        --------
        >>> engine = Engine(beam=4)
        >>> answers = engine.advance(["storm over the coast", "coast storm", "late goal wins the match"])
        >>> found = engine.together("storm over the coast", "coast storm")
        >>> found.nats > 0, sorted(name for name, by in found.words if by > 0)
        (True, ['coast', 'storm'])
        """
        one, other = all_plain([a, b], form=self._rows.read)
        for record in (one, other):
            if isinstance(record, Reject):
                raise ValueError(f"{record.reason}: {record.detail}")
        found = self._stream.together(one, other)  # type: ignore[arg-type]
        if isinstance(found, Reject):
            raise ValueError(f"{found.reason}: {found.detail}")
        return found

    def correct(self, correction: Correction, at: int | None = None, *, check: bool = False) -> Answers:
        """Take a correction by hand; return the answers that it revises, and events.

        Raises CorrectionError, and changes nothing, where it makes no sense or contradicts an earlier one; of
        a later one ``corrections.refused`` will tell. ``at``: when so many records have been absorbed; None:
        now. ``check``: only see whether it could be.

        Examples
        --------
        >>> engine = Engine(beam=4)
        >>> answers = engine.advance(["storm over the coast", "coast storm"])
        >>> answers = engine.correct(Correction(what="rename", stories=(0,), title="The storm"))
        >>> [story.title for story in engine.stories()]
        ['The storm']
        """
        answers, held, at = Answers(Lines(), [], []), self.corrections, self.seq if at is None else at
        if check:
            self._stream.corrections = copy.deepcopy(held)
            try:
                self._apply(msgspec.structs.replace(correction, number=held.taken + 1), None)
            finally:
                self._stream.corrections = held
        elif at > self.seq or held.waiting:
            held.waiting.append((at, correction))
        else:
            self._correct(correction, answers)
        return answers

    def _correct(self, correction: Correction, answers: Answers) -> None:
        """Apply a correction now; append revisions and events. Raises CorrectionError where it cannot be.

        One with a number is taken even if it is refused: whoever has numbered it goes on with the next.
        """
        held, before = self.corrections, self.corrections.taken
        held.taken = correction.number or before + 1
        try:
            self._apply(msgspec.structs.replace(correction, number=held.taken), answers)
        except CorrectionError:
            held.taken = correction.number or before
            raise
        if self.search is not None:
            self.search.pin(held.pinned)

    def _apply(self, correction: Correction, answers: Answers | None) -> None:
        """Apply a correction; without ``answers`` only what is known of corrections changes."""
        stream, live = self._stream, self._stream.census().label
        for label in correction.stories:
            if label not in live:
                last = stream.memory.merged_into(label)
                more = f": it is part of story {last}" if last is not None else ""
                raise refused(f"there is no live story {label}{more}")
        if correction.what in ("rename", "mute"):
            self.corrections.declare(correction, live)
        elif correction.what == "undo":
            correction = self.corrections.end(correction.undone or 0).correction
            if answers is not None:
                stream.lift(correction)
        else:
            since = len(answers.events) if answers is not None else 0
            stream.constrain(correction, answers)
            if answers is not None:
                self._hear(answers, since)
        if correction.what == "rename" and self.with_events and answers is not None:
            answers.events.extend(self._renamed(*correction.stories))

    def _renamed(self, label: int) -> list[Event]:
        """The event of a story that somebody has named, or no longer; none where it has ended."""
        stream, titles = self._stream, self._stream.memory.titles
        events = [
            Event(
                event=RENAMED,
                seq=self.seq - 1,
                time=stream.retained.time if self.dated else None,
                cluster=label,
                other=None,
                size=cluster.size,
                moved=None,
                first_time=cluster.first_time,
                last_time=cluster.last_time,
                words=cluster.words,
                title=self.corrections.names.get(label) or titles.of(label) or called(cluster),
            )
            for cluster in self.clusters((label,))
        ]
        return self.corrections.audible(events, by_hand=True)

    # ---------------------------------------------------------------- in clear

    def in_clear(self) -> Iterator[dict[str, Any]]:
        """What it holds of records in clear: id, number, position, kept fields, text, as far as known."""
        stream = self._stream
        for answer in self.open_answers():
            yield msgspec.to_builtins(answer)
        in_turn = (record for _, _, record in (*stream.order.heap, *stream.order.leaps))
        for record in (*in_turn, *stream.waiting_records()):
            text = text_of(record, self.settings.texts)
            yield {"id": record.id, "position": record.position, "keep": record.keep, "text": text}
        yield from ({"seq": seq, "text": text} for seq, _, text, _ in self.spoken())
        yield from ({"seq": title.seq, "text": title.text} for title in stream.memory.titles.held.values())
        yield from ({"seq": seq, "text": text} for seq, text in stream.said())

    def forget(
        self, seqs: Collection[int], texts: Collection[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Let go of what records say, known by their numbers and these texts, but for what is in clear.

        Counts stay. Returns what else they alone are known to have: templates, and words.
        """
        self._stream.announcer.ledger.confidence.forget(seqs)
        return self._stream.forget(seqs, texts)

    def rewritten(self, left_of: Callable[[Any], Any]) -> bytes:
        """As :meth:`dumps`, with what is left of each thing that it holds in clear."""
        stored = msgspec.msgpack.decode(self.dumps())
        for *path, name in _IN_CLEAR:
            within = stored
            for each in path:
                within = within.get(each) or {}
            if name in within:
                within[name] = left_of(within[name])
        return msgspec.msgpack.encode(stored)

    # ---------------------------------------------------------------- what it holds

    @property
    def corrections(self) -> Corrections:
        """Corrections by hand, those in force among them."""
        return self._stream.corrections

    @property
    def muted(self) -> Collection[int]:
        """The stories that nobody wants to hear of."""
        return self.corrections.muted

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return self._stream.seq

    @property
    def held_back(self) -> int:
        """Records that are not answered yet: out of order, or vectors of the warm-up."""
        return self._stream.order.held + self._stream.waiting

    @property
    def out_of_turn(self) -> int:
        """Records that wait for others to come before them, or to confirm their time."""
        return self._stream.order.held

    @property
    def lateness(self) -> Lateness:
        """How late records came since this engine was made."""
        return self._stream.order.lateness

    @property
    def dated(self) -> bool:
        """Whether any record had a time."""
        return self._stream.order.dated

    @property
    def stage(self) -> Callable[[str], None]:
        """Called when search (kernel), answers (announce) and encoding (encode) begin, by the batch."""
        return self._stream.stage

    @stage.setter
    def stage(self, heard: Callable[[str], None]) -> None:
        self._stream.stage = heard

    @property
    def kind(self) -> Kind | None:
        """What the records are, once that is known for good."""
        return self._stream.kind

    @property
    def with_events(self) -> bool:
        """Whether cluster events are reported."""
        return self._stream.with_events

    def report_events(self) -> None:
        """Report cluster events from now on, whatever was asked for; the state stays as it would be."""
        self._stream.with_events = True

    def take_absorbed(self, part: Labelled, revised: np.ndarray) -> list[Event]:
        """Retain vectors that the search has absorbed by itself, and look back where that is due.

        ``revised`` are numbers of records and their new labels, shape (n, 2). Returns the events of the look.
        """
        answers = Answers(Lines(), [], [])
        assert isinstance(self._stream, BeamStream)
        self._stream.take_absorbed(part, revised, answers)
        return answers.events

    def rename(self, announced: np.ndarray, names: np.ndarray, minted: int) -> np.ndarray:
        """As ``BeamSearch.rename``, with the labels of the records that are retained."""
        assert self.search is not None
        found = self.search.rename(announced, names, minted)
        self._stream.announcer.ledger.rename(found)
        return found

    def close_answers(self) -> None:
        """Revise nothing that was answered so far: whoever runs the search reports it otherwise."""
        self._stream.announcer.finish(self.seq - 1, Lines())

    def clusters(self, among: Collection[int] | None = None, *, muted: bool = False) -> ClusterList:
        """The live clusters of the best hypothesis, largest first; ``among``: those labels, muted or not.

        Of all, those that are ``muted`` are left out, unless they are asked for.
        """
        stream, silent = self._stream, () if muted or among is not None else self.muted
        samples = stream.announcer.ledger.samples
        summaries = stream.summaries(among)
        found = described(summaries, stream.retained, samples, self._names, dated=self.dated)
        return ClusterList(cluster for cluster in found if cluster.cluster not in silent)

    def closed(self, *, muted: bool = False) -> ClusterList:
        """The clusters that closed or retired last, the latest first; none where no events were asked for.

        Those that are ``muted`` are left out, unless they are asked for.
        """
        memory, samples = self._stream.memory, self._stream.announcer.ledger.samples
        silent = () if muted else self.muted
        ended = (event for event in reversed(memory.ended) if event.cluster not in silent)
        return ClusterList(of_closed(event, samples, self._names) for event in ended)

    @property
    def _names(self) -> list[str] | None:
        """Those of features, in the order of a mean."""
        encoder = self._stream.encoder
        return encoder.names if isinstance(encoder, VectorEncoder) else None

    def doubts(self) -> list[str]:
        """What is doubtful about the stories, a sentence each; empty where nothing is."""
        held = self._stream.retained.collect() if self.kind == "texts" else None
        if held is None:
            return []
        return list(doubts(held.labels, self._stream.announcer.revised / max(self.seq, 1), held.batch.words))

    def stories(
        self,
        *,
        closed: bool = False,
        stretch: float | None = None,
        records: bool = True,
        muted: bool = False,
    ) -> Stories:
        """The live clusters as stories, largest first: titles, keywords, times, trend, records.

        Parameters
        ----------
        closed
            Those that ended last instead: 100 at most, and none where no events were asked for.
        stretch
            How long *now* is, in seconds or (without times) records. None: what the latest records took.
        records
            Whether stories list records by how sure their labels are; quicker without.
        muted
            Whether those that are muted are among them.

        Examples
        --------
        >>> engine = Engine(beam=4)
        >>> answers = engine.advance(["storm over the coast", "coast storm"])
        >>> [(story.label, story.records, story.title) for story in engine.stories()]
        [(0, 2, 'storm over the coast')]
        """
        stream, seq, search = self._stream, self.seq, self.search
        memory = stream.memory
        clusters = self.closed(muted=muted) if closed else self.clusters(muted=muted)
        labels, times = self.lately()
        clock = Clock.of(times, seq, stretch)
        titles = {c.cluster: title for c in clusters if (title := memory.titles.of(c.cluster)) is not None}
        keywords = {} if closed else stream.keywords()
        figures = figures_of(clock, labels, times, seq - len(labels))
        known = Known(titles, keywords, figures, memory.kin, names=stream.corrections.names)
        made = stories_of(clusters, known, clock, closed=closed)
        if records:
            own = self._records()
            made = [with_records(story, own.get(story.label, ())) for story in made]
        return Stories(
            made,
            clock,
            seq,
            kind=self.kind,
            remembered="latest" if stream.remember_ended else "none",
            warnings=[] if closed else self.doubts(),
            statistics=None if closed else lambda: None if search is None else statistics_of(search),
            numbers=memory.themes,
        )

    def _records(self) -> dict[int, list[StoryRecord]]:
        """The records whose answers are open, with what samples say, by label."""
        texts = {seq: text for seq, _, text in self._stream.announcer.ledger.samples.all()}
        found = defaultdict[int, list[StoryRecord]](list)
        for answer in self.open_answers():
            text = texts.get(answer.seq, "")
            found[answer.cluster].append(record_of(answer, text, self.kind, self.settings))
        return found

    def _repr_html_(self) -> str:
        """Its stories as a table; a display of a notebook that is updated with it follows the stream."""
        counted = f"{self.seq:,} records" + (f", {self.held_back:,} held back" if self.held_back else "")
        return paragraph(counted) + self.stories(records=False)._repr_html_()

    @property
    def promised(self) -> float:
        """How many revisions were to be expected so far, by the ``stability`` of all first answers."""
        return self._stream.announcer.ledger.promised

    def titles(self) -> dict[int, str]:
        """The titles of stories, chosen or given by hand, by label; those without one are left out."""
        held = self._stream.memory.titles.held
        return {label: title.text for label, title in held.items()} | self.corrections.names

    def founders(self) -> dict[int, int]:
        """The numbers of the records that have founded their clusters, by label; of the latest records."""
        return self._stream.announcer.ledger.founders()

    def past(self, among: Collection[int] | None = None) -> Past | None:
        """What a log was like by the hour, with the holes of all labels or of ``among``; None of others."""
        return self._stream.past(among)

    def census(self) -> Census:
        """Figures of all live clusters of the best hypothesis, without what they are about."""
        found = self._stream.census()
        return found if self.dated else found.undated()

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        found = self._stream.counters() | self._stream.announcer.counters()
        return found | {"held_back": self.held_back, "released_early": self._stream.order.early}

    def levels(self) -> dict[str, float]:
        """Records, evidence, how far hypotheses agree, what is not final; revisions since this was made."""
        return self._stream.levels() | {"revisions": self._stream.announcer.revised}

    def refined(self) -> dict[str, float]:
        """What refinements have come to; nothing where there are none."""
        return self._stream.refined()

    @property
    def log_evidence(self) -> float:
        """Prequential log evidence in nats: the sum of log p(x_t | past)."""
        return self._stream.log_evidence

    @property
    def search(self) -> BeamSearch | None:
        """The beam, once it has begun."""
        return self._stream.search

    @property
    def log_joint(self) -> float:
        """log p(z, x) of the best hypothesis, in nats."""
        return 0.0 if self.search is None else float(self.search.log_joints[self.search.head])

    @property
    def nats_gained(self) -> float:
        """By how much second looks have raised the log joint."""
        return 0.0 if self.search is None else float(self.search.state.beam.counters.gained)

    def stream(self) -> Refinable | None:
        """The records that are retained and the beam, as refinements take them; None where there are none."""
        return self._stream.refinable()

    def base_of(self, words: Iterable[str]) -> dict[str, float]:
        """Share of each word in the base measure that all clusters have learned; {} where there is none."""
        search, encoder = self.search, self._stream.encoder
        if search is None or not isinstance(encoder, WordEncoder):
            return {}
        return base_of(search, encoder.vocabulary.ids, words)

    def tokens_of(self, label: int) -> int:
        """Words, repetitions counted, of a live cluster of words; 0 for any other."""
        of_texts = isinstance(self._stream.encoder, WordEncoder)
        return 0 if self.search is None else tokens_of(self.search, label, of_texts=of_texts)

    def retained(self) -> Labelled | None:
        """The records that are retained, with their newest labels; None while there is none."""
        return self._stream.retained.collect()

    def lately(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The newest label of each retained record, and its time where records have one."""
        labels, times = self._stream.retained.newest()
        return labels, times if self.dated else None

    def newest(self) -> dict[int, int]:
        """The newest label of each record that is retained (the latest 5,000, if not set otherwise).

        By the numbers of records (``seq`` of an assignment), in their order; a record that was refused has
        none, one that is held back not yet. An older one keeps what its last assignment said.
        """
        labels, _ = self._stream.retained.newest()
        return dict(zip(range(self.seq - len(labels), self.seq), labels.tolist(), strict=True))

    def open_answers(self) -> list[Assignment]:
        """The newest answer to each record whose answer may still change, in order."""
        return list(self._stream.announcer.undecided.values())

    def spoken(self) -> list[tuple[int, int, str, Assignment | None]]:
        """What some records say: seq, label, text, and the answer where it is open still."""
        told = self._stream.announcer
        return [(seq, label, text, told.undecided.get(seq)) for seq, label, text in told.ledger.samples.all()]

    # ---------------------------------------------------------------- state

    @classmethod
    def of_search(
        cls,
        settings: Settings,
        order: ReorderBuffer,
        encoder: Encoder,
        moments: Moments | None,
        seen: Labelled,
        search: BeamSearch,
    ) -> Self:
        """An engine that goes on with a beam made elsewhere; all that it has seen is final."""
        self = cls(settings)
        self._stream = stream = BeamStream(self._blueprint, order, final_only=False)
        stream.announcer.ledger.put_labels(seen.first, seen.labels)
        stream.retained.append(seen.first, seen.batch)
        stream.announcer.finish(search.seq - 1, Lines())
        stream.begin_with(encoder, moments, search)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """An engine that is pickled or copied goes on from the same state."""
        plan, told = self._blueprint, self._stream.announcer
        modes: dict[str, Any] = {"final_only": told.final_only, "with_events": self.with_events}
        made = partial(Engine.loads, prior=plan.prior, likelihood=plan.likelihood, **modes)
        return made, (self.dumps(), plan.settings)

    def dumps(self) -> bytes:
        """All state as msgpack, the same bytes however the records came in batches."""
        stream = self._stream
        held = stream.retained.collect()
        stored = {
            "order": self._stream.order,
            "ledger": stream.announcer.ledger.dump(),
            "retained": None if held is None else {"first": held.first, "batch": held.batch},
            "stories": stream.memory,
            "corrections": stream.corrections,
            **stream.dump(),
        }
        return encoded(stamped(stored))

    @classmethod
    def loads(cls, data: bytes, settings: Settings | None = None, **options: Any) -> Self:
        """The engine whose :meth:`dumps` gave ``data``, under the same settings; options: those of the class.

        Raises SnapshotError where it is of another format, or no such state: nothing in it is trusted unseen.
        """
        self = cls(settings, **options)  # what is wrong with these is no fault of the state
        with refusing():
            stored = checked(msgspec.msgpack.decode(data))
            order = as_type(stored["order"], ReorderBuffer)
            self._stream.order = msgspec.structs.replace(order, **self._stream.order.limits)
            if (held := stored["retained"]) is not None:
                self._stream.retained.hold(held["first"], as_type(held["batch"], Batch))
                require(self._stream.retained.held > 0, "retained records are missing")
            self._stream.announcer.ledger.load(stored["ledger"])
            self._stream.memory = as_type(stored["stories"], Memory)
            self._stream.corrections = as_type(stored["corrections"], Corrections)
            self._stream.load(stored)
        return self
