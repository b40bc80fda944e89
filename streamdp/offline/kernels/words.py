"""Clusters of word counts.

log H is a term of the cluster's tokens and distinct words, and one for the tokens of each word, so that
a record is scored against all clusters along the postings of its words alone.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.store import BAG_TOKENS, BAG_TYPES, BASE, FLAT, TABLES, Records, Store, Tables


@kernel
def _whole(tables: Tables, tokens: int, types: int) -> float:
    """The term of all tokens."""
    value = tables.tokens[0] - tables.tokens[tokens]
    if tables.kind[0] == TABLES:
        value += tables.types[types]
    return value


@kernel
def _gain(tables: Tables, w: int, count: int, held: int) -> float:
    """What ``count`` more tokens of a word add to its term where ``held`` are."""
    kind = tables.kind[0]
    if kind == FLAT:
        return tables.word[held + count] - tables.word[held]
    if kind == BASE:
        total = 0.0
        for j in range(count):
            total += math.log(tables.mass[w] + (held + j))
        return total
    if held > 0:
        return tables.word[held + count] - tables.word[held]
    return tables.mass[w] + tables.word[count] - tables.word[1]


@kernel
def _place(store: Store, slot: int, w: int) -> int:
    """Where the postings of a word hold a slot, or the place after the last."""
    clusters = store.clusters
    q = clusters.start[w]
    end = q + clusters.length[w]
    while q < end and clusters.slot[q] != slot:
        q += 1
    return q


@kernel
def tokens_of(records: Records, i: int) -> int:
    """Tokens of a record."""
    total = 0
    for p in range(records.offsets[i], records.offsets[i + 1]):
        total += records.counts[p]
    return total


@kernel
def add_words(store: Store, slot: int, i: int) -> None:
    """Let a record join a slot."""
    records, clusters, tables = store.records, store.clusters, store.tables
    types, tokens, gained = clusters.types[slot], int(clusters.total[slot]), 0.0
    before = _whole(tables, tokens, types)
    for p in range(records.offsets[i], records.offsets[i + 1]):
        w, count = records.words[p], records.counts[p]
        q = _place(store, slot, w)
        if q == clusters.start[w] + clusters.length[w]:
            clusters.slot[q] = slot
            clusters.held[q] = 0
            clusters.length[w] += 1
            types += 1
        gained += _gain(tables, w, count, clusters.held[q])
        clusters.held[q] += count
        tokens += count
    clusters.types[slot], clusters.total[slot] = types, tokens
    clusters.log_h[slot] += gained + _whole(tables, tokens, types) - before


@kernel
def remove_words(store: Store, slot: int, i: int) -> None:
    """Take a record out of a slot."""
    records, clusters, tables = store.records, store.clusters, store.tables
    types, tokens, lost = clusters.types[slot], int(clusters.total[slot]), 0.0
    before = _whole(tables, tokens, types)
    for p in range(records.offsets[i], records.offsets[i + 1]):
        w, count = records.words[p], records.counts[p]
        q = _place(store, slot, w)
        clusters.held[q] -= count
        lost += _gain(tables, w, count, clusters.held[q])
        if clusters.held[q] == 0:
            last = clusters.start[w] + clusters.length[w] - 1
            clusters.slot[q], clusters.held[q] = clusters.slot[last], clusters.held[last]
            clusters.length[w] -= 1
            types -= 1
        tokens -= count
    clusters.types[slot], clusters.total[slot] = types, tokens
    clusters.log_h[slot] += _whole(tables, tokens, types) - before - lost


@kernel
def alone(tables: Tables, words: np.ndarray, counts: np.ndarray, first: int, last: int) -> float:
    """log H of the tokens first .. last - 1 by themselves."""
    total, tokens = 0.0, 0
    for p in range(first, last):
        total += _gain(tables, words[p], counts[p], 0)
        tokens += counts[p]
    return total + _whole(tables, tokens, last - first)


@kernel
def score_tokens(
    store: Store,
    words: np.ndarray,
    counts: np.ndarray,
    first: int,
    last: int,
    slots: np.ndarray,
    n: int,
    out: np.ndarray,
) -> None:
    """What the tokens first .. last - 1 add to log H of each of the first n slots."""
    clusters, tables, scratch = store.clusters, store.tables, store.scratch
    gain, hits = scratch.gain, scratch.hits
    for j in range(n):
        gain[slots[j]] = 0.0
        hits[slots[j]] = 0
    anew, tokens = 0.0, 0
    for p in range(first, last):
        w, count = words[p], counts[p]
        fresh = _gain(tables, w, count, 0)
        anew += fresh
        tokens += count
        for q in range(clusters.start[w], clusters.start[w] + clusters.length[w]):
            slot = clusters.slot[q]
            gain[slot] += _gain(tables, w, count, clusters.held[q]) - fresh
            hits[slot] += 1
    for j in range(n):
        slot = slots[j]
        held, types = int(clusters.total[slot]), clusters.types[slot]
        after = _whole(tables, held + tokens, types + (last - first) - hits[slot])
        out[j] = anew + gain[slot] + after - _whole(tables, held, types)


@kernel
def empty_bag(store: Store) -> None:
    """Forget the words of the group."""
    scratch = store.scratch
    for j in range(scratch.meta[BAG_TYPES]):
        scratch.bag[scratch.bag_words[j]] = 0
    scratch.meta[BAG_TYPES] = 0
    scratch.meta[BAG_TOKENS] = 0


@kernel
def add_to_bag(store: Store, i: int) -> None:
    """Let a record join the group."""
    scratch, records = store.scratch, store.records
    for p in range(records.offsets[i], records.offsets[i + 1]):
        w = records.words[p]
        if scratch.bag[w] == 0:
            scratch.bag_words[scratch.meta[BAG_TYPES]] = w
            scratch.meta[BAG_TYPES] += 1
        scratch.bag[w] += records.counts[p]
        scratch.meta[BAG_TOKENS] += records.counts[p]


@kernel
def score_bag(store: Store, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    """What the group adds to log H of each slot; returns log H of the group."""
    scratch = store.scratch
    types = scratch.meta[BAG_TYPES]
    for j in range(types):
        scratch.bag_counts[j] = scratch.bag[scratch.bag_words[j]]
    score_tokens(store, scratch.bag_words, scratch.bag_counts, 0, types, slots, n, out)
    return alone(store.tables, scratch.bag_words, scratch.bag_counts, 0, types)


@entry
def log_gammas(start: float, out: np.ndarray) -> None:
    """log Gamma(start + n) for every n."""
    for n in range(out.shape[0]):
        out[n] = math.lgamma(start + n)
