"""Which colour a cluster has: given once, when it is first drawn, and kept for its life."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence

SLOTS = 24
"""Looks that differ: eight colours, each plain, striped and dotted."""

REMEMBERED = 4096
"""Clusters whose look is remembered."""


class Colours:
    """Looks of clusters by number."""

    def __init__(self) -> None:
        self._slots: OrderedDict[int, int] = OrderedDict()
        self._used = [0] * SLOTS
        self._clock = 0

    def of(self, cluster: int) -> int | None:
        """The look of a cluster, where it was ever drawn."""
        return self._slots.get(cluster)

    def give(self, clusters: Sequence[int]) -> list[int]:
        """The looks of all that are drawn now; who has none gets the one that was drawn longest ago."""
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
