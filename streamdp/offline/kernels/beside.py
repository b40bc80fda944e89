"""Clusters of words and of one vector beside them: log H is the sum of both.

What is not here is as that of words. A record without a vector has NaN in its place.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels import words as of_words
from streamdp.offline.kernels.store import (
    BesideStore,
    add,
    add_to_group,
    clear,
    empty_group,
    hold,
    prepare_all,
    remove,
    score,
    score_group,
)

_clear_words, _hold_words = kernel(of_words.clear_words), kernel(of_words.hold_words)
_remove_words, _prepare_words = kernel(of_words.remove_words), kernel(of_words.prepare_words)
_score_words, _score_group_words = kernel(of_words.score_words), kernel(of_words.score_group_words)
_empty_words, _group_words = kernel(of_words.empty_words), kernel(of_words.add_words_to_group)
_copies_of_words = kernel(of_words.copies_of_words)


@clusters.clear.of(BesideStore)
def _clear(store: BesideStore, slot: int) -> None:
    _clear_words(store, slot)
    clear(store.beside, slot)


@clusters.hold.of(BesideStore)
def _hold(store: BesideStore, slot: int, i: int) -> None:
    _hold_words(store, slot, i)
    before = store.beside.log_h[slot]
    if i < store.beside.vectors.shape[0]:
        add(store.beside, slot, i)
    else:
        hold(store.beside, slot, i)
        store.beside.size[slot] += 1
    store.log_h[slot] += store.beside.log_h[slot] - before


@clusters.remove.of(BesideStore)
def _remove(store: BesideStore, slot: int, i: int) -> None:
    _remove_words(store, slot, i)
    if store.size[slot] == 0:
        clear(store.beside, slot)
    elif i < store.beside.vectors.shape[0]:  # frozen ones leave all at once
        before = store.beside.log_h[slot]
        remove(store.beside, slot, i)
        store.log_h[slot] += store.beside.log_h[slot] - before


@clusters.score.of(BesideStore)
def _score(store: BesideStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    _score_words(store, i, slots, n, out)
    score(store.beside, i, slots, n, store.gain)
    for j in range(n):
        out[j] += store.gain[j]


@clusters.score_group.of(BesideStore)
def _score_group(store: BesideStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    alone = _score_group_words(store, slots, n, out)
    alone += score_group(store.beside, slots, n, store.gain)
    for j in range(n):
        out[j] += store.gain[j]
    return alone


@clusters.empty_group.of(BesideStore)
def _empty_group(store: BesideStore) -> None:
    _empty_words(store)
    empty_group(store.beside)


@clusters.add_to_group.of(BesideStore)
def _add_to_group(store: BesideStore, i: int) -> None:
    _group_words(store, i)
    add_to_group(store.beside, i)


@clusters.copies_in_group.of(BesideStore)
def _copies_in_group(store: BesideStore, i: int, n: int, factor: float) -> None:
    _copies_of_words(store, i, n, factor)
    for _ in range(1, n):
        add_to_group(store.beside, i)


@clusters.prepare_all.of(BesideStore)
def _prepare(store: BesideStore) -> None:
    _prepare_words(store)
    prepare_all(store.beside)
    records = store.beside.vectors.shape[0]
    for i in range(store.fresh.shape[0]):
        if i < records:
            store.fresh[i] += store.beside.fresh[i]
        else:
            empty_group(store.beside)
            add_to_group(store.beside, i)
            store.fresh[i] += score_group(store.beside, store.hits, 0, store.gain)
