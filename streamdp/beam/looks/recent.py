"""The records that may be looked at again, by cluster, and what the prior says of moving them.

The retained records of every cluster that all hypotheses hold form a list in order of time. Under a decay
each keeps the weight that its cluster had just before it, so that the prior's ratio of two clusterings takes
a walk over the members that come later, and no more.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.data.state import State
from streamdp.kernels.jit import entry, generic, kernel
from streamdp.kernels.rows import ints, reals
from streamdp.priors.base import found_weight, join_weight
from streamdp.priors.decays import decay_weight
from streamdp.priors.distance_dependent import DistanceDependentTerms, MemorylessTerms

LEAST_WEIGHT = 1e-300
LEAST_SHARE = 1e-9
"""Of a cluster's weight now; less of it cannot be told from rounding, and is none."""
FAR = 1e-12
"""Weight of one record, relative to its cluster's, that is left out."""
LEAST_FACTOR, MOST_FACTOR = 1e-150, 1e150
"""Between them factors are multiplied until a logarithm is taken (``_times``)."""


class Recent(NamedTuple):
    """Records ``first`` and after in lists by slot; -1 stands for none, or no slot that all hold."""

    first: int
    slot: Annotated[np.ndarray, ints("records")]
    position: Annotated[np.ndarray, reals("records")]  # in the unit of distance
    time: Annotated[np.ndarray, reals("records")]
    next: Annotated[np.ndarray, ints("records", fill=-1)]  # the next record of the cluster
    before: Annotated[np.ndarray, ints("records", fill=-1)]  # the one before
    weight: Annotated[
        np.ndarray, reals("records", fill=1.0)
    ]  # of the cluster just before the record, under a decay; 0 for its founder
    head: Annotated[np.ndarray, ints("slots", fill=-1)]  # the first record of a slot
    tail: Annotated[np.ndarray, ints("slots", fill=-1)]  # the last
    held: Annotated[np.ndarray, ints("slots")]  # how many
    older: Annotated[np.ndarray, reals("slots")]  # weight of earlier members at the first record of all


# ---------------------------------------------------------------- weights by distance


@generic
def _weight_after(prior: Any, recent: Recent, slot: int, last: int, here: float) -> float:
    """Weight of a cluster at a position, of its members up to ``last`` (-1: the older ones alone)."""
    raise NotImplementedError


@_weight_after.of(MemorylessTerms)
def _faded(prior: MemorylessTerms, recent: Recent, slot: int, last: int, here: float) -> float:
    if last < 0:
        return recent.older[slot] * decay_weight(prior.decay, here - recent.position[0])
    return (recent.weight[last] + 1.0) * decay_weight(prior.decay, here - recent.position[last])


@_weight_after.of(DistanceDependentTerms)
def _summed(prior: DistanceDependentTerms, recent: Recent, slot: int, last: int, here: float) -> float:
    total = 0.0
    while last >= 0:
        f = decay_weight(prior.decay, here - recent.position[last])
        if f == 0.0:
            break
        total += f
        last = recent.before[last]
    return total


@generic
def weigh_list(prior: Any, state: State, recent: Recent, slot: int) -> None:
    """Work the weights of a slot's list out anew."""


@generic
def begin_list(prior: Any, state: State, recent: Recent, slot: int) -> None:
    """Work them out for the first time."""
    weigh_list(prior, state, recent, slot)


@weigh_list.of(DistanceDependentTerms)
def _weigh_list(prior: DistanceDependentTerms, state: State, recent: Recent, slot: int) -> None:
    before, m = -1, recent.head[slot]
    while m >= 0:
        recent.weight[m] = _weight_after(prior, recent, slot, before, recent.position[m])
        before = m
        m = recent.next[m]


@begin_list.of(MemorylessTerms)
def _unfade(prior: MemorylessTerms, state: State, recent: Recent, slot: int) -> None:
    # only where all weights fade by one factor is that of the earlier members known, and asked for
    counters = state.beam.counters
    if state.pool.slots[slot].size > recent.held[slot]:
        now = state.pool.weight[slot] * counters.scale
        rest, m = now, recent.head[slot]
        while m >= 0:
            rest -= decay_weight(prior.decay, counters.now - recent.position[m])
            m = recent.next[m]
        fade = decay_weight(prior.decay, counters.now - recent.position[0])
        recent.older[slot] = rest / fade if rest > LEAST_SHARE * now and fade > FAR else 0.0
    weigh_list(prior, state, recent, slot)


# ---------------------------------------------------------------- lists


@kernel
def _follow(recent: Recent, slot: int, p: int, m: int) -> None:
    """Let m come after p in a slot's list; -1 for either end."""
    if p >= 0:
        recent.next[p] = m
    else:
        recent.head[slot] = m
    if m >= 0:
        recent.before[m] = p
    else:
        recent.tail[slot] = p


@kernel
def link(recent: Recent, slot: int, m: int) -> None:
    """Put a record into a slot's list."""
    after, p = -1, recent.tail[slot]
    while p > m:
        after, p = p, recent.before[p]
    recent.slot[m] = slot
    _follow(recent, slot, p, m)
    _follow(recent, slot, m, after)
    recent.held[slot] += 1


@kernel
def unlink(recent: Recent, m: int) -> None:
    """Take a record out of its list."""
    slot = recent.slot[m]
    _follow(recent, slot, recent.before[m], recent.next[m])
    recent.held[slot] -= 1
    recent.slot[m] = -1


@entry
def gather(prior: Any, state: State, recent: Recent) -> None:
    """Make the lists."""
    for m in range(recent.slot.shape[0]):
        if recent.slot[m] >= 0:
            link(recent, recent.slot[m], m)
    for slot in range(recent.head.shape[0]):
        if recent.head[slot] >= 0:
            begin_list(prior, state, recent, slot)


# ---------------------------------------------------------------- ratios; as declared, of priors by size


@kernel
def may_leave(recent: Recent, m: int) -> bool:
    """Whether a record can be taken out of a cluster of several: under a decay, all but its founder."""
    return recent.weight[m] > 0.0


@generic
def ratio_of_joining(prior: Any, state: State, recent: Recent, m: int, slot: int) -> float:
    """log of p(z) with the record in a cluster, or still in its own, over that with it in a new one.

    The size of its own slot does not count it; it is not the founder there.
    """
    alone = state.pool.slots[recent.slot[m]].size == 0
    weight = join_weight(prior, np.float64(state.pool.slots[slot].size))
    return math.log(weight / found_weight(prior, _clusters_without(prior, state, alone)))


@generic
def ratio_of_union(prior: Any, state: State, recent: Recent, small: int, large: int) -> float:
    """log of p(z) with two clusters made one over p(z); the records hold all members of the small one."""
    a, b = state.pool.slots[small].size, np.float64(state.pool.slots[large].size)
    total = math.log(join_weight(prior, b) / found_weight(prior, _clusters_without(prior, state, True)))
    for j in range(1, a):
        total += math.log(join_weight(prior, b + j) / join_weight(prior, np.float64(j)))
    return total


@kernel
def _clusters_without(prior: Any, state: State, alone: bool) -> float:
    founded = state.beam.founded[state.beam.counters.head]
    return np.float64(founded - 1 if alone else founded)


@kernel
def _times(total: float, product: float, factor: float) -> tuple[float, float]:
    """One factor more of exp(total) * product: a logarithm of each would cost much of a look."""
    product *= factor
    if LEAST_FACTOR <= product <= MOST_FACTOR:
        return total, product
    return total + math.log(product), 1.0


@kernel
def _stay_by_distance(prior: DistanceDependentTerms, recent: Recent, m: int) -> float:
    here, later = recent.position[m], recent.next[m]
    weight, total, product = max(recent.weight[m], LEAST_WEIGHT), 0.0, 1.0
    while later >= 0:
        f = decay_weight(prior.decay, recent.position[later] - here)
        if f == 0.0:
            break
        total, product = _times(total, product, max(1.0 - f / recent.weight[later], LEAST_FACTOR))
        later = recent.next[later]
    return math.log(weight / prior.concentration) - total - math.log(product)


@ratio_of_joining.of(DistanceDependentTerms)
def _join_by_distance(
    prior: DistanceDependentTerms, state: State, recent: Recent, m: int, slot: int
) -> float:
    if slot == recent.slot[m]:
        return _stay_by_distance(prior, recent, m)
    here, total, product, p = recent.position[m], 0.0, 1.0, recent.tail[slot]
    whole = state.pool.slots[slot].size == recent.held[slot]
    while p > m:
        f = decay_weight(prior.decay, recent.position[p] - here)
        if whole and recent.before[p] < 0:
            total += math.log(max(f, LEAST_WEIGHT) / prior.concentration)
        elif f > FAR * recent.weight[p] and recent.weight[p] > 0.0:
            total, product = _times(total, product, 1.0 + f / recent.weight[p])
        p = recent.before[p]
    total += math.log(product)
    if p < 0 and whole:
        return total  # it would be the founder
    weight = _weight_after(prior, recent, slot, p, here)
    return total + math.log(max(weight, LEAST_WEIGHT) / prior.concentration)


@ratio_of_union.of(DistanceDependentTerms)
def _union_by_distance(
    prior: DistanceDependentTerms, state: State, recent: Recent, small: int, large: int
) -> float:
    whole = state.pool.slots[large].size == recent.held[large]
    founder, p = recent.head[small], recent.tail[large]
    a, b = founder, -1
    while p > founder:  # what comes before the small one was founded is as it was
        b, p = p, recent.before[p]
    last_a, last_b, total, product = -1, p, 0.0, 1.0
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and a < b):
            m, own, other, last = a, small, large, last_b
            none = last_b < 0 and whole
            a = recent.next[a]
            last_a = m
        else:
            m, own, other, last = b, large, small, last_a
            none = last_a < 0
            b = recent.next[b]
            last_b = m
        if none:
            continue
        weight = _weight_after(prior, recent, other, last, recent.position[m])
        founds = recent.before[m] < 0 and (own == small or whole)
        if founds:
            total += math.log(max(weight, LEAST_WEIGHT) / prior.concentration)
        elif weight > FAR * recent.weight[m] and recent.weight[m] > 0.0:
            total, product = _times(total, product, 1.0 + weight / recent.weight[m])
    return total + math.log(product)
