"""The output of the beam as lines for users: assignments, revisions, finality."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from streamdp.answers.assignments import assignments, rounded
from streamdp.beam.data.state import Output
from streamdp.ledger.ledger import Ledger, Refill
from streamdp.ledger.step import NO_REVISIONS
from streamdp.ledger.written import Report
from streamdp.records import Assignment, Final, Lines, Record
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.memory import Shares
from streamdp.state.retained import Retained


class Announcer:
    """Remembers what was announced of the records that are not final yet.

    ``final_only`` announces each record once, when it is final; ``linked`` says whether the prior has links.
    Of more than the memory limit allows the oldest are final at once: later revisions of them are left out.
    """

    def __init__(self, settings: Settings, *, final_only: bool, linked: bool) -> None:
        shares = Shares.of(settings)
        self.ledger = Ledger(
            settings.retain,
            linked=linked,
            final_only=final_only,
            most_bytes=shares.answers,
            truth_field=settings.truth_field,
            texts=settings.texts,
        )
        self.retained = Retained(self.ledger, settings.retain, shares.retained)
        self.final_only, self.linked = final_only, linked
        self.passed_by = False
        """Whether records are answered by whoever runs the search: they stay open while they are retained."""
        self.revised = 0
        """Revisions since this was made; they are no part of the state."""

    @property
    def open_for(self) -> int:
        """For how many records an assignment may still be revised, decided as it is."""
        return self.ledger.modes.open_for

    @property
    def undecided(self) -> dict[int, Assignment]:
        """The newest answers that may still change, by the numbers of their records."""
        return {answer.seq: answer for answer in self.ledger.open_answers()}

    @property
    def final(self) -> int:
        """Answers up to this one are reported as final, or will be where each is announced once."""
        return self.ledger.final

    @property
    def closed(self) -> tuple[int, int]:
        """How many answers were final early, for having been too many bytes, and the last of them."""
        return self.ledger.closed

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        held = self.retained
        return {"retained": held.held, "retained_short": int(held.short), "final_early": self.closed[0]}

    def open_from(self, seq: int) -> int:
        """The first record whose answer may still change, of a stream of ``seq`` records."""
        if self.passed_by:
            return seq - self.retained.held
        return self.ledger.begin

    def announce(
        self,
        rows: np.ndarray,
        sizes: np.ndarray,
        records: Columns,
        lines: Lines,
        revisions: np.ndarray = NO_REVISIONS,
        shown: tuple[Sequence[bytes], Sequence[bytes]] = ((), ()),
    ) -> None:
        """Append what the search says of the next records to ``lines``: see :meth:`Ledger.put`.

        ``shown`` are the templates of lines of logs, and values of holes.
        """
        self._write(self.ledger.put(rows, sizes, records, revisions, *shown), lines)

    def _write(self, report: Report, lines: Lines) -> None:
        """Append what there is to say."""
        self.revised += int(report.counters.revised)
        self.ledger.write(report, lines)

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The open records from one number up to another that were not sure, or are revised since."""
        open_from = self.ledger.seq if self.passed_by else self.ledger.begin
        return self.ledger.unsure(max(start, open_from), stop)

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        self._write(self.ledger.move(out.revisions[: out.counters.revisions]), lines)

    def unite(self, before: int, after: int, template: str, refill: Refill, lines: Lines) -> None:
        """A label has become an older one: see :meth:`Ledger.unite`."""
        self._write(self.ledger.unite(before, after, template, refill), lines)

    def announce_frozen(
        self, out: Output, records: Sequence[Record], sizes: np.ndarray, first: int, lines: Lines
    ) -> None:
        """Append answers that taught nothing, numbered from ``first``: they are never revised."""
        rows = out.answers[: len(records)]
        links = rows["link"].tolist() if self.linked else repeat(-1)
        lines.extend(assignments(rows, self.numbers(rows, sizes), records, first, links=links))

    def numbers(self, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The numbers of answers that teach nothing: see :func:`rounded`."""
        found = rounded(rows, sizes)
        found[4] = self.ledger.lasting(found[1])
        return found

    def finish(self, last: int, lines: Lines) -> None:
        """The stream has ended with record ``last``: everything is final now."""
        if self.final_only:
            lines.extend(self.ledger.open_answers())
        elif last > self.final:
            lines.append(Final(last))
        self.ledger.finish(last)
