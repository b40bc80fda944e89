"""The clusters of vectors at a look: which parameters suit them, and which of them are one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamdp.beam.data.state import Output
from streamdp.beam.looks.recent import Recent
from streamdp.beam.looks.review import Due, labels_of, run_looks
from streamdp.beam.looks.uniting import (
    Tail,
    collect_rows,
    evidence_of_tail,
    ratios_of_unions,
    tail_of,
    unite_rows,
    unite_slots,
    weigh_pairs,
    weigh_rows,
    weigh_strays,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import MEMBERS, nearest, whitened
from streamdp.likelihoods.vectors import NormalFamily, log_marginal_entry

NEAR = 6
"""Clusters with which each is weighed as one: those whose centres are nearest."""

LOOSE = 0.1
"""Share of its records that the prior mean counts for at a look: clusters must gain more by being apart."""

TAILS = (4.0, 25.0)
"""Degrees of freedom of the tails that clusters may have."""

ASKED = 1000
"""Records that are asked for tails, at most, evenly spaced."""


class Clusters:
    """The open clusters of retained records, numbered, and what is gained by making one of two.

    ``ratio`` is the log ratio of the prior of all unions so far; ``share``, by slot, how sure they are.
    """

    def __init__(
        self, search: BeamSearch, recent: Recent, batch: Batch, due: Due, *, with_events: bool
    ) -> None:
        assert isinstance(search.likelihood, VectorFamily)
        assert batch.vectors is not None
        self.family: Any = search.likelihood
        self.ratio, self.share = 0.0, np.ones(len(recent.head))
        self._search, self._recent, self._with_events = search, recent, with_events
        self._vectors = np.ascontiguousarray(batch.vectors, np.float64)
        self._slots = np.flatnonzero(recent.held > 0)
        pool, held = search.state.pool, recent.slot[: max(due.since - recent.first, 0)]
        stays = recent.held < pool.slots["size"]
        stays[held[held >= 0]] = True
        if len(due.whole):
            stays[self._slots] |= np.isin(labels_of(search, self._slots), due.whole)
        self._stays = stays[self._slots]
        self._founders = pool.founder[self._slots]
        self._able = ((self._founders <= search.seq - due.age) | due.last) & (pool.pinned[self._slots] == 0)
        self._gone = np.zeros(len(self._slots), bool)
        self._block = np.zeros((len(self._slots), self.family.width))
        self._row = np.zeros(self.family.width)
        collect_rows(_lasting(self.family).terms(), self._vectors, self._places(), self._block)

    def __len__(self) -> int:
        """How many there are."""
        return int((~self._gone).sum())

    def _places(self) -> np.ndarray:
        """The number of each record's cluster, -1 for none."""
        place = np.full(len(self._recent.head) + 1, -1)
        place[self._slots] = np.arange(len(self._slots))
        return np.asarray(place[self._recent.slot])

    def choose(self, began: VectorFamily) -> None:
        """Take the parameters under which the clusters' records are likeliest, of those they suggest."""
        for name in ("_slots", "_stays", "_founders", "_able", "_block", "_gone"):
            setattr(self, name, getattr(self, name)[~self._gone])
        found = _lasting(began).loosened(LOOSE).suggested(self._block)
        if found:
            plain: Any = found[int(np.argmax([self._weigh(family).sum() for family in found]))]
            self.family = replace(self.family, **{name: getattr(plain, name) for name in plain.learned})
        plain = self._plain = _lasting(self.family).loosened(LOOSE)
        self._terms, self._log_h = plain.terms(), self._weigh(plain)
        self._centres = whitened(np.array([plain.centre(row) for row in self._block]), plain.within)

    def _weigh(self, family: VectorFamily) -> np.ndarray:
        found = np.zeros(len(self._block))
        weigh_rows(family.terms(), self._block, found)
        return found

    # ---------------------------------------------------------------- those that are one

    def unite(self, least: float) -> Iterator[Output]:
        """Make one of the two clusters that gain most by it, again while that is more than ``least`` nats."""
        able = np.flatnonzero(self._able)
        near = able[nearest(self._centres[able], max(min(NEAR, len(able) - 1), 0))]
        each = np.stack([np.repeat(able, near.shape[1]), near.reshape(-1)], axis=1)
        pairs, gains, ratios = self._weighed(np.unique(np.sort(each, axis=1), axis=0))
        while gains.max(initial=0.0) > least:
            p = int(np.argmax(gains))
            gone, into = pairs[p].tolist()
            yield from self._join(gone, into, float(gains[p]), float(ratios[p]))
            keep = ~np.isin(pairs, (gone, into)).any(axis=1)
            pairs, gains, ratios = pairs[keep], gains[keep], ratios[keep]
            # that there is one cluster less means the same for all pairs
            less = float((self._ratios_of(pairs[:1]) - ratios[:1]).sum())
            known = pairs, gains + less, ratios + less
            others = self._nearest(into, self._able)
            fresh = self._weighed(np.stack([np.full(len(others), into), others], axis=1))
            pairs, gains, ratios = map(np.concatenate, zip(known, fresh, strict=True))

    def _nearest(self, k: int, among: np.ndarray) -> np.ndarray:
        """The nearest clusters of one among others."""
        others = np.flatnonzero(among)
        others = others[others != k]
        squares = np.square(self._centres[others] - self._centres[k]).sum(axis=1)
        return np.asarray(others[np.argsort(squares, kind="stable")[:NEAR]])

    def _weighed(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of which one can go, that one first; what they gain as one, and the prior's part of it."""
        pairs = pairs[~self._stays[pairs].all(axis=1)]
        sizes = np.where(self._stays, len(self._recent.slot) + 1, self._recent.held[self._slots])
        first, second = pairs[:, 0], pairs[:, 1]
        older = self._founders[first] < self._founders[second]
        swapped = (sizes[first] > sizes[second]) | ((sizes[first] == sizes[second]) & older)
        small, large = np.where(swapped, second, first), np.where(swapped, first, second)
        gains = np.zeros(len(pairs))
        weigh_pairs(self._terms, self._block, large, small, self._row, gains)
        pairs = np.stack([small, large], axis=1)
        ratios = self._ratios_of(pairs)
        return pairs, gains + ratios - self._log_h[small] - self._log_h[large], ratios

    def _ratios_of(self, pairs: np.ndarray) -> np.ndarray:
        search, ratios = self._search, np.zeros(len(pairs))
        slots = self._slots[pairs[:, 0]], self._slots[pairs[:, 1]]
        ratios_of_unions(search.model.prior, search.state, self._recent, *slots, ratios)
        return ratios

    def _join(self, gone: int, into: int, gain: float, ratio: float) -> Iterator[Output]:
        """Make a cluster part of another."""
        search, slot, other = self._search, int(self._slots[gone]), int(self._slots[into])
        self.ratio += ratio
        sure = float(1.0 / (1.0 + np.exp(-gain)))
        self.share[other] = min(self.share[slot], self.share[other], sure)

        def unite(out: Output) -> None:
            unite_slots(search.model, search.state, self._recent, out, slot, other)

        yield from run_looks(search, unite, 1, 0, 1, self._with_events)
        unite_rows(self._terms, self._block, gone, into)
        self._gone[gone], self._able[gone] = True, False
        self._log_h[into] = log_marginal_entry(self._terms, self._block[into])
        centre = self._plain.centre(self._block[into])[np.newaxis]
        self._centres[into] = whitened(centre, self._plain.within)[0]

    # ---------------------------------------------------------------- strays

    def take_strays(self, least: float) -> Iterator[Output]:
        """Where clusters have tails, make small clusters part of larger ones whose strays they may be."""
        free = self._able & ~self._stays
        if "location" not in self._plain.parts or not free.any():
            return
        order = np.lexsort((self._founders, self._recent.held[self._slots]))
        order = order[free[order]]
        tails = [tail_of(degrees, self.family.dimension) for degrees in TAILS]
        small = [(k, *self._larger(k)) for k in order.tolist()]
        gained = [
            np.array([self._as_strays(*each, tail).max(initial=0.0) for each in small]) for tail in tails
        ]
        if max(gains.max() for gains in gained) <= least:
            return
        evidence = [self._evidence_of(tail) + gains.sum() for tail, gains in zip(tails, gained, strict=True)]
        if max(evidence) <= 0.0:
            return
        tail = tails[int(np.argmax(evidence))]
        for k in order.tolist():
            others, ratios = self._larger(k)
            gains = self._as_strays(k, others, ratios, tail)
            if gains.max(initial=0.0) > least:
                p = int(np.argmax(gains))
                yield from self._join(k, int(others[p]), float(gains[p]), float(ratios[p]))

    def _larger(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Larger clusters near one, and what the prior says of it as a part of each."""
        sizes = self._recent.held[self._slots]
        others = self._nearest(k, self._able & (sizes >= max(sizes[k], MEMBERS)))
        return others, self._ratios_of(np.stack([np.full(len(others), k), others], axis=1))

    def _as_strays(self, k: int, others: np.ndarray, ratios: np.ndarray, tail: Tail) -> np.ndarray:
        """What a cluster gains as strays of each of others; not by how much it would lose."""
        gains, records = ratios - self._log_h[k], (self._vectors, self._recent, int(self._slots[k]))
        weigh_strays(self._terms, self._block, *records, others, self._location, tail, gains)
        return gains

    def _evidence_of(self, tail: Tail) -> float:
        """What records of larger clusters gain by a tail, in nats; those that are asked count for all."""
        place = self._places()
        place[self._recent.held[self._recent.slot] < MEMBERS] = -1
        found = np.flatnonzero(place >= 0)
        count = min(ASKED, len(found))
        asked = found[np.arange(count) * len(found) // count]
        known = self._terms, self._block, self._vectors[asked], place[asked]
        return evidence_of_tail(*known, self._location, tail, self._row) * len(found) / count

    @property
    def _location(self) -> int:
        """Where rows say around what the predictive lies."""
        return int(self._plain.parts["location"].start)


def _lasting(family: VectorFamily) -> VectorFamily:
    """The family as it is where nothing is forgotten."""
    return replace(family, forget=1.0) if isinstance(family, NormalFamily) else family
