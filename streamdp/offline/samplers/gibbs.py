"""Gibbs sampling, one record at a time (Neal 2000, algorithm 3).

Exchangeable priors enter as ``Weights``. The probability of the uniform process, given the order of the
records, depends on the clusters' first members alone, so that a record's conditional takes O(K) there too:
Wallach et al. 2010, eq. 18, in a form that no other record has to be visited for. Clusters of frozen records,
and such as have closed, were founded before all others, so that to the normalisers they are as much
concentration.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.offline.chain import Chain, Sampler
from streamdp.offline.kernels.allocation import Allocation, choose, leave, redraw
from streamdp.offline.kernels.store import FIRST_SLOT, Store, score
from streamdp.priors import by_order
from streamdp.priors.base import Prior, Weights

BEFORE = -2
"""In place of a first member: a frozen record."""


class Founders(NamedTuple):
    """First members of the clusters in use."""

    first: np.ndarray  # int64[C] by slot
    ascending: np.ndarray  # int64[C] all of them, in order
    shift: np.ndarray  # float64[C] scratch: what a slot gains when an earlier record becomes its first
    closed: int  # clusters founded beside those in use, before all records
    concentration: float
    records: int  # that are in a cluster, or are drawn; those after them wait


@kernel
def _place(founders: Founders, n: int, record: int) -> int:
    """How many of the n founders come before a record."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if founders.ascending[middle] < record:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _insert(founders: Founders, n: int, record: int) -> None:
    p = _place(founders, n, record)
    for q in range(n, p, -1):
        founders.ascending[q] = founders.ascending[q - 1]
    founders.ascending[p] = record


@kernel
def _delete(founders: Founders, n: int, record: int) -> None:
    for q in range(_place(founders, n, record), n - 1):
        founders.ascending[q] = founders.ascending[q + 1]


@kernel
def _withdraw(allocation: Allocation, founders: Founders, i: int) -> None:
    """Let the next member found the cluster that record i, still in it, has founded."""
    slot = allocation.labels[i]
    n = allocation.counters.active - allocation.counters.held
    _delete(founders, n, i)
    for j in range(i + 1, allocation.labels.shape[0]):
        if allocation.labels[j] == slot:
            founders.first[slot] = j
            _insert(founders, n - 1, j)
            return


@kernel
def _shifts(allocation: Allocation, founders: Founders, i: int) -> float:
    """Fill ``shift``, with D(i, f); returns D(i, N) for a cluster that record i founds."""
    held = allocation.counters.held
    n, before = allocation.counters.active - held, founders.concentration + held + founders.closed
    count, last, total = _place(founders, n, i), i, 0.0
    for k in range(held):
        founders.shift[FIRST_SLOT + k] = 0.0
    for p in range(count):
        founders.shift[allocation.labels[founders.ascending[p]]] = 0.0
    for p in range(count, n):
        f = founders.ascending[p]
        total += (f - last) * math.log((before + p) / (before + p + 1.0))
        founders.shift[allocation.labels[f]] = total
        last = f
    rest = founders.records - 1 - last
    return total + rest * math.log((before + n) / (before + n + 1.0))


@redraw.of(Founders)
def _redraw_in_order(
    founders: Founders, store: Store, allocation: Allocation, random: np.ndarray, i: int
) -> None:
    slot = allocation.labels[i]
    founded = founders.first[slot] == i
    if founded:
        _withdraw(allocation, founders, i)
    old = leave(store, allocation, i)
    n, weights = allocation.counters.active, allocation.weights
    anew = _shifts(allocation, founders, i)
    score(store, i, allocation.active, n, weights)
    for j in range(n):
        weights[j] += founders.shift[allocation.active[j]]
    weights[n] = store.fresh[i] + math.log(founders.concentration) + anew
    slot = choose(store, allocation, random, i, old)
    others = n - allocation.counters.held
    if allocation.counters.active > n:
        founders.first[slot] = i
        _insert(founders, others, i)
    elif founders.first[slot] > i:
        _delete(founders, others, founders.first[slot])
        _insert(founders, others - 1, i)
        founders.first[slot] = i


@redraw.of(Weights)
def _redraw(prior: Weights, store: Store, allocation: Allocation, random: np.ndarray, i: int) -> None:
    old = leave(store, allocation, i)
    n, weights = allocation.counters.active, allocation.weights
    score(store, i, allocation.active, n, weights)
    for j in range(n):
        weights[j] += prior.join[store.size[allocation.active[j]]]
    weights[n] = store.fresh[i] + prior.found[n]
    choose(store, allocation, random, i, old)


def sweep(chain: Chain, order: np.ndarray, records: int | None = None) -> None:
    """Draw the clusters of some records anew, in this order; of the first ``records``, if the rest wait."""
    ordered = by_order(chain.prior)

    def given() -> Weights | Founders:
        if ordered is None:
            assert chain.weights is not None
            return chain.weights
        capacity, labels = len(chain.allocation.free), chain.allocation.labels
        present = chain.size if records is None else records
        slots, own = np.unique(labels[:present], return_index=True)
        own[slots < FIRST_SLOT + chain.held] = BEFORE
        first, ascending = np.full(capacity, BEFORE), np.zeros(capacity, np.int64)
        first[slots] = own
        ascending[: len(own)] = np.sort(np.where(own < 0, chain.size, own))
        closed = 0 if chain.anchors is None else chain.anchors.closed
        return Founders(first, ascending, np.zeros(capacity), closed, ordered.concentration, present)

    chain.sweep(order, given)


class Gibbs(Sampler):
    """Draw the cluster of every record given all others, one by one (Neal 2000, algorithm 3).

    Under the uniform process given the order of the records (Wallach et al. 2010, eq. 18).

    Parameters
    ----------
    shuffled
        Visit the records in a new random order each time, rather than in theirs.
    """

    needs = "exchangeable priors and the uniform process"
    holds = True

    def __init__(self, *, shuffled: bool = False) -> None:
        self.shuffled = shuffled

    @staticmethod
    def serves(prior: Prior) -> bool:
        """Where a record may move whatever the others do."""
        return prior.exchangeable or by_order(prior) is not None

    def round(self, chain: Chain) -> None:
        """One sweep over all records that may move."""
        order = np.arange(chain.size)
        if chain.fixed is not None:
            order = np.delete(order, chain.fixed)
        sweep(chain, chain.generator().permutation(order) if self.shuffled else order)
