"""The output of the beam as lines for users: assignments, revisions, finality."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import accumulate, chain, repeat

import numpy as np

from streamdp.answers.assignments import assignments, rounded
from streamdp.beam.data.state import ANSWER, REVISION, Output
from streamdp.encode.batch import Batch
from streamdp.ledger.ledger import Ledger, Refill
from streamdp.ledger.step import NO_REVISIONS
from streamdp.ledger.written import Report
from streamdp.records import Assignment, Final, Lines, Record
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.memory import Shares
from streamdp.state.retained import Retained

TOGETHER = 128
"""Records that come one by one and are written down together: alone each takes six times as long."""


MOST_BYTES = 1 << 18
"""Of texts and vectors that wait for each other."""


class Announcer:
    """Remembers what was announced of the records that are not final yet.

    Records that come one by one wait for each other until somebody asks for their lines, for the ledger or
    for what is retained.

    ``final_only`` announces each record once, when it is final; ``linked`` says whether the prior has links.
    Of more than the memory limit allows the oldest are final at once: later revisions of them are left out.
    """

    def __init__(self, settings: Settings, *, final_only: bool, linked: bool) -> None:
        shares = Shares.of(settings)
        self._ledger = Ledger(
            settings.retain,
            linked=linked,
            final_only=final_only,
            most_bytes=shares.answers,
            truth_field=settings.truth_field,
            texts=settings.texts,
        )
        self._retained = Retained(self._ledger, settings.retain, shares.retained)
        self._batches: list[Batch] = []
        self._waiting: list[tuple[bytes, np.ndarray, Columns, bytes, weakref.ref[Lines]]] = []
        self._first = self._bytes = self._revised = 0
        self.final_only, self.linked = final_only, linked
        self.passed_by = False
        """Whether records are answered by whoever runs the search: they stay open while they are retained."""

    @property
    def ledger(self) -> Ledger:
        """The latest records, each written down."""
        self.write()
        return self._ledger

    @property
    def retained(self) -> Retained:
        """The latest records in encoded form."""
        self.write()
        self._take_in()
        return self._retained

    @property
    def revised(self) -> int:
        """Revisions since this was made; they are no part of the state."""
        self.write()
        return self._revised

    @property
    def undecided(self) -> dict[int, Assignment]:
        """The newest answers that may still change, by the numbers of their records."""
        return {answer.seq: answer for answer in self.ledger.open_answers()}

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        held, (early, _) = self.retained, self.ledger.closed
        return {"retained": held.held, "retained_short": int(held.short), "final_early": early}

    def open_from(self, seq: int) -> int:
        """The first record whose answer may still change, of a stream of ``seq`` records."""
        if self.passed_by:
            return seq - self.retained.held
        return self.ledger.begin

    def retain(self, first: int, batch: Batch) -> None:
        """Retain the next records, from number ``first`` on, which are announced then."""
        if not self._batches:
            self._first = first
        self._batches.append(batch)
        if first + batch.size - self._first >= TOGETHER:
            self._take_in()

    def _take_in(self) -> None:
        """Retain what is to be retained."""
        batches, self._batches = self._batches, []
        if batches:
            self._retained.append(self._first, Batch.concatenate(batches) if len(batches) > 1 else batches[0])

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
        if records.objects is None or shown[0] or len(rows) >= TOGETHER:
            self._take_in()
            self._write(self.ledger.put(rows, sizes, records, revisions, *shown), [lines])
            return
        lines.ask = self.write
        self._waiting.append((rows.tobytes(), sizes, records, revisions.tobytes(), weakref.ref(lines)))
        if records.values is not None:
            self._bytes += records.values.letters.nbytes + records.values.vectors.nbytes
        if len(self._waiting) >= TOGETHER or self._bytes >= MOST_BYTES:
            self.write()
            self._take_in()

    def write(self) -> None:
        """Write down what waits."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if not waiting:
            return
        rows, sizes, records, revisions, lines = zip(*waiting, strict=True)
        alone = len(waiting) == 1
        report = self._ledger.put(
            np.frombuffer(bytearray().join(rows), ANSWER),
            sizes[0] if alone else np.concatenate(sizes),
            records[0] if alone else Columns.of(chain.from_iterable(records)),
            np.frombuffer(bytearray().join(revisions), REVISION),
        )
        stops = report.stops[: sum(map(len, records))].tolist()
        self._write(report, [ref() for ref in lines], [stops[n - 1] for n in accumulate(map(len, records))])

    def _write(self, report: Report, lines: Sequence[Lines | None], stops: Sequence[int] = ()) -> None:
        """Append what there is to say to ``lines``, to each up to where it stops; nobody reads None."""
        self._revised += int(report.counters.revised)
        if any(each is not None for each in lines):
            found, at = self._ledger.written(report), 0
            for each, stop in zip(lines, stops or [len(found)], strict=True):
                if each is not None and stop > at:
                    each.add(found[at:stop])
                at = stop

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The open records from one number up to another that were not sure, or are revised since."""
        open_from = self.ledger.seq if self.passed_by else self.ledger.begin
        return self.ledger.unsure(max(start, open_from), stop)

    def revise(self, out: Output, lines: Lines) -> None:
        """Append the revisions of records that were looked at again."""
        self._write(self.ledger.move(out.revisions[: out.counters.revisions]), [lines])

    def unite(self, before: int, after: int, template: str, refill: Refill, lines: Lines) -> None:
        """A label has become an older one: see :meth:`Ledger.unite`."""
        self._write(self.ledger.unite(before, after, template, refill), [lines])

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
        elif last > self.ledger.final:
            lines.append(Final(last))
        self.ledger.finish(last)
