"""Choosing the best children of all hypotheses.

The normaliser and the weight of a new cluster depend on the hypothesis, a cluster's score does not: each
candidate is offered to the hypotheses from the best on, and left as soon as no child can survive.

Scores are compared as integers, in units of 1e-9 nats below the best; ties go to the better parent,
then to the older cluster.
"""

from __future__ import annotations

import math

from streamdp.beam.candidates import gather, rank_parents
from streamdp.beam.choice import BEST_CHILD, CANDIDATES, CHILDREN, HOPEFUL, NEW, Choice, rounded
from streamdp.beam.model import BEAM, SLACK, TEMPER, Model
from streamdp.beam.pool import PLANE, SCALE, WIDTH
from streamdp.beam.scores import NEW_VALUE, REFERENCE, Scores
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel


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
    rank_parents(model, beam, choice)
    best = gather(model, state, scores, choice)
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
