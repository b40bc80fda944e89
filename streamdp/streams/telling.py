"""Answers to lines of a log, collected and announced together until something else is to be reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.beam.data.state import ANSWER
from streamdp.kernels.rows import new_rows
from streamdp.records import Lines
from streamdp.records.columns import Columns

TOLD = ("label", "founded", "probability", "new_probability", "log_predictive")
"""What is said of a line, of a row of its answer."""


class Telling:
    """Answers to the records of a batch, numbered from ``first``, in order; they go to ``lines``."""

    def __init__(self, announcer: Announcer, records: Columns, first: int, lines: Lines) -> None:
        self._announcer, self.records, self.lines = announcer, records, lines
        self.answered = 0
        """Records that have an answer, which may wait still."""
        self._told = 0
        self._rows, self._sizes = new_rows(len(records), ANSWER, link=-1), np.zeros(len(records), np.int64)
        self._rows["decided"] = np.arange(first, first + len(records))
        self._templates: list[bytes] = []
        self._values: list[bytes] = []

    def add(
        self, rows: np.ndarray, sizes: np.ndarray, templates: Sequence[bytes], values: Sequence[bytes]
    ) -> None:
        """Answer the next texts, each with its template, and the values of its holes where they are shown."""
        stretch = slice(self.answered, self.answered + len(rows))
        for name in TOLD:
            self._rows[name][stretch] = rows[name]
        self._sizes[stretch] = sizes
        self._templates += templates
        self._values += values
        self.answered = stretch.stop

    def finish(self) -> None:
        """Tell what waits."""
        if not self._templates:
            return
        stretch = slice(self._told, self.answered)
        texts, shown = self.records[stretch], (self._templates, self._values)
        self._announcer.announce(self._rows[stretch], self._sizes[stretch], texts, self.lines, shown=shown)
        self._told, self._templates, self._values = self.answered, [], []
