"""The inverted index word -> (cluster, count), and each cluster's own list of words.

The two point at each other, so that a posting can be removed in constant time: a cluster's entry
knows where its posting stands, a posting knows which entry of its cluster it belongs to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.pool import Pool
from streamdp.kernels.blocks import allocate, new_header, release, size_index
from streamdp.kernels.jit import kernel

TOTAL, SEEN, POSTED = 0, 1, 2


class Index(NamedTuple):
    """Arrays by word id, by slot, and the two arenas."""

    start: np.ndarray  # int64[V] offset of the word's postings
    length: np.ndarray  # int32[V]
    block: np.ndarray  # int32[V] size index, -1 for none
    most: np.ndarray  # int32[V] the largest n_kw that the word ever had in a cluster
    postings: np.ndarray  # arena header
    slot: np.ndarray  # int32[...] payload: the cluster
    occurrences: np.ndarray  # int32[...] payload: n_kw
    back: np.ndarray  # int32[...] payload: index of the cluster's entry
    own_start: np.ndarray  # int64[S] offset of the slot's entries (there are types[slot] of them)
    own_block: np.ndarray  # int32[S] size index, -1 for none
    entries: np.ndarray  # arena header
    word: np.ndarray  # int32[...] payload: the word
    where: np.ndarray  # int32[...] payload: index of its posting; its count once the slot is closed
    base: np.ndarray  # int64[V] T_w or N_w of the learned base measure
    totals: np.ndarray  # int64[3] their sum, the number of words with any, postings in use


def new_index(words: int, slots: int, postings: int, entries: int) -> Index:
    """Nothing indexed."""
    return Index(
        np.zeros(words, np.int64),
        np.zeros(words, np.int32),
        np.full(words, -1, np.int32),
        np.zeros(words, np.int32),
        new_header(),
        np.zeros(postings, np.int32),
        np.zeros(postings, np.int32),
        np.zeros(postings, np.int32),
        np.zeros(slots, np.int64),
        np.full(slots, -1, np.int32),
        new_header(),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(words, np.int64),
        np.zeros(3, np.int64),
    )


@kernel
def _append_entry(index: Index, slot: int, types: int, word: int, where: int) -> None:
    j = index.own_block[slot]
    if j < 0:
        j = 0
        index.own_start[slot] = allocate(index.entries, index.word, j)
        index.own_block[slot] = j
    elif types == (4 << j):
        offset = allocate(index.entries, index.word, j + 1)
        old = index.own_start[slot]
        for i in range(types):
            index.word[offset + i] = index.word[old + i]
            index.where[offset + i] = index.where[old + i]
        release(index.entries, index.word, old, j)
        index.own_start[slot] = offset
        index.own_block[slot] = j + 1
    at = index.own_start[slot] + types
    index.word[at] = word
    index.where[at] = where


@kernel
def _append_posting(index: Index, word: int, slot: int, count: int, back: int) -> int:
    n = index.length[word]
    j = index.block[word]
    if j < 0:
        j = 0
        index.start[word] = allocate(index.postings, index.slot, j)
        index.block[word] = j
    elif n == (4 << j):
        offset = allocate(index.postings, index.slot, j + 1)
        old = index.start[word]
        for i in range(n):
            index.slot[offset + i] = index.slot[old + i]
            index.occurrences[offset + i] = index.occurrences[old + i]
            index.back[offset + i] = index.back[old + i]
        release(index.postings, index.slot, old, j)
        index.start[word] = offset
        index.block[word] = j + 1
    at = index.start[word] + n
    index.slot[at] = slot
    index.occurrences[at] = count
    index.back[at] = back
    index.length[word] = n + 1
    index.totals[POSTED] += 1
    return n


@kernel
def add_words(
    index: Index, pool: Pool, slot: int, words: np.ndarray, counts: np.ndarray, fresh: np.ndarray
) -> None:
    """Add a record's counts to a slot; ``fresh[i]`` tells whether word i was new to it."""
    for i in range(words.shape[0]):
        w = words[i]
        start = index.start[w]
        found = False
        if index.length[w] <= pool.types[slot]:
            for e in range(start, start + index.length[w]):
                if index.slot[e] == slot:
                    index.occurrences[e] += counts[i]
                    index.most[w] = max(index.most[w], index.occurrences[e])
                    found = True
                    break
        else:
            begin = index.own_start[slot]
            for k in range(begin, begin + pool.types[slot]):
                if index.word[k] == w:
                    e = start + index.where[k]
                    index.occurrences[e] += counts[i]
                    index.most[w] = max(index.most[w], index.occurrences[e])
                    found = True
                    break
        fresh[i] = not found
        if not found:
            types = pool.types[slot]
            index.most[w] = max(index.most[w], counts[i])
            where = _append_posting(index, w, slot, counts[i], types)
            _append_entry(index, slot, types, w, where)
            pool.types[slot] = types + 1
        pool.tokens[slot] += counts[i]


@kernel
def copy_words(index: Index, pool: Pool, source: int, target: int) -> None:
    """Give an empty slot the words of another."""
    types = pool.types[source]
    j = size_index(types + 1)
    begin = allocate(index.entries, index.word, j)
    index.own_start[target] = begin
    index.own_block[target] = j
    old = index.own_start[source]
    for i in range(types):
        w = index.word[old + i]
        count = index.occurrences[index.start[w] + index.where[old + i]]
        index.word[begin + i] = w
        index.where[begin + i] = _append_posting(index, w, target, count, i)
    pool.types[target] = types
    pool.tokens[target] = pool.tokens[source]


@kernel
def unindex(index: Index, pool: Pool, slot: int) -> None:
    """Take a slot's postings out of the index; its entries keep the counts."""
    if index.own_block[slot] < 0:
        return
    begin = index.own_start[slot]
    for i in range(pool.types[slot]):
        w = index.word[begin + i]
        start = index.start[w]
        at = start + index.where[begin + i]
        last = start + index.length[w] - 1
        index.where[begin + i] = index.occurrences[at]
        if at != last:
            index.slot[at] = index.slot[last]
            index.occurrences[at] = index.occurrences[last]
            index.back[at] = index.back[last]
            index.where[index.own_start[index.slot[at]] + index.back[at]] = at - start
        index.length[w] -= 1
        index.totals[POSTED] -= 1
        if index.length[w] == 0:
            release(index.postings, index.slot, start, index.block[w])
            index.block[w] = -1


@kernel
def release_words(index: Index, slot: int) -> None:
    """Free an unindexed slot's entries."""
    if index.own_block[slot] >= 0:
        release(index.entries, index.word, index.own_start[slot], index.own_block[slot])
        index.own_block[slot] = -1


@kernel
def _telling(index: Index, word: int, count: int, clusters: int) -> float:
    """How much a word says of a cluster: frequent in it, rare among the live clusters."""
    return count * math.log((1.0 + clusters) / max(index.length[word], 1))


@kernel
def top_words(
    index: Index, pool: Pool, slot: int, closed: bool, clusters: int, words: np.ndarray, counts: np.ndarray
) -> None:
    """Fill ``words``/``counts`` with the slot's most telling words (older entry first), -1 padded."""
    size = words.shape[0]
    for j in range(size):
        words[j] = -1
        counts[j] = 0
    begin = index.own_start[slot]
    for i in range(pool.types[slot]):
        w = index.word[begin + i]
        where = index.where[begin + i]
        count = where if closed else index.occurrences[index.start[w] + where]
        score = _telling(index, w, count, clusters)
        j = size
        while j > 0 and (words[j - 1] < 0 or _telling(index, words[j - 1], counts[j - 1], clusters) < score):
            if j < size:
                words[j] = words[j - 1]
                counts[j] = counts[j - 1]
            j -= 1
        if j < size:
            words[j] = w
            counts[j] = count
