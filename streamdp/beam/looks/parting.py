"""Partings: a cluster that holds two topics becomes two.

A search that goes record by record does not undo it: a record fits where the others of its topic are. So a
cluster that has grown to twice what it was is tried as two. They begin as the records with a word that tells
them apart, and those without it; then each record goes where it fits better. The cluster is parted where that
raises the log joint, and its parts are about as unlike as clusters that have nothing to do with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

import numpy as np

from streamdp.beam.clusters.index import Index
from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.looks.dividing import PART, Bags, divide, try_as_two, weigh_strangers
from streamdp.beam.looks.moves import Moves, head_by_label, is_full
from streamdp.beam.looks.rearrange import tidy
from streamdp.beam.looks.review import Due, by_label, doubled, gather_recent, slots_of
from streamdp.beam.looks.uniting import ratios_of_unions
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.kernels.rows import made
from streamdp.likelihoods import WordFamily

PART_EVERY = 2 * REVIEW_EVERY
"""Records between two tries."""

LEAST = 32
"""Records of a cluster that is tried, the first time; then at each doubling."""

MOST = 256
"""Records by which the parts are found, the latest; the others then go where they fit."""

UNLIKE = 0.6
"""What one part loses by being one with the other, in what it would lose with a stranger, at least."""

STRANGERS = 10
"""Clusters of about the size of the larger part that it is compared with; the median counts."""


class Few:
    """The words of a few records as kernels read them, and the family's terms for them.

    ``room`` is how many tokens, and words, a cluster may have that is compared with them.
    """

    def __init__(self, search: BeamSearch, batch: Batch, room: int = 0) -> None:
        self.known = np.flatnonzero(np.bincount(batch.words))
        family, n = search.likelihood, len(self.known)
        numbers = np.zeros(self.known[-1] + 1, np.int32)
        numbers[self.known] = np.arange(n)
        words = numbers[batch.words]
        assert isinstance(family, WordFamily)
        base = family.measure(search.words.learned, self.known)
        by_record = np.bincount(words, minlength=n + room)
        by_word = np.bincount(words, batch.counts, n + room).astype(np.int64)
        wide = base
        if room:  # tables reach as far as the counts of words
            by_word[n] = room
            wide = np.append(base, np.full(room, base.min()))
        self.terms = family.set_terms(by_word, by_record, wide)
        self._rarity, sizes = -np.log(base), {"records": batch.size, "words": n}
        self.bags = made(Bags, sizes, offsets=batch.offsets, words=words, counts=batch.counts)

    def divide(self, side: np.ndarray, sweeps: int) -> float:
        """Put all records where they fit better, in place; log H with the prior's part."""
        return divide(self.terms, self.bags, side, sweeps)

    def as_two(self, starts: np.ndarray) -> np.ndarray:
        """A side of each record of clusters that begin at these; -1 where a cluster is one rather."""
        side = np.zeros(starts[-1], np.int64)
        try_as_two(self.terms, self.bags, self._rarity, starts, side)
        return side

    def unlike(self, first: int, side: np.ndarray, index: Index, slots: np.ndarray) -> float:
        """What the smaller side loses as one with the larger, in what it would with the median slot."""
        losses = np.zeros(len(slots))
        own = weigh_strangers(self.terms, self.bags, first, side, self.known, index, slots, losses)
        usual = median(losses.tolist())
        return own / usual if usual > 0.0 else 0.0


def part(search: BeamSearch, held: Labelled, before: np.ndarray, due: Due) -> Iterator[Moves]:
    """Try the clusters that have grown to twice what they were as two; what moves is to be made at once.

    ``before`` are the labels before second looks, which events are to name.
    """
    family = search.likelihood  # of an ordered one the sides have no closed form
    if not isinstance(family, WordFamily) or family.ordered or (search.seq % PART_EVERY and not due.last):
        return
    slots = slots_of(search, held.labels)
    counts = np.bincount(slots[slots >= 0], minlength=len(search.state.pool.state))
    tried = [np.flatnonzero(slots == slot) for slot in _grown(search, slots, counts, due)]
    tried = [places for places in tried if _is_free(held.first + places, due)]
    sizes = search.state.pool.slots["size"]
    others = np.flatnonzero((counts >= PART) & (sizes <= 2 * max(map(len, tried), default=0)))
    if len(others) <= STRANGERS:
        return
    latest = [places[-MOST:] for places in tried]
    batch = held.batch.take(np.concatenate(latest))
    if not len(batch.words):
        return
    starts, index = np.cumsum([0, *map(len, latest)]), search.words.inverted
    room = int(max(index.tokens[others].max(), index.types[others].max()))
    few = Few(search, batch, room)
    sides = np.split(few.as_two(starts), starts[1:-1])
    for places, first, side in zip(tried, starts.tolist(), sides, strict=False):
        if side[0] < 0:
            continue
        strangers = _of_size(search, others[others != slots[places[0]]], int(np.bincount(side).max()))
        if few.unlike(first, side, search.words.inverted, strangers) < UNLIKE:
            continue
        moves = _moves(search, held, places, side)
        if moves is not None:
            yield moves._replace(before=before[moves.seqs - held.first])
            _count_prior(search, held, int(moves.was[0]), moves.minted)


def _grown(search: BeamSearch, slots: np.ndarray, counts: np.ndarray, due: Due) -> np.ndarray:
    """The slots of clusters that have doubled with the latest records, by label; those are of each record."""
    fresh = slots[-PART_EVERY:]
    before = counts - np.bincount(fresh[fresh >= 0], minlength=len(counts))
    due_now = (counts >= LEAST) & doubled(before, counts, LEAST)
    names, grown = by_label(search, np.flatnonzero(due_now & (search.state.pool.pinned == 0)))
    return grown[~np.isin(names, due.whole)]


def _is_free(seqs: np.ndarray, due: Due) -> bool:
    """Whether all of these records can move."""
    return bool(seqs[0] >= due.since) and not (len(due.fixed) and np.isin(seqs, due.fixed).any())


def _of_size(search: BeamSearch, slots: np.ndarray, size: int) -> np.ndarray:
    """The slots of clusters of about a size."""
    away = np.abs(np.log(search.state.pool.slots["size"][slots] / size))
    return slots[np.lexsort((search.labels_of(slots), away))[:STRANGERS]]


def _moves(search: BeamSearch, held: Labelled, places: np.ndarray, side: np.ndarray) -> Moves | None:
    """How a cluster is parted, its latest records on these sides; None where it is better whole."""
    few = Few(search, held.batch.take(places))
    side = np.append(np.full(len(places) - len(side), -1, np.int64), side)
    two = few.divide(side, 1 if (side < 0).any() else 0)
    one = few.divide(np.zeros(len(side), np.int64), 0)
    seqs = held.first + places[side != side[0]]
    if two <= one or not PART <= len(seqs) <= len(side) - PART or is_full(search):
        return None
    n = len(seqs)
    prior = sum(math.lgamma(size) for size in (n, len(side) - n)) - math.lgamma(len(side))
    sure = np.full(n, 1.0 / (1.0 + math.exp(one - two)))
    return Moves.to(search, held, seqs)._replace(shares=sure, nats=two - one - prior)


def _count_prior(search: BeamSearch, held: Labelled, label: int, new: int) -> None:
    """Add what the prior says of two clusters in place of one to the log joint."""
    recent, ratio = gather_recent(search, *held), np.zeros(1)
    names, slots = head_by_label(search)
    old, part = (slots[np.searchsorted(names, [each])] for each in (label, new))
    ratios_of_unions(search.model.prior, search.state, recent, part, old, ratio)
    tidy(search.state, recent, NONE, -float(ratio[0]))
