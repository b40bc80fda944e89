"""The clusters that a record may join, best first, without looking at every one of them.

A cluster's score does not depend on the hypothesis that joins it, so the clusters that all hypotheses
hold are ranked once, and of each size class only the heaviest are looked at.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.choice import CANDIDATES, GUARD, HOPEFUL, Choice, rounded
from streamdp.beam.model import BEAM, SLACK, TEMPER, Model
from streamdp.beam.pool import ALIVE, CONTESTED, PLANE, SCALE, SLOT_HIGH, WIDTH, Beam
from streamdp.beam.scores import NEW_VALUE, REFERENCE, TICK, TOUCHED, Scores
from streamdp.beam.sizes import HIGH
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel


@kernel
def log_offer(model: Model, weight: float, scale: float, value: float, reference: float) -> float:
    """A cluster's weight (tempered for selection) and predictive, in nats."""
    temper = model.floats[TEMPER]
    if temper == 1.0:
        return math.log(weight * scale * value) + reference
    return temper * math.log(weight * scale) + math.log(value) + reference


@kernel
def _worse_candidate(choice: Choice, founder: np.ndarray, a: int, b: int) -> bool:
    if choice.rank[a] != choice.rank[b]:
        return choice.rank[a] < choice.rank[b]
    return founder[choice.slot[a]] > founder[choice.slot[b]]


@kernel
def _swap_candidates(choice: Choice, a: int, b: int) -> None:
    choice.slot[a], choice.slot[b] = choice.slot[b], choice.slot[a]
    choice.score[a], choice.score[b] = choice.score[b], choice.score[a]
    choice.rank[a], choice.rank[b] = choice.rank[b], choice.rank[a]


@kernel
def _sink_candidate(choice: Choice, founder: np.ndarray, i: int, n: int) -> None:
    while True:
        c = 2 * i + 1
        if c >= n:
            return
        if c + 1 < n and _worse_candidate(choice, founder, c + 1, c):
            c += 1
        if not _worse_candidate(choice, founder, c, i):
            return
        _swap_candidates(choice, c, i)
        i = c


@kernel
def _offer_candidate(
    choice: Choice, founder: np.ndarray, limit: int, slot: int, score: float, best: float
) -> None:
    """Put an agreed slot among the ``limit`` best so far: a heap with the worst on top."""
    n = choice.meta[CANDIDATES]
    rank = rounded(score - best)
    if n == limit:
        if rank < choice.rank[0] or (rank == choice.rank[0] and founder[slot] > founder[choice.slot[0]]):
            return
        choice.slot[0], choice.score[0], choice.rank[0] = slot, score, rank
        _sink_candidate(choice, founder, 0, n)
        return
    choice.slot[n], choice.score[n], choice.rank[n] = slot, score, rank
    choice.meta[CANDIDATES] = n + 1
    i = n
    while i > 0:
        p = (i - 1) >> 1
        if not _worse_candidate(choice, founder, i, p):
            break
        _swap_candidates(choice, i, p)
        i = p


@kernel
def _explore_class(
    model: Model, state: State, scores: Scores, choice: Choice, c: int, limit: int, floor: float, best: float
) -> None:
    """Offer the untouched agreed clusters of a size class, heaviest first, down to ``floor`` nats."""
    sizes, pool = state.sizes, state.pool
    base, n = sizes.start[c], sizes.agreed[c]
    scale, reference = state.beam.sums[SCALE], scores.sums[REFERENCE]
    tick = scores.meta[TICK]
    stack = choice.stack
    top = 1
    stack[0] = 0
    while top > 0:
        top -= 1
        i = stack[top]
        slot = sizes.heap[base + i]
        score = log_offer(model, pool.weight[slot], scale, scores.ratio[c], reference)
        if score < floor:
            continue
        if choice.meta[CANDIDATES] == limit:
            rank = rounded(score - best)
            worst = choice.rank[0]
            if rank < worst or (rank == worst and pool.founder[slot] > pool.founder[choice.slot[0]]):
                continue
        if scores.stamp[slot] != tick:
            scores.value[slot] = scores.ratio[c]
            _offer_candidate(choice, pool.founder, limit, slot, score, best)
        j = 2 * i + 2
        if j < n:
            stack[top] = j
            top += 1
        if j - 1 < n:
            stack[top] = j - 1
            top += 1


@kernel
def rank_parents(model: Model, beam: Beam, choice: Choice) -> None:
    """What each hypothesis brings to its children's scores, and the hypotheses by that, best first."""
    temper = model.floats[TEMPER]
    base, order = choice.base, choice.order
    for h in range(beam.meta[WIDTH]):
        value = beam.select[h] - temper * choice.log_total[h]
        base[h] = value
        i = h
        while i > 0 and base[order[i - 1]] < value:
            order[i] = order[i - 1]
            i -= 1
        order[i] = h


@kernel
def gather(model: Model, state: State, scores: Scores, choice: Choice) -> float:
    """The agreed candidates, best first, and the hopeful contested ones; the best child's score.

    Early tests leave out what cannot survive: what falls below ``slack``, and, in a full beam, what is
    worse than the worst hypothesis joining the best agreed cluster.
    """
    pool, beam, sizes = state.pool, state.beam, state.sizes
    width, columns = beam.meta[WIDTH], pool.meta[CONTESTED]
    limit = model.ints[BEAM]
    temper = model.floats[TEMPER]
    scale, reference = beam.sums[SCALE], scores.sums[REFERENCE]
    base, order = choice.base, choice.order
    best_base = base[order[0]]
    reach = base[order[width - 1]] - best_base if width == limit else -np.inf
    log_new = math.log(scores.sums[NEW_VALUE]) + reference
    best = -np.inf
    for h in range(width):
        best = max(best, base[h] + temper * math.log(choice.new_weight[h]) + log_new)
    anchor = best - best_base  # what all candidates are rounded against
    slack = model.floats[SLACK] + GUARD
    floor = anchor - slack
    flat = temper == 1.0
    # a linear threshold spares most logarithms
    bar = math.exp(floor - reference) if flat and floor - reference > -700.0 else 0.0
    choice.meta[CANDIDATES] = 0
    dense = state.dense.mean.shape[0] > 0
    count = pool.meta[SLOT_HIGH] if dense else scores.meta[TOUCHED]
    for i in range(count):
        slot = i if dense else scores.touched[i]
        if pool.column[slot] >= 0 or pool.state[slot] != ALIVE:
            continue
        value = scores.value[slot]
        if value <= 0.0 or (flat and pool.weight[slot] * scale * value < bar):
            continue
        score = log_offer(model, pool.weight[slot], scale, value, reference)
        if score < floor:
            continue
        _offer_candidate(choice, pool.founder, limit, slot, score, anchor)
        best = max(best, score + best_base)
        higher = max(best - best_base - slack, score + reach - GUARD)
        if higher > floor:
            floor = higher
            bar = math.exp(floor - reference) if flat and floor - reference > -700.0 else 0.0
    if not dense:
        for c in range(1, sizes.meta[HIGH]):
            if sizes.agreed[c] == 0 or (flat and sizes.top[c] * scale * scores.ratio[c] < bar):
                continue
            _explore_class(model, state, scores, choice, c, limit, floor, anchor)
            if flat and choice.meta[CANDIDATES] == limit and choice.score[0] - GUARD > floor:
                floor = choice.score[0] - GUARD
                bar = math.exp(floor - reference) if floor - reference > -700.0 else 0.0
    n = choice.meta[CANDIDATES]
    for last in range(n - 1, 0, -1):  # heap sort: the worst goes last
        _swap_candidates(choice, 0, last)
        _sink_candidate(choice, pool.founder, 0, last)
    if n > 0:
        best = max(best, choice.score[0] + best_base)
        floor = max(best - best_base - slack, choice.score[0] + reach - GUARD)
    hopeful = 0
    for j in range(columns):
        slot = pool.slot_of[j]
        if pool.state[slot] != ALIVE or scores.value[slot] <= 0.0:
            continue
        offer = log_offer(model, pool.weight[slot], scale, scores.value[slot], reference)
        if offer < floor:
            continue
        i = hopeful
        while i > 0 and choice.offer[i - 1] < offer:
            choice.offer[i] = choice.offer[i - 1]
            choice.hopeful[i] = choice.hopeful[i - 1]
            i -= 1
        choice.offer[i] = offer
        choice.hopeful[i] = j
        hopeful += 1
        for k in range(width):
            h = order[k]
            if base[h] + offer <= best:
                break
            if pool.holds[pool.meta[PLANE], h, j]:
                best = base[h] + offer
                break
    choice.meta[HOPEFUL] = hopeful
    return best
