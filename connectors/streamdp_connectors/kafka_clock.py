"""When records arrived: decided once, noted with the positions, and the same again when they are replayed."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Mapping
from typing import Any

ARRIVED = "arrived"
"""Where positions hold it: by partition pairs of an offset and when what is before it arrived."""


class Arrivals:
    """The wall clock at which a topic's records arrived, for those that a replay may ask for.

    What depends on the clock (whether a record lies too far ahead of it, the time of a record that has none)
    must not be decided anew when records are read again after a crash.
    """

    def __init__(self) -> None:
        self._held: dict[int, deque[tuple[int, float]]] = {}
        self._noted: dict[int, list[tuple[int, float]]] = {}

    def of(self, partition: int, offset: int, now: float) -> float:
        """When a record arrived: as was noted, else now. It is held from then on."""
        noted = self._noted.get(partition)
        if noted:
            place = bisect.bisect_right(noted, (offset, float("inf")))
            now = noted[place][1] if place < len(noted) else now
        held = self._held.setdefault(partition, deque())
        if held and held[-1][1] == now:
            held.pop()
        held.append((offset + 1, now))
        return now

    def forget(self, reached: Mapping[int, int]) -> None:
        """Hold no more what is before these offsets."""
        for partition, held in self._held.items():
            while held and held[0][0] <= reached.get(partition, 0):
                held.popleft()
        for partition, noted in self._noted.items():
            if noted and noted[0][0] <= reached.get(partition, 0):
                self._noted[partition] = [pair for pair in noted if pair[0] > reached.get(partition, 0)]

    def plain(self, reached: Mapping[int, int] | None = None) -> dict[str, Any]:
        """What is known, or what of it is after these offsets, as part of positions; {} for nothing."""
        found = {}
        for partition in sorted({*self._held, *self._noted}):
            low = 0 if reached is None else reached.get(partition, 0)
            pairs = {*self._held.get(partition, ()), *self._noted.get(partition, ())}
            found[str(partition)] = sorted([end, at] for end, at in pairs if end > low)
        kept = {partition: pairs for partition, pairs in found.items() if pairs}
        return {ARRIVED: kept} if kept else {}

    def note(self, positions: Mapping[str, Any]) -> None:
        """Know what an earlier run has held."""
        stored = positions.get(ARRIVED)
        for partition, pairs in (stored if isinstance(stored, dict) else {}).items():
            known = self._noted.setdefault(int(partition), [])
            self._noted[int(partition)] = sorted({*known, *((int(end), float(at)) for end, at in pairs)})

    def clear(self, noted: bool) -> None:
        """Hold nothing; with ``noted`` also forget what was noted."""
        self._held.clear()
        if noted:
            self._noted.clear()
