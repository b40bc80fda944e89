"""Clusters of vectors: one row of statistics each, scored by the family's kernels."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.beam.data.choice import Choice, Scores
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step import clusters as contract
from streamdp.beam.step.candidates import offer_slot
from streamdp.beam.step.clusters import clear_slot
from streamdp.beam.step.evidence import may_found
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import of, reals
from streamdp.likelihoods.vectors import (
    Asked,
    Rows,
    add,
    coarsen,
    own,
    predictive,
    remove,
    score_rows,
    settle,
)
from streamdp.priors.base import found_weight


class VectorClusters(NamedTuple):
    """Statistics by slot, as the family lays them out, settled."""

    block: Annotated[np.ndarray, reals("slots", "width")]
    empty: Annotated[np.ndarray, reals("width")]  # of a cluster without records
    coarse: Annotated[np.ndarray, of(np.float32, "slots", "coarse")]  # what the family looks at first


BEYOND = 50.0
"""Nats, besides ``slack``, below what every hypothesis can have at which a cluster has no say: its share of
any sum is less than a double can tell, unless its weight is a million times that of the better one."""


@kernel
def _asked(model: Model, state: State, scores: Scores, record: Incoming, apart: float, new: float) -> Asked:
    """What is asked of the family; a decision made elsewhere may want any cluster."""
    floor, margin = new, model.slack + BEYOND
    for h in range(state.beam.counters.width):
        if found_weight(model.prior, np.float64(state.beam.founded[h])) <= 0.0:
            floor = -np.inf
    if record.founder >= 0:
        margin = np.inf
    return Asked(record.x, scores.single, apart, floor, margin)


@contract.score_record.of(VectorClusters)
def _score_record(
    clusters: VectorClusters, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    pool, value, x = state.pool, scores.value, record.x
    high = pool.counters.high
    apart = own(model.family, x)
    new = predictive(model.family, clusters.empty, x, apart)
    founds = may_found(model, state.beam)
    rows = Rows(clusters.block, clusters.coarse, scores.product, pool.state, pool.column, high)
    score_rows(model.family, rows, _asked(model, state, scores, record, apart, new), value)
    peak = new if founds else -np.inf
    for s in range(high):
        if pool.state[s] == ALIVE:
            peak = max(peak, value[s])
    total, weight = 0.0, 0.0
    for s in range(high):
        if pool.state[s] != ALIVE:
            continue
        value[s] = math.exp(value[s] - peak) if value[s] > -np.inf else 0.0
        if pool.column[s] < 0:
            total += pool.weight[s] * value[s]
            weight += pool.weight[s]
    scores.counters.own = apart
    scores.counters.reference = peak
    scores.counters.new_value = math.exp(new - peak) if founds else 0.0
    scores.counters.agreed_sum = total
    scores.counters.agreed_weight = weight


@contract.value_of.of(VectorClusters)
def _value_of(clusters: VectorClusters, scores: Scores, slot: int) -> float:
    value: float = scores.value[slot]
    return value


@contract.offer_agreed.of(VectorClusters)
def offer_all(clusters: VectorClusters, model: Model, state: State, scores: Scores, choice: Choice) -> None:
    """Offer every agreed cluster."""
    pool = state.pool
    for slot in range(pool.counters.high):
        if pool.column[slot] < 0 and pool.state[slot] == ALIVE:
            offer_slot(model, state, scores, choice, slot)


@contract.clear_slot.of(VectorClusters)
def _clear_slot(clusters: VectorClusters, model: Model, slot: int) -> None:
    for j in range(clusters.empty.shape[0]):
        clusters.block[slot, j] = clusters.empty[j]
    coarsen(model.family, clusters.block[slot], clusters.coarse[slot])


@contract.copy_slot.of(VectorClusters)
def _copy_slot(clusters: VectorClusters, source: int, target: int) -> None:
    for j in range(clusters.empty.shape[0]):
        clusters.block[target, j] = clusters.block[source, j]
    for j in range(clusters.coarse.shape[1]):
        clusters.coarse[target, j] = clusters.coarse[source, j]


@contract.join_slot.of(VectorClusters)
def _join_slot(clusters: VectorClusters, model: Model, scores: Scores, slot: int, record: Incoming) -> None:
    add(model.family, clusters.block[slot], record.x, scores.counters.own)
    settle(model.family, clusters.block[slot])
    coarsen(model.family, clusters.block[slot], clusters.coarse[slot])


@contract.read_alone.of(VectorClusters)
def _read_alone(clusters: VectorClusters, model: Model, scores: Scores, record: Incoming) -> None:
    scores.counters.own = own(model.family, record.x)


@contract.leave_slot.of(VectorClusters)
def _leave_slot(clusters: VectorClusters, model: Model, slot: int, record: Incoming, last: bool) -> None:
    if last:
        clear_slot(clusters, model, slot)
        return
    remove(model.family, clusters.block[slot], record.x, own(model.family, record.x))
    settle(model.family, clusters.block[slot])
    coarsen(model.family, clusters.block[slot], clusters.coarse[slot])


@contract.describe_slot.of(VectorClusters)
def _describe_slot(clusters: VectorClusters, pool: Pool, slot: int, out: Output, event: int) -> None:
    for j in range(clusters.empty.shape[0]):
        out.event_rows[event, j] = clusters.block[slot, j]
