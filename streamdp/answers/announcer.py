"""The output of the beam as lines for users: assignments, revisions, finality."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.assignments import assignments, chance_of, counted
from streamdp.answers.numbers import NOTHING_REVISED, Numbers
from streamdp.answers.open_lines import OpenLines, size_of
from streamdp.answers.samples import Joined, Samples, of_texts, text_of
from streamdp.answers.written import CLOSED, FINAL_EVERY, Report
from streamdp.beam.data.state import Output
from streamdp.kernels.sound import require
from streamdp.ledger.ledger import Ledger
from streamdp.ledger.table import to_digits
from streamdp.records import Assignment, Event, Final, Lines, Record
from streamdp.records.columns import Texts
from streamdp.records.erased import Erased
from streamdp.settings import Settings
from streamdp.settings.memory import Shares
from streamdp.state.corrections import Correction
from streamdp.state.retained import Retained

ENDED = 100
"""Closed clusters that are remembered."""


class Announcer:
    """Remembers what was announced of the records that are not final yet.

    Answers are objects, until the first texts come that are read side by side: lines from then on.

    ``final_only`` announces each record once, when it is final; ``linked`` says whether the prior has links.
    Of more than the memory limit allows the oldest are final at once: later revisions of them are left out.
    """

    def __init__(self, settings: Settings, *, final_only: bool, linked: bool) -> None:
        shares = Shares.of(settings)
        self.ledger = Ledger(settings.retain)
        self.retained = Retained(self.ledger, settings.retain, shares.retained)
        self._most_bytes, self._bytes = shares.answers, 0
        self._sizes: deque[int] = deque()  # bytes of each open answer
        self._closed = 0, -1
        self.samples = Samples(partial(text_of, texts=settings.texts))
        self.numbers = Numbers(self.ledger, settings.truth_field)
        self.ended: deque[Event] = deque(maxlen=ENDED)
        """The clusters that were closed last, where events are reported."""
        self.final_only = final_only
        self.linked = linked
        self.open_for = 0
        """For how many records an assignment may still be revised, decided as it is."""
        self.passed_by = False
        """Whether records are answered by whoever runs the search: they stay open while they are retained."""
        self._open: dict[int, Assignment] = {}
        self._lines: OpenLines | None = None
        self._final = -1
        self.revised = 0
        """Revisions since this was made; they are no part of the state."""

    @property
    def undecided(self) -> dict[int, Assignment]:
        """The newest answers that may still change, by the numbers of their records."""
        return self._open if self._lines is None else {a.seq: a for a in self._lines.objects()}

    @property
    def final(self) -> int:
        """Answers up to this one are reported as final, or will be where each is announced once."""
        return self._final if self._lines is None else self._lines.final

    @property
    def closed(self) -> tuple[int, int]:
        """How many answers were final early, for having been too many bytes, and the last of them."""
        return self._closed if self._lines is None else self._lines.closed

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        held = self.retained
        return {"retained": held.held, "retained_short": int(held.short), "final_early": self.closed[0]}

    def open_from(self, seq: int) -> int:
        """The first record whose answer may still change, of a stream of ``seq`` records."""
        if self.passed_by:
            return seq - self.retained.held
        return seq - (len(self._open) if self._lines is None else len(self._lines))

    def numbers_of(self, correction: Correction) -> list[int]:
        """The numbers of the records that a correction names; -1 for an id without an open answer."""
        held = self.undecided.values() if correction.ids else ()
        open_now = {str(answer.id): answer.seq for answer in reversed(held) if answer.id is not None}
        return [*(open_now.get(str(name), -1) for name in correction.ids), *correction.seqs]

    def learn_of(self, correction: Correction) -> None:
        """Take from a correction, before it is carried out, of which class some records are."""
        what, labels = correction.what, correction.stories
        told = self.numbers.confidence
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
        records: Sequence[Record],
        sizes: np.ndarray,
        lines: Lines,
    ) -> None:
        """Append a stretch of the beam's output to ``lines``, in processing order.

        ``rows`` of ``out.answers`` are those of ``records``, of which the first is number ``seq``; ``sizes``
        are those of the records (``Batch.sizes``).
        """
        if not records:
            return
        revisions = out.revisions[: out.counters.revisions]
        numbers, confident = self.numbers.take(seq, rows, sizes, records, revisions)
        if type(records) is Texts:  # quicker to ask than ``isinstance``
            self._as_lines().add(seq, rows, numbers, records)
            samples = of_texts(records, seq, rows["label"], numbers[3])
        else:
            answers = self._answers(rows, records, seq, numbers)
            samples = self.samples.of_records(records, answers)
            if self._lines is None:
                self._append(answers, samples, rows["decided"].tolist(), lines, (revisions, confident))
                return
            self._lines.add_objects(answers)
        report = self._as_lines().announce(revisions, confident, rows["decided"], self.open_for)
        self._report(report, samples, seq, lines)

    def _as_lines(self) -> OpenLines:
        """The open answers as lines, from now on."""
        if self._lines is None:
            modes = {"linked": self.linked, "final_only": self.final_only}
            lines = OpenLines(**modes, most_bytes=self._most_bytes)
            lines.go_on(list(self._open.values()), self._final, self._closed)
            self._lines, self._bytes = lines, 0
            self._open.clear()
            self._sizes.clear()
        return self._lines

    def _report(self, report: Report, samples: Sequence[Joined], first: int, lines: Lines) -> None:
        """Append what there is to say; ``samples`` are the records from number ``first`` on."""
        at = 0
        for by, seq, before, after in report.moves[: report.counters.moves].tolist():
            self.samples.extend(samples[at : by + 1 - first])
            at = max(by + 1 - first, at)
            self._move(seq, before, after)
        self.samples.extend(samples[at:])
        self._as_lines().write(report, lines)

    def _move(self, seq: int, before: int, after: int) -> None:
        """A record has another label."""
        self.revised += before != CLOSED
        self.samples.move(seq, before, after)

    def _append(
        self,
        answers: Sequence[Assignment],
        samples: Sequence[Joined],
        through: Sequence[int],
        lines: Lines,
        revised: tuple[np.ndarray, np.ndarray] = NOTHING_REVISED,
    ) -> None:
        """Append answers, each with what it ``revised`` and the confidence in that, and what is final then.

        ``through`` is the last record that is decided behind each.
        """
        again: list[tuple[Any, list[float]]] = []
        if len(revised[0]):
            again = list(zip(revised[0].tolist(), revised[1].tolist(), strict=True))
        told = Lines() if self.final_only else lines
        first, r, at = answers[0].seq - len(self._open), 0, 0
        for i, (answer, decided) in enumerate(zip(answers, through, strict=True)):
            number, size = answer.seq, size_of(answer)
            told.append(answer)
            self._open[number] = answer
            self._sizes.append(size)
            self._bytes += size
            if r < len(again) and again[r][0][0] == number:
                self.samples.extend(samples[at : i + 1])
                at = i + 1
                while r < len(again) and again[r][0][0] == number:
                    self._revise(*again[r], lines)
                    r += 1
            decided = min(decided, number - self.open_for)
            if decided >= first or self._bytes > self._most_bytes:
                self._settle(decided, number, lines)
                first = number + 1 - len(self._open)
            if (number + 1) % FINAL_EVERY == 0 and (decided := max(decided, self._closed[1])) > self._final:
                self._final = decided
                told.append(Final(decided))
        self.samples.extend(samples[at:])

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The open records from one number up to another that were not sure, or are revised since."""
        open_now = len(self._open) if self._lines is None else len(self._lines)
        return self.ledger.unsure(max(start, self.ledger.seq - open_now), stop)

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        revisions = out.revisions[: out.counters.revisions]
        confident = self.numbers.revise(revisions)
        if self._lines is not None:
            self._report(self._lines.revise(revisions, confident), (), 0, lines)
            return
        for row, told in zip(revisions.tolist(), confident.tolist(), strict=True):
            self._revise(row, told, lines)

    def announce_frozen(
        self, out: Output, records: Sequence[Record], sizes: np.ndarray, first: int, lines: Lines
    ) -> None:
        """Append answers that taught nothing, numbered from ``first``: they are never revised."""
        rows = out.answers[: len(records)]
        lines.extend(self._answers(rows, records, first, self.numbers.score(rows, sizes)))

    def finish(self, last: int, lines: Lines) -> None:
        """The stream has ended with record ``last``: everything is final now."""
        if self.final_only:
            lines.extend(self.undecided.values())
        elif last > self.final:
            lines.append(Final(last))
        self._open.clear()
        self._closed, self._bytes = self.closed, 0
        self._sizes.clear()
        self._lines, self._final = None, last

    def _answers(
        self,
        rows: np.ndarray,
        records: Sequence[Record],
        first: int,
        numbers: np.ndarray,
    ) -> list[Assignment]:
        links = rows["link"].tolist() if self.linked else repeat(-1)
        return assignments(rows, numbers, records, first, links=links)

    def _revise(self, row: tuple[Any, ...], confident: list[float], lines: Lines) -> None:
        """Give a record another answer: ``row`` is one of ``REVISION``."""
        _, seq, label, link, founded, probability = row
        before, (sure, labels) = self._open.get(seq), map(chance_of, confident)
        if before is None:
            self._move(seq, CLOSED, label)
            return
        after = msgspec.structs.replace(
            before,
            cluster=label,
            probability=float(to_digits(probability)),
            confidence=sure,
            confidence_labels=counted(labels),
            new=bool(founded),
            link=link if link >= 0 and self.linked else None,
            revision=before.revision + 1,
        )
        self._open[after.seq] = after
        self._move(after.seq, before.cluster, after.cluster)
        if not self.final_only:
            lines.append(after)

    def _settle(self, through: int, newest: int, lines: Lines) -> None:
        """Forget what is decided, or too much (announcing it, in order, if only final answers are wanted)."""
        first = newest + 1 - len(self._open)  # the undecided are the last ones, without a gap
        settled = []
        for seq in range(first, through + 1):
            settled.append(self._open.pop(seq))
            self._bytes -= self._sizes.popleft()
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._open))
            settled.append(self._open.pop(oldest))
            self._bytes -= self._sizes.popleft()
            self._closed = self._closed[0] + 1, oldest
        if self.final_only:
            lines.extend(settled)

    def erase(self, gone: Erased) -> None:
        """Let go of what records say that are erased; answers to them may still be revised."""
        held, self._final, self._closed = self.undecided, self.final, self.closed
        self._lines = None
        nothing: dict[str, Any] = {"id": None, "keep": msgspec.UNSET, "params": msgspec.UNSET}
        for seq in gone.seqs & held.keys():
            answer = msgspec.structs.replace(held[seq], **nothing)
            if isinstance(answer.template, str) and gone.said(answer.template):
                answer = msgspec.structs.replace(answer, template="")
            held[seq] = answer
        self._hold(held)
        self.samples.erase(gone.seqs)
        self.numbers.confidence.erase(gone.seqs)
        ended = [msgspec.convert(gone.scrubbed(msgspec.to_builtins(event)), Event) for event in self.ended]
        self.ended.clear()
        self.ended.extend(ended)

    def _hold(self, answers: dict[int, Assignment]) -> None:
        """Have these answers open, as objects."""
        self._open = answers
        self._sizes = deque(map(size_of, answers.values()))
        self._bytes = sum(self._sizes)

    def dump(self) -> dict[str, Any]:
        """What is remembered, as plain values."""
        stored: dict[str, Any] = {
            "undecided": list(self.undecided.values()),
            "final": self.final,
            "samples": self.samples.dump(),
            "ledger": self.ledger.dump(),
            "ended": list(self.ended),
        }
        if self.numbers.confidence.labels:
            stored["confidence"] = self.numbers.confidence.dump()
        return stored | ({"closed": self.closed} if self.closed[0] else {})

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        self._final = stored["final"]
        require(type(self._final) is int and self._final >= -1, "what is final is out of range")
        self.samples.load(stored["samples"])
        self.ledger.load(stored["ledger"])
        if "confidence" in stored:
            self.numbers.confidence.load(stored["confidence"])
        self.ended.extend(msgspec.convert(event, Event) for event in stored["ended"])
        self._hold({a["seq"]: msgspec.convert(a, Assignment) for a in stored["undecided"]})
        early, last = stored.get("closed", self._closed)
        require(type(early) is type(last) is int and early >= 0 and last >= -1, "what was final early")
        self._closed = early, last
