"""Records, and the statistics of clusters of them, as flat arrays.

A cluster has a *slot*. Vectors: a row of statistics per slot, laid out by the family. Words: word w owns the
places ``start[w] .. start[w + 1]`` of the postings, one for each record that holds it, so that there is
always room for the clusters that hold it, ``length[w]`` of them. Slot 0 is always empty; slot 1 holds the
group of records under consideration.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from streamdp.kernels.rows import longer, taller

EMPTY, GROUP, FIRST_SLOT = range(3)


class VectorStore(NamedTuple):
    """Vectors: N records of D numbers, C slots."""

    terms: Any  # of the family
    vectors: np.ndarray  # float64[N, D], or float32
    own: np.ndarray  # float64[N] what of a record depends on no cluster
    fresh: np.ndarray  # float64[N] log H of a record alone
    size: np.ndarray  # int64[C] records
    log_h: np.ndarray  # float64[C] log marginal likelihood
    block: np.ndarray  # float64[C, width]
    scratch: np.ndarray  # float64[2, width]
    frozen: np.ndarray  # float64[A, width] statistics of frozen records, by cluster


class WordStore(NamedTuple):
    """Word counts: N records, C slots, V words; then those of A clusters of frozen ones."""

    terms: Any  # of the family, for a set
    offsets: np.ndarray  # int64[N + A + 1]
    words: np.ndarray  # int32[nnz] distinct within a record
    counts: np.ndarray  # int32[nnz] at least 1
    fresh: np.ndarray  # float64[N + A] log H of a record alone
    size: np.ndarray  # int64[C] records
    log_h: np.ndarray  # float64[C] log marginal likelihood
    tokens: np.ndarray  # int64[C]
    types: np.ndarray  # int64[C] distinct words
    start: np.ndarray  # int64[V + 1]
    length: np.ndarray  # int64[V]
    slot: np.ndarray  # int32[places]
    held: np.ndarray  # int32[places] tokens of the word in the slot
    gain: np.ndarray  # float64[C] scratch
    hits: np.ndarray  # int64[C] scratch
    bag: np.ndarray  # int32[V] tokens of the group by word
    bag_words: np.ndarray  # int32[V] its distinct words
    bag_counts: np.ndarray  # int32[V] their tokens
    bag_meta: np.ndarray  # int64[2] how many distinct words, and tokens


Store: TypeAlias = VectorStore | WordStore

BAG_TYPES, BAG_TOKENS = range(2)


def vector_store(
    terms: Any, vectors: np.ndarray, width: int, capacity: int, frozen: np.ndarray | None = None
) -> VectorStore:
    """Vectors, and ``capacity`` slots of rows of that width; to be prepared."""
    n = len(vectors)
    return VectorStore(
        terms,
        vectors,
        np.zeros(n),
        np.zeros(n),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros((capacity, width)),
        np.zeros((2, width)),
        np.zeros((0, width)) if frozen is None else frozen,
    )


def word_store(
    terms: Any,
    offsets: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    capacity: int,
    places: int | None = None,
) -> WordStore:
    """Word counts, and ``capacity`` slots; to be prepared.

    A record may be in one slot at a time, or where ``places`` is given in several, as long as no more
    than that many slots hold any word.
    """
    vocabulary = int(words.max(initial=-1)) + 1
    start = np.zeros(vocabulary + 1, np.int64)
    room = np.bincount(words, minlength=vocabulary)
    np.cumsum(room if places is None else np.full(vocabulary, places), out=start[1:])
    return WordStore(
        terms=terms,
        offsets=offsets,
        words=words,
        counts=counts,
        fresh=np.zeros(len(offsets) - 1),
        size=np.zeros(capacity, np.int64),
        log_h=np.zeros(capacity),
        tokens=np.zeros(capacity, np.int64),
        types=np.zeros(capacity, np.int64),
        start=start,
        length=np.zeros(vocabulary, np.int64),
        slot=np.zeros(start[-1], np.int32),
        held=np.zeros(start[-1], np.int32),
        gain=np.zeros(capacity),
        hits=np.zeros(capacity, np.int64),
        bag=np.zeros(vocabulary, np.int32),
        bag_words=np.zeros(vocabulary, np.int32),
        bag_counts=np.zeros(vocabulary, np.int32),
        bag_meta=np.zeros(2, np.int64),
    )


def grown(store: Any, capacity: int) -> Any:
    """The same with ``capacity`` slots; the new ones are to be cleared before use."""
    common = {"size": longer(store.size, capacity), "log_h": longer(store.log_h, capacity)}
    if isinstance(store, VectorStore):
        return store._replace(block=taller(store.block, capacity), **common)
    by_slot = {name: longer(getattr(store, name), capacity) for name in ("tokens", "types", "gain", "hits")}
    return store._replace(**by_slot, **common)
