"""Clusters of vectors by rows of statistics: what they weigh under other parameters, alone and as one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.data.pool import VACANT
from streamdp.beam.data.state import COMPLETE, Model, Output, State
from streamdp.beam.looks.moving import (
    count_merger,
    put_back,
    report_merger,
    revise,
    room_to_join,
    room_to_look,
    widen,
)
from streamdp.beam.looks.recent import Recent, link, ratio_of_union, unlink, weigh_list
from streamdp.beam.step.aging import weigh_united
from streamdp.beam.step.closing import discard_slot
from streamdp.kernels.jit import entry, kernel
from streamdp.likelihoods.vectors import (
    add,
    clear,
    coarsen,
    log_marginal,
    log_marginal_of_both,
    merge,
    own,
    predictive,
    rebase,
    remove,
    settle,
)

NO_WORDS = np.zeros(0, np.int32)


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
def weigh_rows(family: Any, block: np.ndarray, out: np.ndarray) -> None:
    """log H of each row under parameters that may be others than before."""
    for k in range(block.shape[0]):
        rebase(family, block[k])
        out[k] = log_marginal(family, block[k])


@entry
def weigh_pairs(
    family: Any, block: np.ndarray, first: np.ndarray, second: np.ndarray, union: np.ndarray, out: np.ndarray
) -> None:
    """log H of two rows as one, of each pair."""
    for p in range(first.shape[0]):
        out[p] = log_marginal_of_both(family, block[first[p]], block[second[p]], union)


@entry
def unite_rows(family: Any, block: np.ndarray, gone: int, into: int) -> None:
    """Add one row to another."""
    merge(family, block[into], block[gone])
    settle(family, block[into])


class Tail(NamedTuple):
    """Student's t as a mixture over scales: multiples of the variance, logs of their weights, and scratch."""

    scales: np.ndarray
    log_weights: np.ndarray
    near: np.ndarray


def tail_of(degrees: float, dimension: int) -> Tail:
    """The tail of so many degrees of freedom, at powers of two from a half to 32 times the variance."""
    scales = 2.0 ** np.arange(-1, 6)
    log_weights = -0.5 * degrees * (np.log(scales) + 1.0 / scales)
    weights = np.exp(log_weights - log_weights.max())
    return Tail(scales, np.log(weights / weights.sum()), np.zeros(dimension))


@kernel
def _surprise_of(family: Any, row: np.ndarray, location: int, x: np.ndarray, tail: Tail) -> float:
    """log H(x | S) where the variance may be any of the tail's multiples."""
    near, size = tail.near, x.shape[0]
    peak, total = -np.inf, 0.0
    for j in range(tail.scales.shape[0]):
        scale = tail.scales[j]
        for d in range(size):
            near[d] = row[location + d] + (x[d] - row[location + d]) / math.sqrt(scale)
        nats = predictive(family, row, near, own(family, near)) - 0.5 * size * math.log(scale)
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
def unite_slots(model: Model, state: State, recent: Recent, out: Output, slot: int, into: int) -> None:
    """Make a slot, all of whose records are retained, part of another; all hypotheses hold both."""
    pool, clusters = state.pool, state.clusters
    if not room_to_look(state, out, 0):
        return
    room_to_join(state, out, slot, into, NO_WORDS)
    if out.counters.status != COMPLETE:
        return
    report_merger(state, out, slot, into)
    merge(model.family, clusters.block[into], clusters.block[slot])
    settle(model.family, clusters.block[into])
    row = pool.slots[slot]
    pool.slots[into].size += row.size
    widen(pool, into, row.first_time, row.last_time, row.last)
    weigh_united(model.prior, model, state, slot, into)
    put_back(state, into)
    m = recent.head[slot]
    discard_slot(state, slot)
    count_merger(state)
    while m >= 0:
        after = recent.next[m]
        unlink(recent, m)
        link(recent, into, m)
        m = after
    weigh_list(model.prior, state, recent, into)
    out.counters.done = 1


@entry
def rebase_slots(family: Any, state: State) -> float:
    """Bring all clusters up to date under other parameters; returns the sum of their log H."""
    clusters, total = state.clusters, 0.0
    for slot in range(state.pool.counters.high):
        if state.pool.state[slot] != VACANT:
            rebase(family, clusters.block[slot])
            coarsen(family, clusters.block[slot], clusters.coarse[slot])
            total += log_marginal(family, clusters.block[slot])
    return total


@entry
def revise_moved(
    state: State, recent: Recent, out: Output, moved: np.ndarray, probabilities: np.ndarray
) -> None:
    """Tell of records that are in other clusters now; goes on with number ``out.counters.done``."""
    i = out.counters.done
    while i < moved.shape[0]:
        if not room_to_look(state, out, 1):
            return
        revise(state, recent, out, moved[i], probabilities[i])
        state.beam.counters.moved += 1
        i += 1
        out.counters.done = i
