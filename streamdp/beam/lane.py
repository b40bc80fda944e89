"""The greedy lane: one hypothesis that always goes on with its own best child.

The beam ranks hypotheses by log joint, and what looks best soon may be a trap: a cluster that all records
join, because it is large. So the greedy lane stays in the beam, whatever its rank, for as long as it has
predicted the records since its start better than the beam has, and starts again from the best hypothesis
where it has not. What is compared is prequential evidence. Where one of the two is ``trial`` nats ahead it
takes the lead: what is announced and reported is the greedy lane's, or the beam's. The beam starts anew from
the lane whenever it falls so far behind; until it leads again, its hypotheses have no vote.
"""

from __future__ import annotations

import math

from streamdp.beam.candidates import log_offer, log_value_of_new
from streamdp.beam.choice import NEW, Choice, rounded
from streamdp.beam.force import LEAST
from streamdp.beam.model import Model
from streamdp.beam.pool import ALIVE, Beam
from streamdp.beam.scores import Scores
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel

LEAST_LEAD = 1e-6
"""Nats; what is less may be floating-point noise."""
LOWEST = -(2**62)


@kernel
def _mass_of_lane(beam: Beam, scores: Scores, choice: Choice) -> float:
    """Weight times value of all the lane's children, before they are divided by its normaliser."""
    lane = beam.counters.lane
    agreed = scores.counters.agreed_sum * beam.counters.scale
    return agreed + choice.contested_sum[lane] + choice.new_weight[lane] * scores.counters.new_value


@kernel
def try_lane(model: Model, beam: Beam, scores: Scores, choice: Choice, log_evidence: float) -> float:
    """Count the record's evidence for or against the lane; say what is to become of it.

    ``log_evidence`` is the beam's. Returns that of the one of the two that led before this record.
    """
    leads, lead, led = beam.counters.leads, beam.counters.lead, log_evidence
    alone, lost = False, False
    if beam.counters.width > 1:
        mass = max(_mass_of_lane(beam, scores, choice), LEAST)
        own = math.log(mass) - choice.log_total[beam.counters.lane] + scores.counters.reference
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
    """Take the vote of all but the lane where it leads; the mass of all children of those that have one."""
    if not choice.counters.leading:
        return mass
    lane = beam.counters.lane
    for h in range(beam.counters.width):
        choice.expect[h] = 0.0
    choice.expect[lane] = math.exp(-choice.log_total[lane])
    return choice.expect[lane] * _mass_of_lane(beam, scores, choice)


@kernel
def _better(choice: Choice, at: int, slot: int, founder: int, select: float, best: float) -> bool:
    """Make this the lane's child if it is better than the one so far."""
    child, rank = choice.children[at], rounded(select - best)
    if rank < child.rank or (rank == child.rank and founder > child.founder):
        return False
    child.rank, child.slot, child.founder, child.select = rank, slot, founder, select
    return True


@kernel
def best_of_lane(
    model: Model, state: State, scores: Scores, choice: Choice, best: float, seq: int, at: int
) -> None:
    """Write the lane's best child into place ``at``; ranks count from ``best``."""
    pool, beam, lane = state.pool, state.beam, state.beam.counters.lane
    scale, reference = beam.counters.scale, scores.counters.reference
    base, log_weight = choice.base[lane], 0.0
    child = choice.children[at]
    child.parent, child.rank = lane, LOWEST
    for i in range(choice.counters.candidates):
        slot = choice.candidates[i].slot
        _better(choice, at, slot, pool.founder[slot], base + choice.candidates[i].score, best)
    for j in range(pool.counters.contested):
        slot = pool.slot_of[j]
        if pool.holds[pool.counters.half, lane, j] and pool.state[slot] == ALIVE and scores.value[slot] > 0.0:
            offer = log_offer(model, pool.weight[slot], scale, scores.value[slot], reference)
            _better(choice, at, slot, pool.founder[slot], base + offer, best)
    if child.rank > LOWEST:
        log_weight = math.log(pool.weight[child.slot] * scale)
    if choice.new_weight[lane] > 0.0:
        log_new = math.log(choice.new_weight[lane])
        select = base + model.temper * log_new + log_value_of_new(scores)
        if _better(choice, at, NEW, seq, select, best):
            log_weight = log_new
    # what selects is tempered, the log joint is not
    child.joint = beam.joint[lane] + (child.select - beam.select[lane])
    child.joint -= (1.0 - model.temper) * (choice.log_total[lane] - log_weight)


@kernel
def start_again(choice: Choice) -> None:
    """Let the lane start again from the best child, where it has lost, or its own child is not kept."""
    if choice.counters.lane_child < 0 or choice.counters.lost:
        choice.counters.lane_child = choice.counters.best_child
        choice.counters.lead_now = 0.0


@kernel
def follow_lane(beam: Beam, choice: Choice) -> None:
    """Take over what was said of the lane."""
    beam.counters.lane = choice.counters.lane_child
    beam.counters.leads = choice.counters.leading
    beam.counters.lead = choice.counters.lead_now
