"""Taking a decision that was made elsewhere."""

from __future__ import annotations

import math

from streamdp.beam.choice import BEST_CHILD, CHILDREN, NEW, Choice
from streamdp.beam.pool import ALIVE, HEAD, PLANE, SCALE, SLOT_HIGH
from streamdp.beam.scores import NEW_VALUE, REFERENCE, TICK, Scores
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel

LEAST = 1e-300
"""A value that has underflowed counts as this, about 690 nats below the best."""


@kernel
def force(state: State, scores: Scores, choice: Choice, seq: int, founder: int) -> None:
    """Leave one child: the best hypothesis, with the record in the cluster that ``founder`` began.

    A new cluster where the record is its own founder, or that cluster is not open any more.
    """
    pool, beam = state.pool, state.beam
    head, slot = beam.meta[HEAD], NEW
    if founder != seq:
        for s in range(pool.meta[SLOT_HIGH]):
            if pool.state[s] != ALIVE or pool.founder[s] != founder:
                continue
            column = pool.column[s]
            if column < 0 or pool.holds[pool.meta[PLANE], head, column]:
                slot = s
    if slot == NEW:
        offer = choice.new_weight[head] * max(scores.sums[NEW_VALUE], LEAST)
    else:
        if state.dense.mean.shape[0] == 0 and scores.stamp[slot] != scores.meta[TICK]:
            scores.value[slot] = scores.ratio[state.sizes.of[slot]]
        offer = pool.weight[slot] * beam.sums[SCALE] * max(scores.value[slot], LEAST)
    joint = beam.joint[head] - choice.log_total[head] + math.log(offer) + scores.sums[REFERENCE]
    choice.child_rank[0] = 0
    choice.child_parent[0] = head
    choice.child_slot[0] = slot
    choice.child_founder[0] = seq if slot == NEW else founder
    choice.child_select[0] = joint
    choice.child_joint[0] = joint
    choice.meta[CHILDREN] = 1
    choice.meta[BEST_CHILD] = 0
