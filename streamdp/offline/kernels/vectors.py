"""Clusters of vectors: a row each, on which the family's kernels work. NaN is the absence of a vector."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods import vectors as family
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels.store import EMPTY, GROUP, VectorStore, clear

_join, _leave, _merge, _settle = family.add, family.remove, family.merge, family.settle
_empty, _predictive, _log_marginal, _own = (family.clear, family.predictive, family.log_marginal, family.own)
_log_marginal_of_both, _has_vector = family.log_marginal_of_both, family.has_vector


@clusters.clear.of(VectorStore)
def _clear(store: VectorStore, slot: int) -> None:
    store.size[slot] = 0
    store.log_h[slot] = 0.0
    _empty(store.terms, store.block[slot])
    _settle(store.terms, store.block[slot])


@kernel
def _update(store: VectorStore, slot: int) -> None:
    """Count what has become of a row into its log H."""
    _settle(store.terms, store.block[slot])
    store.log_h[slot] = _log_marginal(store.terms, store.block[slot])


@clusters.add.of(VectorStore)
def _add(store: VectorStore, slot: int, i: int) -> None:
    if _has_vector(store.vectors[i]):
        _join(store.terms, store.block[slot], store.vectors[i], store.own[i])
        _update(store, slot)
        store.size[slot] += 1


@clusters.remove.of(VectorStore)
def _remove(store: VectorStore, slot: int, i: int) -> None:
    if not _has_vector(store.vectors[i]):
        return
    if store.size[slot] == 1:
        clear(store, slot)
        return
    _leave(store.terms, store.block[slot], store.vectors[i], store.own[i])
    _update(store, slot)
    store.size[slot] -= 1


@clusters.score.of(VectorStore)
def _score(store: VectorStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    x, own = store.vectors[i], store.own[i]
    has = _has_vector(x)
    for j in range(n):
        out[j] = _predictive(store.terms, store.block[slots[j]], x, own) if has else 0.0


@kernel
def _copy(store: VectorStore, source: np.ndarray, target: np.ndarray) -> None:
    for j in range(store.scratch.shape[1]):
        target[j] = source[j]


@clusters.score_group.of(VectorStore)
def _score_group(store: VectorStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    union, group = store.scratch[0], store.block[GROUP]
    for j in range(n):
        both = _log_marginal_of_both(store.terms, store.block[slots[j]], group, union)
        out[j] = both - store.log_h[slots[j]]
    _settle(store.terms, group)
    return _log_marginal(store.terms, group)


@clusters.hold.of(VectorStore)
def _hold(store: VectorStore, slot: int, i: int) -> None:
    frozen = store.frozen[i - store.vectors.shape[0]]
    if store.size[slot] == 0:
        _copy(store, frozen, store.block[slot])
    else:
        _merge(store.terms, store.block[slot], frozen)
    _update(store, slot)


@clusters.drop_run.of(VectorStore)
def _drop_run(store: VectorStore, slot: int, order: np.ndarray, first: int, last: int) -> None:
    clear(store, slot)


@clusters.empty_group.of(VectorStore)
def _empty_group(store: VectorStore) -> None:
    clear(store, GROUP)


@clusters.add_to_group.of(VectorStore)
def _add_to_group(store: VectorStore, i: int) -> None:
    if i >= store.vectors.shape[0]:
        _merge(store.terms, store.block[GROUP], store.frozen[i - store.vectors.shape[0]])
    elif _has_vector(store.vectors[i]):
        _join(store.terms, store.block[GROUP], store.vectors[i], store.own[i])


@clusters.copies_in_group.of(VectorStore)
def _copies_in_group(store: VectorStore, i: int, n: int, factor: float) -> None:
    # by doubling
    clear(store, GROUP)
    powers, same = store.scratch[0], store.scratch[1]
    _copy(store, store.block[EMPTY], powers)
    x, scaled = store.vectors[i], same[: store.vectors.shape[1]]
    for d in range(x.shape[0]):
        scaled[d] = factor * x[d]
    _join(store.terms, powers, scaled, _own(store.terms, scaled))
    left = n
    while left > 0:
        if left & 1:
            _merge(store.terms, store.block[GROUP], powers)
        _copy(store, powers, same)
        _merge(store.terms, powers, same)
        left >>= 1


@clusters.group_of_slot.of(VectorStore)
def _group_of_slot(store: VectorStore, slot: int, labels: np.ndarray) -> None:
    _copy(store, store.block[slot], store.block[GROUP])


@clusters.prepare_all.of(VectorStore)
def _prepare(store: VectorStore) -> None:
    for slot in range(store.size.shape[0]):
        clear(store, slot)
    for i in range(store.fresh.shape[0]):
        if _has_vector(store.vectors[i]):
            store.own[i] = _own(store.terms, store.vectors[i])
            store.fresh[i] = _predictive(store.terms, store.block[EMPTY], store.vectors[i], store.own[i])
