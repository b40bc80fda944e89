"""The greedy hypothesis: one that always goes on with its own best child.

The beam ranks hypotheses by log joint, and what looks best soon may be a trap: a cluster that all records
join, because it is large. So the greedy hypothesis stays in the beam, whatever its rank, for as long as it
has predicted the records since its start better than the beam has, and starts again from the best hypothesis
where it has not. What is compared is prequential evidence. Where one of the two is ``trial`` nats ahead it
takes the lead: what is announced and reported is the greedy hypothesis's, or the beam's. The beam starts
anew from the greedy hypothesis whenever it falls so far behind; until it leads again, its hypotheses have no
vote.
"""

from __future__ import annotations

import math

from streamdp.beam.data.choice import NEW, Choice, Scores, rounded
from streamdp.beam.data.pool import ALIVE, Beam, holds_slot
from streamdp.beam.data.state import Model, State
from streamdp.beam.step.candidates import log_offer, log_value_of_new
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
        value = value_of(state.clusters.bag, state, scores, slot)
        offer = pool.weight[slot] * beam.counters.scale * max(value, LEAST)
    joint = beam.joint[head] - choice.log_total[head] + math.log(offer) + scores.counters.reference
    choice.children[0].rank = 0
    choice.children[0].parent = head
    choice.children[0].slot = slot
    choice.children[0].founder = seq if slot == NEW else pool.founder[slot]
    choice.children[0].joint = joint
    choice.counters.children = 1
    choice.counters.best_child = 0
    choice.counters.greedy_child = 0
    choice.counters.leading = 0
    choice.counters.lead_now = 0.0


LEAST_LEAD = 1e-6
"""Nats; what is less may be floating-point noise."""
LOWEST = -(2**62)


@kernel
def _mass_of_greedy(beam: Beam, scores: Scores, choice: Choice) -> float:
    """Weight times value of all the greedy hypothesis's children, before they are divided by its
    normaliser.
    """
    greedy = beam.counters.greedy
    agreed = scores.counters.agreed_sum * beam.counters.scale
    return agreed + choice.contested_sum[greedy] + choice.new_weight[greedy] * scores.counters.new_value


@kernel
def try_greedy(model: Model, beam: Beam, scores: Scores, choice: Choice, log_evidence: float) -> float:
    """Count the record's evidence for or against the greedy hypothesis; say what is to become of it.

    ``log_evidence`` is the beam's. Returns that of the one of the two that led before this record.
    """
    leads, lead, led = beam.counters.leads, beam.counters.lead, log_evidence
    alone, lost = False, False
    if beam.counters.width > 1:
        mass = max(_mass_of_greedy(beam, scores, choice), LEAST)
        own = math.log(mass) - choice.log_total[beam.counters.greedy] + scores.counters.reference
        led = own if leads else log_evidence
        lead += own - log_evidence
        alone, lost = lead >= model.trial, lead <= -model.trial
        if alone or lost:
            leads, lead = 1 if alone else 0, 0.0
    choice.counters.alone = alone
    choice.counters.lost = lost
    choice.counters.leading = leads
    choice.counters.reserved = leads == 1 or lead > LEAST_LEAD
    choice.counters.lead_now = lead
    return led


@kernel
def mass_of_voters(beam: Beam, scores: Scores, choice: Choice, mass: float) -> float:
    """Take the vote of all but the greedy hypothesis where it leads; the mass of all children of those
    that have one.
    """
    if not choice.counters.leading:
        return mass
    greedy = beam.counters.greedy
    for h in range(beam.counters.width):
        choice.expect[h] = 0.0
    choice.expect[greedy] = math.exp(-choice.log_total[greedy])
    return choice.expect[greedy] * _mass_of_greedy(beam, scores, choice)


@kernel
def _better(choice: Choice, at: int, slot: int, founder: int, joint: float, best: float) -> bool:
    """Make this the greedy hypothesis's child if it is better than the one so far."""
    child, rank = choice.children[at], rounded(joint - best)
    if rank < child.rank or (rank == child.rank and founder > child.founder):
        return False
    child.rank, child.slot, child.founder, child.joint = rank, slot, founder, joint
    return True


@kernel
def best_of_greedy(state: State, scores: Scores, choice: Choice, best: float, seq: int, at: int) -> None:
    """Write the greedy hypothesis's best child into place ``at``; ranks count from ``best``."""
    pool, greedy = state.pool, state.beam.counters.greedy
    scale, reference = state.beam.counters.scale, scores.counters.reference
    base = choice.base[greedy]
    child = choice.children[at]
    child.parent, child.rank = greedy, LOWEST
    for i in range(choice.counters.candidates):
        slot = choice.candidates[i].slot
        _better(choice, at, slot, pool.founder[slot], base + choice.candidates[i].score, best)
    for j in range(pool.counters.contested):
        slot = pool.slot_of[j]
        if (
            pool.holds[pool.counters.half, greedy, j]
            and pool.state[slot] == ALIVE
            and scores.value[slot] > 0.0
        ):
            offer = log_offer(pool.weight[slot], scale, scores.value[slot], reference)
            _better(choice, at, slot, pool.founder[slot], base + offer, best)
    if choice.new_weight[greedy] > 0.0:
        joint = base + math.log(choice.new_weight[greedy]) + log_value_of_new(scores)
        _better(choice, at, NEW, seq, joint, best)


@kernel
def start_again(choice: Choice) -> None:
    """Let the greedy hypothesis start again from the best child, where it has lost, or its own child is
    not kept.
    """
    if choice.counters.greedy_child < 0 or choice.counters.lost:
        choice.counters.greedy_child = choice.counters.best_child
        choice.counters.lead_now = 0.0


@kernel
def follow_greedy(beam: Beam, choice: Choice) -> None:
    """Take over what was said of the greedy hypothesis."""
    beam.counters.greedy = choice.counters.greedy_child
    beam.counters.leads = choice.counters.leading
    beam.counters.lead = choice.counters.lead_now
