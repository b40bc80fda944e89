"""What an engine asks of what clusters its records: a beam, or templates of lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.describe import Candidate, Census
from streamdp.answers.evidence import Evidence
from streamdp.beam.search import BeamSearch
from streamdp.encode.encoders import Encoder
from streamdp.encode.order import ReorderBuffer
from streamdp.kernels.sound import require
from streamdp.lines.holes import Past
from streamdp.records import Answers, ClusterSummary, Event, Kind, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.state.corrections import Correction
from streamdp.state.retained import Retained
from streamdp.story.memory import Memory
from streamdp.streams.corrections import Corrections, refused

if TYPE_CHECKING:
    from streamdp.offline.task import Stream as Refinable


def _unheard(stage: str) -> None:
    """Nobody asks how long it takes."""


class Stream(ABC):
    """Records whose turn has come go in, answers come out.

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

    def constrain(self, correction: Correction, answers: Answers | None) -> None:
        """Hold what a correction says of records, from now on. Raises CorrectionError.

        Without ``answers`` only see whether it could be.
        """
        raise refused(f"{correction.what} is for texts, vectors and categories, not for templates")

    def lift(self, correction: Correction) -> None:
        """A correction is no longer in force."""
        self.announcer.ledger.confidence.lift(correction.number)

    # ---------------------------------------------------------------- records

    @property
    @abstractmethod
    def seq(self) -> int:
        """Number of the next record."""

    @property
    @abstractmethod
    def kind(self) -> Kind | None:
        """What its records are, once that is known for good."""

    @property
    def encoder(self) -> Encoder | None:
        """What makes words or vectors of records, once the first has come; None of lines."""
        return None

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

    def together(self, a: Record, b: Record) -> Evidence | Reject:
        """What speaks for two records being of one cluster. ValueError where nothing weighs records."""
        raise ValueError("lines of logs are of one template or not: nothing is weighed")

    # ---------------------------------------------------------------- in clear

    def waiting_records(self) -> list[Record]:
        """Records that wait for the warm-up to end."""
        return []

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
        return {"stream_records": self.seq, "log_evidence": self.log_evidence, "agreement": 1.0}

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
