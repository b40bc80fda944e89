"""Clusters of word counts.

log H is a term of the cluster's tokens and distinct words, and one for the tokens of each word, so that
a record is scored against all clusters along the postings of its words alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import gain, is_type, whole
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels.store import (
    FIRST_SLOT,
    WordStore,
    add_group_scores,
    add_scores,
    add_to_group,
    clear,
    copies_in_group,
    empty_group,
    group_of_slot,
    hold,
    prepare_part,
    remove,
    take_out,
)


@kernel
def _place(store: WordStore, slot: int, w: int) -> int:
    """Where the postings of a word hold a slot, or the place after the last."""
    q = store.start[w]
    end = q + store.length[w]
    while q < end and store.slot[q] != slot:
        q += 1
    return q


@clusters.hold.of(WordStore)
def _hold(store: WordStore, slot: int, i: int) -> float:
    terms = store.terms
    types, tokens, gained = store.types[slot], store.tokens[slot], 0.0
    before = whole(terms, tokens, types)
    for p in range(store.offsets[i], store.offsets[i + 1]):
        w, count = store.words[p], store.counts[p]
        q = _place(store, slot, w)
        if q == store.start[w] + store.length[w]:
            store.slot[q] = slot
            store.held[q] = 0
            store.length[w] += 1
            types += is_type(terms, w)
        gained += gain(terms, w, count, store.held[q])
        store.held[q] += count
        tokens += count * is_type(terms, w)
    store.types[slot], store.tokens[slot] = types, tokens
    store.log_h[slot] += gained + whole(terms, tokens, types) - before
    store.log_h[slot] += hold(store.beside, slot, i)
    return 0.0


@clusters.take_out.of(WordStore)
def _take_out(store: WordStore, slot: int, i: int, last: bool) -> float:
    terms = store.terms
    types, tokens, lost = store.types[slot], store.tokens[slot], 0.0
    before = whole(terms, tokens, types)
    for p in range(store.offsets[i], store.offsets[i + 1]):
        w, count = store.words[p], store.counts[p]
        q = _place(store, slot, w)
        store.held[q] -= count
        lost += gain(terms, w, count, store.held[q])
        if store.held[q] == 0:
            end = store.start[w] + store.length[w] - 1
            store.slot[q], store.held[q] = store.slot[end], store.held[end]
            store.length[w] -= 1
            types -= is_type(terms, w)
        tokens -= count * is_type(terms, w)
    store.types[slot], store.tokens[slot] = types, tokens
    store.log_h[slot] += whole(terms, tokens, types) - before - lost
    store.log_h[slot] += take_out(store.beside, slot, i, last)
    if last:
        store.log_h[slot] = 0.0
    return 0.0


@kernel
def _alone(terms: Any, words: np.ndarray, counts: np.ndarray, first: int, last: int) -> float:
    """log H of the tokens first .. last - 1 by themselves."""
    total, tokens, types = 0.0, 0, 0
    for p in range(first, last):
        total += gain(terms, words[p], counts[p], 0)
        tokens += counts[p] * is_type(terms, words[p])
        types += is_type(terms, words[p])
    return total + whole(terms, tokens, types)


@kernel
def _score_tokens(
    store: WordStore,
    words: np.ndarray,
    counts: np.ndarray,
    first: int,
    last: int,
    slots: np.ndarray,
    n: int,
    out: np.ndarray,
) -> None:
    """Add what the tokens first .. last - 1 add to log H of each of the first n slots."""
    terms, gains, hits = store.terms, store.gain, store.hits
    for j in range(n):
        gains[slots[j]] = 0.0
        hits[slots[j]] = 0
    anew, tokens, more = 0.0, 0, 0
    for p in range(first, last):
        w, count = words[p], counts[p]
        fresh, counted = gain(terms, w, count, 0), is_type(terms, w)
        anew += fresh
        tokens += count * counted
        more += counted
        for q in range(store.start[w], store.start[w] + store.length[w]):
            slot = store.slot[q]
            gains[slot] += gain(terms, w, count, store.held[q]) - fresh
            hits[slot] += counted
    for j in range(n):
        slot = slots[j]
        held, types = store.tokens[slot], store.types[slot]
        after = whole(terms, held + tokens, types + more - hits[slot])
        out[j] += anew + gains[slot] + after - whole(terms, held, types)


@clusters.empty_group.of(WordStore)
def _empty_group(store: WordStore) -> None:
    for j in range(store.counters.bag_types):
        store.bag[store.bag_words[j]] = 0
    store.counters.bag_types = 0
    store.counters.bag_tokens = 0
    empty_group(store.beside)


@clusters.add_to_group.of(WordStore)
def _add_to_group(store: WordStore, i: int) -> None:
    _count_into_group(store, i)
    add_to_group(store.beside, i)


@kernel
def _count_into_group(store: WordStore, i: int) -> None:
    """Count the words of a record into the group."""
    for p in range(store.offsets[i], store.offsets[i + 1]):
        w = store.words[p]
        if store.bag[w] == 0:
            store.bag_words[store.counters.bag_types] = w
            store.counters.bag_types += 1
        store.bag[w] += store.counts[p]
        store.counters.bag_tokens += store.counts[p]


@clusters.add_group_scores.of(WordStore)
def _add_group_scores(store: WordStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    types = store.counters.bag_types
    for j in range(types):
        store.bag_counts[j] = store.bag[store.bag_words[j]]
    _score_tokens(store, store.bag_words, store.bag_counts, 0, types, slots, n, out)
    own = _alone(store.terms, store.bag_words, store.bag_counts, 0, types)
    return own + add_group_scores(store.beside, slots, n, out)


@clusters.add_scores.of(WordStore)
def _add_scores(store: WordStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    first, last = store.offsets[i], store.offsets[i + 1]
    _score_tokens(store, store.words, store.counts, first, last, slots, n, out)
    add_scores(store.beside, i, slots, n, out)


@clusters.clear.of(WordStore)
def _clear(store: WordStore, slot: int) -> None:
    store.size[slot] = 0
    store.log_h[slot] = 0.0
    store.tokens[slot] = 0
    store.types[slot] = 0
    clear(store.beside, slot)


@clusters.drop_run.of(WordStore)
def _drop_run(store: WordStore, slot: int, order: np.ndarray, first: int, last: int) -> None:
    for t in range(first, last):
        remove(store, slot, order[t])


@clusters.copies_in_group.of(WordStore)
def _copies_in_group(store: WordStore, i: int, n: int, factor: float) -> None:
    empty_group(store)
    if n > 0:
        _count_into_group(store, i)
        store.counters.bag_tokens = 0
        for j in range(store.counters.bag_types):
            w = store.bag_words[j]
            store.bag[w] = n * int(factor * store.bag[w] + 0.5)
            store.counters.bag_tokens += store.bag[w]
    copies_in_group(store.beside, i, n, factor)


@clusters.group_of_slot.of(WordStore)
def _group_of_slot(store: WordStore, slot: int, labels: np.ndarray) -> None:
    empty_group(store)
    for i in range(labels.shape[0]):
        if labels[i] == slot:
            _count_into_group(store, i)
    frozen = labels.shape[0] + slot - FIRST_SLOT
    if frozen < store.fresh.shape[0]:
        _count_into_group(store, frozen)
    group_of_slot(store.beside, slot, labels)


@clusters.prepare_part.of(WordStore)
def _prepare(store: WordStore, fresh: np.ndarray) -> None:
    for slot in range(store.size.shape[0]):
        clear(store, slot)
    for w in range(store.length.shape[0]):
        store.length[w] = 0
    for i in range(fresh.shape[0]):
        first, last = store.offsets[i], store.offsets[i + 1]
        fresh[i] += _alone(store.terms, store.words, store.counts, first, last)
    prepare_part(store.beside, fresh)
