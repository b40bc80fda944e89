"""Answers to lines of logs as lines for users; they are revised where a template becomes one with another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.answers.open_lines import Refill
from streamdp.ledger.numbers import NOTHING_REVISED
from streamdp.records import Lines
from streamdp.records.columns import Columns
from streamdp.settings import Settings


class LineAnnouncer(Announcer):
    """Remembers what was announced of lines whose template may yet become one with another."""

    def __init__(self, settings: Settings, *, final_only: bool) -> None:
        super().__init__(settings, final_only=final_only, linked=False)

    def report(
        self,
        first: int,
        rows: np.ndarray,
        sizes: np.ndarray,
        records: Columns,
        shown: tuple[Sequence[bytes], Sequence[bytes]],
        lines: Lines,
    ) -> None:
        """Append answers to records, numbered from ``first``; ``shown`` are templates and values of holes."""
        numbers, _ = self.ledger.put(first, rows, sizes, records)
        self._open.add(first, rows, numbers, records, *shown)
        through = np.arange(first, first + len(records))
        self._write(self._open.announce(*NOTHING_REVISED, through, self.open_for), lines)

    def relabel(self, before: int, after: int, template: str, lines: Lines, refill: Refill) -> None:
        """A label has become an older one: append the revisions of what is open.

        ``template`` is that of the label; ``refill`` has that of a line with values of holes.
        """
        self.ledger.unite(before, after)
        confident = self.ledger.confidence.told if self.ledger.confidence.labels else None
        report, told = self._open.relabel(before, after, template, confident, refill)
        self.ledger.count_revised(told)
        self._open.write(report, lines)
