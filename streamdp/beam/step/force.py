"""Taking a decision that was made elsewhere."""

from __future__ import annotations

import math

from streamdp.beam.data.choice import NEW, Choice
from streamdp.beam.data.pool import ALIVE, holds_slot
from streamdp.beam.data.scores import Scores
from streamdp.beam.data.state import State
from streamdp.beam.step.clusters import value_of
from streamdp.kernels.jit import kernel

LEAST = 1e-300
"""A value that has underflowed counts as this, about 690 nats below the best."""


@kernel
def slot_begun_by(state: State, founder: int) -> int:
    """The slot of the open cluster that a record began in the best hypothesis; NEW where there is none."""
    pool, head = state.pool, state.beam.counters.head
    for s in range(pool.counters.high):
        if pool.founder[s] == founder and pool.state[s] == ALIVE and holds_slot(pool, head, s):
            return s
    return NEW


@kernel
def force(state: State, scores: Scores, choice: Choice, seq: int, slot: int) -> None:
    """Leave one child: the best hypothesis, with the record in a slot, or a new cluster (NEW)."""
    pool, beam = state.pool, state.beam
    head = beam.counters.head
    if slot == NEW:
        offer = max(choice.new_weight[head], LEAST) * max(scores.counters.new_value, LEAST)
    else:
        value = value_of(state.clusters, scores, slot)
        offer = pool.weight[slot] * beam.counters.scale * max(value, LEAST)
    joint = beam.joint[head] - choice.log_total[head] + math.log(offer) + scores.counters.reference
    choice.children[0].rank = 0
    choice.children[0].parent = head
    choice.children[0].slot = slot
    choice.children[0].founder = seq if slot == NEW else pool.founder[slot]
    choice.children[0].select = joint
    choice.children[0].joint = joint
    choice.counters.children = 1
    choice.counters.best_child = 0
    choice.counters.greedy_child = 0
    choice.counters.leading = 0
    choice.counters.lead_now = 0.0
