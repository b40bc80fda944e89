"""Answers to lines of logs as lines for users; they are revised where a template becomes one with another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.assignments import chance_of, counted
from streamdp.answers.numbers import NOTHING_REVISED
from streamdp.answers.open_lines import Refill
from streamdp.answers.samples import Joined, lasting, of_texts
from streamdp.records import Assignment, Lines, Record
from streamdp.records.columns import Texts
from streamdp.records.erased import Erased
from streamdp.settings import Settings


class LineAnnouncer(Announcer):
    """Remembers what was announced of lines whose template may yet become one with another."""

    def __init__(self, settings: Settings, *, final_only: bool) -> None:
        super().__init__(settings, final_only=final_only, linked=False)
        self._labels: defaultdict[int, list[int]] = defaultdict(list)
        self._listed = -1  # how many are in the lists, what is decided too; -1: they are to be made

    def report(self, answers: Sequence[Assignment], records: Sequence[Record], lines: Lines) -> None:
        """Append answers to ``lines``, in processing order."""
        if not answers:
            return
        samples, first = self.samples.of_records(records, answers), answers[0].seq
        if self._lines is not None:
            self._lines.add_objects(answers)
            self._report_added(samples, first, len(answers), lines)
            return
        if self._listed >= 0 and self.open_for:
            for answer in answers:
                self._labels[answer.cluster].append(answer.seq)
            self._listed += len(answers)
        self._append(answers, samples, range(first, answers[-1].seq + 1), lines)
        if self._listed > 4 * len(self._open) + 1000:
            self._list()

    def report_texts(
        self,
        first: int,
        rows: np.ndarray,
        sizes: np.ndarray,
        texts: Texts,
        shown: tuple[Sequence[bytes], Sequence[bytes]],
        lines: Lines,
    ) -> None:
        """The same of texts side by side, numbered from ``first``; ``shown`` are templates and values."""
        numbers, _ = self.numbers.take(first, rows, sizes, texts)
        labels = rows["label"]
        self._as_lines().add(first, rows, numbers, texts, *shown)
        which = lasting(labels, numbers[3]) if self.samples.has_room(len(np.unique(labels))) else None
        samples = of_texts(texts, first, labels, numbers[3], which)
        self._report_added(samples, first, len(texts), lines)

    def _report_added(self, samples: Sequence[Joined], first: int, count: int, lines: Lines) -> None:
        """Append the answers that were added last as lines."""
        through = np.arange(first, first + count)
        report = self._as_lines().announce(*NOTHING_REVISED, through, self.open_for)
        self._report(report, samples, first, lines)

    def relabel(self, before: int, after: int, template: str, lines: Lines, refill: Refill) -> None:
        """A label has become an older one: append the revisions of what is open.

        ``template`` is that of the label; ``refill`` has that of a line with values of holes.
        """
        self.numbers.confidence.unite(before, after)
        if self._lines is not None:
            confident = self.numbers.confidence.told if self.numbers.confidence.labels else None
            report, told = self._lines.relabel(before, after, template, confident, refill)
            self.ledger.unite(before, after, told)
            self._lines.write(report, lines)
            self.samples.unite(before, after)
            return
        if self._listed < 0:
            self._list()
        seqs = sorted(seq for seq in self._labels.pop(before, ()) if seq in self._open)
        self._labels[after].extend(seqs)
        self.ledger.unite(before, after, seqs)
        for seq in seqs:
            answer = self._open[seq]
            sure, labels = map(chance_of, self.numbers.confidence.told(after, answer.probability))
            own, params = template, answer.params
            if params is not msgspec.UNSET and answer.template is not msgspec.UNSET:
                own, params = refill(answer.template, params)
            newer = msgspec.structs.replace(
                answer,
                cluster=after,
                new=False,
                revision=answer.revision + 1,
                template=own,
                params=params,
                confidence=sure,
                confidence_labels=counted(labels),
            )
            self._open[seq] = newer
            if not self.final_only:
                lines.append(newer)
        self.samples.unite(before, after)

    def erase(self, gone: Erased) -> None:
        """The same, of lines."""
        super().erase(gone)
        self._listed = -1

    def _list(self) -> None:
        """Put what is open in lists by label."""
        self._labels.clear()
        for seq, answer in self._open.items():
            self._labels[answer.cluster].append(seq)
        self._listed = len(self._open)
