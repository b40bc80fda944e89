"""What was announced of lines whose template may yet become one with another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from streamdp.answers.announcer import FINAL_EVERY, Announcer, Lines
from streamdp.answers.samples import LONGEST
from streamdp.records import Assignment, Final, Record
from streamdp.state.retained import Retained


class LineAnnouncer(Announcer):
    """Remembers what was announced of lines whose template may yet become one with another."""

    def __init__(self, retained: Retained, *, final_only: bool) -> None:
        super().__init__(retained, final_only=final_only, linked=False)
        self._open: defaultdict[int, list[int]] = defaultdict(list)
        self._listed = -1  # how many are in the lists, what is decided too; -1: they are to be made

    def tell(self, answers: Sequence[Assignment], records: Sequence[Record], lines: Lines) -> None:
        """Append answers to ``lines``, in processing order."""
        for answer, record in zip(answers, records, strict=True):
            seq = answer.seq
            through = seq - self.open_for
            self.samples.say(seq, str(record.value)[: 2 * LONGEST], answer.cluster, answer.novelty)
            if not self.final_only:
                lines.append(answer)
            if through < seq:
                self.undecided[seq] = answer
                if self._listed >= 0:
                    self._open[answer.cluster].append(seq)
                    self._listed += 1
                    if self._listed > 4 * len(self.undecided) + 1000:
                        self._list()
                self._settle(through, lines)
            elif self.final_only:
                lines.append(answer)
            if (seq + 1) % FINAL_EVERY == 0 and through > self.final:
                self.final = through
                if not self.final_only:
                    lines.append(Final(through))

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
