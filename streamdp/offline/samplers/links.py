"""Gibbs sampling of the links of the sequential distance-dependent CRP (Blei and Frazier 2011).

A record links to an earlier one or to itself; the clusters are the trees. Drawing a link anew moves the
whole subtree that hangs on it. The moves leave p(links | records) invariant, whose clusters are
distributed as p(z | records). The frozen records of a cluster are one target, numbered from N on, that
itself links to nothing.

Records that are fixed by hand stay together or apart as they are, among each other and frozen ones: links
that would change that are not drawn. One that no earlier record of its cluster reaches was put there by hand;
it links to itself for good, with the weight of a founder.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import made
from streamdp.offline.chain import Chain, Sampler
from streamdp.offline.kernels.allocation import Allocation, enter, is_held, leave, redraw, take_slot
from streamdp.offline.kernels.links import Held, Links, held_weight, link_weight
from streamdp.offline.kernels.rng import draw_log, uniform
from streamdp.offline.kernels.store import FIRST_SLOT, Store, add_to_group, empty_group, score_group
from streamdp.priors import Prior, by_distance
from streamdp.priors.decays import WindowTerms


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
        if links.lost[i] == 1:
            links.to[i] = i
        elif total > 0.0:
            _attach(links, i, _draw_target(links, allocation, random, i, slot, total))
        else:
            links.to[i] = i
            links.lost[i] = held or seen[slot] > 0.0
            lost += links.lost[i]
            seen[slot] = 1.0
    for i in range(links.to.shape[0]):
        seen[allocation.labels[i]] = 0.0
    return lost


@kernel
def _bar(links: Links, allocation: Allocation, members: int, old: int, n: int) -> bool:
    """Bar the slots to which fixed records among the members of a subtree must not go.

    ``old`` is the slot that they have left, n how many are in reach. Returns whether there is a choice: where
    there is none, they stay.
    """
    among = False
    for p in range(members):
        among |= links.fixed[links.group[p]] == 1
    stays, found = is_held(allocation, old), False
    for r in range(links.fixed.shape[0] if among else 0):
        if links.fixed[r] == 1 and allocation.labels[r] >= 0:
            stays |= allocation.labels[r] == old
            links.barred[allocation.labels[r]] = 1
    weights = allocation.weights
    for p in range(n if among else 0):
        slot = links.slots[p]
        found |= slot == old
        if slot != old and (stays or links.barred[slot] == 1 or is_held(allocation, slot)):
            weights[p] = -np.inf
    for r in range(links.fixed.shape[0] if among else 0):
        if allocation.labels[r] >= 0:
            links.barred[allocation.labels[r]] = 0
    if among and stays:
        weights[n] = -np.inf
    return not (among and stays) or found


@redraw.of(Links)
def _redraw(links: Links, store: Store, allocation: Allocation, random: np.ndarray, i: int) -> None:
    if links.lost[i] == 1:
        return
    old = allocation.labels[i]
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
    bound = links.fixed.shape[0] > 0 and not _bar(links, allocation, members, old, n)
    chosen = n if bound else draw_log(random, weights, n + 1, allocation.totals)
    if bound:
        slot = old
    elif chosen < n:
        slot = links.slots[chosen]
        _attach(links, i, _draw_target(links, allocation, random, i, slot, links.total[slot]))
    else:
        slot = take_slot(allocation)
    for p in range(n):
        links.total[links.slots[p]] = 0.0
    for p in range(members):
        enter(store, allocation, links.group[p], slot)


class LinkGibbs(Sampler):
    """Draw the link of every record given all others; a link moves all that hangs on it.

    For the sequential distance-dependent CRP (Blei and Frazier 2011, section 3.1). The links are drawn
    from the clusters at the start of every round, which leaves their distribution as it is.
    """

    needs = "the distance-dependent prior"
    holds = True

    @staticmethod
    def serves(prior: Prior) -> bool:
        """Where records link to others."""
        return by_distance(prior) is not None

    def round(self, chain: Chain) -> None:
        """One sweep over all records."""
        links = links_of(chain)

        def given() -> Links:
            capacity = len(chain.allocation.free)
            slots, barred = np.zeros((2, capacity), np.int64)
            return links._replace(total=np.zeros(capacity), slots=slots, barred=barred)

        chain.more_room()
        if chain.lost is not None:
            links.lost[:] = chain.lost
        if draw_links(given(), chain.allocation, chain.random) and chain.fixed is None:
            raise ValueError("a record is too far from all earlier ones of its cluster to be in it")
        chain.lost = links.lost
        chain.sweep(np.arange(chain.size), given)
        chain.settle()


NOBODY = Held(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))


def links_of(chain: Chain) -> Links:
    """Scratch for a pass over the links of a chain; of no size under priors without links."""
    prior, n, weight = chain.prior, chain.size, chain.link_weights()
    decay, concentration = WindowTerms(1.0), 0.0
    position, reach = np.zeros(0), np.zeros(n, np.int64)
    fixed = np.zeros(chain.size if chain.bound else 0, np.int64)
    if len(fixed):
        fixed[chain.fixed] = 1
    if (linked := by_distance(prior)) is None:
        n = 0
    else:
        decay, concentration = linked.decay.terms(), float(linked.concentration)
        if chain.distances is None:
            anchors = chain.anchors
            position = linked.positions(n, chain.times) if anchors is None else anchors.positions
            reach = np.searchsorted(position, position - linked.decay.reach)
    return made(
        Links,
        {"records": n, "targets": n + chain.held, "slots": 0},
        position=position,
        reach=reach,
        weight=weight,
        decay=decay,
        concentration=concentration,
        fixed=fixed,
        held=NOBODY if chain.anchors is None else chain.anchors.held,
    )
