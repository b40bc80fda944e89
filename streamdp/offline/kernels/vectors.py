"""Clusters of vectors: a row each, on which the family's kernels work.

Beside words it is a part of a store, and a record without a vector has NaN. Log H of a slot is that of its
vectors alone.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.likelihoods import vectors as family
from streamdp.likelihoods.vectors import has_vector, log_marginal_of_both
from streamdp.offline.kernels import store as clusters
from streamdp.offline.kernels.store import EMPTY, GROUP, VectorStore, clear

_join, _leave, _merge, _settle = family.add, family.remove, family.merge, family.settle
_empty, _predictive, _log_marginal, _own = family.clear, family.predictive, family.log_marginal, family.own


@kernel
def _update(store: VectorStore, slot: int) -> float:
    """Bring log H of a slot up to date; by how much it has risen."""
    _settle(store.terms, store.block[slot])
    before = store.log_h[slot]
    store.log_h[slot] = _log_marginal(store.terms, store.block[slot])
    return store.log_h[slot] - before


@kernel
def _count(store: VectorStore, slot: int, i: int) -> None:
    """Let a record, or frozen ones, join a row; to be settled."""
    records = store.vectors.shape[0]
    if i >= records:
        _merge(store.terms, store.block[slot], store.frozen[i - records])
    elif has_vector(store.vectors[i]):
        _join(store.terms, store.block[slot], store.vectors[i], store.own[i])


@clusters.clear.of(VectorStore)
def _clear(store: VectorStore, slot: int) -> None:
    store.size[slot] = 0
    store.log_h[slot] = 0.0
    _empty(store.terms, store.block[slot])


@clusters.hold.of(VectorStore)
def _hold(store: VectorStore, slot: int, i: int) -> float:
    _count(store, slot, i)
    return _update(store, slot)


@clusters.take_out.of(VectorStore)
def _take_out(store: VectorStore, slot: int, i: int, last: bool) -> float:
    if last:
        clear(store, slot)
    elif i < store.vectors.shape[0] and has_vector(store.vectors[i]):  # frozen ones leave all at once
        _leave(store.terms, store.block[slot], store.vectors[i], store.own[i])
        return _update(store, slot)
    return 0.0


@clusters.add_scores.of(VectorStore)
def _add_scores(store: VectorStore, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    x, own = store.vectors[i], store.own[i]
    if has_vector(x):
        for j in range(n):
            out[j] += _predictive(store.terms, store.block[slots[j]], x, own)


@kernel
def _copy(store: VectorStore, source: np.ndarray, target: np.ndarray) -> None:
    for j in range(store.scratch.shape[1]):
        target[j] = source[j]


@clusters.add_group_scores.of(VectorStore)
def _add_group_scores(store: VectorStore, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    union, group = store.scratch[0], store.block[GROUP]
    for j in range(n):
        both = log_marginal_of_both(store.terms, store.block[slots[j]], group, union)
        out[j] += both - store.log_h[slots[j]]
    _settle(store.terms, group)
    return _log_marginal(store.terms, group)


@clusters.drop_run.of(VectorStore)
def _drop_run(store: VectorStore, slot: int, order: np.ndarray, first: int, last: int) -> None:
    clear(store, slot)


@clusters.empty_group.of(VectorStore)
def _empty_group(store: VectorStore) -> None:
    clear(store, GROUP)


@clusters.add_to_group.of(VectorStore)
def _add_to_group(store: VectorStore, i: int) -> None:
    _count(store, GROUP, i)


@clusters.copies_in_group.of(VectorStore)
def _copies_in_group(store: VectorStore, i: int, n: int, factor: float) -> None:
    # by doubling
    clear(store, GROUP)
    x = store.vectors[i]
    if not has_vector(x):
        return
    powers, same = store.scratch[0], store.scratch[1]
    _copy(store, store.block[EMPTY], powers)
    scaled = same[: x.shape[0]]
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


@clusters.prepare_part.of(VectorStore)
def _prepare(store: VectorStore, fresh: np.ndarray) -> None:
    records = store.vectors.shape[0]
    for slot in range(store.size.shape[0]):
        clear(store, slot)
    for i in range(fresh.shape[0]):
        if i >= records:
            row = store.scratch[0]
            _copy(store, store.frozen[i - records], row)
            _settle(store.terms, row)
            fresh[i] += _log_marginal(store.terms, row)
        elif has_vector(store.vectors[i]):
            store.own[i] = _own(store.terms, store.vectors[i])
            fresh[i] += _predictive(store.terms, store.block[EMPTY], store.vectors[i], store.own[i])
