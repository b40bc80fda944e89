"""Event-time order: late records wait for their turn, too late ones are refused."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec

from streamdp.records import Record, Reject


def refuse(record: Record, reason: str, detail: str) -> Reject:
    """The reject of a decoded record."""
    return Reject(record.position, reason, detail, record.raw)


def dump_record(record: Record) -> dict[str, Any]:
    """A record as plain values, without its arrival: the wall clock is no part of the state."""
    stored: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(record, arrival=None), builtin_types=(bytes,)
    )
    return stored


def load_record(stored: dict[str, Any]) -> Record:
    """The inverse of :func:`dump_record`."""
    return msgspec.convert(stored, Record, builtin_types=(bytes,))


class ReorderBuffer:
    """Holds records back until no earlier one is expected.

    A record is released when one ``max_lateness`` seconds younger has been seen. Records of equal time
    keep their order of arrival, those without a time pass at the latest time seen.
    """

    def __init__(self, max_lateness: float, max_ahead: float) -> None:
        self.max_lateness = max_lateness
        self.max_ahead = max_ahead
        self.latest = -float("inf")
        self.released = -float("inf")
        self.arrivals = 0
        self.heap: list[tuple[float, int, Record]] = []

    def push(self, record: Record, ready: list[tuple[float, Record]]) -> Reject | None:
        """Take a record in, append what may go now to ``ready``; or say why it cannot be taken."""
        time = record.time
        if time is None:
            time = self.latest if self.latest > -float("inf") else 0.0
        elif record.arrival is not None and time > record.arrival + self.max_ahead:
            # no figure that depends on the wall clock: a replay must write the same bytes
            return refuse(record, "ahead", f"its time is more than {self.max_ahead:g} s beyond its arrival")
        elif time < self.released:
            before = f"its time is {self.released - time:g} s before that of a record already processed"
            return refuse(record, "late", f"{before} (see max_lateness)")
        self.latest = max(self.latest, time)
        if self.max_lateness == 0.0:
            self.released = time
            ready.append((time, record))
            return None
        heapq.heappush(self.heap, (time, self.arrivals, record))
        self.arrivals += 1
        while self.heap and self.heap[0][0] <= self.latest - self.max_lateness:
            self._release(ready)
        return None

    def _release(self, ready: list[tuple[float, Record]]) -> None:
        time, _, record = heapq.heappop(self.heap)
        self.released = time
        ready.append((time, record))

    def drain(self, ready: list[tuple[float, Record]]) -> None:
        """Release everything: the stream has ended."""
        while self.heap:
            self._release(ready)

    def dump(self) -> dict[str, Any]:
        """What is held back, as plain values."""
        return {
            "latest": self.latest,
            "released": self.released,
            "arrivals": self.arrivals,
            "heap": [(time, number, dump_record(record)) for time, number, record in self.heap],
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`."""
        self.latest, self.released, self.arrivals = stored["latest"], stored["released"], stored["arrivals"]
        self.heap = [(time, number, load_record(record)) for time, number, record in stored["heap"]]
