"""Gibbs sampling of the links of the sequential distance-dependent CRP (Blei and Frazier 2011).

A record links to an earlier one or to itself; the clusters are the trees. Drawing a link anew moves the
whole subtree that hangs on it. The moves leave p(links | records) invariant, whose clusters are
distributed as p(z | records). The frozen records of a cluster are one target, numbered from N on, that
itself links to nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.allocation import Allocation, enter, is_held, leave, take_slot
from streamdp.offline.kernels.clusters import add_to_group, empty_group, score_group
from streamdp.offline.kernels.rng import draw_log, uniform
from streamdp.offline.kernels.store import FIRST_SLOT, Store
from streamdp.priors.decays import decay_weight


class Held(NamedTuple):
    """Where the frozen records of A clusters lie."""

    start: np.ndarray  # int64[A + 1] first of a cluster in the other two
    place: np.ndarray  # float64[M] in the unit of distance
    share: np.ndarray  # float64[M] by how much each counts


class Links(NamedTuple):
    """The forest, and what the prior says of it. Children of a record are a doubly linked list."""

    to: np.ndarray  # int64[N] the target linked to; itself for a founder
    child: np.ndarray  # int64[N + A] one that links here, -1 for none
    next: np.ndarray  # int64[N] the next that links to the same record
    before: np.ndarray  # int64[N] the one before
    position: np.ndarray  # float64[N] in the unit of distance
    reach: np.ndarray  # int64[N] first record that is near enough for a link
    weight: np.ndarray  # float64[N, N] weight of a link where distances are given, or empty
    decay: Any  # terms of the decay
    concentration: float
    held: Held
    group: np.ndarray  # int64[N] scratch: the subtree on the move
    total: np.ndarray  # float64[C] scratch: weight of the links into a slot
    slots: np.ndarray  # int64[C] scratch: slots in reach


@kernel
def link_weight(links: Links, i: int, j: int) -> float:
    """Weight of a link from record i to an earlier one."""
    if links.weight.shape[0] > 0:
        return links.weight[i, j]
    return decay_weight(links.decay, links.position[i] - links.position[j])


@kernel
def held_weight(held: Held, decay: Any, here: float, k: int) -> float:
    """Weight of the links from a position to the frozen records of a cluster."""
    total = 0.0
    for m in range(held.start[k], held.start[k + 1]):
        total += held.share[m] * decay_weight(decay, here - held.place[m])
    return total


@entry
def weigh_held(
    held: Held, decay: Any, position: np.ndarray, labels: np.ndarray, own: np.ndarray, total: np.ndarray
) -> None:
    """Weight of the links from each record to frozen ones of its own cluster, and to all of them."""
    for i in range(labels.shape[0]):
        own[i], total[i] = 0.0, 0.0
        for k in range(held.start.shape[0] - 1):
            weight = held_weight(held, decay, position[i], k)
            total[i] += weight
            if labels[i] == k:
                own[i] = weight


@kernel
def _attach(links: Links, i: int, j: int) -> None:
    links.to[i] = j
    if i == j:
        return
    first = links.child[j]
    links.next[i], links.before[i] = first, -1
    if first >= 0:
        links.before[first] = i
    links.child[j] = i


@kernel
def _detach(links: Links, i: int) -> None:
    j = links.to[i]
    links.to[i] = i
    if i == j:
        return
    after, before = links.next[i], links.before[i]
    if before >= 0:
        links.next[before] = after
    else:
        links.child[j] = after
    if after >= 0:
        links.before[after] = before


@kernel
def _subtree(links: Links, i: int) -> int:
    """Fill ``group`` with record i and all that lead to it; returns how many."""
    links.group[0] = i
    n = 1
    p = 0
    while p < n:
        r = links.child[links.group[p]]
        while r >= 0:
            links.group[n] = r
            n += 1
            r = links.next[r]
        p += 1
    return n


@kernel
def _draw_target(
    links: Links, allocation: Allocation, random: np.ndarray, i: int, slot: int, total: float
) -> int:
    """An earlier record of a slot, or its frozen ones, by their weight; ``total`` is the sum."""
    u, last = uniform(random) * total, i
    if is_held(allocation, slot):
        weight = held_weight(links.held, links.decay, links.position[i], slot - FIRST_SLOT)
        if weight > 0.0:
            last = links.to.shape[0] + slot - FIRST_SLOT
            u -= weight
            if u < 0.0:
                return last
    for j in range(links.reach[i], i):
        if allocation.labels[j] == slot:
            weight = link_weight(links, i, j)
            if weight > 0.0:
                last = j
                u -= weight
                if u < 0.0:
                    break
    return last


@entry
def draw_links(links: Links, allocation: Allocation, random: np.ndarray) -> int:
    """Links given the clusters, each by its weight; returns how many records had none to link to."""
    seen = links.total
    for i in range(links.child.shape[0]):
        links.child[i] = -1
    lost = 0
    for i in range(links.to.shape[0]):
        total, slot = 0.0, allocation.labels[i]
        held = is_held(allocation, slot)
        if held:
            total = held_weight(links.held, links.decay, links.position[i], slot - FIRST_SLOT)
        for j in range(links.reach[i], i):
            if allocation.labels[j] == slot:
                total += link_weight(links, i, j)
        if total > 0.0:
            _attach(links, i, _draw_target(links, allocation, random, i, slot, total))
        else:
            links.to[i] = i
            lost += held or seen[slot] > 0.0
            seen[slot] = 1.0
    for i in range(links.to.shape[0]):
        seen[allocation.labels[i]] = 0.0
    return lost


@kernel
def _link_step(store: Store, allocation: Allocation, links: Links, random: np.ndarray, i: int) -> None:
    _detach(links, i)
    members = _subtree(links, i)
    empty_group(store)
    for p in range(members):
        leave(store, allocation, links.group[p])
        add_to_group(store, links.group[p])
    n = 0
    for k in range(allocation.counters.held):
        weight = held_weight(links.held, links.decay, links.position[i], k)
        if weight > 0.0:
            links.slots[n] = k + FIRST_SLOT
            links.total[k + FIRST_SLOT] = weight
            n += 1
    for j in range(links.reach[i], i):
        slot, weight = allocation.labels[j], link_weight(links, i, j)
        if weight > 0.0:
            if links.total[slot] == 0.0:
                links.slots[n] = slot
                n += 1
            links.total[slot] += weight
    weights = allocation.weights
    alone = score_group(store, links.slots, n, weights)
    for p in range(n):
        weights[p] += math.log(links.total[links.slots[p]])
    weights[n] = math.log(links.concentration) + alone
    chosen = draw_log(random, weights, n + 1, allocation.totals)
    if chosen < n:
        slot = links.slots[chosen]
        _attach(links, i, _draw_target(links, allocation, random, i, slot, links.total[slot]))
    else:
        slot = take_slot(allocation)
    for p in range(n):
        links.total[links.slots[p]] = 0.0
    for p in range(members):
        enter(store, allocation, links.group[p], slot)


@entry
def link_sweep(
    store: Store,
    allocation: Allocation,
    links: Links,
    random: np.ndarray,
    order: np.ndarray,
    first: int,
    last: int,
) -> int:
    """Draw the links of ``order[first .. last - 1]`` anew; returns where it stopped for want of a slot."""
    for p in range(first, last):
        if allocation.counters.free == 0:
            return p
        _link_step(store, allocation, links, random, order[p])
    return last
