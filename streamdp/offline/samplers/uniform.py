"""Gibbs sampling under the uniform process, given the order of the records.

Its probability depends on the clusters' first members alone, so that a record's conditional takes
O(K): Wallach et al. 2010, eq. 18, in a form that no other record has to be visited for. Clusters of frozen
records, and such as have closed, were founded before all others, so that to the normalisers they are as much
concentration.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.chain import Chain
from streamdp.offline.kernels.allocation import Allocation, choose, is_held, leave
from streamdp.offline.kernels.store import FIRST_SLOT, Store, score
from streamdp.priors.kinds import by_order

NOBODY, BEFORE = -1, -2
"""In place of a first member: not found yet, a frozen record."""


class Founders(NamedTuple):
    """First members of the clusters in use."""

    first: np.ndarray  # int64[C] by slot
    ascending: np.ndarray  # int64[C] all of them, in order
    shift: np.ndarray  # float64[C] scratch: what a slot gains when an earlier record becomes its first
    closed: int  # clusters founded beside those in use, before all records


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


@entry
def find_founders(allocation: Allocation, founders: Founders) -> None:
    """Read the founders off the labels."""
    for j in range(allocation.counters.active):
        slot = allocation.active[j]
        founders.first[slot] = BEFORE if is_held(allocation, slot) else NOBODY
    n = 0
    for i in range(allocation.labels.shape[0]):
        slot = allocation.labels[i]
        if founders.first[slot] == NOBODY:
            founders.first[slot] = i
            founders.ascending[n] = i
            n += 1


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
def _shifts(allocation: Allocation, founders: Founders, concentration: float, i: int) -> float:
    """Fill ``shift``, with D(i, f); returns D(i, N) for a cluster that record i founds."""
    held = allocation.counters.held
    n, before = allocation.counters.active - held, concentration + held + founders.closed
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
    rest = allocation.labels.shape[0] - 1 - last
    return total + rest * math.log((before + n) / (before + n + 1.0))


@kernel
def _uniform_step(
    store: Store, allocation: Allocation, founders: Founders, concentration: float, random: np.ndarray, i: int
) -> None:
    slot = allocation.labels[i]
    founded = founders.first[slot] == i
    if founded:
        _withdraw(allocation, founders, i)
    old = leave(store, allocation, i)
    n, weights = allocation.counters.active, allocation.weights
    anew = _shifts(allocation, founders, concentration, i)
    score(store, i, allocation.active, n, weights)
    for j in range(n):
        weights[j] += founders.shift[allocation.active[j]]
    weights[n] = store.fresh[i] + math.log(concentration) + anew
    slot = choose(store, allocation, random, i, old)
    others = n - allocation.counters.held
    if allocation.counters.active > n:
        founders.first[slot] = i
        _insert(founders, others, i)
    elif founders.first[slot] > i:
        _delete(founders, others, founders.first[slot])
        _insert(founders, others - 1, i)
        founders.first[slot] = i


@entry
def uniform_sweep(
    store: Store,
    allocation: Allocation,
    founders: Founders,
    concentration: float,
    random: np.ndarray,
    order: np.ndarray,
    first: int,
    last: int,
) -> int:
    """Draw records ``order[first .. last - 1]`` anew; returns where it stopped for want of a free slot."""
    for p in range(first, last):
        if allocation.counters.free == 0:
            return p
        _uniform_step(store, allocation, founders, concentration, random, order[p])
    return last


def sweep_in_order(chain: Chain, order: np.ndarray) -> None:
    """Draw the clusters of some records anew, in this order, under the uniform process."""
    prior, done = by_order(chain.prior), 0
    assert prior is not None
    while done < len(order):
        chain.more_room()
        capacity = len(chain.allocation.free)
        closed = 0 if chain.anchors is None else chain.anchors.closed
        first, ascending = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        founders = Founders(first, ascending, np.zeros(capacity), closed)
        find_founders(chain.allocation, founders)
        done = uniform_sweep(
            chain.store,
            chain.allocation,
            founders,
            prior.concentration,
            chain.random,
            order,
            done,
            len(order),
        )
