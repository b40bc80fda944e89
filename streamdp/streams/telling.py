"""Answers to lines of a log, collected and announced together until something else is to be reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.answers.line_announcer import LineAnnouncer
from streamdp.kernels.rows import new_rows
from streamdp.lines.stream import ANSWER
from streamdp.records import Lines
from streamdp.records.columns import Columns


class Telling:
    """Answers to the records of a batch, numbered from ``first``, in order; they go to ``lines``."""

    def __init__(self, announcer: LineAnnouncer, records: Columns, first: int, lines: Lines) -> None:
        self._announcer, self.records, self._first, self.lines = announcer, records, first, lines
        self.answered = 0
        """Records that have an answer, which may wait still."""
        self._told = 0
        self._rows, self._sizes = new_rows(len(records), ANSWER), np.zeros(len(records), np.int64)
        self._templates: list[bytes] = []
        self._values: list[bytes] = []

    def add(
        self, rows: np.ndarray, sizes: np.ndarray, templates: Sequence[bytes], values: Sequence[bytes]
    ) -> None:
        """Answer the next texts, each with its template, and the values of its holes where they are shown."""
        stretch = slice(self.answered, self.answered + len(rows))
        self._rows[stretch], self._sizes[stretch] = rows, sizes
        self._templates += templates
        self._values += values
        self.answered = stretch.stop

    def finish(self) -> None:
        """Tell what waits."""
        if not self._templates:
            return
        stretch = slice(self._told, self.answered)
        texts, shown = self.records[stretch], (self._templates, self._values)
        self._announcer.report(
            self._first + self._told, self._rows[stretch], self._sizes[stretch], texts, shown, self.lines
        )
        self._told, self._templates, self._values = self.answered, [], []
