"""The events of a stream against its assignments: what they must say, by counting the records anew."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pytest
from feeds import Told

from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.records import Assignment, ClusterSummary, Event, Record, holds_categories

Pairs = list[tuple[int, int]]

SILENT = ("titled", "renamed", "closed", "retired")
"""Events of looks back that come without a line."""


def most_first(counts: Counter[int]) -> Pairs:
    """Labels and their counts, the largest count first, among equals the older label."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


class Replay:
    """The clusters as the lines tell of them, record by record, and as the events do.

    ``records`` are the records by number; None where what is told of their words and times is not checked.
    ``telling``: told are only words that are more frequent than among all records, as of categories.
    """

    def __init__(self, records: Sequence[Record] | None = None, *, telling: bool = False) -> None:
        self.records, self.telling = records, telling
        self.label: dict[int, int] = {}  # newest label by record
        self.members: defaultdict[int, set[int]] = defaultdict(set)  # and the other way round
        self.begun: set[int] = set()
        self.live: set[int] = set()
        self.kinds = Counter[str]()
        self.titles: dict[int, object] = {}  # as the stories were renamed
        self.seq = -1

    def take(self, told: Told) -> None:
        """Check the answers of one call: lines and events of the same records."""
        events = iter([*told.events, None])
        event = next(events)
        for lines in causes(told.assignments()):
            self.seq = max(self.seq, lines[0].seq) if lines[0].revision == 0 else self.seq
            caused = []
            while event is not None and event.seq <= self.seq:
                caused.append(event)
                event = next(events)
            self._step(lines, caused)
        while event is not None and event.event in SILENT and event.seq == self.seq:
            getattr(self, f"_{event.event}")(event)  # a look back may change no label
            event = next(events)
        assert event is None, "told of a record that has not come"

    def compare(self, clusters: Iterable[ClusterSummary]) -> None:
        """Whoever has begun and not ended is what the engine calls a live cluster."""
        sizes = {c.cluster: c.size for c in clusters}
        assert set(sizes) == self.live
        assert all(size == len(self.members[label]) for label, size in sizes.items())

    def _step(self, lines: list[Assignment], events: list[Event]) -> None:
        """One record: its line, the revisions that it caused, and the events."""
        seq = self.seq
        changed = {line.seq: line.cluster for line in lines if line.revision > 0}
        new = {line.seq: line.cluster for line in lines[:1] if line.revision == 0}
        if seq in changed and seq in new:  # a look has moved the record itself
            self.label[seq] = new.pop(seq)
            self.members[self.label[seq]].add(seq)
        before = {j: self.label[j] for j in changed}
        former = {label: set(self.members[label]) for label in before.values()}
        reviewed = (seq + 1) % REVIEW_EVERY == 0 or lines[0].revision > 0
        for j, label in [*changed.items(), *new.items()]:
            if j in self.label:
                self.members[self.label[j]].discard(j)
            self.label[j] = label
            self.members[label].add(j)
        for event in events:
            assert event.seq == seq
            assert (event.moved is None) == (event.other is None)
            self.kinds[event.event] += 1
            if reviewed and event.event == "merged":
                self._absorbed(event)
                continue
            getattr(self, f"_{event.event}")(event, former, before)
        for label in {*before.values(), *changed.values(), *new.values()}:
            assert label in self.begun, f"record {seq}: {label} was never born"
            assert (label in self.live) == (len(self.members[label]) > 0), f"record {seq}: {label}"

    def _begin(self, event: Event) -> None:
        assert event.cluster not in self.begun, event
        self.begun.add(event.cluster)
        self.live.add(event.cluster)

    def _end(self, event: Event) -> None:
        assert event.cluster in self.live, event
        self.live.remove(event.cluster)

    def _born(self, event: Event, *_: object) -> None:
        self._begin(event)
        assert self.members[event.cluster] == {self.seq}
        assert (event.size, event.other) == (1, None)
        self._describes(event, {self.seq})

    def _closed(self, event: Event, *_: object) -> None:
        assert event.cluster in self.live, event
        assert event.size == len(self.members[event.cluster])
        assert event.other is None
        self._describes(event, self.members[event.cluster])
        self._end(event)

    _retired = _closed

    def _split(self, event: Event, former: dict[int, set[int]], before: dict[int, int]) -> None:
        self._begin(event)
        members = self.members[event.cluster]
        if self.seq not in before:  # of a change of the best hypothesis, the record itself comes after
            members = members - {self.seq}
        assert event.size == len(members)
        assert event.moved == most_first(Counter(before[j] for j in members))
        assert event.other == event.moved[0][0]
        assert event.other in self.live
        self._describes(event, members)

    def _merged(self, event: Event, former: dict[int, set[int]], before: dict[int, int]) -> None:
        self._end(event)
        members = former[event.cluster]
        assert event.size == len(members) > 0
        assert event.moved == most_first(Counter(self.label[j] for j in members))
        assert (event.event == "merged") == (len(event.moved) == 1)
        assert event.other == event.moved[0][0]
        assert event.other in self.live
        self._describes(event, members)

    _vanished = _merged

    def _titled(self, event: Event, *_: object) -> None:
        assert event.cluster in self.live, event
        assert event.size == len(self.members[event.cluster]) > 1
        assert event.title != self.titles.get(event.cluster)
        assert (event.event == "renamed") == (event.cluster in self.titles)
        self.titles[event.cluster] = event.title

    _renamed = _titled

    def _absorbed(self, event: Event) -> None:
        """By a second look: one of many changes between two records, of which only the outcome is seen."""
        self._end(event)
        assert not self.members[event.cluster]
        assert event.moved is not None
        assert [n for _, n in event.moved] == [event.size]

    def _describes(self, event: Event, members: set[int]) -> None:
        """Times, and words or mean, are those of the members."""
        if self.records is None:
            return
        own = [self.records[j] for j in sorted(members)]
        assert event.time == self.records[self.seq].time
        assert (event.first_time, event.last_time) == (own[0].time, own[-1].time)
        assert (event.words is None) != (event.mean is None)
        if event.words is not None:
            counts = Counter[str]()
            for record in own:
                counts.update(words_of(record))
            if self.telling or holds_categories(own[0].value):
                assert len(event.words) <= min(len(counts), 10)
            else:
                assert len(event.words) == min(len(counts), 10)
            assert all(counts[word] == count for word, count in event.words)
        else:
            assert event.mean is not None
            assert all(map(math.isfinite, event.mean))
            if len(own) == 1 and isinstance(own[0].value, list):
                assert event.mean == pytest.approx(own[0].value)


def words_of(record: Record) -> dict[str, int]:
    """The words of a text, or of counts."""
    if isinstance(record.value, str):
        return Counter(record.value.split())
    assert isinstance(record.value, dict)
    if holds_categories(record.value):
        return {f"{field}={value}": 1 for field, value in record.value.items()}
    return {word: int(count) for word, count in record.value.items()}


def causes(assignments: Iterable[Assignment]) -> Iterator[list[Assignment]]:
    """A record's first line and the revisions that follow it, up to the next first line."""
    group: list[Assignment] = []
    for line in assignments:
        if line.revision == 0 and group:
            yield group
            group = []
        group.append(line)
    if group:
        yield group
