"""How a record would be shared out among clusters, if it came next: for people who ask where it would go."""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.data.choice import NEW, Choice
from streamdp.beam.data.model import Model
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.scores import Scores
from streamdp.beam.data.state import State
from streamdp.beam.step.advance import Records, record_at, score_as_next
from streamdp.beam.step.clusters import value_of
from streamdp.beam.step.evidence import mass_of
from streamdp.beam.step.greedy import mass_of_voters
from streamdp.kernels.jit import entry


@entry
def weigh(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    records: Records,
    slots: np.ndarray,
    shares: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Write what each record gives each of ``slots``, and a new cluster, without learning anything.

    ``shares`` and ``logs``, float64 of shape (n, slots + 1), receive the probability and the log predictive;
    the last column is that of a new cluster. Weights are taken as ``score_only`` takes them.
    """
    beam, pool = state.beam, state.pool
    seq, scale, last = beam.counters.seq, beam.counters.scale, slots.shape[0]
    for i in range(records.times.shape[0]):
        record = record_at(records, i, seq)
        _, mass = score_as_next(model, state, scores, choice, record)
        mass = mass_of_voters(beam, scores, choice, mass)
        for j in range(last):
            slot, value = slots[j], 0.0
            if pool.state[slot] == ALIVE:
                value = value_of(state.clusters, scores, slot)
                scores.value[slot] = value
            shares[i, j] = min(mass_of(state, scores, choice, slot) / mass, 1.0) if value > 0.0 else 0.0
            logs[i, j] = math.log(value) + scores.counters.reference if value > 0.0 else -math.inf
        value = scores.counters.new_value
        shares[i, last] = min(mass_of(state, scores, choice, NEW) / mass, 1.0)
        logs[i, last] = math.log(value) + scores.counters.reference if value > 0.0 else -math.inf
        beam.counters.scale = scale
