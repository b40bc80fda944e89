"""What happened to clusters: births, splits, mergers and ends, as far back as memory is given."""

from __future__ import annotations

from collections import OrderedDict, deque

import msgspec

from streamdp.records import Event

CLUSTERS = 5000
"""Clusters whose lives are told: those to whom something happened latest."""

OF_CLUSTER = 24
"""Things that are told of a cluster, the first and the latest."""

LATEST = 200
"""Events, of whatever cluster, that can be asked for."""

ENDS = ("closed", "retired", "merged", "vanished")


class Happening(msgspec.Struct, frozen=True, gc=False):
    """An event, in few words. ``other`` is the cluster that it was split off from, or is now part of."""

    number: int
    event: str
    seq: int
    time: float | None
    cluster: int
    other: int | None
    size: int
    name: str


class Lives:
    """The lives of clusters, and the latest events of all."""

    def __init__(self) -> None:
        self._lives: OrderedDict[int, list[Happening]] = OrderedDict()
        self.latest: deque[Happening] = deque(maxlen=LATEST)
        self.number = 0

    def add(self, event: Event, name: str) -> Happening:
        """Something has happened."""
        self.number += 1
        told = Happening(
            self.number, event.event, event.seq, event.time, event.cluster, event.other, event.size, name
        )
        self.latest.append(told)
        self._tell(event.cluster, told)
        if event.other is not None:
            self._tell(event.other, told)
        return told

    def _tell(self, cluster: int, told: Happening) -> None:
        life = self._lives.setdefault(cluster, [])
        self._lives.move_to_end(cluster)
        life.append(told)
        if len(life) > OF_CLUSTER:
            del life[1]
        if len(self._lives) > CLUSTERS:
            self._lives.popitem(last=False)

    def of(self, cluster: int) -> list[Happening]:
        """What is known of a cluster, in order."""
        return list(self._lives.get(cluster, ()))
