"""The clusters that a record may join, best first, without looking at every one of them.

A cluster's score does not depend on the hypothesis that joins it, so the clusters that all hypotheses
hold are ranked once; early tests leave out what cannot survive: what falls below ``slack``, and, in a full
beam, what is worse than the worst hypothesis joining the best agreed cluster.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.data.choice import GUARD, Choice, Scores, rounded
from streamdp.beam.data.pool import Beam
from streamdp.beam.data.state import Model, State
from streamdp.beam.step.clusters import offer_agreed
from streamdp.kernels.heap import before, order_last_first, sift, swap
from streamdp.kernels.jit import kernel

LEAST_EXPONENT = -700.0
"""Below it a linear threshold would be zero anyway."""


@kernel
def log_offer(weight: float, scale: float, value: float, reference: float) -> float:
    """A cluster's weight and predictive, in nats."""
    return math.log(weight * scale * value) + reference


@kernel
def log_value_of_new(scores: Scores) -> float:
    """Predictive of a new cluster, in nats; -inf where none may be founded."""
    value = scores.counters.new_value
    return math.log(value) + scores.counters.reference if value > 0.0 else -np.inf


class Candidates(NamedTuple):
    """Agreed clusters that were offered, the worst first."""

    rows: np.ndarray
    founder: np.ndarray


@before.of(Candidates)
def _worse(heap: Candidates, a: int, b: int) -> bool:
    first, second = heap.rows[a], heap.rows[b]
    if first.rank != second.rank:
        return first.rank < second.rank
    return heap.founder[first.slot] > heap.founder[second.slot]


@swap.of(Candidates)
def _swap(heap: Candidates, a: int, b: int) -> None:
    first, second = heap.rows[a], heap.rows[b]
    first.slot, second.slot = second.slot, first.slot
    first.score, second.score = second.score, first.score
    first.rank, second.rank = second.rank, first.rank


@kernel
def turned_away(choice: Choice, founder: np.ndarray, limit: int, slot: int, rank: int) -> bool:
    """Whether ``limit`` candidates are there, all better than an agreed slot of that rank."""
    if choice.counters.candidates < limit:
        return False
    worst = choice.candidates[0]
    return rank < worst.rank or (rank == worst.rank and founder[slot] > founder[worst.slot])


@kernel
def offer_candidate(choice: Choice, founder: np.ndarray, limit: int, slot: int, score: float) -> None:
    """Put an agreed slot among the ``limit`` best so far."""
    rank = rounded(score - choice.counters.anchor)
    if turned_away(choice, founder, limit, slot, rank):
        return
    place = choice.counters.candidates
    if place == limit:
        place = 0  # instead of the worst
    else:
        choice.counters.candidates = place + 1
    choice.candidates[place].slot = slot
    choice.candidates[place].score = score
    choice.candidates[place].rank = rank
    sift(Candidates(choice.candidates, founder), place, choice.counters.candidates)


@kernel
def _linear(scores: Scores, floor: float) -> float:
    """A floor in nats as a weight times value, 0 where there is none: it spares most logarithms."""
    exponent = floor - scores.counters.reference
    return math.exp(exponent) if exponent > LEAST_EXPONENT else 0.0


@kernel
def raise_floor(scores: Scores, choice: Choice, floor: float) -> None:
    """What falls below ``floor`` nats cannot survive, unless it may be the best for the greedy hypothesis."""
    floor = min(floor, choice.counters.ceiling)
    if floor > choice.counters.floor:
        choice.counters.floor = floor
        choice.counters.bar = _linear(scores, floor)


@kernel
def offer_slot(model: Model, state: State, scores: Scores, choice: Choice, slot: int) -> None:
    """Offer an agreed slot by its value, unless it cannot survive."""
    pool, scale = state.pool, state.beam.counters.scale
    value = scores.value[slot]
    if value <= 0.0 or pool.weight[slot] * scale * value < choice.counters.bar:
        return
    score = log_offer(pool.weight[slot], scale, value, scores.counters.reference)
    if score < choice.counters.floor:
        return
    offer_candidate(choice, pool.founder, model.beam, slot, score)
    best_base = choice.base[choice.order[0]]
    choice.counters.best = max(choice.counters.best, score + best_base)
    choice.counters.ceiling = max(choice.counters.ceiling, score - GUARD)
    by_slack = choice.counters.best - best_base - (model.slack + GUARD)
    raise_floor(scores, choice, max(by_slack, score + choice.counters.reach - GUARD))


@kernel
def rank_parents(beam: Beam, choice: Choice) -> None:
    """What each hypothesis brings to its children's scores, and the hypotheses by that, best first."""
    base, order, parents = choice.base, choice.order, 0
    for h in range(beam.counters.width):
        if choice.counters.alone and h != beam.counters.greedy:
            continue
        value = beam.joint[h] - choice.log_total[h]
        base[h] = value
        i = parents
        while i > 0 and base[order[i - 1]] < value:
            order[i] = order[i - 1]
            i -= 1
        order[i] = h
        parents += 1
    choice.counters.parents = parents


@kernel
def _least_of_greedy(state: State, scores: Scores, choice: Choice) -> float:
    """What the greedy hypothesis's best child is offered at least: the best but for the agreed clusters."""
    pool, greedy = state.pool, state.beam.counters.greedy
    scale, reference = state.beam.counters.scale, scores.counters.reference
    best, most = -np.inf, 0.0
    if choice.new_weight[greedy] > 0.0:
        best = math.log(choice.new_weight[greedy]) + log_value_of_new(scores)
    row = pool.holds[pool.counters.half, greedy]
    for j in range(pool.counters.contested):
        mass = choice.mass[j]
        if row[j] and mass > most:
            most, slot = mass, pool.slot_of[j]
            best = max(best, log_offer(pool.weight[slot], scale, scores.value[slot], reference))
    return best


@kernel
def _set_bounds(model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """The bounds before any cluster is looked at: the best founder of a new one is known."""
    base, parents = choice.base, choice.counters.parents
    best_base = base[choice.order[0]]
    best, least, log_new = -np.inf, np.inf, log_value_of_new(scores)
    for k in range(parents):
        h = choice.order[k]
        choice.founding[h] = -np.inf
        if choice.new_weight[h] > 0.0:
            choice.founding[h] = base[h] + math.log(choice.new_weight[h]) + log_new
            best = max(best, choice.founding[h])
            least = min(least, choice.founding[h])
    choice.counters.best = best
    founds = best > -np.inf
    choice.counters.anchor = best - best_base if founds else scores.counters.reference
    choice.counters.reach = -np.inf
    if parents == model.beam:
        # each goes on as the best child does, or joins what others do: that far behind the best at most
        choice.counters.reach = base[choice.order[parents - 1]] - best_base
        if founds:
            choice.counters.reach = min(choice.counters.reach, least - best)
    choice.counters.floor = -np.inf
    choice.counters.bar = 0.0
    choice.counters.ceiling = np.inf
    if choice.counters.reserved:
        choice.counters.ceiling = _least_of_greedy(state, scores, choice) - GUARD
    if founds:
        raise_floor(scores, choice, choice.counters.anchor - (model.slack + GUARD))


@kernel
def _sort_candidates(model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """Best first; and the floor that the best of them makes."""
    n = choice.counters.candidates
    order_last_first(Candidates(choice.candidates, state.pool.founder), n)
    if n > 0:
        best_base, top = choice.base[choice.order[0]], choice.candidates[0].score
        choice.counters.best = max(choice.counters.best, top + best_base)
        by_slack = choice.counters.best - best_base - (model.slack + GUARD)
        choice.counters.floor = max(by_slack, top + choice.counters.reach - GUARD)


@kernel
def _rank_contenders(model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """The contested clusters that may come into the beam, best first."""
    pool, base, parents = state.pool, choice.base, choice.counters.parents
    scale, reference = state.beam.counters.scale, scores.counters.reference
    contenders, bar = 0, _linear(scores, choice.counters.floor) * (1.0 - GUARD)
    for j in range(pool.counters.contested):
        if choice.mass[j] <= 0.0 or choice.mass[j] < bar:
            continue
        slot = pool.slot_of[j]
        offer = log_offer(pool.weight[slot], scale, scores.value[slot], reference)
        if offer < choice.counters.floor:
            continue
        i = contenders
        while i > 0 and choice.offer[i - 1] < offer:
            choice.offer[i] = choice.offer[i - 1]
            choice.contender[i] = choice.contender[i - 1]
            i -= 1
        choice.offer[i] = offer
        choice.contender[i] = j
        contenders += 1
        for k in range(parents):
            h = choice.order[k]
            if base[h] + offer <= choice.counters.best:
                break
            if pool.holds[pool.counters.half, h, j]:
                choice.counters.best = base[h] + offer
                break
    choice.counters.contenders = contenders


@kernel
def gather(model: Model, state: State, scores: Scores, choice: Choice) -> float:
    """The agreed candidates and the contested contenders, both best first; the best child's score."""
    _set_bounds(model, state, scores, choice)
    choice.counters.candidates = 0
    offer_agreed(state.clusters.bag, model, state, scores, choice)
    _sort_candidates(model, state, scores, choice)
    _rank_contenders(model, state, scores, choice)
    return choice.counters.best
