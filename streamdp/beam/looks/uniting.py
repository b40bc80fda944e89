"""Clusters of vectors by rows of statistics: what they weigh, as one or as two, and with other records."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.data.pool import VACANT
from streamdp.beam.data.state import State
from streamdp.beam.looks.recent import (
    Recent,
    link,
    may_leave,
    ratio_of_joining,
    ratio_of_union,
    unlink,
    weigh_list,
)
from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.kernels.jit import entry, kernel
from streamdp.likelihoods.vectors import (
    add,
    clear,
    coarsen,
    log_marginal,
    log_marginal_of_both,
    own,
    predictive,
    rebase,
    remove,
    settle,
)


@entry
def collect_rows(family: Any, vectors: np.ndarray, place: np.ndarray, block: np.ndarray) -> None:
    """Statistics of clusters; ``place`` is the row of each record, -1 for none."""
    for k in range(block.shape[0]):
        clear(family, block[k])
    for i in range(vectors.shape[0]):
        if place[i] >= 0:
            add(family, block[place[i]], vectors[i], own(family, vectors[i]))
    for k in range(block.shape[0]):
        settle(family, block[k])


@entry
def weigh_rows(family: Any, block: np.ndarray, scratch: np.ndarray, out: np.ndarray) -> None:
    """log H of each row under parameters that may be others than before."""
    for k in range(block.shape[0]):
        rebase(family, block[k], scratch)
        out[k] = log_marginal(family, block[k])


@entry
def weigh_pairs(
    family: Any, block: np.ndarray, first: np.ndarray, second: np.ndarray, union: np.ndarray, out: np.ndarray
) -> None:
    """log H of two rows as one, of each pair."""
    for p in range(first.shape[0]):
        out[p] = log_marginal_of_both(family, block[first[p]], block[second[p]], union)


class Tail(NamedTuple):
    """Student's t as a mixture over scales: multiples of the variance, logs of their weights, and scratch."""

    scales: np.ndarray
    log_weights: np.ndarray
    near: np.ndarray
    numbers: float


def tail_of(degrees: float, dimension: int, power: float = 1.0) -> Tail:
    """The tail of so many degrees of freedom, at powers of two from a half to 32 times the variance.

    ``power`` is that of the family's H.
    """
    scales = 2.0 ** np.arange(-1, 6)
    log_weights = -0.5 * degrees * (np.log(scales) + 1.0 / scales)
    weights = np.exp(log_weights - log_weights.max())
    return Tail(scales, np.log(weights / weights.sum()), np.zeros(dimension), power * dimension)


@kernel
def _surprise_of(family: Any, row: np.ndarray, location: int, x: np.ndarray, tail: Tail) -> float:
    """log H(x | S) where the variance may be any of the tail's multiples."""
    near, size = tail.near, x.shape[0]
    peak, total = -np.inf, 0.0
    for j in range(tail.scales.shape[0]):
        scale = tail.scales[j]
        for d in range(size):
            near[d] = row[location + d] + (x[d] - row[location + d]) / math.sqrt(scale)
        nats = predictive(family, row, near, own(family, near)) - 0.5 * tail.numbers * math.log(scale)
        nats += tail.log_weights[j]
        if nats > peak:
            total, peak = total * math.exp(peak - nats) + 1.0, nats
        else:
            total += math.exp(nats - peak)
    return peak + math.log(total)


@entry
def evidence_of_tail(
    family: Any,
    block: np.ndarray,
    vectors: np.ndarray,
    place: np.ndarray,
    location: int,
    tail: Tail,
    row: np.ndarray,
) -> float:
    """How much better records are foretold by others of their cluster if it has a tail, in nats.

    ``place`` is the row of each record that is asked; ``location`` is where rows say around what the
    predictive lies.
    """
    total = 0.0
    for i in range(vectors.shape[0]):
        for j in range(row.shape[0]):
            row[j] = block[place[i], j]
        apart = own(family, vectors[i])
        remove(family, row, vectors[i], apart)
        settle(family, row)
        total += _surprise_of(family, row, location, vectors[i], tail)
        total -= predictive(family, row, vectors[i], apart)
    return total


@entry
def weigh_strays(
    family: Any,
    block: np.ndarray,
    vectors: np.ndarray,
    recent: Recent,
    slot: int,
    others: np.ndarray,
    location: int,
    tail: Tail,
    out: np.ndarray,
) -> None:
    """Add the log predictives of a slot's records, one by one, in other rows that have a tail.

    -inf where not even predictives as at the centre of a row would make the rest of the sum positive.
    """
    for p in range(others.shape[0]):
        row = block[others[p]]
        most = _surprise_of(family, row, location, row[location : location + vectors.shape[1]], tail)
        m, left = recent.head[slot], recent.held[slot]
        while m >= 0:
            out[p] += _surprise_of(family, row, location, vectors[m], tail)
            m, left = recent.next[m], left - 1
            if out[p] + left * most <= 0.0:
                out[p], m = -np.inf, -1


@entry
def ratios_of_unions(
    prior: Any, state: State, recent: Recent, small: np.ndarray, large: np.ndarray, out: np.ndarray
) -> None:
    """log of p(z) with two slots made one over p(z), of each pair; all of the small one is retained."""
    for p in range(small.shape[0]):
        out[p] = ratio_of_union(prior, state, recent, small[p], large[p])


@entry
def rebase_slots(family: Any, state: State, scratch: np.ndarray) -> float:
    """Bring all clusters up to date under other parameters; returns the sum of their log H."""
    rows, total = state.clusters.rows, 0.0
    for slot in range(state.pool.counters.high):
        if state.pool.state[slot] != VACANT:
            rebase(family, rows.block[slot], scratch)
            coarsen(family, rows.block[slot], rows.coarse[slot])
            total += log_marginal(family, rows.block[slot])
    return total


# ---------------------------------------------------------------- a draft: other lists, other rows


@entry
def move_members(prior: Any, state: State, recent: Recent, members: np.ndarray, into: int) -> None:
    """Put retained records of one slot, in order, into another: lists and sizes, nothing else."""
    slots = state.pool.slots
    slot = recent.slot[members[0]]
    for i in range(members.shape[0] - 1, -1, -1):
        unlink(recent, members[i])
        link(recent, into, members[i])
    slots[slot].size -= members.shape[0]
    slots[into].size += members.shape[0]
    weigh_list(prior, state, recent, slot)
    weigh_list(prior, state, recent, into)


@entry
def settle_records(
    prior: Any,
    family: Any,
    state: State,
    recent: Recent,
    vectors: np.ndarray,
    block: np.ndarray,
    near: np.ndarray,
    asked: np.ndarray,
    row: np.ndarray,
    shares: np.ndarray,
) -> float:
    """Put each record that is ``asked`` where the log joint is highest: in its cluster, or one ``near`` it.

    ``near`` holds clusters by the number of a cluster, -1 for none; ``row`` is scratch. ``shares`` says how
    sure they are. Returns the nats that the prior gains.
    """
    slots, gained = state.pool.slots, 0.0
    for i in range(asked.shape[0]):
        m = asked[i]
        slot = recent.slot[m]
        if slots[slot].size == 1 or not may_leave(recent, m):
            continue
        x = vectors[m]
        apart = own(family, x)
        for j in range(row.shape[0]):
            row[j] = block[slot, j]
        slots[slot].size -= 1
        remove(family, block[slot], x, apart)
        settle(family, block[slot])
        stays = ratio_of_joining(prior, state, recent, m, slot)
        here = predictive(family, block[slot], x, apart) + stays
        best, into, ratio, total = here, slot, stays, 1.0
        for p in range(near.shape[1]):
            other = near[slot, p]
            if other < 0 or slots[other].size == 0:
                continue
            joins = ratio_of_joining(prior, state, recent, m, other)
            there = predictive(family, block[other], x, apart) + joins
            if there > best + LEAST_GAIN:
                total, best, into, ratio = total * math.exp(best - there) + 1.0, there, other, joins
            else:
                total += math.exp(there - best)
        if into == slot:
            slots[slot].size += 1
            for j in range(row.shape[0]):
                block[slot, j] = row[j]
            continue
        gained += ratio - stays
        shares[m] = 1.0 / total
        add(family, block[into], x, apart)
        settle(family, block[into])
        unlink(recent, m)
        link(recent, into, m)
        slots[into].size += 1
        weigh_list(prior, state, recent, slot)
        weigh_list(prior, state, recent, into)
    return gained
