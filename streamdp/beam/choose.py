"""Choosing the best children of all hypotheses, and what their masses say.

A cluster's score does not depend on the hypothesis that joins it: the normaliser and the weight of a
new cluster do. So the clusters that all hypotheses hold are ranked once, the best of them are merged
with each hypothesis' contested clusters and its new one, and a hypothesis is left as soon as its next
child cannot be among the best any more.

Scores are compared as integers, in units of 1e-9 nats below the best; ties go to the better parent,
then to the older cluster.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.jit import kernel
from streamdp.beam.model import BEAM, CONCENTRATION, DISCOUNT, PITMAN_YOR, PRIOR, SLACK, TEMPER, Model
from streamdp.beam.pool import ALIVE, CONTESTED, PLANE, SCALE, SLOT_HIGH, WIDTH, Beam
from streamdp.beam.scores import CLASS_SUM, CLASS_WEIGHT, NEW_VALUE, REFERENCE, TICK, TOUCHED, Scores
from streamdp.beam.sizes import HIGH
from streamdp.beam.state import State

UNIT_NATS = 1e9
GUARD = 1e-6
"""Nats by which early tests are laxer than the rounded comparison that decides."""
CANDIDATES, CHILDREN, BEST_CHILD, HOPEFUL = range(4)
NEW = -1


class Choice(NamedTuple):
    """Scratch space of a choice, and the children chosen, best first."""

    meta: np.ndarray  # int64[4]
    slot: np.ndarray  # int32[B] agreed candidates
    score: np.ndarray  # float64[B] their weight and predictive, in nats
    rank: np.ndarray  # int64[B] the score rounded
    hopeful: np.ndarray  # int32[M] contested columns that may come into the beam, best first
    offer: np.ndarray  # float64[M] their weight and predictive, in nats
    mass: np.ndarray  # float64[M] true weight x value of all contested columns
    weight: np.ndarray  # float64[M] their stored weights
    contested_sum: np.ndarray  # float64[B] per hypothesis
    contested_weight: np.ndarray  # float64[B]
    new_weight: np.ndarray  # float64[B]
    log_total: np.ndarray  # float64[B] log normaliser
    expect: np.ndarray  # float64[B] exp(log joint) / normaliser
    child_rank: np.ndarray  # int64[B] rounded score of a child
    child_parent: np.ndarray  # int32[B]
    child_slot: np.ndarray  # int32[B] slot joined or NEW
    child_founder: np.ndarray  # int64[B]
    child_select: np.ndarray  # float64[B]
    child_joint: np.ndarray  # float64[B]
    base: np.ndarray  # float64[B] what a hypothesis brings to its children's scores, in nats
    order: np.ndarray  # int32[B] hypotheses by it, best first
    group: np.ndarray  # int32[B] the first child that joins the same slot
    group_size: np.ndarray  # int32[B] of a first child: how many join its slot
    held: np.ndarray  # int32[M] hypotheses that hold a column
    old_leaf: np.ndarray  # int32[B] of the parents
    old_founded: np.ndarray  # int64[B] of the parents
    dropped: np.ndarray  # uint8[B]
    stack: np.ndarray  # int64[128] heap positions still to be looked at


def new_choice(width: int, columns: int) -> Choice:
    """Scratch space for a beam of this width."""
    f, i, k = (
        [np.zeros(width) for _ in range(8)],
        [np.zeros(width, np.int32) for _ in range(3)],
        [np.zeros(width, np.int64) for _ in range(3)],
    )
    return Choice(
        np.zeros(4, np.int64),
        i[0],
        f[0],
        k[0],
        np.zeros(columns, np.int32),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        f[1],
        f[2],
        f[3],
        f[4],
        f[5],
        k[1],
        i[1],
        i[2],
        k[2],
        f[6],
        f[7],
        np.zeros(width),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(columns, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int64),
        np.zeros(width, np.uint8),
        np.zeros(128, np.int64),
    )


@kernel
def rounded(nats: float) -> int:
    """A score in units of 1e-9 nats; what is hopelessly far below stays comparable."""
    return math.floor(max(nats, -1e9) * UNIT_NATS + 0.5)


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
def log_offer(model: Model, weight: float, scale: float, value: float, reference: float) -> float:
    """A cluster's weight (tempered for selection) and predictive, in nats."""
    temper = model.floats[TEMPER]
    if temper == 1.0:
        return math.log(weight * scale * value) + reference
    return temper * math.log(weight * scale) + math.log(value) + reference


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
def tally(model: Model, state: State, scores: Scores, choice: Choice) -> tuple[float, float]:
    """Normalisers and expected masses of all hypotheses; the record's log evidence."""
    pool, beam = state.pool, state.beam
    width, columns = beam.meta[WIDTH], pool.meta[CONTESTED]
    scale = beam.sums[SCALE]
    dense = state.dense.mean.shape[0] > 0
    tick = scores.meta[TICK]
    for j in range(columns):
        slot = pool.slot_of[j]
        if pool.state[slot] != ALIVE:
            choice.mass[j] = 0.0
            choice.weight[j] = 0.0
            continue
        if dense or scores.stamp[slot] == tick:
            value = scores.value[slot]
        else:
            value = scores.ratio[state.sizes.of[slot]]
        scores.value[slot] = value
        choice.mass[j] = pool.weight[slot] * scale * value
        choice.weight[j] = pool.weight[slot]
    mass_of_column, weight_of_column = choice.mass, choice.weight
    for h in range(width):
        row = pool.holds[pool.meta[PLANE], h]
        # two chains of additions each: the processor need not wait for one to end
        total, total_odd, weight, weight_odd = 0.0, 0.0, 0.0, 0.0
        for j in range(0, columns - 1, 2):
            total += row[j] * mass_of_column[j]
            weight += row[j] * weight_of_column[j]
            total_odd += row[j + 1] * mass_of_column[j + 1]
            weight_odd += row[j + 1] * weight_of_column[j + 1]
        if columns % 2 == 1:
            total += row[columns - 1] * mass_of_column[columns - 1]
            weight += row[columns - 1] * weight_of_column[columns - 1]
        choice.contested_sum[h] = total + total_odd
        choice.contested_weight[h] = (weight + weight_odd) * scale
    concentration = model.floats[CONCENTRATION]
    pitman_yor = model.ints[PRIOR] == PITMAN_YOR
    agreed_weight = scores.sums[CLASS_WEIGHT] * scale
    agreed_sum = scores.sums[CLASS_SUM] * scale
    prior_mass, mass = 0.0, 0.0
    for h in range(width):
        new = concentration
        if pitman_yor:
            new += beam.founded[h] * model.floats[DISCOUNT]
        total = agreed_weight + choice.contested_weight[h] + new
        choice.new_weight[h] = new
        choice.log_total[h] = math.log(total)
        joint = math.exp(beam.joint[h])
        prior_mass += joint
        choice.expect[h] = joint / total
        mass += choice.expect[h] * (agreed_sum + choice.contested_sum[h] + new * scores.sums[NEW_VALUE])
    return math.log(mass / prior_mass) + scores.sums[REFERENCE], mass


@kernel
def _rank_parents(model: Model, beam: Beam, choice: Choice) -> None:
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
def _gather(model: Model, state: State, scores: Scores, choice: Choice) -> float:
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


@kernel
def _worse_child(choice: Choice, a: int, b: int) -> bool:
    if choice.child_rank[a] != choice.child_rank[b]:
        return choice.child_rank[a] < choice.child_rank[b]
    if choice.child_parent[a] != choice.child_parent[b]:
        return choice.child_parent[a] > choice.child_parent[b]
    return choice.child_founder[a] > choice.child_founder[b]


@kernel
def _swap_children(choice: Choice, a: int, b: int) -> None:
    choice.child_rank[a], choice.child_rank[b] = choice.child_rank[b], choice.child_rank[a]
    choice.child_parent[a], choice.child_parent[b] = choice.child_parent[b], choice.child_parent[a]
    choice.child_slot[a], choice.child_slot[b] = choice.child_slot[b], choice.child_slot[a]
    choice.child_founder[a], choice.child_founder[b] = choice.child_founder[b], choice.child_founder[a]
    choice.child_select[a], choice.child_select[b] = choice.child_select[b], choice.child_select[a]
    choice.child_joint[a], choice.child_joint[b] = choice.child_joint[b], choice.child_joint[a]


@kernel
def _sink_child(choice: Choice, i: int, n: int) -> None:
    while True:
        c = 2 * i + 1
        if c >= n:
            return
        if c + 1 < n and _worse_child(choice, c + 1, c):
            c += 1
        if not _worse_child(choice, c, i):
            return
        _swap_children(choice, c, i)
        i = c


@kernel
def _offer_child(
    choice: Choice, limit: int, rank: int, parent: int, slot: int, founder: int, select: float, joint: float
) -> bool:
    """Put a child among the ``limit`` best so far; False where it is worse than all of a full beam."""
    n = choice.meta[CHILDREN]
    at = n
    if n == limit:
        if rank < choice.child_rank[0]:
            return False
        if rank == choice.child_rank[0]:
            worst = choice.child_parent[0]
            if parent > worst or (parent == worst and founder > choice.child_founder[0]):
                return False
        at = 0
    choice.child_rank[at] = rank
    choice.child_parent[at] = parent
    choice.child_slot[at] = slot
    choice.child_founder[at] = founder
    choice.child_select[at] = select
    choice.child_joint[at] = joint
    if n == limit:
        _sink_child(choice, 0, n)
        return True
    choice.meta[CHILDREN] = n + 1
    while at > 0:
        p = (at - 1) >> 1
        if not _worse_child(choice, at, p):
            break
        _swap_children(choice, at, p)
        at = p
    return True


@kernel
def _join_all(
    model: Model, state: State, choice: Choice, slot: int, column: int, score: float, best: float, cut: int
) -> bool:
    """Offer the children that join one cluster, best parent first; False where none can survive."""
    pool, beam = state.pool, state.beam
    limit = model.ints[BEAM]
    temper = model.floats[TEMPER]
    extra = 0.0
    if temper != 1.0:
        extra = (1.0 - temper) * math.log(pool.weight[slot] * beam.sums[SCALE])
    for k in range(beam.meta[WIDTH]):
        h = choice.order[k]
        select = choice.base[h] + score
        rank = rounded(select - best)
        if rank < cut or (choice.meta[CHILDREN] == limit and rank < choice.child_rank[0]):
            return k > 0
        if column >= 0 and not pool.holds[pool.meta[PLANE], h, column]:
            continue
        joint = beam.joint[h] - choice.log_total[h] + score + extra
        _offer_child(choice, limit, rank, h, slot, pool.founder[slot], select, joint)
    return True


@kernel
def choose(model: Model, state: State, scores: Scores, choice: Choice, seq: int) -> None:
    """Select the children of all hypotheses, best first; find the one with the best true log joint."""
    pool, beam = state.pool, state.beam
    width = beam.meta[WIDTH]
    limit = model.ints[BEAM]
    temper = model.floats[TEMPER]
    _rank_parents(model, beam, choice)
    best = _gather(model, state, scores, choice)
    cut = -rounded(model.floats[SLACK])
    choice.meta[CHILDREN] = 0
    # the best clusters first: what they fill the beam with turns the others away early
    i, k = 0, 0
    while i < choice.meta[CANDIDATES] or k < choice.meta[HOPEFUL]:
        agreed = k == choice.meta[HOPEFUL] or (
            i < choice.meta[CANDIDATES] and choice.score[i] >= choice.offer[k]
        )
        if agreed:
            more = _join_all(model, state, choice, choice.slot[i], -1, choice.score[i], best, cut)
            i += 1
        else:
            j = choice.hopeful[k]
            more = _join_all(model, state, choice, pool.slot_of[j], j, choice.offer[k], best, cut)
            k += 1
        if not more:
            break
    log_new = math.log(scores.sums[NEW_VALUE]) + scores.sums[REFERENCE]
    for h in range(width):
        log_weight = math.log(choice.new_weight[h])
        select = choice.base[h] + temper * log_weight + log_new
        rank = rounded(select - best)
        if rank >= cut:
            joint = beam.joint[h] - choice.log_total[h] + log_weight + log_new
            _offer_child(choice, limit, rank, h, NEW, seq, select, joint)
    n = choice.meta[CHILDREN]
    for last in range(n - 1, 0, -1):
        _swap_children(choice, 0, last)
        _sink_child(choice, 0, last)
    head, top = 0, choice.child_joint[0]
    for i in range(1, n):
        top = max(top, choice.child_joint[i])
    for i in range(n):
        if rounded(choice.child_joint[i] - top) == 0:
            head = i
            break
    choice.meta[BEST_CHILD] = head


@kernel
def mass_of(state: State, scores: Scores, choice: Choice, slot: int) -> float:
    """Mass, before pruning, of the children that choose the cluster of ``slot`` (or a new one)."""
    pool, beam = state.pool, state.beam
    width = beam.meta[WIDTH]
    total = 0.0
    if slot == NEW:
        for h in range(width):
            total += choice.expect[h] * choice.new_weight[h]
        return total * scores.sums[NEW_VALUE]
    if pool.column[slot] < 0:
        for h in range(width):
            total += choice.expect[h]
        return total * pool.weight[slot] * beam.sums[SCALE] * scores.value[slot]
    founder = pool.founder[slot]
    for j in range(pool.meta[CONTESTED]):
        if pool.founder[pool.slot_of[j]] == founder:
            for h in range(width):
                if pool.holds[pool.meta[PLANE]][h, j]:
                    total += choice.expect[h] * choice.mass[j]
    return total
