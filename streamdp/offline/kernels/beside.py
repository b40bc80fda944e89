"""Clusters of words and of one vector beside them: log H is the sum of both.

What is not here is as that of words. A record without a vector has NaN in its place.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods import vectors as family
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels import words as of_words
from streamdp.offline.kernels.store import EMPTY, GROUP, BesideStore, clear

_clear_words, _hold_words = kernel(of_words.clear_words), kernel(of_words.hold_words)
_remove_words, _prepare_words = kernel(of_words.remove_words), kernel(of_words.prepare_words)
_score_words, _score_group_words = kernel(of_words.score_words), kernel(of_words.score_group_words)
_empty_words, _group_words = kernel(of_words.empty_words), kernel(of_words.add_words_to_group)
_copies_of_words = kernel(of_words.copies_of_words)

_join, _leave, _merge, _settle = family.add, family.remove, family.merge, family.settle
_predictive, _log_marginal, _own = family.predictive, family.log_marginal, family.own
_log_marginal_of_both, _has_vector = family.log_marginal_of_both, family.has_vector


@kernel
def _update(store: BesideStore, slot: int) -> None:
    """Count what has become of a slot's row into its log H."""
    beside = store.beside
    row = beside.block[slot]
    _settle(beside.terms, row)
    found = _log_marginal(beside.terms, row)
    store.log_h[slot] += found - beside.log_h[slot]
    beside.log_h[slot] = found


@clusters.clear.of(BesideStore)
def _clear(store: BesideStore, slot: int) -> None:
    _clear_words(store, slot)
    clear(store.beside, slot)


@clusters.hold.of(BesideStore)
def _hold(store: BesideStore, slot: int, i: int) -> None:
    beside = store.beside
    _hold_words(store, slot, i)
    row = beside.block[slot]
    if i >= beside.vectors.shape[0]:
        _merge(beside.terms, row, beside.frozen[i - beside.vectors.shape[0]])
        _update(store, slot)
    elif _has_vector(beside.vectors[i]):
        _join(beside.terms, row, beside.vectors[i], beside.own[i])
        _update(store, slot)


@clusters.remove.of(BesideStore)
def _remove(store: BesideStore, slot: int, i: int) -> None:
    beside = store.beside
    _remove_words(store, slot, i)
    if store.size[slot] == 0:
        clear(beside, slot)
    elif i < beside.vectors.shape[0] and _has_vector(beside.vectors[i]):  # frozen ones leave all at once
        _leave(beside.terms, beside.block[slot], beside.vectors[i], beside.own[i])
        _update(store, slot)


@clusters.score.of(BesideStore)
def _score(store: BesideStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    beside = store.beside
    _score_words(store, i, slots, n, out)
    if _has_vector(beside.vectors[i]):
        x, own = beside.vectors[i], beside.own[i]
        for j in range(n):
            out[j] += _predictive(beside.terms, beside.block[slots[j]], x, own)


@clusters.score_group.of(BesideStore)
def _score_group(store: BesideStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    total = _score_group_words(store, slots, n, out)
    beside = store.beside
    union, group = beside.scratch[0], beside.block[GROUP]
    for j in range(n):
        both = _log_marginal_of_both(beside.terms, beside.block[slots[j]], group, union)
        out[j] += both - beside.log_h[slots[j]]
    _settle(beside.terms, group)
    return total + _log_marginal(beside.terms, group)


@clusters.empty_group.of(BesideStore)
def _empty_group(store: BesideStore) -> None:
    _empty_words(store)
    clear(store.beside, GROUP)


@clusters.add_to_group.of(BesideStore)
def _add_to_group(store: BesideStore, i: int) -> None:
    beside = store.beside
    _group_words(store, i)
    if i >= beside.vectors.shape[0]:
        _merge(beside.terms, beside.block[GROUP], beside.frozen[i - beside.vectors.shape[0]])
    elif _has_vector(beside.vectors[i]):
        _join(beside.terms, beside.block[GROUP], beside.vectors[i], beside.own[i])


@clusters.copies_in_group.of(BesideStore)
def _copies_in_group(store: BesideStore, i: int, n: int, factor: float) -> None:
    beside = store.beside
    _copies_of_words(store, i, n, factor)
    if _has_vector(beside.vectors[i]):
        for _ in range(1, n):
            _join(beside.terms, beside.block[GROUP], beside.vectors[i], beside.own[i])


@clusters.prepare_all.of(BesideStore)
def _prepare(store: BesideStore) -> None:
    _prepare_words(store)
    beside = store.beside
    records = beside.vectors.shape[0]
    for i in range(store.fresh.shape[0]):
        if i >= records:
            row = beside.scratch[0]
            for d in range(row.shape[0]):
                row[d] = beside.frozen[i - records, d]
            _settle(beside.terms, row)
            store.fresh[i] += _log_marginal(beside.terms, row)
        elif _has_vector(beside.vectors[i]):
            x = beside.vectors[i]
            beside.own[i] = _own(beside.terms, x)
            store.fresh[i] += _predictive(beside.terms, beside.block[EMPTY], x, beside.own[i])
