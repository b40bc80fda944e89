"""Choosing the best children of all hypotheses.

The normaliser and the weight of a new cluster depend on the hypothesis, a cluster's score does not: each
candidate is offered to the hypotheses from the best on, and left as soon as no child can survive.

Scores are compared as integers, in units of 1e-9 nats below the best; ties go to the better parent,
then to the older cluster.

Children come last that combine two decisions that have nothing to do with each other. All combinations of the
latest few decisions would fill the beam, and it would soon forget what else it might have done. So where a
choice is open to the best hypothesis and to another one alike, the best one alone tries what else there is;
the other one, which differs from it elsewhere, goes on as the best child does. A choice is open to both where
both hold the cluster that the best child joins, and the other cluster too. What else the other hypothesis
could do is not forbidden: it comes into the beam after all other children.

The greedy hypothesis needs its own best child. That may come last only where a new cluster has another weight
for the greedy hypothesis than for the best hypothesis: there the greedy hypothesis is exempt.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.beam.data.choice import NEW, Choice, Scores, rounded
from streamdp.beam.data.pool import Beam, Pool
from streamdp.beam.data.state import Model, State
from streamdp.beam.step.candidates import gather, rank_parents
from streamdp.beam.step.greedy import best_of_greedy, start_again
from streamdp.kernels.heap import before, order_last_first, sift, swap
from streamdp.kernels.jit import kernel

LAST = 2**62
"""What the rank of such a child is lowered by: no difference of scores is as large."""


@kernel
def note_top(pool: Pool, beam: Beam, choice: Choice) -> None:
    """Take over the best child, which is the only one so far; find the hypotheses that could do the same."""
    parent, slot = choice.children[0].parent, choice.children[0].slot
    choice.counters.top_parent = parent
    choice.counters.top_slot = slot
    column = -1 if slot == NEW else pool.column[slot]
    leaders = 0
    for k in range(choice.counters.parents):
        h = choice.order[k]
        if slot == NEW:
            could = choice.new_weight[h] > 0.0
        else:
            could = column < 0 or pool.holds[pool.counters.half, h, column] == 1
        exempt = h == beam.counters.greedy and choice.new_weight[h] != choice.new_weight[parent]
        choice.follows[h] = could and h != parent and not exempt
        if not choice.follows[h]:
            choice.leaders[leaders] = h
            leaders += 1
    choice.counters.leaders = leaders


@kernel
def is_tried(pool: Pool, choice: Choice, slot: int, column: int) -> bool:
    """Whether the best child's parent could join this slot instead; ``column`` is -1 where all hold it."""
    parent = choice.counters.top_parent
    if parent < 0 or slot == choice.counters.top_slot:
        return False
    return column < 0 or pool.holds[pool.counters.half, parent, column] == 1


@kernel
def founding_is_tried(choice: Choice) -> bool:
    """Whether the best child's parent could found a cluster instead."""
    parent = choice.counters.top_parent
    return parent >= 0 and choice.counters.top_slot != NEW and choice.new_weight[parent] > 0.0


@kernel
def parents_of(choice: Choice, limit: int, tried: bool) -> tuple[np.ndarray, int]:
    """The hypotheses whose children may still come into the beam, best first, and how many they are.

    Where the beam is full of children that do not come last, those that do need not be looked at.
    """
    if tried and choice.counters.children == limit and choice.children[0].rank > LAST // -2:
        return choice.leaders, choice.counters.leaders
    return choice.order, choice.counters.parents


class Children(NamedTuple):
    """Children that were offered, the worst first."""

    rows: np.ndarray


@before.of(Children)
def _worse(heap: Children, a: int, b: int) -> bool:
    first, second = heap.rows[a], heap.rows[b]
    if first.rank != second.rank:
        return first.rank < second.rank
    if first.parent != second.parent:
        return first.parent > second.parent
    return first.founder > second.founder


@swap.of(Children)
def _swap(heap: Children, a: int, b: int) -> None:
    first, second = heap.rows[a], heap.rows[b]
    first.rank, second.rank = second.rank, first.rank
    first.parent, second.parent = second.parent, first.parent
    first.slot, second.slot = second.slot, first.slot
    first.founder, second.founder = second.founder, first.founder
    first.joint, second.joint = second.joint, first.joint


@kernel
def _offer_child(
    choice: Choice, limit: int, rank: int, parent: int, slot: int, founder: int, joint: float
) -> None:
    """Put a child among the ``limit`` best so far."""
    place = choice.counters.children
    if place < limit:
        choice.counters.children = place + 1
    else:
        worst = choice.children[0]
        if rank < worst.rank or (
            rank == worst.rank
            and (parent > worst.parent or (parent == worst.parent and founder > worst.founder))
        ):
            return
        place = 0
    child = choice.children[place]
    child.rank, child.parent, child.slot, child.founder = rank, parent, slot, founder
    child.joint = joint
    sift(Children(choice.children), place, choice.counters.children)


@kernel
def _join_all(
    state: State, choice: Choice, limit: int, slot: int, column: int, score: float, best: float, cut: int
) -> bool:
    """Offer the children that join one cluster, best parent first; False where none can survive."""
    pool = state.pool
    tried = is_tried(pool, choice, slot, column)
    top = rounded(choice.base[choice.order[0]] + score - best)
    if top < cut or (choice.counters.children == limit and top < choice.children[0].rank):
        return False
    parents, count = parents_of(choice, limit, tried)
    for k in range(count):
        h = parents[k]
        joint = choice.base[h] + score
        rank = rounded(joint - best)
        if rank < cut or (choice.counters.children == limit and rank < choice.children[0].rank):
            break
        if column >= 0 and not pool.holds[pool.counters.half, h, column]:
            continue
        if tried and choice.follows[h]:
            rank -= LAST
        _offer_child(choice, limit, rank, h, slot, pool.founder[slot], joint)
    return True


@kernel
def _keep_greedy(model: Model, state: State, scores: Scores, choice: Choice, best: float, seq: int) -> None:
    """Find the greedy hypothesis's best child, or put it in the last place where it is to stay anyhow."""
    n, greedy = choice.counters.children, state.beam.counters.greedy
    choice.counters.greedy_child = -1
    for i in range(n):
        if choice.children[i].parent == greedy:
            choice.counters.greedy_child = i
            return
    if choice.counters.reserved:
        at = min(n, model.beam - 1)
        best_of_greedy(state, scores, choice, best, seq, at)
        choice.counters.greedy_child = at
        choice.counters.children = at + 1


@kernel
def _offer_all(
    model: Model, state: State, scores: Scores, choice: Choice, limit: int, best: float, seq: int
) -> None:
    """Offer the children of all hypotheses; the ``limit`` best stay, in no order."""
    pool = state.pool
    cut = -rounded(model.slack)
    choice.counters.children = 0
    # the best clusters first: what they fill the beam with turns the others away early
    i, k = 0, 0
    while i < choice.counters.candidates or k < choice.counters.contenders:
        agreed = k == choice.counters.contenders or (
            i < choice.counters.candidates and choice.candidates[i].score >= choice.offer[k]
        )
        if agreed:
            j, slot, score = -1, choice.candidates[i].slot, choice.candidates[i].score
            i += 1
        else:
            j, score = choice.contender[k], choice.offer[k]
            slot = pool.slot_of[j]
            k += 1
        if not _join_all(state, choice, limit, slot, j, score, best, cut):
            break
    tried = founding_is_tried(choice)
    parents, count = parents_of(choice, limit, tried)
    for k in range(count):
        h = parents[k]
        rank = rounded(choice.founding[h] - best)
        if rank < cut or (choice.counters.children == limit and rank < choice.children[0].rank):
            continue
        if tried and choice.follows[h]:
            rank -= LAST
        _offer_child(choice, limit, rank, h, NEW, seq, choice.founding[h])


@kernel
def choose(model: Model, state: State, scores: Scores, choice: Choice, seq: int) -> None:
    """Select the children of all hypotheses, best first; find the one that is to be announced."""
    rank_parents(state.beam, choice)
    best = gather(model, state, scores, choice)
    choice.counters.top_parent = -1  # the best child is not known yet: no child comes last
    for last in range(0 if choice.counters.parents > 1 else 1, 2):
        # first the best child alone, then all: in a loop, so that it is compiled once
        _offer_all(model, state, scores, choice, model.beam if last else 1, best, seq)
        if not last:
            note_top(state.pool, state.beam, choice)
    order_last_first(Children(choice.children), choice.counters.children)
    _keep_greedy(model, state, scores, choice, best, seq)
    choice.counters.best_child = choice.counters.greedy_child if choice.counters.leading else 0
    start_again(choice)


@kernel
def group_children(scores: Scores, choice: Choice) -> None:
    """Which children join the same slot."""
    fresh = -1
    for a in range(choice.counters.children):
        slot = choice.children[a].slot
        if slot == NEW:
            first = fresh if fresh >= 0 else a
            fresh = first
        else:
            first = scores.owner[slot]
            if first >= a or choice.children[first].slot != slot:
                first = a
                scores.owner[slot] = a
        if first == a:
            choice.children[a].group_size = 0
        choice.children[a].group = first
        choice.children[first].group_size += 1
