"""A tree of stories, merged pair by pair, from which themes are cut.

Of all pairs the one is united that raises the log joint most: by the log Bayes factor of its records under
the model's own likelihood (agglomerative, as Heller and Ghahramani 2005), and by the ratio of the Chinese
restaurant process, log Gamma(m + n) - log Gamma(m) - log Gamma(n) - log alpha for m and n records. Statistics
of stories suffice; those of words are compared along the postings of the words alone. Where stories have
vectors beside their words, both parts are of their likelihood, the vectors' to the power of its weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, generic, kernel
from streamdp.likelihoods import BagFamily, Categorical, VectorFamily
from streamdp.likelihoods.vectors import log_marginal, merge, settle
from streamdp.likelihoods.words import SharedBase
from streamdp.offline.kernels import beside as _beside  # noqa: F401 - it implements what is done
from streamdp.offline.kernels import vectors as _vectors  # noqa: F401 - to a store, and so does this
from streamdp.offline.kernels.store import (
    FIRST_SLOT,
    VectorStore,
    WordStore,
    add,
    group_of_slot,
    hold,
    prepare_all,
    remove,
    score_group,
    vector_store,
    word_store,
)
from streamdp.story.stated import Stated


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


# ---------------------------------------------------------------- the tree


class Work(NamedTuple):
    """What the kernels read and write, by story where nothing else is said."""

    sizes: np.ndarray  # float64[K] records
    joint: np.ndarray  # float64[K, K] what each pair gains
    live: np.ndarray  # int64[K] slots that hold something, ascending
    others: np.ndarray  # int64[K] scratch: those but one
    labels: np.ndarray  # int64[K] slot of each
    best: np.ndarray  # int64[K] with which it gains most
    given: np.ndarray  # int64[K] whether it is one of those that are not united with one another yet
    out: np.ndarray  # float64[K] scratch
    into: np.ndarray  # int64[K - 1] by union
    gone: np.ndarray  # int64[K - 1]
    gains: np.ndarray  # float64[K - 1]


def work_of(stated: Stated) -> Work:
    """Arrays for so many stories."""
    k = len(stated.labels)
    slots = FIRST_SLOT + np.arange(k)
    work = Work(
        np.array(stated.sizes, np.float64),
        np.zeros((k, k)),
        slots,
        slots.copy(),
        slots.copy(),
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k),
        np.zeros(max(k - 1, 0), np.int64),
        np.zeros(max(k - 1, 0), np.int64),
        np.zeros(max(k - 1, 0)),
    )
    return work


def tree_of(stated: Stated, together: Mapping[int, int] | None = None) -> Tree:
    """Unite the two stories, or unions of stories, that gain most by it, until one is left.

    ``together`` are numbers by label: stories of one number are united before all others, and then what has
    none joins them; only after that are they united with one another.
    """
    stated = stated.largest()
    work = work_of(stated)
    if len(stated.labels) > 1:
        store, log_alpha = store_of(stated), math.log(stated.concentration)
        weigh_all(store, work, log_alpha)
        known = together or {}
        work.given[:] = [label in known for label in stated.labels]
        left = _unite_given(store, work, _places(stated.labels, known), log_alpha)
        _unite_all(store, work, log_alpha, left)
    return Tree(list(stated.labels), work.into, work.gone, work.gains)


def _places(labels: Sequence[int], together: Mapping[int, int]) -> np.ndarray:
    """For each story the place of the first that it is together with."""
    first, places = dict[int, int](), np.arange(len(labels))
    for place, label in enumerate(labels):
        if label in together:
            places[place] = first.setdefault(together[label], place)
    return places


def store_of(stated: Stated) -> WordStore | VectorStore:
    """The stories, each as one record of words or as one cluster of vectors, or both, and a slot for each."""
    family, slots = stated.family, FIRST_SLOT + len(stated.labels)
    if isinstance(family, BagFamily):
        offsets = np.cumsum([0, *(len(bag.words) for bag in stated.bags)])
        words = np.concatenate([bag.words for bag in stated.bags]).astype(np.int32)
        counts = np.concatenate([bag.counts for bag in stated.bags]).astype(np.int32)
        by_word, by_story = np.bincount(words, counts).astype(np.int64), np.bincount(words)
        base = stated.base
        if base is None and isinstance(family, SharedBase):
            base = family.base_of(by_word, by_story)
        terms, vectors = family.set_terms(by_word, by_story, base), None
        if isinstance(family, Categorical) and family.vector is not None:
            vectors = _vectors_of(family.vector, stated, slots)
        return word_store(terms, offsets, words, counts, slots, beside=vectors)
    assert isinstance(family, VectorFamily)
    return _vectors_of(family, stated, slots)


def _vectors_of(family: VectorFamily, stated: Stated, slots: int) -> VectorStore:
    """The stories, each as one cluster of vectors."""
    assert stated.rows is not None
    family = family.lasting
    rows = np.ascontiguousarray(stated.rows, np.float64)
    return vector_store(family.terms(), np.zeros((0, family.dimension)), family.width, slots, rows)


@generic
def unite_slots(store: Any, gone: int, into: int, labels: np.ndarray) -> None:
    """Make all of a slot part of another."""


@unite_slots.of(WordStore)
def _unite_words(store: WordStore, gone: int, into: int, labels: np.ndarray) -> None:
    for i in range(labels.shape[0]):
        if labels[i] == gone:
            remove(store, gone, i)
            add(store, into, i)
            labels[i] = into


@unite_slots.of(VectorStore)
def _unite_vectors(store: VectorStore, gone: int, into: int, labels: np.ndarray) -> None:
    merge(store.terms, store.block[into], store.block[gone])
    settle(store.terms, store.block[into])
    store.log_h[into] = log_marginal(store.terms, store.block[into])


@generic
def begin(store: Any, slot: int, i: int) -> None:
    """Put story i into a clear slot."""


@begin.of(WordStore)
def _begin_words(store: WordStore, slot: int, i: int) -> None:
    add(store, slot, i)


@begin.of(VectorStore)
def _begin_vectors(store: VectorStore, slot: int, i: int) -> None:
    hold(store, slot, i)


@kernel
def _weigh(store: Any, work: Work, log_alpha: float, k: int, n: int) -> None:
    """Gains of story k with each of the first n live ones, both ways round."""
    sizes, others, joint, out, m = work.sizes, work.others, work.joint, work.out, 0
    for j in range(n):
        if work.live[j] != FIRST_SLOT + k:
            others[m] = work.live[j]
            m += 1
    group_of_slot(store, FIRST_SLOT + k, work.labels)
    alone = score_group(store, others, m, out)
    own = math.lgamma(sizes[k])
    for j in range(m):
        other = others[j] - FIRST_SLOT
        prior = math.lgamma(sizes[k] + sizes[other]) - own - math.lgamma(sizes[other]) - log_alpha
        joint[k, other] = out[j] - alone + prior
        if work.given[k] > 0 and work.given[other] > 0:
            joint[k, other] = -np.inf
        joint[other, k] = joint[k, other]


@kernel
def _partner(work: Work, k: int, n: int) -> int:
    """The story among the first n live ones that gains most with story k."""
    best, most = -1, -np.inf
    for j in range(n):
        other = work.live[j] - FIRST_SLOT
        if other != k and (best < 0 or work.joint[k, other] > most):
            best, most = other, work.joint[k, other]
    return best


@kernel
def _best_pair(work: Work, n: int) -> tuple[int, int]:
    """The two stories that gain most, the larger one first, the earlier one of equals."""
    a = work.live[0] - FIRST_SLOT
    for j in range(n):
        k = work.live[j] - FIRST_SLOT
        if work.joint[k, work.best[k]] > work.joint[a, work.best[a]]:
            a = k
    b = work.best[a]
    if work.sizes[b] > work.sizes[a] or (work.sizes[b] == work.sizes[a] and b < a):
        return b, a
    return a, b


@entry
def weigh_all(store: Any, work: Work, log_alpha: float) -> None:
    """Put each story into a slot of its own; what all pairs gain."""
    prepare_all(store)
    n = work.sizes.shape[0]
    for k in range(n):
        begin(store, FIRST_SLOT + k, k)
    for k in range(n):
        _weigh(store, work, log_alpha, k, k)


@entry
def _unite_given(store: Any, work: Work, places: np.ndarray, log_alpha: float) -> int:
    """Unite each story with the one in its place; how many are left."""
    n, step = 0, 0
    for k in range(work.sizes.shape[0]):
        if places[k] == k:
            work.live[n] = FIRST_SLOT + k
            n += 1
            continue
        work.into[step], work.gone[step], work.gains[step] = places[k], k, np.inf
        step += 1
        unite_slots(store, FIRST_SLOT + k, FIRST_SLOT + places[k], work.labels)
        work.sizes[places[k]] += work.sizes[k]
    _begin_uniting(store, work, log_alpha, n, step > 0)
    return n


@kernel
def _begin_uniting(store: Any, work: Work, log_alpha: float, n: int, again: bool) -> None:
    """With which each of the first n live ones gains most; weighed ``again`` where that has changed."""
    for j in range(n):
        if again:
            _weigh(store, work, log_alpha, work.live[j] - FIRST_SLOT, n)
    for j in range(n):
        k = work.live[j] - FIRST_SLOT
        work.best[k] = _partner(work, k, n)


@entry
def _unite_all(store: Any, work: Work, log_alpha: float, left: int) -> None:
    """Unite the best pair until one of the stories that are left is left."""
    n, live = left, work.live
    for step in range(work.sizes.shape[0] - left, work.sizes.shape[0] - 1):
        a, b = _best_pair(work, n)
        if work.joint[a, b] == -np.inf:  # those that were given are all that is left
            work.given[:] = 0
            _begin_uniting(store, work, log_alpha, n, True)
            a, b = _best_pair(work, n)
        work.given[a] = max(work.given[a], work.given[b])
        work.into[step], work.gone[step], work.gains[step] = a, b, work.joint[a, b]
        unite_slots(store, FIRST_SLOT + b, FIRST_SLOT + a, work.labels)
        work.sizes[a] += work.sizes[b]
        at = 0
        for j in range(n):
            if live[j] != FIRST_SLOT + b:
                live[at] = live[j]
                at += 1
        n = at
        _weigh(store, work, log_alpha, a, n)
        for j in range(n):
            k = live[j] - FIRST_SLOT
            if n > 1 and (k == a or work.best[k] == a or work.best[k] == b):
                work.best[k] = _partner(work, k, n)
            elif n > 1 and work.joint[k, a] > work.joint[k, work.best[k]]:
                work.best[k] = a
