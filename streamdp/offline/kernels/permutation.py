"""The dynamic program over the segments of a permutation (Liang, Jordan and Taskar 2007).

Given an order of the records in which every cluster is a run, all clusterings into runs are summed over:
``terms`` holds, for every place r and every run that ends there, the log weight B of the run.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import Counters, ints, one, reals
from streamdp.offline.kernels.rng import below, draw_log, shuffle
from streamdp.offline.kernels.store import FIRST_SLOT, Store, add, drop_run, score

DONE, FULL = range(2)


class Program(NamedTuple):
    """One pass over a permutation of N records, M terms, at most W runs at a time."""

    order: Annotated[np.ndarray, ints("records")]  # the permutation
    bounds: Annotated[np.ndarray, ints("bounds")]  # N + 1: where the present clusters start in it, and N
    begin: Annotated[np.ndarray, ints("runs")]  # first place of each run under way
    slot: Annotated[np.ndarray, ints("runs")]  # and its slot
    free: Annotated[np.ndarray, ints("runs")]  # slots not in use
    offset: Annotated[np.ndarray, ints("offsets")]  # N + 2: where the terms of a place start
    start: Annotated[np.ndarray, ints("terms")]  # first place of the run of a term
    term: Annotated[np.ndarray, reals("terms")]  # log B of that run
    sum: Annotated[np.ndarray, reals("bounds")]  # log of the sum over all clusterings of the places before
    by_count: Annotated[np.ndarray, reals("square", "square")]  # the same by the number of runs, or empty
    denominator: Annotated[np.ndarray, reals("records")]  # of Markov orders, by place
    similarity: np.ndarray  # float64[N, N] log weight of a record (row) after another, or empty
    weights: Annotated[np.ndarray, reals("most")]  # max(N, W) + 1, scratch
    totals: Annotated[np.ndarray, reals("most")]  # the same
    labels: Annotated[np.ndarray, ints("records")]  # the clustering that was drawn
    counters: Annotated[Counters, one("runs place current stored")]
    """Runs under way, place, whether the present clustering is kept, terms."""


@kernel
def _log_add(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@entry
def draw_order(program: Program, labels: np.ndarray, clusters: int, random: np.ndarray) -> None:
    """A permutation given the clustering: clusters in random order, and within each uniformly or by scans.

    ``labels`` are 0 .. clusters - 1. In a Markov scan the next record of a cluster is drawn by its weight
    given the one before.
    """
    order, bounds, rank, cursor = program.order, program.bounds, program.labels, program.offset
    n = labels.shape[0]
    for k in range(clusters):
        rank[k] = k
    shuffle(random, rank, clusters)
    for k in range(clusters + 1):
        bounds[k] = 0
    for i in range(n):
        bounds[rank[labels[i]] + 1] += 1
    for k in range(clusters):
        bounds[k + 1] += bounds[k]
        cursor[k] = bounds[k]
    for i in range(n):
        k = rank[labels[i]]
        order[cursor[k]] = i
        cursor[k] += 1
    for k in range(clusters):
        _arrange(program, bounds[k], bounds[k + 1], random)


@kernel
def _arrange(program: Program, first: int, last: int, random: np.ndarray) -> None:
    """Put one cluster into a random order."""
    order = program.order
    for t in range(first, last):
        if program.similarity.shape[0] == 0 or t == first:
            chosen = t + below(random, last - t)
        else:
            before = order[t - 1]
            for s in range(t, last):
                program.weights[s - t] = program.similarity[order[s], before]
            chosen = t + draw_log(random, program.weights, last - t, program.totals)
        order[t], order[chosen] = order[chosen], order[t]


@kernel
def _end_run(store: Store, program: Program, p: int, stop: int) -> None:
    """Give up the p-th run, which holds the places up to ``stop``."""
    slot = program.slot[p]
    drop_run(store, slot, program.order, program.begin[p], stop)
    last = program.counters.runs - 1
    program.free[program.free.shape[0] - 1 - last] = slot
    program.begin[p], program.slot[p] = program.begin[last], program.slot[last]
    program.counters.runs = last


@kernel
def _begin_run(program: Program, place: int) -> None:
    n = program.counters.runs
    program.begin[n] = place
    program.slot[n] = program.free[program.free.shape[0] - 1 - n]
    program.counters.runs = n + 1


@kernel
def _follow(program: Program, r: int) -> None:
    """Fill ``totals`` with the log probability of the Markov order of places s .. r, by s."""
    order, similarity, denominator = program.order, program.similarity, program.denominator
    least = r
    for p in range(program.counters.runs):
        least = min(least, program.begin[p])
    path = 0.0
    program.totals[r] = 0.0
    denominator[r] = -math.inf
    for t in range(r, least, -1):
        before = order[t - 1]
        denominator[t] = _log_add(denominator[t], similarity[order[r], before])
        path += similarity[order[t], before] - denominator[t]
        program.totals[t - 1] = path - math.log(r - t + 2.0)


@entry
def forward(
    store: Store, program: Program, by_size: np.ndarray, per_run: float, log_keep: float, first: int
) -> int:
    """Sum over the clusterings into runs, from place ``first`` on; FULL where there is no room for terms.

    Parameters
    ----------
    by_size
        log weight of a run by its length, shape (N + 1,), its records' likelihood aside.
    per_run
        log weight of every run.
    log_keep
        Runs whose share of the sum at a place is below exp(log_keep) over their number are given up; -inf:
        none is.
    """
    order, n = program.order, program.order.shape[0]
    width = program.begin.shape[0]
    markov = program.similarity.shape[0] > 0
    if first == 0:
        for p in range(width):
            program.free[p] = FIRST_SLOT + p
        program.counters.runs = 0
        program.counters.current = 1
        program.counters.stored = 0
        program.sum[0] = 0.0
        program.offset[0] = 0
    segment = 0
    while program.bounds[segment + 1] < first + 1:
        segment += 1
    for r in range(first, n):
        stored = program.counters.stored
        if stored + program.counters.runs + 1 > program.term.shape[0]:
            program.counters.place = r
            return FULL
        _begin_run(program, r)
        if markov:
            _follow(program, r)
        runs, total = program.counters.runs, -math.inf
        program.offset[r] = stored
        for p in range(runs):
            begin, slot = program.begin[p], program.slot[p]
            add(store, slot, order[r])
            value = per_run + by_size[r + 1 - begin] + store.log_h[slot]
            if markov:
                value += program.totals[begin]
            program.start[stored + p] = begin
            program.term[stored + p] = value
            total = _log_add(total, program.sum[begin] + value)
        program.sum[r + 1] = total
        program.counters.stored = stored + runs
        program.offset[r + 1] = stored + runs
        if program.bounds[segment + 1] == r + 1:
            kept = False
            for p in range(runs):
                kept |= program.begin[p] == program.bounds[segment]
            if not kept:
                program.counters.current = 0
            segment += 1
        if r + 1 < n:
            _prune(store, program, stored, runs, total + log_keep - math.log(runs), r + 1)
    for p in range(program.counters.runs - 1, -1, -1):
        _end_run(store, program, p, n)
    return DONE


@kernel
def _prune(store: Store, program: Program, stored: int, runs: int, least: float, stop: int) -> None:
    """Give up the runs whose share is below ``least``, and the smallest while there are too many."""
    for p in range(runs - 1, -1, -1):
        if program.sum[program.start[stored + p]] + program.term[stored + p] < least:
            _end_run(store, program, p, stop)
    if program.counters.runs < program.begin.shape[0]:
        return
    worst, smallest = 0, math.inf
    for p in range(program.counters.runs):
        for q in range(stored, stored + runs):
            if program.start[q] == program.begin[p]:
                value = program.sum[program.start[q]] + program.term[q]
                if value < smallest:
                    worst, smallest = p, value
    _end_run(store, program, worst, stop)


@entry
def backward(program: Program, random: np.ndarray) -> int:
    """Draw a clustering by ``sum``; returns its number of clusters."""
    r, k = program.order.shape[0], 0
    while r > 0:
        first, last = program.offset[r - 1], program.offset[r]
        for q in range(first, last):
            program.weights[q - first] = program.sum[program.start[q]] + program.term[q]
        begin = program.start[first + draw_log(random, program.weights, last - first, program.totals)]
        for t in range(begin, r):
            program.labels[program.order[t]] = k
        r, k = begin, k + 1
    return k


@entry
def exact(program: Program, by_count: np.ndarray, random: np.ndarray) -> int:
    """Draw a clustering whose number K of clusters has log weight ``by_count[K]``; returns K.

    log g(r, K) = logsumexp over the runs that end at r of log g(r - m, K - 1) + log B, in O(N^3).
    """
    table, n = program.by_count, program.order.shape[0]
    for r in range(n + 1):
        for k in range(n + 1):
            table[r, k] = -math.inf
    table[0, 0] = 0.0
    for r in range(1, n + 1):
        for q in range(program.offset[r - 1], program.offset[r]):
            begin = program.start[q]
            for k in range(1, begin + 2):
                if table[begin, k - 1] > -math.inf:
                    table[r, k] = _log_add(table[r, k], table[begin, k - 1] + program.term[q])
    for k in range(1, n + 1):
        program.weights[k - 1] = table[n, k] + by_count[k]
    clusters = draw_log(random, program.weights, n, program.totals) + 1
    r = n
    for k in range(clusters, 0, -1):
        first, last = program.offset[r - 1], program.offset[r]
        for q in range(first, last):
            program.weights[q - first] = table[program.start[q], k - 1] + program.term[q]
        begin = program.start[first + draw_log(random, program.weights, last - first, program.totals)]
        for t in range(begin, r):
            program.labels[program.order[t]] = k - 1
        r = begin
    return clusters


@entry
def conditionals(store: Store, slots: np.ndarray, out: np.ndarray) -> None:
    """log p(b | a) of all pairs into ``out[b, a]``; record a is alone in ``slots[a]``."""
    for b in range(out.shape[0]):
        score(store, b, slots, out.shape[0], out[b])
