"""The chance that a record is of the class of its cluster, where some records of the stream have classes.

Classes come from a field of the records, or from corrections by hand; they change no clustering. The class of
a cluster is that of most of the labelled records which have its label now. Answers are put into cells, by
what the labels of the cluster say and by their probability. Of each cell it is counted how many labelled
records there were, and how many of them had the class of their cluster. Old counts fade.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamdp.kernels.sound import RECORDS, reals_of, require
from streamdp.ledger.table import to_digits
from streamdp.records.columns import Columns

LABELS = 5000
"""Labelled records that are remembered, the latest."""

FADE = 1.0 - 1.0 / 2000.0
"""What is left of each count with the next labelled record."""

LEAST = np.array([0.5, 0.85, 0.99])
"""Probabilities at which the next cell begins."""

USUAL = np.array(
    [
        [0.55, 0.75, 0.85, 0.94],
        [0.47, 0.43, 0.44, 0.31],
        [0.45, 0.38, 0.47, 0.49],
        [0.51, 0.73, 0.84, 0.97],
        [0.55, 0.74, 0.87, 0.97],
    ]
)
"""The share of a cell that is usually right, by the labels of its cluster (``kind_of``) and probability."""

WEIGHT = 10.0
"""How many labelled records stand for what is usual, in each cell."""

MIXED, AGREED, MANY = 0.6, 0.9, 5
LONGEST = 200
"""Characters of a class that are compared."""

NOTHING = math.nan, math.nan


def kind_of(most: int, labels: int) -> int:
    """Which row of ``USUAL`` a cluster has that has so many labels, ``most`` of them of one class.

    One label; fewer than ``MIXED`` of them agree; than ``AGREED``; more, of fewer than ``MANY``; of more.
    """
    if labels == 1:
        return 0
    if most < MIXED * labels:
        return 1
    if most < AGREED * labels:
        return 2
    return 3 if labels < MANY else 4


NONE = np.zeros((0, 2))
"""What is told where no record has a class."""

_ASKED = ("label", "probability")


class _Known(NamedTuple):
    """The newest label of a record, its class, and which correction has said so (0 for the record itself)."""

    cluster: int
    name: str
    by: int


class Confidence(msgspec.Struct, dict=True):
    """How often labelled records had the class of most labels of their cluster, by cell.

    ``field`` is the kept field that holds the class of a record, None where records have none. By cell there
    are labelled records, and those that had the class. It is stored as it is.
    """

    field: str | None = None
    known: dict[int, _Known] = {}
    cells: np.ndarray = msgspec.field(default_factory=lambda: np.zeros((2, USUAL.size)))

    def __post_init__(self) -> None:
        require(len(self.known) <= LABELS, "too many records have a class")
        numbers = (number for seq, each in self.known.items() for number in (seq, each.cluster, each.by))
        require(all(0 <= number < RECORDS for number in numbers), "a record of a class is out of range")
        count, right = reals_of({"cells": self.cells}, "cells", (2, USUAL.size))
        sound = (right >= 0).all() and (right <= count + 1e-9).all()
        require(sound, "more labelled records had the class of their cluster than there were")
        self._classes: dict[int, Counter[str]] = {}
        for seq, known in self.known.items():
            self._remember(seq, known)

    @property
    def labels(self) -> int:
        """How many labelled records are remembered."""
        return len(self.known)

    def take(
        self, first: int, answers: np.ndarray, revisions: np.ndarray, records: Columns
    ) -> tuple[np.ndarray, np.ndarray]:
        """``confidence`` and its number of labels, of records from number ``first`` on and of revisions.

        ``answers`` are those of the records, ``revisions`` what they brought. Returns those of the answers,
        shape (n, 2), and of the revisions, shape (m, 2), NaN where the cluster has no labels; nothing of
        either where none has any.
        """
        if self.field is None and not self.known:
            return NONE, NONE
        found, again = (np.full((len(rows), 2), math.nan) for rows in (answers, revisions))
        classes, r = dict(_classes(records, self.field)), 0
        by = revisions["by"].tolist()
        for i, (cluster, share) in enumerate(zip(*(answers[name].tolist() for name in _ASKED), strict=True)):
            found[i] = self.told(cluster, share)
            if i in classes:
                self.learn(first + i, cluster, share, classes[i])
            while r < len(by) and by[r] == first + i:
                again[r] = self._revise(revisions[r])
                r += 1
        for n in range(r, len(by)):
            again[n] = self._revise(revisions[n])
        return found, again

    def told(self, cluster: int, probability: float) -> tuple[float, float]:
        """``confidence`` in a cluster at a probability, and its number of labels; NaN without labels."""
        if not (classes := self._classes.get(cluster)):
            return NOTHING
        cell = _cell(classes, probability)
        count, right = self.cells[:, cell].tolist()
        return to_digits((right + WEIGHT * USUAL.flat[cell]) / (count + WEIGHT)), self.labels

    def learn(self, seq: int, cluster: int, probability: float, name: str, by: int = 0) -> None:
        """A record that was put into a cluster is of a class, unless it is known to be of one already."""
        if seq in self.known or cluster < 0:
            return
        if classes := self._classes.get(cluster):
            self.cells *= FADE
            self.cells[:, _cell(classes, probability)] += 1.0, name == _majority(classes)[0]
        self._remember(seq, _Known(cluster, name, by))
        if len(self.known) > LABELS:
            self.forget([next(iter(self.known))])

    def class_of(self, cluster: int) -> str:
        """The class of most labels of a cluster; one of its own where it has none."""
        classes = self._classes.get(cluster)
        return _majority(classes)[0] if classes else f"story {cluster}"

    def unite(self, before: int, after: int) -> None:
        """A label has become an older one."""
        for seq in [seq for seq, known in self.known.items() if known.cluster == before]:
            self.move(seq, after)

    def move(self, seq: int, cluster: int) -> None:
        """A record has another label."""
        if (known := self.known.get(seq)) is not None:
            self._uncount(known)
            self._remember(seq, known._replace(cluster=cluster))  # in its place among the others

    def lift(self, number: int) -> None:
        """A correction is no longer in force."""
        self.forget([seq for seq, known in self.known.items() if number and known.by == number])

    def _revise(self, revision: Any) -> tuple[float, float]:
        cluster = int(revision["label"])
        self.move(int(revision["seq"]), cluster)
        return self.told(cluster, to_digits(revision["probability"]))

    def _remember(self, seq: int, known: _Known) -> None:
        self.known[seq] = known
        self._classes.setdefault(known.cluster, Counter())[known.name] += 1

    def forget(self, seqs: Iterable[int]) -> None:
        """Forget the classes of these records."""
        for seq in self.known.keys() & set(seqs):
            self._uncount(self.known.pop(seq))

    def _uncount(self, known: _Known) -> None:
        classes = self._classes[known.cluster]
        classes[known.name] -= 1
        if not classes[known.name]:
            del classes[known.name]
        if not classes:
            del self._classes[known.cluster]


def _majority(classes: Counter[str]) -> tuple[str, int]:
    """The class with most labels and how many; of equals the first by name, so that order has no part."""
    return min(classes.items(), key=lambda found: (-found[1], found[0]))


def _cell(classes: Counter[str], probability: float) -> int:
    kind = kind_of(_majority(classes)[1], classes.total())
    return kind * len(USUAL[0]) + int(np.searchsorted(LEAST, to_digits(probability), side="right"))


def _classes(records: Columns, field: str | None) -> Iterable[tuple[int, str]]:
    """The classes of the records that have one, by place."""
    if field not in records.keep:
        return
    spans = records.given.kept[:, records.keep.index(field)]
    for i in np.flatnonzero(spans[:, 0] >= 0).tolist():
        name = _name((records.kept(i) or {}).get(field))[:LONGEST]
        if name:
            yield i, name


def _name(value: Any) -> str:
    """A class as it is compared; empty for none."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()
