"""The inverted index word -> (cluster, count), and each cluster's own list of words.

The two point at each other, so that a posting can be removed in constant time: a cluster's entry
knows where its posting stands, a posting knows which entry of its cluster it belongs to.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.blocks import HEADER, allocate, append_room, drop_list, shrink_list, size_index
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, of, one, row_type, rows

POSTING_LIST = row_type("start length block most")
"""Offset of a word's postings, how many, size index or -1 for none, the largest n_kw there ever was."""

OWN_LIST = row_type("start block")
"""Offset of a slot's entries, size index or -1 for none."""


SEVERAL = 32
"""Entries of a list that is searched several entries at a time."""


class Index(NamedTuple):
    """Arrays by word id, by slot, and the two arenas: of postings and of entries.

    ``counters.posted`` is the number of postings.
    """

    counters: Annotated[Counters, one("posted")]
    lists: Annotated[np.ndarray, rows(POSTING_LIST, "words", block=-1)]
    postings: Annotated[np.ndarray, HEADER]
    slot: Annotated[np.ndarray, of(np.int32, "postings")]  # of a posting: the cluster
    occurrences: Annotated[np.ndarray, of(np.int32, "postings")]  # n_kw
    back: Annotated[np.ndarray, of(np.int32, "postings")]  # index of the cluster's entry
    own: Annotated[np.ndarray, rows(OWN_LIST, "slots", block=-1)]
    tokens: Annotated[np.ndarray, ints("slots")]  # n_k
    types: Annotated[np.ndarray, ints("slots")]  # the entries of the slot: T_k where all are of a text
    records: Annotated[np.ndarray, ints("slots")]  # where records have fields, how many; else 0
    distinct: Annotated[np.ndarray, ints("slots")]  # T_k where records have fields, else 0
    entries: Annotated[np.ndarray, HEADER]
    word: Annotated[np.ndarray, of(np.int32, "entries")]  # of an entry
    where: Annotated[
        np.ndarray, of(np.int32, "entries")
    ]  # index of its posting; its count once the slot is closed


class WordClusters(NamedTuple):
    """Statistics by slot and by word."""

    inverted: Index
    learned: Any  # Learned, or of categories FieldsLearned


@kernel
def _append_entry(index: Index, slot: int, types: int, word: int, where: int) -> None:
    at = append_room(index.entries, (index.word, index.where), index.own, slot, types)
    index.word[at] = word
    index.where[at] = where


@kernel
def _append_posting(index: Index, word: int, slot: int, count: int, back: int) -> int:
    n = index.lists[word].length
    at = append_room(index.postings, (index.slot, index.occurrences, index.back), index.lists, word, n)
    index.slot[at] = slot
    index.occurrences[at] = count
    index.back[at] = back
    index.lists[word].length = n + 1
    index.counters.posted += 1
    return n


@kernel
def _find(values: np.ndarray, start: int, length: int, value: int) -> int:
    """Where a value is among so many from ``start`` on, which are distinct; -1 where it is not.

    In a longer list, to go on to the end several at a time takes less than to ask of each.
    """
    if length < SEVERAL:
        for k in range(length):
            if values[start + k] == value:
                return k
        return -1
    found = np.int32(-1)
    for k in range(length):
        found = max(found, np.int32(k) if values[start + k] == value else np.int32(-1))
    return int(found)


@kernel
def _posting_of(index: Index, word: int, slot: int) -> int:
    """Where a slot's posting of a word stands, by the shorter of the two lists; -1 where it has none."""
    start, length = index.lists[word].start, index.lists[word].length
    if length <= index.types[slot]:
        e = _find(index.slot, start, length, slot)
        return start + e if e >= 0 else -1
    begin = index.own[slot].start
    k = _find(index.word, begin, index.types[slot], word)
    return start + index.where[begin + k] if k >= 0 else -1


@kernel
def count_of(index: Index, word: int, slot: int) -> int:
    """How often an open slot has a word."""
    e = _posting_of(index, word, slot)
    return index.occurrences[e] if e >= 0 else 0


@kernel
def add_words(index: Index, slot: int, words: np.ndarray, counts: np.ndarray, fresh: np.ndarray) -> None:
    """Add a record's counts to a slot; ``fresh[i]`` tells whether word i was new to it."""
    for i in range(words.shape[0]):
        w, held = words[i], counts[i]
        e = _posting_of(index, w, slot)
        fresh[i] = e < 0
        if e >= 0:
            index.occurrences[e] += counts[i]
            held = index.occurrences[e]
        else:
            types = index.types[slot]
            where = _append_posting(index, w, slot, counts[i], types)
            _append_entry(index, slot, types, w, where)
            index.types[slot] = types + 1
        index.lists[w].most = max(index.lists[w].most, held)
        index.tokens[slot] += counts[i]


@kernel
def _drop_posting(index: Index, word: int, e: int) -> None:
    """Take a posting out of the list of its word; the last one stands in its place."""
    start = index.lists[word].start
    last = start + index.lists[word].length - 1
    index.lists[word].length -= 1
    index.counters.posted -= 1
    if e != last:
        index.slot[e] = index.slot[last]
        index.occurrences[e] = index.occurrences[last]
        index.back[e] = index.back[last]
        index.where[index.own[index.slot[e]].start + index.back[e]] = e - start


@kernel
def take_words(index: Index, slot: int, words: np.ndarray, counts: np.ndarray) -> None:
    """Take a record's counts out of a slot that holds them; it keeps its blocks, so that they can return."""
    for i in range(words.shape[0]):
        w = words[i]
        e = _posting_of(index, w, slot)
        index.tokens[slot] -= counts[i]
        index.occurrences[e] -= counts[i]
        if index.occurrences[e] > 0:
            continue
        begin = index.own[slot].start
        entry, end = begin + index.back[e], begin + index.types[slot] - 1
        _drop_posting(index, w, e)
        index.types[slot] -= 1
        if entry != end:
            index.word[entry] = index.word[end]
            index.where[entry] = index.where[end]
            index.back[index.lists[index.word[entry]].start + index.where[entry]] = entry - begin


@kernel
def relink(index: Index, slot: int) -> None:
    """Put an unindexed slot's postings back."""
    begin = index.own[slot].start
    for i in range(index.types[slot]):
        index.where[begin + i] = _append_posting(
            index, index.word[begin + i], slot, index.where[begin + i], i
        )


@kernel
def copy_words(index: Index, source: int, target: int) -> None:
    """Give an empty slot the words of another."""
    types = index.types[source]
    j = size_index(types + 1)
    begin = allocate(index.entries, index.word, j)
    index.own[target].start = begin
    index.own[target].block = j
    old = index.own[source].start
    for i in range(types):
        w = index.word[old + i]
        count = index.occurrences[index.lists[w].start + index.where[old + i]]
        index.word[begin + i] = w
        index.where[begin + i] = _append_posting(index, w, target, count, i)
    index.types[target] = types
    index.tokens[target] = index.tokens[source]
    index.records[target] = index.records[source]
    index.distinct[target] = index.distinct[source]


@kernel
def unindex(index: Index, slot: int) -> None:
    """Take a slot's postings out of the index; its entries keep the counts."""
    if index.own[slot].block < 0:
        return
    begin = index.own[slot].start
    for i in range(index.types[slot]):
        w = index.word[begin + i]
        at = index.lists[w].start + index.where[begin + i]
        index.where[begin + i] = index.occurrences[at]
        _drop_posting(index, w, at)
        if index.lists[w].length == 0:
            drop_list(index.postings, index.slot, index.lists, w)
        else:
            payloads = (index.slot, index.occurrences, index.back)
            shrink_list(index.postings, payloads, index.lists, w, index.lists[w].length)


@kernel
def release_words(index: Index, slot: int) -> None:
    """Free an unindexed slot's entries."""
    drop_list(index.entries, index.word, index.own, slot)


@kernel
def count_at(index: Index, entry: int, closed: bool) -> int:
    """How often a slot holds the word of one of its entries."""
    where = index.where[entry]
    return where if closed else index.occurrences[index.lists[index.word[entry]].start + where]


@kernel
def count_in(index: Index, slot: int, closed: bool, word: int) -> int:
    """How often a slot, which may be closed, holds a word."""
    begin = index.own[slot].start
    for entry in range(begin, begin + index.types[slot]):
        if index.word[entry] == word:
            return count_at(index, entry, closed)
    return 0
