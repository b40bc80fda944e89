"""The streamgraph: counts over time in few bins, which clusters are drawn, and their colours.

The largest clusters and the fastest growing ones are drawn. A cluster gets its colour when it is first
drawn, and keeps it for its life.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np

from streamdp.answers.listing import is_date
from streamdp.page.table import Table

SLOTS = 24
"""Looks that differ: eight colours, each plain, striped and dotted."""

REMEMBERED = 4096
"""Clusters whose look is remembered."""

TOLD = 500
"""Of these, a page that opens is told of so many."""


class Colours:
    """Looks of clusters by number."""

    def __init__(self) -> None:
        self._slots: OrderedDict[int, int] = OrderedDict()
        self._used = [0] * SLOTS
        self._clock = 0

    def of(self, cluster: int) -> int | None:
        """The look of a cluster, where it was ever drawn."""
        return self._slots.get(cluster)

    def all(self) -> dict[int, int]:
        """Those of the clusters that were drawn latest."""
        return dict(list(self._slots.items())[-TOLD:])

    def give(self, clusters: Sequence[int]) -> list[int]:
        """The looks of all that are drawn now; one without a look gets that which was drawn longest ago."""
        taken = {self._slots[cluster] for cluster in clusters if cluster in self._slots}
        for cluster in clusters:
            if cluster not in self._slots:
                self._slots[cluster] = self._next(taken)
                taken.add(self._slots[cluster])
            self._slots.move_to_end(cluster)
            self._clock += 1
            self._used[self._slots[cluster]] = self._clock
        while len(self._slots) > REMEMBERED:
            self._slots.popitem(last=False)
        return [self._slots[cluster] for cluster in clusters]

    def _next(self, taken: Collection[int]) -> int:
        """Plain ones first; among those that nobody has now, the one that was drawn longest ago."""
        free = [slot for slot in range(SLOTS) if slot not in taken] or list(range(SLOTS))
        never = [slot for slot in free if not self._used[slot]]
        plain = [slot for slot in free if slot < 8 and self._used[slot] < self._clock - 200]
        return (never or plain or sorted(free, key=lambda slot: self._used[slot]))[0]


BINS = 480
"""Most bins; where there would be more, each two become one."""

KEPT = 64
"""Clusters whose counts a bin keeps; those of the others are in its total alone."""

LEAST_WIDTH = 2.0**-40
"""Of a bin, in seconds: about a picosecond, which no time of today can tell."""

_LABEL = 40
"""Bits of a label."""


class Timeline:
    """Counts by bin and cluster; all bins have one width, which doubles as the stream goes on."""

    def __init__(self) -> None:
        self.start = self.width = 0.0
        self._bins: list[Counter[int]] = []
        self._totals: list[int] = []

    def __len__(self) -> int:
        return len(self._bins)

    def add(self, at: np.ndarray, labels: np.ndarray) -> None:
        """Count records at these places, in seconds or record numbers, that joined these clusters.

        Both of shape (n,). What lies before the first bin is counted in it; a label below 0 counts in the
        total alone.
        """
        if not len(at):
            return
        low, high = float(at.min()), float(at.max())
        if not self.width:
            span = high - low
            part = max(span / 64.0, LEAST_WIDTH)  # which would be 0 of the smallest numbers that there are
            self.width = min(1.0, 2.0 ** math.floor(math.log2(part))) if span > 0.0 else 1.0
            self.start = math.floor(low / self.width) * self.width
        while high >= self.start + BINS * self.width:
            self._fold()
        index = np.clip(((at - self.start) / self.width).astype(np.int64), 0, BINS - 1)
        while len(self._bins) <= int(index.max()):
            self._bins.append(Counter())
            self._totals.append(0)
        for i, n in zip(*(each.tolist() for each in np.unique(index, return_counts=True)), strict=True):
            self._totals[i] += n
        known = labels >= 0
        keys, counts = np.unique((index[known] << _LABEL) | labels[known], return_counts=True)
        order = np.lexsort((-counts, keys >> _LABEL))
        keys, counts = keys[order], counts[order]
        begins = np.searchsorted(keys >> _LABEL, keys >> _LABEL)
        large = np.arange(len(keys)) - begins < 4 * KEPT
        keys, counts = keys[large], counts[large]
        places, found = (keys >> _LABEL).tolist(), (keys & ((1 << _LABEL) - 1)).tolist()
        for i, label, n in zip(places, found, counts.tolist(), strict=True):
            self._bins[i][label] += n
        for i in set(places):
            if len(self._bins[i]) > 4 * KEPT:
                self._bins[i] = _largest(self._bins[i])

    def _fold(self) -> None:
        pairs = range(0, len(self._bins), 2)
        self._bins = [_largest(summed(self._bins[i : i + 2])) for i in pairs]
        self._totals = [sum(self._totals[i : i + 2]) for i in pairs]
        self.width *= 2.0

    def range_of(self, begin: float | None, end: float | None) -> tuple[int, int]:
        """The bins between two places; None: from the beginning, to the end."""
        if not self._bins:
            return 0, 0
        first = 0 if begin is None else int(max((begin - self.start) // self.width, 0))
        last = len(self._bins) if end is None else math.ceil((end - self.start) / self.width)
        first = min(first, len(self._bins) - 1)
        return first, max(min(last, len(self._bins)), first + 1)

    def sums(self, first: int, last: int) -> Counter[int]:
        """Records by cluster in bins ``first`` to ``last`` - 1."""
        return summed(self._bins[first:last])

    def counts(self, labels: Sequence[int], first: int, last: int, most: int) -> tuple[int, list[list[int]]]:
        """Records by cluster and bin, each cluster a list, and a last list of all others.

        Bins ``first`` to ``last`` - 1, so many of them taken together that no more than ``most`` are left;
        how many that is comes first.
        """
        step = max(1, math.ceil((last - first) / most))
        starts = range(first, last, step)
        rows = [[sum(b[c] for b in self._bins[i : min(i + step, last)]) for i in starts] for c in labels]
        totals = [sum(self._totals[i : min(i + step, last)]) for i in starts]
        others = [total - sum(row[j] for row in rows) for j, total in enumerate(totals)]
        return step, [*rows, others]


def summed(parts: Sequence[Counter[int]]) -> Counter[int]:
    """The counts of several bins together."""
    found = Counter[int]()
    for part in parts:
        found.update(part)
    return found


def _largest(held: Counter[int]) -> Counter[int]:
    return Counter(dict(sorted(held.items(), key=lambda item: (-item[1], item[0]))[:KEPT]))


BANDS = 12
"""Clusters that are drawn."""

GROWING = 3
"""Of these, so many may be there because they grow."""

NEWEST = 3
"""Of the last stretch of time, so many are drawn: its largest."""

STRETCHES = 6
"""Of time, of which each has its largest cluster drawn."""

CHOSEN_EVERY = 3
"""Ticks after which the drawn clusters are chosen anew."""

STAYS = 2 * BANDS
"""A cluster that is drawn stays as long as it is among so many: bands do not come and go with every tick."""

COLUMNS = 160
"""Bins of a drawing, unless another number is asked for."""

Axis = Literal["dates", "numbers", "records"]


class Graph:
    """Counts over time, and the clusters that are drawn."""

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

    def choose(self, table: Table, *, last: bool = False) -> None:
        """Choose what is drawn: the largest and, a few of them, the fastest growing; the oldest first.

        It is done now and then, and for the ``last`` time.
        """
        self._ticks += 1
        if self.drawn and self._ticks % CHOSEN_EVERY and not last:
            return
        stretches = self._stretches()
        sums = summed(stretches)
        live = set(table.census.label.tolist())
        growing = sorted(
            (label for label in table.figures if label in live and table.growth(label) > 0 and label in sums),
            key=lambda label: (-table.growth(label), label),
        )
        leaders = [min(s, key=lambda label: (-s[label], label)) for s in stretches if s]
        ranked = sorted(sums, key=lambda label: (-sums[label], label))
        fast = [label for label in growing if sums[label] > 2][:GROWING]
        held = [label for label in ranked[:STAYS] if label in self.drawn and label not in fast]
        newest = sorted(stretches[-1], key=lambda label: (-stretches[-1][label], label))[:NEWEST]
        large = [*leaders, *newest, *ranked[: BANDS // 4], *held, *ranked]
        chosen = list(dict.fromkeys([*fast, *large]))[:BANDS]
        self.why = {label: "growing" if label in fast else "large" for label in chosen}
        self.drawn = sorted(chosen)
        self.colours.give(self.drawn)

    def _stretches(self) -> list[Counter[int]]:
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
                    "label": label,
                    "title": table.name(label),
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
        """One cluster's counts over all time."""
        step, rows = self.timeline.counts([label], 0, len(self.timeline), bins)
        return {
            "axis": self.axis,
            "start": self.timeline.start,
            "width": step * self.timeline.width,
            "counts": rows[0],
        }
