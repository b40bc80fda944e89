"""The contract between samplers and likelihoods: one routine for each thing that is done to a slot."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, routine
from streamdp.offline.kernels.counts import (
    derive_bernoulli,
    derive_poisson,
    join_bernoulli,
    join_poisson,
    score_bernoulli,
    score_poisson,
)
from streamdp.offline.kernels.normals import (
    derive_gamma,
    derive_gaussian,
    join_gamma,
    join_gaussian,
    move_gamma,
    score_gamma,
    score_gaussian,
)
from streamdp.offline.kernels.sphere import derive_sphere, join_sphere, normalisers, score_sphere
from streamdp.offline.kernels.store import (
    BERNOULLI,
    EMPTY,
    FIRST_VECTOR,
    GAMMA,
    GAUSSIAN,
    GROUP,
    POISSON,
    SPHERE,
    WISHART,
    Store,
)
from streamdp.offline.kernels.wishart import derive_wishart, join_wishart, move_wishart, score_wishart
from streamdp.offline.kernels.words import (
    add_to_bag,
    add_words,
    alone,
    empty_bag,
    remove_words,
    score_bag,
    score_tokens,
)


@routine
def _score_vector(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    kind = store.tables.kind[0]
    if kind == GAUSSIAN:
        score_gaussian(store, i, slots, n, out)
    elif kind == GAMMA:
        score_gamma(store, i, slots, n, out)
    elif kind == WISHART:
        score_wishart(store, i, slots, n, out)
    elif kind == BERNOULLI:
        score_bernoulli(store, i, slots, n, out)
    elif kind == POISSON:
        score_poisson(store, i, slots, n, out)
    else:
        score_sphere(store, i, slots, n, out)


@routine
def score(store: Store, i: int, slots: np.ndarray, n: int, out: np.ndarray) -> None:
    """log H(x_i | S) for the first n of ``slots``."""
    if store.tables.kind[0] < FIRST_VECTOR:
        records = store.records
        first, last = records.offsets[i], records.offsets[i + 1]
        score_tokens(store, records.words, records.counts, first, last, slots, n, out)
    else:
        _score_vector(store, i, slots, n, out)


@routine
def _derive(store: Store, slot: int) -> None:
    """All that follows from a slot's statistics, except log H of the kinds below."""
    kind = store.tables.kind[0]
    if kind == GAUSSIAN:
        derive_gaussian(store, slot)
    elif kind == GAMMA:
        derive_gamma(store, slot)
    elif kind == WISHART:
        derive_wishart(store, slot)
    elif kind == BERNOULLI:
        derive_bernoulli(store, slot)
    elif kind == POISSON:
        derive_poisson(store, slot)
    else:
        derive_sphere(store, slot)


@routine
def _move(store: Store, slot: int, i: int, sign: int) -> None:
    """Let a vector join (sign 1) or leave (-1) the statistics."""
    clusters, records, kind = store.clusters, store.records, store.tables.kind[0]
    x = records.vectors[i]
    if kind == GAMMA:
        move_gamma(clusters, slot, x, sign)
    elif kind == WISHART:
        move_wishart(store, slot, i, sign)
    else:
        for d in range(x.shape[0]):
            clusters.sums[slot, d] += sign * x[d]
    clusters.total[slot] += sign * (records.along[i] if kind == SPHERE else records.squares[i])
    clusters.size[slot] += sign


@routine
def clear(store: Store, slot: int) -> None:
    """Empty a slot that no record is in."""
    clusters, tables = store.clusters, store.tables
    clusters.size[slot] = 0
    clusters.total[slot] = 0.0
    clusters.log_h[slot] = 0.0
    clusters.types[slot] = 0
    if tables.kind[0] < FIRST_VECTOR:
        return
    for d in range(clusters.sums.shape[1]):
        clusters.sums[slot, d] = 0.0
    if tables.kind[0] == GAMMA:
        for d in range(clusters.sums.shape[1]):
            clusters.spread[slot, d] = 0.0
    if tables.kind[0] == WISHART:
        for d in range(tables.factor.shape[0]):
            for c in range(d + 1):
                clusters.factor[slot, d, c] = tables.factor[d, c]
    _derive(store, slot)


@routine
def _one(store: Store, i: int, slot: int) -> float:
    """log H(x_i | S) of one slot."""
    store.scratch.slot[0] = slot
    _score_vector(store, i, store.scratch.slot, 1, store.scratch.value)
    return store.scratch.value[0]


@routine
def add(store: Store, slot: int, i: int) -> None:
    """Let a record join a slot."""
    kind, clusters = store.tables.kind[0], store.clusters
    if kind < FIRST_VECTOR:
        add_words(store, slot, i)
        clusters.size[slot] += 1
        return
    by_predictive = kind in (BERNOULLI, POISSON)
    gained = _one(store, i, slot) if by_predictive else 0.0
    _move(store, slot, i, 1)
    _derive(store, slot)
    clusters.log_h[slot] += gained


@routine
def remove(store: Store, slot: int, i: int) -> None:
    """Take a record out of a slot; an emptied slot is as new."""
    kind, clusters = store.tables.kind[0], store.clusters
    if kind < FIRST_VECTOR:
        remove_words(store, slot, i)
        clusters.size[slot] -= 1
        if clusters.size[slot] == 0:
            clusters.log_h[slot] = 0.0
        return
    if clusters.size[slot] == 1:
        clear(store, slot)
        return
    _move(store, slot, i, -1)
    _derive(store, slot)
    if kind in (BERNOULLI, POISSON):
        clusters.log_h[slot] -= _one(store, i, slot)


@routine
def empty_group(store: Store) -> None:
    """No record is under consideration."""
    if store.tables.kind[0] < FIRST_VECTOR:
        empty_bag(store)
    else:
        clear(store, GROUP)


@routine
def add_to_group(store: Store, i: int) -> None:
    """Let a record join the group under consideration."""
    if store.tables.kind[0] < FIRST_VECTOR:
        add_to_bag(store, i)
    else:
        _move(store, GROUP, i, 1)


@routine
def _join(store: Store, a: int, b: int) -> float:
    """log H of the vectors of two slots together."""
    kind = store.tables.kind[0]
    if kind == GAUSSIAN:
        return join_gaussian(store, a, b)
    if kind == GAMMA:
        return join_gamma(store, a, b)
    if kind == WISHART:
        return join_wishart(store, a, b)
    if kind == BERNOULLI:
        return join_bernoulli(store, a, b)
    if kind == POISSON:
        return join_poisson(store, a, b)
    return join_sphere(store, a, b)


@routine
def score_group(store: Store, slots: np.ndarray, n: int, out: np.ndarray) -> float:
    """log H(S + group) - log H(S) for the first n slots; returns log H(group)."""
    if store.tables.kind[0] < FIRST_VECTOR:
        return score_bag(store, slots, n, out)
    if store.tables.kind[0] == SPHERE:
        derive_sphere(store, GROUP)
    for j in range(n):
        out[j] = _join(store, slots[j], GROUP) - store.clusters.log_h[slots[j]]
    return _join(store, EMPTY, GROUP)


@entry
def prepare(store: Store) -> None:
    """Clear all slots and take log H of every record alone; after the parameters or the capacity change."""
    tables, records = store.tables, store.records
    if tables.kind[0] == SPHERE:
        normalisers(tables, records.vectors.shape[1])
    for slot in range(store.clusters.size.shape[0]):
        clear(store, slot)
    for w in range(store.clusters.length.shape[0]):
        store.clusters.length[w] = 0
    for i in range(tables.fresh.shape[0]):
        if tables.kind[0] < FIRST_VECTOR:
            first, last = records.offsets[i], records.offsets[i + 1]
            tables.fresh[i] = alone(tables, records.words, records.counts, first, last)
        else:
            tables.fresh[i] = _one(store, i, EMPTY)
