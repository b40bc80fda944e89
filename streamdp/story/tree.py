"""A tree of stories, merged pair by pair, from which themes are cut.

Of all pairs the one is united that raises the log joint most: by the log Bayes factor of its records under
the model's own likelihood (agglomerative, as Heller and Ghahramani 2005), and by the ratio of the Chinese
restaurant process, log Gamma(m + n) - log Gamma(m) - log Gamma(n) - log alpha for m and n records. Statistics
of stories suffice; those of words are compared along the postings of the words alone. Where stories have
vectors beside their words, both parts are of their likelihood, the vectors' to the power of its weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.words import SharedBase
from streamdp.offline.kernels import vectors as _vectors  # noqa: F401 - it implements what is done
from streamdp.offline.kernels import words as _words  # noqa: F401 - to a store, and so does this
from streamdp.offline.kernels.store import (
    FIRST_SLOT,
    VectorStore,
    WordStore,
    add,
    group_of_slot,
    prepare_all,
    remove,
    score_group,
    vector_store,
    word_store,
)
from streamdp.story.statistics import Statistics


class Tree(NamedTuple):
    """K stories by label, and K - 1 unions in order.

    Union i makes the cluster of story ``gone[i]`` part of that of ``into[i]``, and raises the log joint by
    ``gains[i]`` nats; ``into`` and ``gone`` are places among the labels, each shape (K - 1,).
    """

    labels: list[int]
    into: np.ndarray
    gone: np.ndarray
    gains: np.ndarray

    def cut(self, themes: int | None = None) -> dict[int, int]:
        """A number for each label, alike for stories of one theme.

        ``themes``: how many are wanted; None: unions stop where the next one gains nothing.
        """
        if themes is None:
            losing = np.flatnonzero(self.gains <= 0.0)
            unions = int(losing[0]) if len(losing) else len(self.gains)
        else:
            unions = max(len(self.labels) - themes, 0)
        group = np.arange(len(self.labels))
        for into, gone in zip(self.into[:unions], self.gone[:unions], strict=True):
            group[group == group[gone]] = group[into]
        return dict(zip(self.labels, group.tolist(), strict=True))


def tree_of(statistics: Statistics, together: Mapping[int, int] | None = None) -> Tree:
    """Unite the two stories, or unions of stories, that gain most by it, until one is left.

    ``together`` are numbers by label: stories of one number are united before all others, and then what has
    none joins them; only after that are they united with one another.
    """
    statistics, known, first = statistics.largest(), together or {}, dict[int, int]()
    found = Uniting(statistics)
    for place, label in enumerate(statistics.labels):
        if label in known:
            found.waits[place] = True
            other = first.setdefault(known[label], place)
            if other != place:
                found.unite(other, place, math.inf)
    if found.left > 1:
        found.weigh_all()
    while found.left > 1:
        found.unite_best()
    into, gone, gains = np.array(found.unions, float).reshape(-1, 3).T
    return Tree(list(statistics.labels), into.astype(np.int64), gone.astype(np.int64), gains)


class Uniting:
    """Stories on their way to one, by place; some are united with one another only after all others."""

    def __init__(self, statistics: Statistics) -> None:
        k = self.left = len(statistics.labels)
        self.waits, self._live = np.zeros(k, bool), np.ones(k, bool)
        self.unions: list[tuple[int, int, float]] = []
        self._sizes = np.array(statistics.sizes, np.float64)
        self.gains = np.full((k, k), -np.inf)
        self._best = np.zeros(k, np.int64)  # with which each gains most
        self._slots = FIRST_SLOT + np.arange(k)
        if k > 1:
            self._store, self._log_alpha = store_of(statistics), math.log(statistics.concentration)
            fill_slots(self._store, k)

    def weigh_all(self) -> None:
        """What all pairs gain."""
        live = np.flatnonzero(self._live)
        for n, k in enumerate(live.tolist()):
            self._weigh(k, live[:n])
        self._best = self.gains.argmax(axis=1)

    def _weigh(self, k: int, others: np.ndarray) -> None:
        gains = np.zeros(len(others))
        slots = FIRST_SLOT + others
        weigh_pairs(self._store, self._sizes, self._slots, k, slots, self._log_alpha, gains)
        if self.waits[k]:
            gains[self.waits[others]] = -np.inf
        self.gains[k, others] = self.gains[others, k] = gains

    def unite(self, into: int, gone: int, gain: float) -> None:
        """Make one story part of another."""
        self.unions.append((into, gone, gain))
        unite_slots(self._store, FIRST_SLOT + gone, FIRST_SLOT + into, self._slots)
        self._sizes[into] += self._sizes[gone]
        self.waits[into] |= self.waits[gone]
        self.gains[gone] = self.gains[:, gone] = -np.inf
        self._live[gone] = False
        self.left -= 1

    def unite_best(self) -> None:
        """Unite the two that gain most: the smaller, or the later of equals, becomes part of the other."""
        every = np.arange(len(self._best))
        a = int(self.gains[every, self._best].argmax())
        b = int(self._best[a])
        if self.gains[a, b] == -np.inf:  # those that wait are all that is left
            self.waits[:] = False
            self.weigh_all()
            return
        if (self._sizes[b], -b) > (self._sizes[a], -a):
            a, b = b, a
        self.unite(a, b, float(self.gains[a, b]))
        self._weigh(a, np.flatnonzero(self._live & (every != a)))
        stale = (self._best == a) | (self._best == b) | (every == a)
        better = ~stale & (self.gains[:, a] > self.gains[every, self._best])
        self._best[stale] = self.gains[stale].argmax(axis=1)
        self._best[better] = a


def store_of(statistics: Statistics) -> WordStore | VectorStore:
    """The stories, each as one record of words or as one cluster of vectors, or both, and a slot for each."""
    bag, vector, slots = statistics.family.bag, statistics.family.vector, FIRST_SLOT + len(statistics.labels)
    vectors = None if vector is None else _vectors_of(vector, statistics, slots)
    if bag is not None:
        offsets = np.cumsum([0, *(len(bag.words) for bag in statistics.bags)])
        words = np.concatenate([bag.words for bag in statistics.bags]).astype(np.int32)
        counts = np.concatenate([bag.counts for bag in statistics.bags]).astype(np.int32)
        by_word, by_story = np.bincount(words, counts).astype(np.int64), np.bincount(words)
        base = statistics.base
        if base is None and isinstance(bag, SharedBase):
            base = bag.base_of(by_word, by_story)
        terms = bag.set_terms(by_word, by_story, base)
        return word_store(terms, offsets, words, counts, slots, beside=vectors)
    assert vectors is not None
    return vectors


def _vectors_of(family: VectorFamily, statistics: Statistics, slots: int) -> VectorStore:
    """The stories, each as one cluster of vectors."""
    assert statistics.rows is not None
    family = family.lasting
    rows = np.ascontiguousarray(statistics.rows, np.float64)
    return vector_store(family.terms(), np.zeros((0, family.dimension)), family.width, slots, rows)


@entry
def fill_slots(store: Any, stories: int) -> None:
    """Put each story into a slot of its own."""
    prepare_all(store)
    for k in range(stories):
        add(store, FIRST_SLOT + k, k)


@entry
def unite_slots(store: Any, gone: int, into: int, labels: np.ndarray) -> None:
    """Make all of a slot part of another; ``labels`` are the slots of all stories."""
    for i in range(labels.shape[0]):
        if labels[i] == gone:
            remove(store, gone, i)
            add(store, into, i)
            labels[i] = into


@entry
def weigh_pairs(
    store: Any,
    sizes: np.ndarray,
    labels: np.ndarray,
    k: int,
    slots: np.ndarray,
    log_alpha: float,
    out: np.ndarray,
) -> None:
    """What story k gains with that of each slot."""
    group_of_slot(store, FIRST_SLOT + k, labels)
    alone = score_group(store, slots, slots.shape[0], out)
    own = math.lgamma(sizes[k])
    for j in range(slots.shape[0]):
        other = sizes[slots[j] - FIRST_SLOT]
        prior = math.lgamma(sizes[k] + other) - own - math.lgamma(other) - log_alpha
        out[j] = out[j] - alone + prior
