"""What the streamgraph draws: the largest clusters and the fastest growing ones, with their colours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from streamdp.answers.times import is_date
from streamdp.page.colours import Colours
from streamdp.page.table import Table
from streamdp.page.timeline import Timeline, summed

BANDS = 12
"""Clusters that are drawn."""

GROWING = 3
"""Of these, so many may be there because they grow."""

STRETCHES = 6
"""Of time, of which each has its largest cluster drawn."""

CHOSEN_EVERY = 3
"""Ticks after which it is said anew who is drawn."""

STAYS = 2 * BANDS
"""A cluster that is drawn stays as long as it is among so many: bands do not come and go with every tick."""

COLUMNS = 160
"""Bins of a drawing, unless another number is asked for."""

Axis = Literal["dates", "numbers", "records"]


class Graph:
    """Counts over time, and who is drawn."""

    def __init__(self) -> None:
        self.timeline, self.colours = Timeline(), Colours()
        self.axis: Axis = "records"
        self.drawn: list[int] = []
        self.why: dict[int, str] = {}
        self._last = -np.inf
        self._ticks = 0

    def add(self, times: Sequence[float | None], seq: int, labels: np.ndarray) -> None:
        """Records, numbered from ``seq`` on, have joined clusters at these times."""
        if not len(self.timeline):
            first = times[0]
            self.axis = "records" if first is None else "dates" if is_date(first) else "numbers"
        if self.axis == "records":
            self.timeline.add(np.arange(seq, seq + len(labels), dtype=float), labels)
            return
        at = np.array([np.nan if time is None else time for time in times], float)
        known = np.flatnonzero(~np.isnan(at))
        if len(known):
            self._last = max(self._last, float(at[known].max()))
        at[np.isnan(at)] = self._last
        self.timeline.add(at, labels)

    @property
    def undated(self) -> bool:
        """Whether the first record had no time, so that all are placed by their numbers."""
        return len(self.timeline) > 0 and self.axis == "records"

    def choose(self, table: Table) -> None:
        """Say anew who is drawn: the largest and, a few of them, the fastest growing; the oldest first."""
        self._ticks += 1
        if self.drawn and self._ticks % CHOSEN_EVERY:
            return
        stretches = self._stretches()
        sums = summed(stretches)
        live = set(table.census.label.tolist())
        growing = sorted(
            (label for label in table.trend if label in live and table.growth(label) > 0 and label in sums),
            key=lambda label: (-table.growth(label), label),
        )
        leaders = [min(s, key=lambda label: (-s[label], label)) for s in stretches if s]
        ranked = sorted(sums, key=lambda label: (-sums[label], label))
        fast = [label for label in growing if sums[label] > 2][:GROWING]
        held = [label for label in ranked[:STAYS] if label in self.drawn and label not in fast]
        large = [*leaders, *ranked[: BANDS // 4], *held, *ranked]
        chosen = list(dict.fromkeys([*fast, *large]))[:BANDS]
        self.why = {label: "growing" if label in fast else "large" for label in chosen}
        self.drawn = sorted(chosen)
        self.colours.give(self.drawn)

    def _stretches(self) -> list[dict[int, int]]:
        """Records by cluster in each stretch of time."""
        n = len(self.timeline)
        bounds = [i * n // STRETCHES for i in range(STRETCHES + 1)]
        return [self.timeline.sums(first, last) for first, last in itertools.pairwise(bounds)]

    def drawing(
        self, table: Table, begin: float | None = None, end: float | None = None, bins: int = COLUMNS
    ) -> dict[str, Any]:
        """Edges and counts, each band with name, colour and why it is drawn."""
        timeline = self.timeline
        first, last = timeline.range_of(begin, end)
        step, rows = timeline.counts(self.drawn, first, last, bins)
        start, width = timeline.start + first * timeline.width, step * timeline.width
        return {
            "axis": self.axis,
            "start": start,
            "width": width,
            "whole": [timeline.start, timeline.start + len(timeline) * timeline.width],
            "bands": [
                {
                    "cluster": label,
                    "name": table.name(label),
                    "slot": self.colours.of(label),
                    "why": self.why.get(label, "large"),
                    "growth": table.growth(label),
                    "counts": row,
                }
                for label, row in zip(self.drawn, rows, strict=False)
            ],
            "others": rows[-1],
        }

    def of(self, label: int, bins: int = 120) -> dict[str, Any]:
        """One cluster's counts over the whole of time."""
        step, rows = self.timeline.counts([label], 0, len(self.timeline), bins)
        return {
            "axis": self.axis,
            "start": self.timeline.start,
            "width": step * self.timeline.width,
            "counts": rows[0],
        }
