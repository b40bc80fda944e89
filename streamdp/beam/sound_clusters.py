"""Whether the clusters' statistics that come from outside are sound (see ``sound``)."""

from __future__ import annotations

import numpy as np

from streamdp.beam.categories import CategoryClusters
from streamdp.beam.index import Index
from streamdp.beam.pool import ALIVE, VACANT, Pool
from streamdp.beam.sizes import Sizes
from streamdp.beam.sound import arena, chain, finite, require, within
from streamdp.beam.state import State
from streamdp.beam.vectors import VectorClusters
from streamdp.beam.words import WordClusters
from streamdp.kernels.rows import power_of_two
from streamdp.likelihoods.categorical import FIELD, RECORD, UNKNOWN, FieldsLearned
from streamdp.likelihoods.words import Learned

COUNTS = 1 << 31


def check_clusters(state: State) -> None:
    """Raise UnsoundError unless the statistics match the pool; its own arrays have been checked."""
    clusters, pool = state.clusters, state.pool
    if isinstance(clusters, WordClusters):
        index, named = clusters.inverted, isinstance(clusters, CategoryClusters)
        _check_index(index, pool, tokens_of=RECORD if named else None)
        _check_learned(clusters.learned, len(index.lists))
        if named:
            _check_fields(clusters.learned, index)
        _check_sizes(clusters.sizes, index, np.zeros_like(index.types) if named else index.types, pool)
    else:
        _check_rows(clusters, pool)


def _check_rows(clusters: VectorClusters, pool: Pool) -> None:
    slots = len(pool.slots)
    require(len(clusters.block) == len(clusters.coarse) == slots, "vectors of another length than the slots")
    used = pool.state != VACANT
    finite(clusters.block[used], "a statistic")
    finite(clusters.empty, "a statistic")
    finite(clusters.coarse[used], "a statistic")


def _check_index(index: Index, pool: Pool, tokens_of: int | None) -> None:
    """``tokens_of`` is the one word that counts as a token; None: all do."""
    slots, lists, types = len(pool.slots), index.lists, index.types
    require(len(index.own) == len(index.tokens) == len(types) == slots, "index of another length than slots")
    require(len(index.slot) == len(index.occurrences) == len(index.back), "postings of several lengths")
    require(len(index.word) == len(index.where), "entries of several lengths")
    require(len(lists) > 0, "there is no word")
    arena(index.postings, index.slot, lists, "postings")
    arena(index.entries, index.word, index.own, "entries")
    require((lists["length"] >= 0).all() and (lists["length"] < COUNTS).all(), "a length is out of range")
    require((lists["length"] <= _rooms(lists["block"])).all(), "postings do not fit their block")
    used = np.flatnonzero(pool.state != VACANT)
    within(types[used], 0, COUNTS, "the number of words of a cluster")
    require((types[used] <= _rooms(index.own["block"][used])).all(), "words do not fit their block")
    require((index.own["block"][pool.state == VACANT] < 0).all(), "a free slot has words")
    owner = np.repeat(used, types[used])
    entry = _places(index.own["start"][used], types[used])
    words, where = index.word[entry], index.where[entry].astype(np.int64)
    within(words, 0, len(lists), "a word")
    shown = pool.state[owner] == ALIVE
    within(where[~shown], 1, COUNTS, "the count of a word")
    at = lists["start"][words[shown]] + where[shown]
    within(where[shown], 0, COUNTS, "a place in the index")
    require((where[shown] < lists["length"][words[shown]]).all(), "a place in the index is out of range")
    require((index.slot[at] == owner[shown]).all(), "the index has another cluster")
    places = (np.arange(len(entry)) - np.repeat(np.cumsum(types[used]) - types[used], types[used]))[shown]
    require((index.back[at] == places).all(), "the index points to another word")
    require(index.counters.posted == len(at) == lists["length"].sum(), "the number of postings is wrong")
    within(index.occurrences[at], 1, COUNTS, "the count of a word")
    counts = np.where(shown, 0, where)
    counts[shown] = index.occurrences[at]
    sums = np.zeros(slots, np.int64)
    np.add.at(sums, owner, counts if tokens_of is None else np.where(words == tokens_of, counts, 0))
    require((sums[used] == index.tokens[used]).all(), "the number of tokens of a cluster is wrong")
    most = np.zeros(len(lists), np.int64)
    np.maximum.at(most, words[shown], counts[shown])
    require((lists["most"] >= most).all(), "a word is in a cluster more often than ever")
    within(lists["most"], 0, COUNTS, "the count of a word")


def _rooms(blocks: np.ndarray) -> np.ndarray:
    """Entries that fit, by size index; none where there is no block."""
    return np.where(blocks < 0, 0, np.int64(4) << np.maximum(blocks, 0))


def _places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places of lists, one list after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.repeat(starts - before, lengths) + np.arange(lengths.sum()))


def _check_learned(learned: Learned, words: int) -> None:
    require(len(learned.counts) == words, "the base measure of another length than the words")
    within(learned.counts, 0, 1 << 53, "a count of the base measure")
    require(learned.counters.total == learned.counts.sum(), "the sum of the base measure is wrong")
    require(
        learned.counters.seen == np.count_nonzero(learned.counts), "the words of the base measure are wrong"
    )


def _check_fields(learned: FieldsLearned, index: Index) -> None:
    words, field = len(learned.counts), learned.field
    require(len(field) == len(learned.values) == words, "fields of another length than the words")
    within(field, UNKNOWN, words, "the field of a value")
    seen = learned.counts > 0
    require((field[index.lists["length"] > 0] != UNKNOWN).all(), "a cluster holds a value of no field")
    require((field[seen] != UNKNOWN).all() and (field[~seen] == UNKNOWN).all(), "a value of no field")
    values = np.flatnonzero(field >= 0)
    own = field[values]
    require((own != RECORD).all() and (field[own] == FIELD).all(), "the field of a value is none")
    counts, sizes = np.zeros(words, np.int64), np.zeros(words, np.int64)
    np.add.at(counts, own, learned.counts[values])
    np.add.at(sizes, own, 1)
    fields = np.flatnonzero(field == FIELD)
    fields = fields[fields != RECORD]
    require((counts[fields] == learned.counts[fields]).all(), "a field is not as common as its values")
    require((sizes == learned.values).all(), "the number of values of a field is wrong")


def _check_sizes(sizes: Sizes, index: Index, types: np.ndarray, pool: Pool) -> None:
    slots, count, high = len(pool.slots), len(sizes.classes), int(sizes.counters.high)
    by_class = (sizes.tokens, sizes.types, sizes.weight, sizes.top, sizes.agreed)
    require({len(array) for array in by_class} == {count}, "size classes of several lengths")
    require(len(sizes.of) == len(sizes.place) == slots, "size classes of another length than the slots")
    alive = np.flatnonzero(pool.state == ALIVE)
    within(sizes.of[alive], 1, count, "the class of a cluster")
    require((sizes.of[pool.state != ALIVE] == -1).all(), "a closed cluster has a class")
    refs = np.bincount(sizes.of[alive], minlength=count)
    refs[0] += 1
    used = refs > 0
    require((sizes.classes["refs"] == refs)[used].all(), "classes and their clusters do not match")
    require(
        (sizes.classes["refs"][: max(high, 0)][~used[: max(high, 0)]] == 0).all(),
        "an empty class has clusters",
    )
    require(sizes.counters.used == used.sum(), "the number of classes is wrong")
    require(high == np.flatnonzero(used).max() + 1, "the highest class is wrong")
    chain(sizes.counters.free, sizes.classes["next"], np.flatnonzero(~used), "classes")
    of = sizes.of[alive]
    require((sizes.tokens[of] == index.tokens[alive]).all(), "a class has other tokens than its clusters")
    require((sizes.types[of] == types[alive]).all(), "a class has other words than its clusters")
    finite(sizes.tokens, "a class")
    finite(sizes.types, "a class")
    finite(sizes.weight, "the weight of a class")
    finite(sizes.top, "the weight of a class")
    arena(sizes.header, sizes.heap, sizes.classes, "heaps of classes")
    agreed = alive[pool.column[alive] < 0]
    counts = np.bincount(sizes.of[agreed], minlength=count)
    require((sizes.agreed == counts).all(), "the number of clusters of a class is wrong")
    require((counts <= _rooms(sizes.classes["block"])).all(), "clusters of a class do not fit their block")
    place = sizes.place[agreed]
    within(place, 0, slots, "the place of a cluster in its class")
    require((place < counts[sizes.of[agreed]]).all(), "the place of a cluster in its class is out of range")
    at = sizes.classes["start"][sizes.of[agreed]] + place
    require((sizes.heap[at] == agreed).all(), "a class has other clusters")
    rest = np.ones(slots, bool)
    rest[agreed] = False
    require((sizes.place[rest] == -1).all(), "a cluster has a place in no class")
    _check_table(sizes, np.flatnonzero(used))


def _check_table(sizes: Sizes, used: np.ndarray) -> None:
    """Every class is found where it is looked for, and looking for others ends."""
    table, size = sizes.table, len(sizes.table)
    require(size == power_of_two(size) and size > len(used), "the table of classes is too small")
    held = table[table >= 0]
    within(table, -1, len(sizes.classes), "a class in the table")
    require(np.isin(used[used > 0], held).all(), "a class is not in the table")
    require(np.isin(held, used).all() and len(np.unique(held)) == len(held), "the table has other classes")
    mixed = sizes.tokens[held].astype(np.int64) * 1000003 + sizes.types[held].astype(np.int64) * 7919
    home = (mixed ^ (mixed >> 15)) & (size - 1)
    at = np.flatnonzero(table >= 0)
    empty = np.concatenate([[0], np.cumsum(np.tile(table < 0, 2))])
    far = np.where(at >= home, at, at + size)
    require((empty[far] == empty[home]).all(), "a class stands where it is not found")
