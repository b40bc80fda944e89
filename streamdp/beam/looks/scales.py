"""Vectors look back: the prior's scale follows the clusters found, and whole clusters are united under it.

The scale that near neighbours suggest is rather too small on purpose, so that many clusters begin as several.
The clusters found tell better how wide clusters are, and how alike they are in that: so the likelihood's
parameters are chosen anew, then those clusters united that are one under them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamdp.beam.data.state import Output
from streamdp.beam.looks.rearrange import keep_head, tidy
from streamdp.beam.looks.recent import Recent
from streamdp.beam.looks.review import Due, gather_recent, run_looks
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.beam.looks.uniting import (
    collect_rows,
    ratios_of_unions,
    rebase_slots,
    revise_moved,
    unite_rows,
    unite_slots,
    weigh_pairs,
    weigh_rows,
)
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.kernels.rows import power_of_two
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import MEMBERS, nearest, whitened
from streamdp.likelihoods.vectors import NormalFamily, log_marginal_entry

EVERY = 2048
"""Records between two looks; the first come sooner, each when the stream is twice as long."""

AGED = 2
"""Multiple of the age of a second look from which on clusters are united while the stream goes on."""

FREEDOM = 10
"""Degrees of freedom in each dimension from which on clusters tell how wide clusters are."""

ROUNDS = 4
"""Times that parameters are chosen and clusters united, at most: until none are."""

NEAR = 6
"""Clusters with which each is weighed as one: those whose centres are nearest."""

NONE = np.zeros(0, np.int64)


def due_at(seq: int) -> bool:
    """Whether a review after so many records looks at vectors."""
    return seq % min(EVERY, power_of_two(seq)) == 0


def are_shown(labels: np.ndarray, dimension: int) -> bool:
    """Whether clusters of these labels tell how wide clusters are."""
    sizes = np.unique(labels, return_counts=True)[1]
    return bool((sizes[sizes >= MEMBERS] - 1).sum() >= FREEDOM * dimension)


def follow(
    search: BeamSearch,
    first: int,
    batch: Batch,
    labels: np.ndarray,
    due: Due,
    began: VectorFamily,
    *,
    with_events: bool,
) -> Iterator[Output]:
    """Choose the likelihood's parameters by the clusters found; unite those that are one.

    The best hypothesis decides everything before; the likelihood of the search is replaced. While the stream
    goes on, clusters are united that are of age and gain as much as a change of the lead takes: what has
    become one is never parted.

    Parameters
    ----------
    search
        The running beam.
    first, batch, labels
        The latest records, the number of the first of them, and the newest labels.
    due
        From which record on clusters may become part of others, and of which age they are to be; of which
        records does not matter.
    began
        The likelihood as the first records suggested it.
    with_events
        Whether cluster events are wanted.

    Yields
    ------
    Revisions and events; the buffers are used again when the iterator goes on.
    """

    def keep(out: Output) -> None:
        keep_head(search.model, search.state, out, search.choice)

    yield from run_looks(search, keep, 1, 0, 1, with_events)
    recent = gather_recent(search, first, batch, labels)
    before, least = recent.slot.copy(), LEAST_GAIN if due.last else search.model.trial
    clusters = _Clusters(search, recent, batch, due)
    log_h = -rebase_slots(search.model.family, search.state)
    for _ in range(ROUNDS):
        clusters.choose(began)
        if clusters.gain <= least:
            break
        while clusters.gain > least:
            yield from clusters.unite(with_events=with_events)
    search.rebase(clusters.family)
    log_h += rebase_slots(search.model.family, search.state)
    tidy(search.state, recent, NONE, clusters.ratio + log_h)
    moved = np.flatnonzero(recent.slot != before)
    shares = clusters.share[recent.slot[moved]]

    def tell(out: Output) -> None:
        revise_moved(search.state, recent, out, moved, shares)

    yield from run_looks(search, tell, len(moved), len(moved), 1, with_events)


class _Clusters:
    """The open clusters of retained records, numbered, and what is gained by making one of two.

    ``ratio`` is the log ratio of the prior of all unions so far; ``share``, by slot, how sure they are.
    """

    def __init__(self, search: BeamSearch, recent: Recent, batch: Batch, due: Due) -> None:
        likelihood = search.likelihood
        assert isinstance(likelihood, VectorFamily)
        assert batch.vectors is not None
        self.family: Any = likelihood
        self.ratio, self.share = 0.0, np.ones(len(recent.head))
        self._search, self._recent = search, recent
        self._slots = np.flatnonzero(recent.held > 0)
        pool, held = search.state.pool, recent.slot[: max(due.since - recent.first, 0)]
        stays = recent.held < pool.slots["size"]
        stays[held[held >= 0]] = True
        self._stays = stays[self._slots]
        self._founders = pool.founder[self._slots]
        self._of_age = (self._founders <= search.seq - due.age) | due.last
        place = np.full(len(recent.head) + 1, -1)
        place[self._slots] = np.arange(len(self._slots))
        self._block = np.zeros((len(self._slots), likelihood.width))
        self._union = np.zeros(likelihood.width)
        vectors = np.ascontiguousarray(batch.vectors, np.float64)
        collect_rows(_lasting(likelihood).terms(), vectors, place[recent.slot], self._block)

    def choose(self, began: VectorFamily) -> None:
        """Take the parameters under which the clusters' records are likeliest, of those they suggest."""
        found = _lasting(began).suggested(self._block)
        if found:
            plain: Any = found[int(np.argmax([self._weigh(family).sum() for family in found]))]
            self.family = replace(self.family, **{name: getattr(plain, name) for name in plain.learned})
        plain, able = _lasting(self.family), np.flatnonzero(self._of_age)
        self._terms, self._log_h = plain.terms(), self._weigh(plain)
        self._centres = whitened(np.array([plain.centre(row) for row in self._block]), plain.within)
        near = able[nearest(self._centres[able], max(min(NEAR, len(able) - 1), 0))]
        each = np.stack([np.repeat(able, near.shape[1]), near.reshape(-1)], axis=1)
        pairs = np.unique(np.sort(each, axis=1), axis=0)
        self._pairs, self._gains, self._ratios = self._weighed(pairs)

    def _weigh(self, family: VectorFamily) -> np.ndarray:
        found = np.zeros(len(self._block))
        weigh_rows(family.terms(), self._block, found)
        return found

    def _weighed(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of which one can go, that one first; what they gain as one, and the prior's part of it."""
        pairs = pairs[~self._stays[pairs].all(axis=1)]
        sizes = np.where(self._stays, len(self._recent.slot) + 1, self._recent.held[self._slots])
        first, second = pairs[:, 0], pairs[:, 1]
        older = self._founders[first] < self._founders[second]
        swapped = (sizes[first] > sizes[second]) | ((sizes[first] == sizes[second]) & older)
        small, large = np.where(swapped, second, first), np.where(swapped, first, second)
        gains = np.zeros(len(pairs))
        weigh_pairs(self._terms, self._block, large, small, self._union, gains)
        pairs = np.stack([small, large], axis=1)
        ratios = self._ratios_of(pairs)
        return pairs, gains + ratios - self._log_h[small] - self._log_h[large], ratios

    def _ratios_of(self, pairs: np.ndarray) -> np.ndarray:
        search, ratios = self._search, np.zeros(len(pairs))
        slots = self._slots[pairs[:, 0]], self._slots[pairs[:, 1]]
        ratios_of_unions(search.model.prior, search.state, self._recent, *slots, ratios)
        return ratios

    @property
    def gain(self) -> float:
        """The most that is gained by making one of two clusters, nats."""
        return float(self._gains.max(initial=0.0))

    def unite(self, *, with_events: bool) -> Iterator[Output]:
        """Make one of the two clusters that gain most by it."""
        p = int(np.argmax(self._gains))
        gone, into = self._pairs[p].tolist()
        slot, other = int(self._slots[gone]), int(self._slots[into])
        self.ratio += float(self._ratios[p])
        sure = float(1.0 / (1.0 + np.exp(-self._gains[p])))
        self.share[other] = min(self.share[slot], self.share[other], sure)
        search = self._search

        def unite(out: Output) -> None:
            unite_slots(search.model, search.state, self._recent, out, slot, other)

        yield from run_looks(search, unite, 1, 0, 1, with_events)
        unite_rows(self._terms, self._block, gone, into)
        self._without(gone, into)

    def _without(self, gone: int, into: int) -> None:
        """Number the clusters without one that has become part of another; weigh that one again."""
        for name in ("_slots", "_stays", "_founders", "_of_age", "_block", "_log_h", "_centres"):
            setattr(self, name, np.delete(getattr(self, name), gone, axis=0))
        keep = ~np.isin(self._pairs, (gone, into)).any(axis=1)
        pairs = self._pairs[keep] - (self._pairs[keep] > gone)
        gains, ratios = self._gains[keep], self._ratios[keep]
        # that there is one cluster less means the same for all pairs
        less = float((self._ratios_of(pairs[:1]) - ratios[:1]).sum())
        into -= into > gone
        plain: Any = _lasting(self.family)
        self._log_h[into] = log_marginal_entry(self._terms, self._block[into])
        self._centres[into] = whitened(plain.centre(self._block[into])[np.newaxis], plain.within)[0]
        squares = np.square(self._centres - self._centres[into]).sum(axis=1)
        squares[into], squares[~self._of_age] = np.inf, np.inf
        near = np.argsort(squares, kind="stable")[: max(min(NEAR, int(self._of_age.sum()) - 1), 0)]
        fresh = self._weighed(np.stack([np.full(len(near), into), near], axis=1))
        known = pairs, gains + less, ratios + less
        self._pairs, self._gains, self._ratios = map(np.concatenate, zip(known, fresh, strict=True))


def _lasting(family: VectorFamily) -> VectorFamily:
    """The family as it is where nothing is forgotten."""
    return replace(family, forget=1.0) if isinstance(family, NormalFamily) else family
