"""The stream behind an engine: what all kinds of streams have in common."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.describe import Candidate, Census, described
from streamdp.beam.search import BeamSearch
from streamdp.encode.order import ReorderBuffer
from streamdp.kernels.sound import require
from streamdp.lines.holes import Past
from streamdp.records import RENAMED, Answers, ClusterSummary, Event, Kind, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.state.corrections import Correction, CorrectionError
from streamdp.state.retained import Retained
from streamdp.story.gather import called
from streamdp.story.memory import Memory
from streamdp.streams.corrections import Corrections, refused

if TYPE_CHECKING:
    from streamdp.offline.task import Stream as Refinable


def _unheard(stage: str) -> None:
    """Nobody asks how long it takes."""


class Stream(ABC):
    """Records in order of time go in, answers come out.

    Parameters
    ----------
    settings
        Those of the engine.
    order
        What puts records in order: it says which time the stream has reached, and whether records have times.
    announcer
        Remembers what was announced of records whose answers may change, and which records those were.
    """

    def __init__(self, settings: Settings, order: ReorderBuffer, announcer: Announcer) -> None:
        self.settings, self.order, self.announcer = settings, order, announcer
        self.with_events = False
        self.stage: Callable[[str], None] = _unheard
        """Called when the search (kernel), its answers (announce) and encoding (encode) begin, by the
        batch.
        """
        self.remember_ended = False
        """Whether the state remembers clusters that have ended, and what others split from or merged with."""
        self.search: BeamSearch | None = None
        """The beam, once it has begun; log lines have none."""
        self.memory = Memory()
        """What is remembered for stories."""
        self.corrections = Corrections()
        """What somebody has corrected by hand."""

    @property
    def retained(self) -> Retained:
        """The latest records."""
        return self.announcer.retained

    def note(self, events: Sequence[Event]) -> None:
        """Remember clusters that have ended, split or merged, where that was asked for."""
        if self.remember_ended:
            self.memory.happened(events)

    # ---------------------------------------------------------------- corrections

    def correct(self, correction: Correction, answers: Answers) -> None:
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

    def _check(self, correction: Correction) -> None:
        """Raise CorrectionError where a correction could not be applied now; nothing changes."""
        held = self.corrections
        self.corrections = copy.deepcopy(held)
        try:
            self._apply(msgspec.structs.replace(correction, number=held.taken + 1), None)
        finally:
            self.corrections = held

    def _apply(self, correction: Correction, answers: Answers | None) -> None:
        """Apply a correction; without ``answers`` only what is known of corrections changes."""
        for label in correction.stories:
            self._need_live(label)
        if correction.what in ("rename", "mute"):
            self._declare(correction)
        elif correction.what == "undo":
            correction = self.corrections.end(correction.undone or 0).correction
            if answers is not None:
                self.lift(correction)
        else:
            since = len(answers.events) if answers is not None else 0
            self.constrain(correction, answers)
            if answers is not None:
                self._hear(answers, since)
        if correction.what == "rename" and self.with_events and answers is not None:
            answers.events.extend(self._renamed(*correction.stories))

    def correct_at(self, correction: Correction, at: int, answers: Answers, *, check: bool = False) -> None:
        """Apply a correction when so many records have been absorbed: now, or as they come.

        ``check``: only see whether it could be applied now.

        Raises CorrectionError where it cannot be applied now; of a later one ``refused`` will tell.
        """
        if check:
            self._check(correction)
        elif at > self.seq or self.corrections.waiting:
            self.corrections.waiting.append((at, correction))
        else:
            self.correct(correction, answers)

    def _need_live(self, label: int) -> None:
        if label not in self.census().label:
            last = self.memory.merged_into(label)
            more = f": it is part of story {last}" if last is not None else ""
            raise refused(f"there is no live story {label}{more}")

    def _declare(self, correction: Correction) -> None:
        """Name or mute a story."""
        held, (label,) = self.corrections, correction.stories
        if (before := held.of(correction.what, label)) is not None:
            if correction.what == "mute":
                raise refused(f"story {label} is muted already (correction {before.correction.number})")
            held.end(before.correction.number)
        title = (correction.title or "").casefold()
        for other, name in held.names.items():
            if correction.what == "rename" and name.casefold() == title and other in self.census().label:
                raise refused(f"story {other} has that name already: names are unique")
        held.begin(correction)

    def _renamed(self, label: int) -> list[Event]:
        """The event of a story that somebody has named, or no longer; none where it has ended."""
        dated, titles = self.order.dated, self.memory.titles
        found = described(self.summaries((label,)), self.retained, self.announcer.ledger.samples, dated=dated)
        events = [
            Event(
                event=RENAMED,
                seq=self.seq - 1,
                time=self.retained.time if dated else None,
                cluster=label,
                other=None,
                size=cluster.size,
                moved=None,
                first_time=cluster.first_time,
                last_time=cluster.last_time,
                words=cluster.words,
                title=self.corrections.names.get(label) or titles.of(label) or called(cluster),
            )
            for cluster in found
        ]
        return self.corrections.audible(events, by_hand=True)

    def constrain(self, correction: Correction, answers: Answers | None) -> None:
        """Hold what a correction says of records, from now on. Raises CorrectionError.

        Without ``answers`` only see whether it could be.
        """
        raise refused(f"{correction.what} is for texts, vectors and categories, not for templates")

    def lift(self, correction: Correction) -> None:
        """A correction is no longer in force."""
        self.announcer.ledger.confidence.lift(correction.number)

    def _correct_due(self, answers: Answers) -> None:
        """Apply the corrections whose position has come."""
        waiting = self.corrections.waiting
        while waiting and waiting[0][0] <= self.seq:
            _, correction = waiting.popleft()
            try:
                self.correct(correction, answers)
            except CorrectionError as error:
                self.corrections.refused.append((correction.number, error.message))

    def _hear(self, answers: Answers, since: int) -> None:
        """Leave out the events, from one on, that nobody wants to hear of."""
        if self.corrections.held:
            answers.events[since:] = self.corrections.audible(answers.events[since:])

    # ---------------------------------------------------------------- records

    def advance(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        """Take records whose turn has come, at these times, and apply corrections at their positions."""
        waiting = self.corrections.waiting
        while waiting and len(given):
            room = max(waiting[0][0] - self.seq - self.waiting, 1)
            self._take_some(given[:room], times[:room], answers)
            given, times = given[room:], times[room:]
            self._correct_due(answers)
        if given:
            self._take_some(given, times, answers)

    def _take_some(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        since = len(answers.events)
        self.take(given, times, answers)
        self._hear(answers, since)

    def finish(self, answers: Answers) -> None:
        """The stream has ended: answer what waits, and look back for the last time."""
        since = len(answers.events)
        self.end(answers)
        self._hear(answers, since)

    @property
    @abstractmethod
    def seq(self) -> int:
        """Number of the next record."""

    @property
    @abstractmethod
    def kind(self) -> Kind | None:
        """What its records are, once that is known for good."""

    @property
    def waiting(self) -> int:
        """Records that wait for others, to be answered together with them."""
        return 0

    @abstractmethod
    def take(self, given: Columns, times: np.ndarray, answers: Answers) -> None:
        """Take records whose turn has come, at these times; what was refused before passes through."""

    @abstractmethod
    def end(self, answers: Answers) -> None:
        """The stream has ended: answer what waits, and look back for the last time."""

    @abstractmethod
    def score(self, records: Sequence[Record | Reject], first: int, answers: Answers) -> None:
        """Answer without learning anything; ``seq`` counts the answers from ``first`` on."""

    @abstractmethod
    def whereto(self, record: Record, most: int) -> list[Candidate] | Reject:
        """The likeliest clusters of a record that may come next, a new one (-1) among them; learns
        nothing.
        """

    # ---------------------------------------------------------------- in clear

    def waiting_records(self) -> list[Record]:
        """Records that wait for their turn, or for the warm-up to end."""
        return [record for _, _, record in (*self.order.heap, *self.order.leaps)]

    def said(self) -> Iterator[tuple[int, str]]:
        """Numbers of records, and what these say, as far as that is known beside samples and titles."""
        yield from ()

    @abstractmethod
    def forget(
        self, seqs: Collection[int], texts: Collection[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Let go of what records say that are known by their numbers, and by these texts; counts stay.

        Returns what else they alone are known to have: templates, and words.
        """

    # ---------------------------------------------------------------- clusters

    @abstractmethod
    def census(self) -> Census:
        """Figures of all live clusters, without what they are about."""

    @abstractmethod
    def summaries(self, among: Collection[int] | None = None) -> list[ClusterSummary]:
        """The live clusters, largest first; ``among``: those labels, None: all."""

    def past(self, among: Collection[int] | None = None) -> Past | None:
        """What a log was like, with the holes of the labels ``among``; None of other records."""
        return None

    def keywords(self) -> dict[int, list[str]]:
        """Words far more frequent in a live cluster than in the others, by label; {} where there are none."""
        return {}

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""

    def levels(self) -> dict[str, float]:
        """How the stream stands: records, evidence, how far the hypotheses agree, what is not final yet."""
        return {"stream_records": 0.0, "log_evidence": self.log_evidence, "agreement": 1.0}

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Prequential log evidence in nats: the sum of log p(x_t | past)."""

    # ---------------------------------------------------------------- what only a beam has

    def refined(self) -> dict[str, float]:
        """What refinements have come to; nothing where there are none."""
        return {}

    def refinable(self) -> Refinable | None:
        """The records that are retained and the beam, as refinements take them; None where there are none."""
        return None

    def base_of(self, words: Iterable[str]) -> dict[str, float]:
        """Share of each word in the base measure that all clusters have learned; {} where there is none."""
        return {}

    def tokens_of(self, label: int) -> int:
        """Words, repetitions counted, of a live cluster of words; 0 for any other."""
        return 0

    # ---------------------------------------------------------------- state

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """All state of its own, as plain values."""

    @abstractmethod
    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`, once what is retained and announced has been loaded."""

    def check_announced(self, through: int) -> None:
        """All is remembered that is open: after ``through``, and after what was called final.

        Raises UnsoundError.
        """
        ledger = self.announcer.ledger
        require(ledger.seq == self.seq, "the ledger has other records")
        last = max(through, ledger.final, ledger.closed[1])
        require(ledger.begin <= last + 1, "what was announced has gaps")
