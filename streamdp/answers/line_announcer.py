"""What was announced of lines whose template may yet become one with another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from streamdp.answers.announcer import Announcer, Lines
from streamdp.answers.samples import LONGEST, Samples
from streamdp.records import Assignment, Record
from streamdp.state.retained import Retained


class LineAnnouncer(Announcer):
    """Remembers what was announced of lines whose template may yet become one with another."""

    def __init__(self, retained: Retained, *, final_only: bool) -> None:
        super().__init__(retained, final_only=final_only, linked=False)
        self.samples = Samples(_line)
        self._open: defaultdict[int, list[int]] = defaultdict(list)
        self._listed = -1  # how many are in the lists, what is decided too; -1: they are to be made

    def tell(self, answers: Sequence[Assignment], records: Sequence[Record], lines: Lines) -> None:
        """Append answers to ``lines``, in processing order."""
        if not answers:
            return
        if self._listed >= 0 and self.open_for:
            for answer in answers:
                self._open[answer.cluster].append(answer.seq)
            self._listed += len(answers)
        self._tell(answers, records, np.arange(answers[0].seq, answers[-1].seq + 1), lines)
        if self._listed > 4 * len(self.undecided) + 1000:
            self._list()

    def relabel(self, before: int, after: int, template: str, lines: Lines) -> None:
        """A label has become an older one: append the revisions of what is open."""
        if self._listed < 0:
            self._list()
        seqs = sorted(seq for seq in self._open.pop(before, ()) if seq in self.undecided)
        self._open[after].extend(seqs)
        for seq in seqs:
            answer = self.undecided[seq]
            newer = msgspec.structs.replace(
                answer, cluster=after, new=False, revision=answer.revision + 1, template=template
            )
            self.undecided[seq] = newer
            self.retained.revise(seq, after)
            if not self.final_only:
                lines.append(newer)
        self.samples.unite(before, after)

    def _list(self) -> None:
        """Put what is open in lists by label."""
        self._open.clear()
        for seq, answer in self.undecided.items():
            self._open[answer.cluster].append(seq)
        self._listed = len(self.undecided)


def _line(record: Record) -> str:
    return str(record.value)[: 2 * LONGEST]
