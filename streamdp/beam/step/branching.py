"""Which children come last: those that combine two decisions that have nothing to do with each other.

All combinations of the latest few decisions would fill the beam, and it would soon forget what else it
might have done. So where a choice is open to the best hypothesis and to another one alike, the best one alone
tries what else there is; the other one, which differs from it elsewhere, goes on as the best child does.
A choice is open to both where both hold the cluster that the best child joins, and the other cluster too.
What else the other hypothesis could do is not forbidden: it comes into the beam after all other children.

The greedy hypothesis needs its own best child. That may come last only where a new cluster has another weight
for the greedy hypothesis than for the best hypothesis: there the greedy hypothesis is exempt.
"""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import NEW, Choice
from streamdp.beam.data.pool import Beam, Pool
from streamdp.kernels.jit import kernel

LAST = 2**62
"""What the rank of such a child is lowered by: no difference of scores is as large."""


@kernel
def forget_top(choice: Choice) -> None:
    """The best child is not known yet: no child comes last."""
    choice.counters.top_parent = -1


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
