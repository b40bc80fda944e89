"""The output of the beam as lines for users: assignments, revisions, finality."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.assignments import Chances, assignments, rounded
from streamdp.answers.lasting import Lasting
from streamdp.answers.open_lines import OpenLines, size_of
from streamdp.answers.samples import Joined, Samples, of_texts
from streamdp.answers.stability import Stability
from streamdp.answers.written import CLOSED, FINAL_EVERY, Report, to_digits
from streamdp.beam.data.state import REVISION, Output
from streamdp.kernels.rows import new_rows
from streamdp.kernels.sound import require
from streamdp.records import Assignment, Event, Final, Lines, Record
from streamdp.records.columns import Texts
from streamdp.records.erased import Erased
from streamdp.settings import Settings
from streamdp.settings.memory import Shares
from streamdp.state.retained import Retained

SURE = 0.999
"""Probability from which an answer that has not been revised needs no second look: hardly any changes."""

NO_REVISIONS = new_rows(0, REVISION)

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
        self.retained = Retained(settings.retain, shares.retained)
        self._most_bytes, self._bytes = shares.answers, 0
        self._sizes: deque[int] = deque()  # bytes of each open answer
        self._closed = 0, -1
        self.samples = Samples()
        self.lasting, self.stability = Lasting(), Stability()
        self.ended: deque[Event] = deque(maxlen=ENDED)
        """The clusters that were closed last, where events are reported."""
        self.final_only = final_only
        self.linked = linked
        self.open_for = 0
        """For how many records an assignment may still be revised, decided as it is."""
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
        return seq - (len(self._open) if self._lines is None else len(self._lines))

    def number_of(self, name: str) -> int:
        """The number of a record by its id, where its answer is open, or as ``seq:N``; -1 for none."""
        for answer in self.undecided.values():
            if answer.id == name:
                return answer.seq
        number = name.removeprefix("seq:")
        return int(number) if number != name and number.isdecimal() and len(number) < 16 else -1

    def announce(
        self,
        out: Output,
        start: int,
        seq: int,
        records: Sequence[Record],
        sizes: np.ndarray,
        lines: Lines,
    ) -> None:
        """Append a stretch of the beam's output to ``lines``, in processing order.

        Row ``start`` of ``out`` and record number ``seq`` belong to ``records[0]``; ``sizes`` are those of
        the records (``Batch.sizes``).
        """
        if not records:
            return
        rows, revisions = out.answers[start : start + len(records)], out.revisions[: out.counters.revisions]
        chances = self.chances(seq, rows, revisions)
        if isinstance(records, Texts):
            numbers = rounded(rows, sizes)
            self._as_lines().add(seq, rows, [*numbers, *chances], records)
            samples = of_texts(records, seq, rows["label"], numbers[3])
        else:
            answers = self._answers(rows, records, sizes, seq, chances)
            samples = self.samples.of_records(records, answers)
            if self._lines is None:
                self._append(answers, samples, rows["decided"], lines, out)
                return
            self._lines.add_objects(answers)
        self._report(
            self._as_lines().announce(revisions, rows["decided"], self.open_for), samples, seq, lines
        )

    def chances(self, first: int, answers: np.ndarray, revisions: np.ndarray = NO_REVISIONS) -> Chances:
        """What is told of records from number ``first`` on, by their answers and what these revised."""
        lasting, stability = self.lasting, self.stability
        return Chances(*(each.take(first, answers, revisions) for each in (lasting, stability)))

    def scored_chances(self, answers: np.ndarray) -> Chances:
        """What is told of records that teach nothing: their answers are never revised."""
        return Chances(self.lasting.score(answers), np.full(len(answers), math.nan))

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
        self.retained.revise(seq, after)
        self.samples.move(seq, before, after)

    def _append(
        self,
        answers: Sequence[Assignment],
        samples: Sequence[Joined],
        through: np.ndarray,
        lines: Lines,
        out: Output | None = None,
    ) -> None:
        """Append answers, each with the revisions of ``out`` that it brought, and what is final behind it.

        ``through`` is the last record that is decided behind each, shape (n,).
        """
        revised = 0 if out is None else int(out.counters.revisions)
        by: list[int] = [] if out is None or not revised else out.revisions["by"][:revised].tolist()
        first, last = answers[0].seq, answers[-1].seq
        pauses = {*by, *range(first + -(first + 1) % FINAL_EVERY, last + 1, FINAL_EVERY), last}
        sizes = list(map(size_of, answers))
        if self._bytes + sum(sizes) > self._most_bytes:  # some may be final after any of them
            pauses = set(range(first, last + 1))
        r, begin = 0, first
        for number in sorted(pauses):  # records after which something else is reported, or nothing more
            stretch = slice(begin - first, number + 1 - first)
            self.samples.extend(samples[stretch])
            if not self.final_only:
                lines.extend(answers[stretch])
            for answer in answers[stretch]:
                self._open[answer.seq] = answer
            self._sizes.extend(sizes[stretch])
            self._bytes += sum(sizes[stretch])
            while out is not None and r < revised and by[r] == number:
                self._revise(out, r, lines)
                r += 1
            decided = min(int(through[number - first]), number - self.open_for)
            self._settle(decided, number, lines)
            decided = max(decided, self._closed[1])
            begin = number + 1
            if begin % FINAL_EVERY == 0 and decided > self._final:
                self._final = decided
                if not self.final_only:
                    lines.append(Final(decided))

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The open records from one number up to another that were not ``SURE``, or are revised since."""
        if self._lines is not None:
            return self._lines.unsure(start, stop, SURE)
        answers = map(self._open.get, range(max(start, next(iter(self._open), stop)), stop))
        found = [a.seq for a in answers if a is not None and (a.revision or a.probability < SURE)]
        return np.array(found, np.int64)

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        revisions = out.revisions[: out.counters.revisions]
        self.lasting.revise(revisions)
        self.stability.revise(revisions["seq"])
        if self._lines is not None:
            self._report(self._lines.revise(revisions), (), 0, lines)
            return
        for r in range(int(out.counters.revisions)):
            self._revise(out, r, lines)

    def announce_frozen(
        self, out: Output, records: Sequence[Record], sizes: np.ndarray, first: int, lines: Lines
    ) -> None:
        """Append answers that taught nothing, numbered from ``first``: they are never revised."""
        rows = out.answers[: len(records)]
        lines.extend(self._answers(rows, records, sizes, first, self.scored_chances(rows)))

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
        sizes: np.ndarray,
        first: int,
        chances: Chances,
    ) -> list[Assignment]:
        links: list[int | None] = [None] * len(records)
        if self.linked:
            links = [None if link < 0 else link for link in rows["link"].tolist()]
        return assignments(rows, sizes, records, first, chances=chances, links=links)

    def _revise(self, out: Output, r: int, lines: Lines) -> None:
        row = out.revisions[r]
        before, link = self._open.get(int(row["seq"])), int(row["link"])
        if before is None:
            self._move(int(row["seq"]), CLOSED, int(row["label"]))
            return
        after = msgspec.structs.replace(
            before,
            cluster=int(row["label"]),
            probability=float(to_digits(row["probability"])),
            new=bool(row["founded"]),
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
        settled = [self._open.pop(seq) for seq in range(first, through + 1)]
        for _ in settled:
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
            "lasting": self.lasting.dump(),
            "stability": self.stability.dump(),
            "ended": list(self.ended),
        }
        return stored | ({"closed": self.closed} if self.closed[0] else {})

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        self._final = stored["final"]
        require(type(self._final) is int and self._final >= -1, "what is final is out of range")
        self.samples.load(stored["samples"])
        if "lasting" in stored:
            self.lasting.load(stored["lasting"])
        if "stability" in stored:
            self.stability.load(stored["stability"])
        self.ended.extend(msgspec.convert(event, Event) for event in stored["ended"])
        self._hold({a["seq"]: msgspec.convert(a, Assignment) for a in stored["undecided"]})
        early, last = stored.get("closed", self._closed)
        require(type(early) is type(last) is int and early >= 0 and last >= -1, "what was final early")
        self._closed = early, last
