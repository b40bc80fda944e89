"""How many records clusters have over time, in few bins however long the stream is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

BINS = 480
"""Most bins; where there would be more, each two become one."""

KEPT = 64
"""Clusters whose counts a bin keeps; those of the others are in its total alone."""

_LABEL = 40
"""Bits of a label."""


class Timeline:
    """Counts by bin and cluster; all bins have one width, which doubles as the stream goes on."""

    def __init__(self) -> None:
        self.start = self.width = 0.0
        self._bins: list[dict[int, int]] = []
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
            self.width = min(1.0, 2.0 ** math.floor(math.log2(span / 64.0))) if span > 0.0 else 1.0
            self.start = math.floor(low / self.width) * self.width
        while high >= self.start + BINS * self.width:
            self._fold()
        index = np.clip(((at - self.start) / self.width).astype(np.int64), 0, BINS - 1)
        while len(self._bins) <= int(index.max()):
            self._bins.append({})
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
            held = self._bins[i]
            held[label] = held.get(label, 0) + n
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

    def sums(self, first: int, last: int) -> dict[int, int]:
        """Records by cluster in bins ``first`` to ``last`` - 1."""
        return summed(self._bins[first:last])

    def counts(self, labels: Sequence[int], first: int, last: int, most: int) -> tuple[int, list[list[int]]]:
        """Records by cluster and bin, each cluster a list, and a last list of all others.

        Bins ``first`` to ``last`` - 1, so many of them taken together that no more than ``most`` are left;
        how many that is comes first.
        """
        step = max(1, math.ceil((last - first) / most))
        starts = range(first, last, step)
        rows = [
            [sum(b.get(c, 0) for b in self._bins[i : min(i + step, last)]) for i in starts] for c in labels
        ]
        totals = [sum(self._totals[i : min(i + step, last)]) for i in starts]
        others = [total - sum(row[j] for row in rows) for j, total in enumerate(totals)]
        return step, [*rows, others]


def summed(parts: Sequence[dict[int, int]]) -> dict[int, int]:
    """The counts of several bins together."""
    found: dict[int, int] = {}
    for part in parts:
        for label, count in part.items():
            found[label] = found.get(label, 0) + count
    return found


def _largest(held: dict[int, int]) -> dict[int, int]:
    if len(held) <= KEPT:
        return held
    return dict(sorted(held.items(), key=lambda item: (-item[1], item[0]))[:KEPT])
