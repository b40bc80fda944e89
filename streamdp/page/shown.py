"""What the page can show of the past: lives of clusters, and the latest records of each with their labels."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable

import msgspec

from streamdp.records import Event
from streamdp.story.story import StoryEvent

LIVES = 5000
"""Clusters whose lives are kept: those to which something happened latest."""

HAPPENINGS = 24
"""Events that are kept of a cluster: the first and the latest."""

EVENTS = 200
"""Latest events, of whatever cluster, that can be asked for."""


class Lives:
    """The lives of clusters, and the latest events of all."""

    def __init__(self) -> None:
        self._lives: OrderedDict[int, list[StoryEvent]] = OrderedDict()
        self.latest: deque[StoryEvent] = deque(maxlen=EVENTS)
        self.number = 0

    def add(self, event: Event, title: str) -> StoryEvent:
        """Take in an event of a cluster that has a title."""
        self.number += 1
        happening = StoryEvent(
            number=self.number,
            event=event.event,
            label=event.cluster,
            title=title,
            records=event.size,
            seq=event.seq,
            time=event.time,
            other=event.other,
        )
        self.latest.append(happening)
        self._keep(event.cluster, happening)
        if event.other is not None:
            self._keep(event.other, happening)
        return happening

    def _keep(self, cluster: int, happening: StoryEvent) -> None:
        life = self._lives.setdefault(cluster, [])
        self._lives.move_to_end(cluster)
        life.append(happening)
        if len(life) > HAPPENINGS:
            del life[1]
        if len(self._lives) > LIVES:
            self._lives.popitem(last=False)

    def of(self, cluster: int) -> list[StoryEvent]:
        """Events of a cluster, oldest first."""
        return list(self._lives.get(cluster, ()))


OF_CLUSTER = 12
"""Records of a cluster that are held."""

CLUSTERS = 2000
"""Clusters that records are held of: those joined latest."""

LATEST = 40
"""Records, of whatever cluster, that a page which opens is shown."""

WERE = 8
"""Earlier labels of a record that are kept."""


class Shown(msgspec.Struct, gc=False):
    """A record as the page has it; ``was`` are the labels that it had before."""

    seq: int
    time: float | None
    cluster: int
    probability: float
    new: bool
    text: str
    id: str
    was: tuple[int, ...] = ()


class ShownRecords:
    """At most ``CLUSTERS`` x ``OF_CLUSTER`` records."""

    def __init__(self) -> None:
        self._clusters: OrderedDict[int, deque[Shown]] = OrderedDict()
        self._by_seq: dict[int, Shown] = {}
        self.latest: deque[Shown] = deque(maxlen=LATEST)

    def __len__(self) -> int:
        return len(self._by_seq)

    def add(self, records: Iterable[Shown]) -> None:
        """Take records in, in processing order."""
        for record in records:
            self._by_seq[record.seq] = record
            self._put(record)
            self.latest.append(record)

    def _put(self, record: Shown) -> None:
        held = self._clusters.get(record.cluster)
        if held is None:
            held = self._clusters[record.cluster] = deque()
            if len(self._clusters) > CLUSTERS:
                for gone in self._clusters.popitem(last=False)[1]:
                    self._by_seq.pop(gone.seq, None)
        else:
            self._clusters.move_to_end(record.cluster)
        held.append(record)
        if len(held) > OF_CLUSTER:
            self._by_seq.pop(held.popleft().seq, None)

    def revise(self, seq: int, label: int, probability: float) -> Shown | None:
        """A record has another label now; the record, where it is held and the label differs."""
        record = self._by_seq.get(seq)
        if record is None:
            return None
        before, record.probability = record.cluster, probability
        if before == label:
            return None
        held = self._clusters.get(before)
        if held is not None and record in held:
            held.remove(record)
        record.was = (*record.was, before)[-WERE:]
        record.cluster = label
        self._put(record)
        return record

    def of(self, cluster: int) -> list[Shown]:
        """Records of a cluster, the newest first."""
        return sorted(self._clusters.get(cluster, ()), key=lambda record: -record.seq)
