"""The output of the beam as lines for users: assignments, revisions, finality."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.assignments import assignments
from streamdp.answers.open_lines import OpenLines
from streamdp.answers.written import Report
from streamdp.beam.data.state import Output
from streamdp.kernels.sound import require
from streamdp.ledger.ledger import Ledger
from streamdp.records import Assignment, Event, Final, Lines, Record
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.memory import Shares
from streamdp.state.corrections import Correction
from streamdp.state.retained import Retained

ENDED = 100
"""Closed clusters that are remembered."""


class Announcer:
    """Remembers what was announced of the records that are not final yet.

    ``final_only`` announces each record once, when it is final; ``linked`` says whether the prior has links.
    Of more than the memory limit allows the oldest are final at once: later revisions of them are left out.
    """

    def __init__(self, settings: Settings, *, final_only: bool, linked: bool) -> None:
        shares = Shares.of(settings)
        self.ledger = Ledger(settings.retain, settings.truth_field, settings.texts)
        self.retained = Retained(self.ledger, settings.retain, shares.retained)
        self._most_bytes = shares.answers
        self.ended: deque[Event] = deque(maxlen=ENDED)
        """The clusters that were closed last, where events are reported."""
        self.final_only = final_only
        self.linked = linked
        self.open_for = 0
        """For how many records an assignment may still be revised, decided as it is."""
        self.passed_by = False
        """Whether records are answered by whoever runs the search: they stay open while they are retained."""
        self._open = self._opened((), -1, (0, -1))
        self.revised = 0
        """Revisions since this was made; they are no part of the state."""

    def _opened(self, answers: Sequence[Assignment], final: int, closed: tuple[int, int]) -> OpenLines:
        """These answers as those that are open; up to ``final`` all is final, ``closed`` of them early."""
        lines = OpenLines(linked=self.linked, final_only=self.final_only, most_bytes=self._most_bytes)
        lines.go_on(answers, final, closed)
        return lines

    @property
    def undecided(self) -> dict[int, Assignment]:
        """The newest answers that may still change, by the numbers of their records."""
        return {answer.seq: answer for answer in self._open.objects()}

    @property
    def final(self) -> int:
        """Answers up to this one are reported as final, or will be where each is announced once."""
        return self._open.final

    @property
    def closed(self) -> tuple[int, int]:
        """How many answers were final early, for having been too many bytes, and the last of them."""
        return self._open.closed

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        held = self.retained
        return {"retained": held.held, "retained_short": int(held.short), "final_early": self.closed[0]}

    def open_from(self, seq: int) -> int:
        """The first record whose answer may still change, of a stream of ``seq`` records."""
        if self.passed_by:
            return seq - self.retained.held
        return seq - len(self._open)

    def numbers_of(self, correction: Correction) -> list[int]:
        """The numbers of the records that a correction names; -1 for an id without an open answer."""
        held = self.undecided.values() if correction.ids else ()
        open_now = {str(answer.id): answer.seq for answer in reversed(held) if answer.id is not None}
        return [*(open_now.get(str(name), -1) for name in correction.ids), *correction.seqs]

    def learn_of(self, correction: Correction) -> None:
        """Take from a correction, before it is carried out, of which class some records are."""
        what, labels = correction.what, correction.stories
        told = self.ledger.confidence
        if what not in ("move", "split", "pin"):
            return
        held = self.undecided
        seqs = set(self.numbers_of(correction))
        if what == "pin":
            seqs = {seq for seq, answer in held.items() if answer.cluster == labels[0]}
        name = f"split {correction.number}" if what == "split" else told.class_of(labels[0])
        for seq in sorted(seqs & held.keys()):
            told.learn(seq, held[seq].cluster, held[seq].probability, name, correction.number)

    def announce(
        self,
        rows: np.ndarray,
        out: Output,
        seq: int,
        records: Columns,
        sizes: np.ndarray,
        lines: Lines,
    ) -> None:
        """Append a stretch of the beam's output to ``lines``, in processing order.

        ``rows`` of ``out.answers`` are those of ``records``, of which the first is number ``seq``; ``sizes``
        are those of the records (``Batch.sizes``).
        """
        revisions = out.revisions[: out.counters.revisions]
        numbers, confident = self.ledger.put(seq, rows, sizes, records, revisions)
        self._open.add(seq, rows, numbers, records)
        self._write(self._open.announce(revisions, confident, rows["decided"], self.open_for), lines)

    def _write(self, report: Report, lines: Lines) -> None:
        """Append what there is to say."""
        self.revised += int(report.counters.revised)
        self._open.write(report, lines)

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The open records from one number up to another that were not sure, or are revised since."""
        open_now = 0 if self.passed_by else len(self._open)
        return self.ledger.unsure(max(start, self.ledger.seq - open_now), stop)

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        revisions = out.revisions[: out.counters.revisions]
        self._write(self._open.revise(revisions, self.ledger.move(revisions)), lines)

    def announce_frozen(
        self, out: Output, records: Sequence[Record], sizes: np.ndarray, first: int, lines: Lines
    ) -> None:
        """Append answers that taught nothing, numbered from ``first``: they are never revised."""
        rows = out.answers[: len(records)]
        lines.extend(self._answers(rows, records, first, self.ledger.score(rows, sizes)))

    def finish(self, last: int, lines: Lines) -> None:
        """The stream has ended with record ``last``: everything is final now."""
        if self.final_only:
            lines.extend(self.undecided.values())
        elif last > self.final:
            lines.append(Final(last))
        self._open = self._opened((), last, self.closed)

    def _answers(
        self,
        rows: np.ndarray,
        records: Sequence[Record],
        first: int,
        numbers: np.ndarray,
    ) -> list[Assignment]:
        links = rows["link"].tolist() if self.linked else repeat(-1)
        return assignments(rows, numbers, records, first, links=links)

    def dump(self) -> dict[str, Any]:
        """What is remembered, as plain values."""
        stored: dict[str, Any] = {
            "undecided": list(self.undecided.values()),
            "final": self.final,
            "ledger": self.ledger.dump(),
            "ended": list(self.ended),
        }
        return stored | ({"closed": self.closed} if self.closed[0] else {})

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        final = stored["final"]
        require(type(final) is int and -1 <= final < 1 << 62, "what is final is out of range")
        self.ledger.load(stored["ledger"])
        self.ended.extend(msgspec.convert(event, Event) for event in stored["ended"])
        answers = [msgspec.convert(answer, Assignment) for answer in stored["undecided"]]
        early, last = stored.get("closed", self.closed)
        require(type(early) is type(last) is int and early >= 0 and last >= -1, "what was final early")
        self._open = self._opened(answers, final, (early, last))
