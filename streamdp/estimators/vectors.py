"""Cluster vectors one at a time from the first; scales are learned again while there are few."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import hypot
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.describe import events_of
from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.search import BeamSearch, inherit
from streamdp.beam.single import Single
from streamdp.encode.batch import Batch, Labelled
from streamdp.encode.encoders import choose_encoder
from streamdp.encode.vector_encoder import HUGE, VectorEncoder
from streamdp.engine import Engine
from streamdp.estimators.reading import names_of, numbers_of
from streamdp.records import Event, Record
from streamdp.records.answer_rows import answer_rows
from streamdp.settings.assemble import are_directions
from streamdp.settings.blueprint import Blueprint

STAGES = (1, 2, 5, 10, 20, 50, 100)
"""Records after which scales are learned, before the warm-up ends."""

NO_REVISIONS = np.zeros((0, 2), np.int64)


class Vectors:
    """A clustering of vectors, or of features in a fixed order.

    Parameters
    ----------
    make
        Makes an engine: from its bytes, or a new one, with a warm-up of ``warmup`` records.
    blueprint
        The model that is meant.
    events
        Where events are added.
    """

    def __init__(self, make: Callable[..., Engine], blueprint: Blueprint, events: deque[Event]) -> None:
        self._make = make
        self._settings = blueprint.settings
        self._last = max(blueprint.warmup, 1)  # records from which scales are learned in the end
        self._events = events
        self._early: list[tuple[Any, float | None]] = []
        self._labels: list[int] = []
        self._time = 0.0
        self.names: list[Any] | None = None
        self._engine: Engine | None = None
        self._single: Single | None = None
        self._encoder: VectorEncoder | None = None
        self._plain = self._directions = False
        self._learning = True
        self._latest: list[int] = []  # labels of the records that are not retained yet
        self._times: list[float] = []
        self._revised: list[np.ndarray] = []  # numbers and labels

    def learn(self, x: Any, t: float | None) -> int:
        """Let a record join; the label that it was given."""
        if self._learning:
            return self._learn_early(x, t)
        return self._absorb(self._fill(x, t))

    def _absorb(self, single: Single) -> int:
        out, latest = single.learn(), self._latest
        if single.events():
            search = self._search()
            self._events.extend(events_of(search, out, search.seq - 1, [self._time or None], None))
        if count := single.revisions():
            revised = out.revisions[:count]
            self._revised.append(np.stack([revised["seq"], revised["label"]], axis=1))
        label, at = int(single.label.item(0)), len(latest) * len(self._row)
        self._into[at : at + len(self._row)] = self._row
        self._times.append(self._time)
        latest.append(label)
        if len(latest) == self._room:
            self._retain()
        return label

    def _retain(self) -> None:
        """Let the engine retain the latest records, and look back where that is due."""
        engine, latest = self._engine, self._latest
        if engine is not None and latest:
            batch = Batch.of_vectors(self._rows[: len(latest)].copy(), np.array(self._times))
            part = Labelled(engine.seq - len(latest), batch, np.array(latest, np.int64))
            self._events.extend(engine.take_absorbed(part, np.concatenate([NO_REVISIONS, *self._revised])))
            self._begin_part()

    def _begin_part(self) -> None:
        """Hold no records that are not retained; as many may come as there are until the next look."""
        self._latest, self._times, self._revised = [], [], []
        self._room = REVIEW_EVERY - self._search().seq % REVIEW_EVERY

    def _learn_early(self, x: Any, t: float | None) -> int:
        early, names = self._early, names_of([x])
        # what is wrong is reported before anything is kept
        self._row_of(x, self.names if names == [] else names)
        early.append((numbers_of(x, None) if names is None else dict(x), t))
        n = len(early)
        again = n in STAGES or n >= self._last
        label = self._begin_again() if again else self._absorb(self._fill(x, t))
        self._labels.append(label)
        if n >= self._last:
            self._learning, self._early, self._labels = False, [], []
        return label

    def _begin_again(self) -> int:
        """Cluster all records so far anew, with the scales that they suggest; the label of the last."""
        rows = [x for x, _ in self._early]
        self.names = names_of(rows)
        self._engine = self._make(**({"warmup": len(rows)} if self._last > 1 else {}))
        records = [Record(numbers_of(x, self.names), {}, time=t) for x, t in self._early]
        answers = self._engine.advance(records)
        for reject in answers.rejects:
            raise ValueError(reject.detail)
        labels = np.zeros(len(rows), np.int64)
        found = answer_rows(answers.lines).rows
        labels[found["seq"]] = found["label"]  # the last of several counts
        before, places = (
            np.array(self._labels, np.int64),
            np.unique(labels, return_inverse=True)[1].reshape(-1),
        )
        names, minted = inherit(before, places[:-1])
        names = np.concatenate([names, minted + np.arange(places.max() + 1 - len(names))])
        named = self._engine.rename(labels, names[places], int(before.max(initial=-1)) + 1)
        self._events.clear()
        self._events.extend(_renamed(answers.events, dict(zip(labels.tolist(), named.tolist(), strict=True))))
        self._labels = named[:-1].tolist()
        self._go_on()
        return int(named[-1])

    def _go_on(self) -> None:
        """Take one record at a time from here."""
        search = self._search()
        family: Any = search.likelihood
        self._single = Single(search, family.dimension, with_events=True)
        self._single.time[0] = self._time
        self._directions = are_directions(self._settings, search)
        self._plain = family.reads_all and not self._settings.normalise
        if self._encoder is not None:
            self._encoder.normalise = self._settings.normalise or self._directions
        self._pack = struct.Struct(f"{family.dimension}d").pack_into
        self._rows = np.zeros((REVIEW_EVERY, family.dimension))
        self._into, self._row = self._rows.data.cast("B"), self._single.row.data.cast("B")
        self._begin_part()

    def _search(self) -> BeamSearch:
        assert self._engine is not None
        assert self._engine.search is not None
        return self._engine.search

    def _fill(self, x: Any, t: float | None) -> Single:
        """Write a record where kernels read it."""
        single, names = self._single, self.names
        assert single is not None
        try:
            if names is None:
                numbers: Any = None if isinstance(x, dict) else x
            else:
                get = x.get
                numbers = [get(name, 0.0) for name in names]
            length = hypot(*numbers)
            plain = length < HUGE and (self._plain or (self._directions and length > 0.0))
            if plain:
                self._pack(single.row, 0, *numbers)
                if self._directions:
                    single.row[:] = VectorEncoder.normalised(single.row[np.newaxis])[0]
        except (TypeError, AttributeError, OverflowError, struct.error):
            plain = False
        if not plain:
            single.row[:] = self._row_of(x, names)
        if t is not None and t > self._time:
            self._time = t
            single.time[0] = t
        return single

    def _row_of(self, x: Any, names: list[Any] | None) -> Any:
        """The numbers of a record as the family takes them. ValueError or TypeError where it takes none."""
        if self._single is not None and isinstance(x, Mapping) != (self.names is not None):
            raise TypeError("a record holds features, or a vector, and those before held the other")
        numbers = numbers_of(x, names)
        record = Record(numbers, {})
        if self._encoder is None:
            made = choose_encoder(record, self._settings, sparse=False)
            assert isinstance(made, VectorEncoder)
            made.normalise |= self._directions
            self._encoder = made
        size = self._encoder.dimension if self._single is None else len(self._single.row)
        if names is None and len(numbers) != size:
            raise ValueError(f"a vector has {len(numbers)} numbers, and those before had {size}")
        self._encoder.dimension = len(numbers)
        reject = self._encoder.add_one(record)
        if reject is not None:
            raise ValueError(reject.detail)
        return self._encoder.rows.pop()

    def score(self, x: Any) -> BeamSearch | None:
        """The beam that has scored a record; None while there are too few."""
        if self._single is None:
            return None
        self._fill(x, None).score()
        return self._search()

    def predict(self, x: Any) -> int | None:
        """The label that a record would be given."""
        if self._single is None:
            return None
        single = self._fill(x, None)
        single.score()
        label = int(single.label[0])
        return self._search().next_label if label < 0 else label

    def novelty(self, x: Any) -> float:
        """Negative log predictive density, in nats; 0 while there are too few records."""
        search = self.score(x)
        return 0.0 if search is None else -float(search.out.answers["log_predictive"][0])

    @property
    def engine(self) -> Engine | None:
        """The engine; records that it takes here pass by its answers, so that all of them count as final."""
        if self._engine is not None:
            self._retain()
            self._engine.close_answers()
        return self._engine

    def dump(self) -> dict[str, Any]:
        """All that is held, as plain values."""
        return {
            "engine": None if self.engine is None else self.engine.dumps(),
            "names": self.names,
            "early": list(self._early),
            "labels": list(self._labels),
            "time": self._time,
            "learning": self._learning,
        }

    @classmethod
    def load(
        cls, stored: dict[str, Any], make: Callable[..., Engine], blueprint: Blueprint, events: deque[Event]
    ) -> Vectors:
        """The inverse of :meth:`dump`."""
        self = cls(make, blueprint, events)
        if stored["engine"] is None:
            return self
        self._early = [tuple(each) for each in stored["early"]]
        self._labels, self._time, self.names = stored["labels"], stored["time"], stored["names"]
        self._learning = stored["learning"]
        self._engine = make(stored["engine"])
        self._go_on()
        return self


def _renamed(events: Sequence[Event], names: dict[int, int]) -> list[Event]:
    """Events of clusters that have other labels now; those of clusters that have none left are dropped."""
    return [
        msgspec.structs.replace(
            event,
            cluster=names[event.cluster],
            other=names.get(event.other, event.other) if event.other is not None else None,
            moved=event.moved and [(names.get(label, label), n) for label, n in event.moved],
        )
        for event in events
        if event.cluster in names
    ]
