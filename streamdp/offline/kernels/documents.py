"""Clusters of word counts whose log H depends on the order of their records.

It is that of their words, and what :func:`~streamdp.likelihoods.words.in_order` adds by each record given
those before it: they are gone through whenever a record comes or goes, or is scored. What is not here is as
that of words. Wallach, Jensen, Dicker and Heller 2010, eqs. 13-17, who score each record as if it came last.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import in_order
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels import words as of_words
from streamdp.offline.kernels.store import GROUP, DocumentStore, add_to_group, empty_group

_hold_words, _take_out_words = kernel(of_words.hold_words), kernel(of_words.take_out_words)
_prepare_words = kernel(of_words.prepare_words)
_score_words, _score_group_words = kernel(of_words.score_words), kernel(of_words.score_group_words)
_empty_words, _group_words = kernel(of_words.empty_words), kernel(of_words.add_words_to_group)

NOWHERE = -1


@kernel
def _in_order(store: DocumentStore, slot: int, group: bool) -> float:
    """What the order adds for the records of a slot, together with the group or without."""
    documents, total, tokens, n = store.beside, 0.0, 0, 0
    for i in range(store.fresh.shape[0]):
        if documents.slot[i] == slot or (group and documents.grouped[i] == 1):
            first, last = store.offsets[i], store.offsets[i + 1]
            total += in_order(store.terms, store.words, store.counts, first, last, tokens, documents.held)
            for p in range(first, last):
                documents.held[store.words[p]] += store.counts[p]
                tokens += store.counts[p]
            documents.members[n] = i
            n += 1
    for m in range(n):
        for p in range(store.offsets[documents.members[m]], store.offsets[documents.members[m] + 1]):
            documents.held[store.words[p]] = 0
    return total


@kernel
def _update(store: DocumentStore, slot: int) -> None:
    """Count what has become of a slot into its log H."""
    found = _in_order(store, slot, False)
    store.log_h[slot] += found - store.beside.in_order[slot]
    store.beside.in_order[slot] = found


@clusters.hold.of(DocumentStore)
def _hold(store: DocumentStore, slot: int, i: int) -> float:
    _hold_words(store, slot, i)
    store.beside.slot[i] = slot
    _update(store, slot)
    return 0.0


@clusters.take_out.of(DocumentStore)
def _take_out(store: DocumentStore, slot: int, i: int, last: bool) -> float:
    _take_out_words(store, slot, i, last)
    store.beside.slot[i] = NOWHERE
    if last:
        store.log_h[slot] = store.beside.in_order[slot]
    _update(store, slot)
    return 0.0


@clusters.add_scores.of(DocumentStore)
def _score(store: DocumentStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    _score_words(store, i, slots, n, out)
    for j in range(n):
        store.beside.slot[i] = slots[j]
        out[j] += _in_order(store, slots[j], False) - store.beside.in_order[slots[j]]
    store.beside.slot[i] = NOWHERE


@clusters.empty_group.of(DocumentStore)
def _empty_group(store: DocumentStore) -> None:
    _empty_words(store)
    for i in range(store.fresh.shape[0]):
        store.beside.grouped[i] = 0


@clusters.add_to_group.of(DocumentStore)
def _add_to_group(store: DocumentStore, i: int) -> None:
    _group_words(store, i)
    store.beside.grouped[i] = 1


@clusters.add_group_scores.of(DocumentStore)
def _score_group(store: DocumentStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    total = _score_group_words(store, slots, n, out)
    for j in range(n):
        out[j] += _in_order(store, slots[j], True) - store.beside.in_order[slots[j]]
    return total + _in_order(store, GROUP, True)


@clusters.group_of_slot.of(DocumentStore)
def _group_of_slot(store: DocumentStore, slot: int, labels: np.ndarray) -> None:
    empty_group(store)
    for i in range(labels.shape[0]):
        if labels[i] == slot:
            add_to_group(store, i)


@clusters.prepare_part.of(DocumentStore)
def _prepare(store: DocumentStore, fresh: np.ndarray) -> None:
    _prepare_words(store, fresh)
    for slot in range(store.beside.in_order.shape[0]):
        store.beside.in_order[slot] = 0.0
    for i in range(store.fresh.shape[0]):
        store.beside.slot[i] = NOWHERE
    for i in range(fresh.shape[0]):
        store.beside.slot[i] = GROUP
        fresh[i] += _in_order(store, GROUP, False)
        store.beside.slot[i] = NOWHERE
