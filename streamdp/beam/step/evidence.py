"""Normalisers and masses: the evidence of a record, and how sure its answer is."""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.data.choice import NEW, Choice, Scores
from streamdp.beam.data.pool import ALIVE, Beam
from streamdp.beam.data.state import Model, State
from streamdp.beam.step.clusters import value_of
from streamdp.kernels.jit import kernel
from streamdp.priors.base import found_weight


@kernel
def least_new(model: Model, beam: Beam) -> float:
    """The least stored weight of a new cluster under any hypothesis; below 0 where none may found one."""
    least, most = np.inf, 0.0
    for h in range(beam.counters.width):
        weight = found_weight(model.prior, np.float64(beam.founded[h]))
        least, most = min(least, weight), max(most, weight)
    return least / beam.counters.scale if most > 0.0 else -1.0


@kernel
def normalise(model: Model, state: State, scores: Scores, choice: Choice) -> tuple[float, float]:
    """Normalisers and expected masses of all hypotheses; the record's log evidence."""
    pool, beam = state.pool, state.beam
    width, columns = beam.counters.width, pool.counters.contested
    scale = beam.counters.scale
    for j in range(columns):
        slot = pool.slot_of[j]
        if pool.state[slot] != ALIVE:
            choice.mass[j] = 0.0
            choice.weight[j] = 0.0
            continue
        value = value_of(state.clusters.bag, state, scores, slot)
        scores.value[slot] = value
        choice.mass[j] = pool.weight[slot] * scale * value
        choice.weight[j] = pool.weight[slot]
    mass_of_column, weight_of_column = choice.mass, choice.weight
    for h in range(width):
        row = pool.holds[pool.counters.half, h]
        # four chains of additions each: the processor need not wait for one to end
        mass_0, mass_1, mass_2, mass_3 = 0.0, 0.0, 0.0, 0.0
        weight_0, weight_1, weight_2, weight_3 = 0.0, 0.0, 0.0, 0.0
        whole = columns - columns % 4
        for j in range(0, whole, 4):
            mass_0 += row[j] * mass_of_column[j]
            weight_0 += row[j] * weight_of_column[j]
            mass_1 += row[j + 1] * mass_of_column[j + 1]
            weight_1 += row[j + 1] * weight_of_column[j + 1]
            mass_2 += row[j + 2] * mass_of_column[j + 2]
            weight_2 += row[j + 2] * weight_of_column[j + 2]
            mass_3 += row[j + 3] * mass_of_column[j + 3]
            weight_3 += row[j + 3] * weight_of_column[j + 3]
        for j in range(whole, columns):
            mass_0 += row[j] * mass_of_column[j]
            weight_0 += row[j] * weight_of_column[j]
        choice.contested_sum[h] = mass_0 + mass_1 + (mass_2 + mass_3)
        choice.contested_weight[h] = (weight_0 + weight_1 + (weight_2 + weight_3)) * scale
    agreed_weight = scores.counters.agreed_weight * scale
    agreed_sum = scores.counters.agreed_sum * scale
    prior_mass, mass = 0.0, 0.0
    for h in range(width):
        new = found_weight(model.prior, np.float64(beam.founded[h]))
        total = agreed_weight + choice.contested_weight[h] + new
        choice.new_weight[h] = new
        choice.log_total[h] = math.log(total)
        joint = math.exp(beam.joint[h])
        prior_mass += joint
        choice.expect[h] = joint / total
        mass += choice.expect[h] * (agreed_sum + choice.contested_sum[h] + new * scores.counters.new_value)
    return math.log(mass / prior_mass) + scores.counters.reference, mass


@kernel
def mass_of(state: State, scores: Scores, choice: Choice, slot: int) -> float:
    """Mass, before pruning, of the children that choose the cluster of ``slot`` (or a new one)."""
    pool, beam = state.pool, state.beam
    width = beam.counters.width
    total = 0.0
    if slot == NEW:
        for h in range(width):
            total += choice.expect[h] * choice.new_weight[h]
        return total * scores.counters.new_value
    if pool.column[slot] < 0:
        for h in range(width):
            total += choice.expect[h]
        return total * pool.weight[slot] * beam.counters.scale * scores.value[slot]
    founder = pool.founder[slot]
    for j in range(pool.counters.contested):
        if pool.founder[pool.slot_of[j]] == founder:
            for h in range(width):
                if pool.holds[pool.counters.half][h, j]:
                    total += choice.expect[h] * choice.mass[j]
    return total
