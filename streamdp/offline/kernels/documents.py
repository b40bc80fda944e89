"""Clusters of word counts whose log H depends on the order of their records.

It is that of their words, and what :func:`~streamdp.likelihoods.words.in_order` adds by each record given
those before it: they are gone through whenever a record comes or goes, or is scored. What is not here is as
that of words.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import in_order
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels import words as of_words
from streamdp.offline.kernels.store import GROUP, DocumentStore

_clear_words, _hold_words = kernel(of_words.clear_words), kernel(of_words.hold_words)
_remove_words, _prepare_words = kernel(of_words.remove_words), kernel(of_words.prepare_words)
_score_words, _score_group_words = kernel(of_words.score_words), kernel(of_words.score_group_words)
_empty_words, _group_words = kernel(of_words.empty_words), kernel(of_words.add_words_to_group)

NOBODY = -1


@kernel
def _in_order(store: DocumentStore, slot: int, one: int, group: bool) -> float:
    """What the order adds for the records of a slot, together with one more, or with the group."""
    documents, total, tokens = store.beside, 0.0, 0
    for again in range(2):  # the second time counts are taken back
        for i in range(store.fresh.shape[0]):
            if documents.slot[i] != slot and i != one and not (group and documents.grouped[i]):
                continue
            first, last = store.offsets[i], store.offsets[i + 1]
            if again == 0:
                total += in_order(store.terms, store.words, store.counts, first, last, tokens, documents.held)
            for p in range(first, last):
                w, count = store.words[p], store.counts[p]
                documents.held[w] = documents.held[w] + count if again == 0 else 0
                tokens += count
    return total


@kernel
def _update(store: DocumentStore, slot: int) -> None:
    """Count what has become of a slot into its log H."""
    found = _in_order(store, slot, NOBODY, False)
    store.log_h[slot] += found - store.beside.in_order[slot]
    store.beside.in_order[slot] = found


@clusters.clear.of(DocumentStore)
def _clear(store: DocumentStore, slot: int) -> None:
    _clear_words(store, slot)
    store.beside.in_order[slot] = 0.0


@clusters.hold.of(DocumentStore)
def _hold(store: DocumentStore, slot: int, i: int) -> None:
    _hold_words(store, slot, i)
    store.beside.slot[i] = slot
    _update(store, slot)


@clusters.remove.of(DocumentStore)
def _remove(store: DocumentStore, slot: int, i: int) -> None:
    _remove_words(store, slot, i)
    store.beside.slot[i] = NOBODY
    if store.size[slot] == 0:
        store.beside.in_order[slot] = 0.0
    else:
        _update(store, slot)


@clusters.score.of(DocumentStore)
def _score(store: DocumentStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    _score_words(store, i, slots, n, out)
    for j in range(n):
        out[j] += _in_order(store, slots[j], i, False) - store.beside.in_order[slots[j]]


@clusters.empty_group.of(DocumentStore)
def _empty_group(store: DocumentStore) -> None:
    _empty_words(store)
    for i in range(store.fresh.shape[0]):
        store.beside.grouped[i] = 0


@clusters.add_to_group.of(DocumentStore)
def _add_to_group(store: DocumentStore, i: int) -> None:
    _group_words(store, i)
    store.beside.grouped[i] = 1


@clusters.score_group.of(DocumentStore)
def _score_group(store: DocumentStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    total = _score_group_words(store, slots, n, out)
    for j in range(n):
        out[j] += _in_order(store, slots[j], NOBODY, True) - store.beside.in_order[slots[j]]
    return total + _in_order(store, GROUP, NOBODY, True)


@clusters.prepare_all.of(DocumentStore)
def _prepare(store: DocumentStore) -> None:
    _prepare_words(store)
    for i in range(store.fresh.shape[0]):
        store.beside.slot[i] = NOBODY
    for i in range(store.fresh.shape[0]):
        store.fresh[i] += _in_order(store, GROUP, i, False)
