"""What the beam says, as lines for the outside: assignments, revisions, finality."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.samples import Samples
from streamdp.beam.state import REVISIONS, Output
from streamdp.records import Assignment, Event, Final, Record
from streamdp.state.retained import Retained

DIGITS = 6
"""Decimals of probabilities and log predictives in assignments."""

FINAL_EVERY = 100
"""Records between two finality lines."""

ENDED = 100
"""Closed clusters that are remembered."""

Lines = list[Assignment | Final]
Row = tuple[int, float, float, bool, int | None, float, float]
"""Label, probability, that of a new cluster, new, link, log predictive, novelty."""


def novelty(log_predictive: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Nats of surprise by token or dimension, shape (n,): long records would else look novel.

    Parameters
    ----------
    log_predictive
        Of each record, in nats, shape (n,).
    sizes
        Tokens of each record, or numbers of its vector, shape (n,).
    """
    return np.asarray(-log_predictive / np.maximum(sizes, 1))


def _assignment(seq: int, record: Record, row: Row) -> Assignment:
    label, probability, new_probability, new, link, log_predictive, surprise = row
    return Assignment(
        seq=seq,
        id=record.id,
        position=record.position,
        time=record.time,
        cluster=label,
        probability=probability,
        new_probability=new_probability,
        new=new,
        link=link,
        log_predictive=log_predictive,
        novelty=surprise,
        keep=msgspec.UNSET if record.keep is None else record.keep,
    )


class Announcer:
    """Remembers what was announced of the records that are not final yet.

    ``final_only`` announces each record once, when it is final; ``linked`` says whether the prior has links.
    """

    def __init__(self, retained: Retained, *, final_only: bool, linked: bool) -> None:
        self.retained = retained
        self.samples = Samples()
        self.ended: deque[Event] = deque(maxlen=ENDED)
        """The clusters that were closed last, where events are told."""
        self.final_only = final_only
        self.linked = linked
        self.open_for = 0
        """For how many records an assignment may still be revised, decided as it is."""
        self.undecided: dict[int, Assignment] = {}
        self.final = -1
        self.revised = 0
        """Revisions since this was made; they are no part of the state."""

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
        stop, last = start + len(records), seq + len(records)
        numbers = range(seq, last)
        answers = list(map(_assignment, numbers, records, self._rows(out, start, stop, sizes)))
        through = out.answers["decided"][start:stop]
        if self.open_for:
            through = np.minimum(through, np.arange(seq, last) - self.open_for)
        by = out.revisions["by"][: int(out.meta[REVISIONS])]
        pauses = {*by.tolist(), *range(seq + -(seq + 1) % FINAL_EVERY, last, FINAL_EVERY), last - 1}
        r, begin = 0, seq
        for number in sorted(pauses):  # records after which something else is told, or nothing more
            told = answers[begin - seq : number + 1 - seq]
            self.samples.extend(begin, records[begin - seq : number + 1 - seq], told)
            if not self.final_only:
                lines += told
            self.undecided.update(zip(range(begin, number + 1), told, strict=True))
            while r < len(by) and by[r] == number:
                self._revise(out, r, lines)
                r += 1
            decided = int(through[number - seq])
            self._settle(decided, lines)
            begin = number + 1
            if begin % FINAL_EVERY == 0 and decided > self.final:
                self.final = decided
                if not self.final_only:
                    lines.append(Final(decided))

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        for r in range(int(out.meta[REVISIONS])):
            self._revise(out, r, lines)

    def announce_frozen(
        self, out: Output, records: Sequence[Record], sizes: np.ndarray, first: int, lines: Lines
    ) -> None:
        """Append answers that taught nothing, numbered from ``first``: they are never revised."""
        rows = self._rows(out, 0, len(records), sizes)
        lines.extend(
            _assignment(first + i, record, row)
            for i, (record, row) in enumerate(zip(records, rows, strict=True))
        )

    def finish(self, last: int, lines: Lines) -> None:
        """The stream has ended with record ``last``: everything is final now."""
        if self.final_only:
            lines.extend(self.undecided.values())
        elif last > self.final:
            lines.append(Final(last))
        self.undecided.clear()
        self.final = last

    def _rows(self, out: Output, start: int, stop: int, sizes: np.ndarray) -> Iterable[Row]:
        links: list[int | None] = out.answers["link"][start:stop].tolist()
        if self.linked:
            links = [None if link is None or link < 0 else link for link in links]
        else:
            links = [None] * (stop - start)
        log_predictive = out.answers["log_predictive"][start:stop]
        return zip(
            out.answers["label"][start:stop].tolist(),
            np.round(out.answers["probability"][start:stop], DIGITS).tolist(),
            np.round(out.answers["new_probability"][start:stop], DIGITS).tolist(),
            out.answers["founded"][start:stop].astype(bool).tolist(),
            links,
            np.round(log_predictive, DIGITS).tolist(),
            np.round(novelty(log_predictive, sizes), DIGITS).tolist(),
            strict=True,
        )

    def _revise(self, out: Output, r: int, lines: Lines) -> None:
        seq, link = int(out.revisions["seq"][r]), int(out.revisions["link"][r])
        before = self.undecided[seq]
        after = msgspec.structs.replace(
            before,
            cluster=int(out.revisions["label"][r]),
            probability=round(float(out.revisions["probability"][r]), DIGITS),
            new=bool(out.revisions["founded"][r]),
            link=link if link >= 0 and self.linked else None,
            revision=before.revision + 1,
        )
        self.undecided[seq] = after
        self.revised += 1
        self.retained.revise(seq, after.cluster)
        self.samples.move(seq, before.cluster, after.cluster)
        if not self.final_only:
            lines.append(after)

    def _settle(self, through: int, lines: Lines) -> None:
        """Forget what is decided (announcing it, in order, where only final answers are wanted)."""
        first = next(iter(self.undecided), through + 1)
        settled = [self.undecided.pop(seq) for seq in range(first, through + 1)]
        if self.final_only:
            lines += settled

    def dump(self) -> dict[str, Any]:
        """What is remembered, as plain values."""
        return {
            "undecided": list(self.undecided.values()),
            "final": self.final,
            "samples": self.samples.dump(),
            "ended": list(self.ended),
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        self.final = stored["final"]
        self.samples.load(stored["samples"])
        self.ended.extend(msgspec.convert(event, Event) for event in stored["ended"])
        self.undecided = {a["seq"]: msgspec.convert(a, Assignment) for a in stored["undecided"]}
