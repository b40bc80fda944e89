"""Records, and the statistics of clusters of them, as flat arrays.

A cluster has a *slot*. Vectors: a row of statistics per slot, laid out by the family. Words: word w owns the
places ``start[w] .. start[w + 1]`` of the postings, one for each record that holds it, so that there is
always room for the clusters that hold it, ``length[w]`` of them. Slot 0 is always empty; slot 1 holds the
group of records under consideration.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from streamdp.kernels.jit import entry, generic, kernel
from streamdp.kernels.rows import Counters, ints, made, of, one, reals

EMPTY, GROUP, FIRST_SLOT = range(3)


NOTHING = np.zeros(0)
"""In the place of a part that records do not have."""


class VectorStore(NamedTuple):
    """Vectors: N records of D numbers, C slots."""

    terms: Any  # of the family
    vectors: np.ndarray  # float64[N, D], or float32
    own: Annotated[np.ndarray, reals("records")]  # what of a record depends on no cluster
    fresh: Annotated[np.ndarray, reals("records")]  # log H of a record alone
    size: Annotated[np.ndarray, ints("slots")]  # records
    log_h: Annotated[np.ndarray, reals("slots")]  # log marginal likelihood
    block: Annotated[np.ndarray, reals("slots", "width")]
    scratch: Annotated[np.ndarray, reals(2, "width")]
    frozen: np.ndarray  # float64[A, width] statistics of frozen records, by cluster


class WordStore(NamedTuple):
    """Word counts: N records, C slots, V words; then those of A clusters of frozen ones."""

    terms: Any  # of the family, for a set
    offsets: np.ndarray  # int64[N + A + 1]
    words: np.ndarray  # int32[nnz] distinct within a record
    counts: np.ndarray  # int32[nnz] at least 1
    start: np.ndarray  # int64[V + 1]
    fresh: Annotated[np.ndarray, reals("records")]  # N + A: log H of a record alone
    size: Annotated[np.ndarray, ints("slots")]  # records
    log_h: Annotated[np.ndarray, reals("slots")]  # log marginal likelihood
    tokens: Annotated[np.ndarray, ints("slots")]  # of words that count as types
    types: Annotated[np.ndarray, ints("slots")]  # distinct words
    length: Annotated[np.ndarray, ints("words")]
    slot: Annotated[np.ndarray, of(np.int32, "places")]
    held: Annotated[np.ndarray, of(np.int32, "places")]  # tokens of the word in the slot
    gain: Annotated[np.ndarray, reals("slots")]  # scratch
    hits: Annotated[np.ndarray, ints("slots")]  # scratch
    bag: Annotated[np.ndarray, of(np.int32, "words")]  # tokens of the group by word
    bag_words: Annotated[np.ndarray, of(np.int32, "words")]  # its distinct words
    bag_counts: Annotated[np.ndarray, of(np.int32, "words")]  # their tokens
    counters: Annotated[Counters, one("bag_types bag_tokens")]  # distinct words of the group, and tokens
    beside: Any = NOTHING  # the vectors of the records, a VectorStore, or Documents


class Documents(NamedTuple):
    """Where the records of an ordered family are, beside their words."""

    terms: Any  # of the family, for a set
    offsets: np.ndarray  # as of the words
    words: np.ndarray
    counts: np.ndarray
    slot: Annotated[np.ndarray, ints("records", fill=-1)]  # of a record, -1 while it is in none
    grouped: Annotated[np.ndarray, ints("records")]  # 1 for those of the group
    in_order: Annotated[np.ndarray, reals("slots")]  # what the order of the records adds to log H
    held: Annotated[np.ndarray, ints("words")]  # scratch: tokens so far
    members: Annotated[np.ndarray, ints("records")]  # scratch


Store: TypeAlias = VectorStore | WordStore


def vector_store(
    terms: Any, vectors: np.ndarray, width: int, capacity: int, frozen: np.ndarray | None = None
) -> VectorStore:
    """Vectors, and ``capacity`` slots of rows of that width; to be prepared."""
    return made(
        VectorStore,
        {"records": len(vectors), "slots": capacity, "width": width},
        terms=terms,
        vectors=vectors,
        frozen=np.zeros((0, width)) if frozen is None else frozen,
    )


def word_store(
    terms: Any,
    offsets: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray,
    capacity: int,
    places: int | None = None,
    beside: VectorStore | None = None,
    *,
    ordered: bool = False,
) -> WordStore:
    """Word counts, and ``capacity`` slots; to be prepared.

    ``beside`` are the vectors of the records; ``ordered``: whether the family is, which has none.

    A record may be in one slot at a time, or where ``places`` is given in several, as long as no more
    than that many slots hold any word.
    """
    vocabulary = int(words.max(initial=-1)) + 1
    start = np.zeros(vocabulary + 1, np.int64)
    room = np.bincount(words, minlength=vocabulary)
    np.cumsum(room if places is None else np.full(vocabulary, places), out=start[1:])
    sizes = {"records": len(offsets) - 1, "slots": capacity, "words": vocabulary, "places": int(start[-1])}
    given = {"terms": terms, "offsets": offsets, "words": words, "counts": counts}
    part: Any = made(Documents, sizes, **given) if ordered else beside
    return made(WordStore, sizes, **given, start=start, beside=NOTHING if part is None else part)


@generic
def clear(store: Any, slot: int) -> None:
    """Empty a slot that no record is in."""


@generic
def hold(store: Any, slot: int, i: int) -> float:
    """Let a record, or the frozen ones of a cluster, join a slot: the statistics numbered i.

    How many they are is for the caller to count. Returns by how much log H of the slot rises.
    """
    return 0.0


@generic
def take_out(store: Any, slot: int, i: int, last: bool) -> float:
    """Take a record, maybe the ``last`` one, out of a slot; an emptied slot is as new.

    Returns by how much log H of a slot that is not empty rises.
    """
    return 0.0


@generic
def drop_run(store: Any, slot: int, order: np.ndarray, first: int, last: int) -> None:
    """Empty a slot that holds the records ``order[first .. last - 1]``."""


@generic
def empty_group(store: Any) -> None:
    """No record is under consideration."""


@generic
def add_to_group(store: Any, i: int) -> None:
    """Let a record join the group under consideration."""


@generic
def copies_in_group(store: Any, i: int, n: int, factor: float) -> None:
    """Let the group be n copies of a record, each scaled; word counts are rounded."""


@generic
def group_of_slot(store: Any, slot: int, labels: np.ndarray) -> None:
    """Let the group be all records of a slot, those that are frozen and those with that label."""


@generic
def add_scores(store: Any, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """Add log H(x_i | S) for the first n of ``slots``."""


@generic
def add_group_scores(store: Any, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    """Add log H(S + group) - log H(S) for the first n slots; returns log H(group)."""
    return 0.0


@generic
def prepare_part(store: Any, fresh: np.ndarray) -> None:
    """Clear all slots, and add log H of every record alone to ``fresh``."""


@kernel
def add(store: Any, slot: int, i: int) -> None:
    """Let a record join a slot."""
    hold(store, slot, i)
    store.size[slot] += 1


@kernel
def remove(store: Any, slot: int, i: int) -> None:
    """Take a record out of a slot; an emptied slot is as new."""
    store.size[slot] -= 1
    take_out(store, slot, i, store.size[slot] == 0)


@kernel
def score(store: Any, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x_i | S) for the first n of ``slots``."""
    for j in range(n):
        out[j] = 0.0
    add_scores(store, i, slots, n, out)


@kernel
def score_group(store: Any, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    """log H(S + group) - log H(S) for the first n slots; returns log H(group)."""
    for j in range(n):
        out[j] = 0.0
    return add_group_scores(store, slots, n, out)


@kernel
def prepare_all(store: Any) -> None:
    """Clear all slots and take log H of every record alone; after the parameters or the capacity change."""
    for i in range(store.fresh.shape[0]):
        store.fresh[i] = 0.0
    prepare_part(store, store.fresh)


@entry
def prepare(store: Any) -> None:
    """Clear all slots and take log H of every record alone; after the parameters or the capacity change."""
    prepare_all(store)
