"""Clusters of vectors: one row of statistics each, scored by the family's kernels.

Where records have words, too, log H is the sum of both: a vector says something of every cluster, so all that
are open are scored, and count as clusters that share a word. A record without a vector has NaN then; all
records of a cluster as one have its row, which is longer than any vector.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.data.choice import BLOCK, SHARED, Choice, Scores, is_touched
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step import clusters as contract
from streamdp.beam.step.candidates import offer_slot
from streamdp.beam.step.clusters import clear
from streamdp.beam.step.evidence import least_new
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import ints, of, reals
from streamdp.likelihoods.vectors import (
    Asked,
    Rows,
    add,
    coarsen,
    has_vector,
    log_marginal,
    log_marginal_of_both,
    merge,
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
    dimension: Annotated[np.ndarray, ints(1)]  # of a vector; a record of another is a row


BEYOND = 50.0
"""Nats, besides ``slack``, below what every hypothesis can have at which a cluster has no say: its share of
any sum is less than a double can tell, unless its weight is a million times that of the better one."""


# ---------------------------------------------------------------- what clusters hold


@kernel
def _coarsen(rows: VectorClusters, family: Any, slot: int) -> None:
    """Bring up to date what is looked at first; beside words nothing is."""
    if rows.coarse.shape[1] > 0:
        coarsen(family, rows.block[slot], rows.coarse[slot])


@kernel
def _settle(rows: VectorClusters, family: Any, slot: int) -> None:
    settle(family, rows.block[slot])
    _coarsen(rows, family, slot)


@contract.clear.of(VectorClusters)
def _clear(rows: VectorClusters, family: Any, slot: int) -> None:
    for j in range(rows.empty.shape[0]):
        rows.block[slot, j] = rows.empty[j]
    _coarsen(rows, family, slot)


@contract.copy.of(VectorClusters)
def _copy(rows: VectorClusters, source: int, target: int) -> None:
    for j in range(rows.empty.shape[0]):
        rows.block[target, j] = rows.block[source, j]
    for j in range(rows.coarse.shape[1]):
        rows.coarse[target, j] = rows.coarse[source, j]


@contract.join.of(VectorClusters)
def _join(rows: VectorClusters, family: Any, scores: Scores, slot: int, record: Incoming) -> None:
    row, x = rows.block[slot], record.x
    if not has_vector(x):
        return
    if x.shape[0] == rows.dimension[0]:
        add(family, row, x, own(family, x))
    else:
        merge(family, row, x)
    _settle(rows, family, slot)


@contract.leave.of(VectorClusters)
def _leave(rows: VectorClusters, family: Any, slot: int, record: Incoming, last: bool) -> None:
    if last:
        clear(rows, family, slot)
    elif has_vector(record.x):
        remove(family, rows.block[slot], record.x, own(family, record.x))
        _settle(rows, family, slot)


@contract.whole.of(VectorClusters)
def _whole(rows: VectorClusters, slot: int, bag: Incoming) -> Incoming:
    return Incoming(bag.seq, bag.time, bag.words, bag.counts, rows.block[slot], bag.founder)


@contract.describe.of(VectorClusters)
def _describe(rows: VectorClusters, pool: Pool, slot: int, out: Output, event: int) -> None:
    for j in range(out.event_rows.shape[1]):
        out.event_rows[event, j] = rows.block[slot, j]


# ---------------------------------------------------------------- vectors alone


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


@kernel
def _sum(model: Model, state: State, scores: Scores, new: float) -> float:
    """Values of the open clusters from their logarithms, and the sums; the logarithm of what is 1."""
    pool, value, founds = state.pool, scores.value, least_new(model, state.beam) >= 0.0
    peak = new if founds else -np.inf
    for s in range(pool.counters.high):
        if pool.state[s] == ALIVE:
            peak = max(peak, value[s])
    total, weight = 0.0, 0.0
    for s in range(pool.counters.high):
        if pool.state[s] != ALIVE:
            continue
        value[s] = math.exp(value[s] - peak) if value[s] > -np.inf else 0.0
        if pool.column[s] < 0:
            total += pool.weight[s] * value[s]
            weight += pool.weight[s]
    scores.counters.new_value = math.exp(new - peak) if founds else 0.0
    scores.counters.agreed_sum = total
    scores.counters.agreed_weight = weight
    return peak


@contract.score.of(np.ndarray)
def _score(
    bag: Any, rows: VectorClusters, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    pool, x, family = state.pool, record.x, model.family.vector
    apart = own(family, x)
    new = predictive(family, rows.empty, x, apart)
    found = Rows(rows.block, rows.coarse, scores.product, pool.state, pool.column, pool.counters.high)
    score_rows(family, found, _asked(model, state, scores, record, apart, new), scores.value)
    scores.counters.reference = _sum(model, state, scores, new)


@contract.value_of.of(np.ndarray)
def _value_of(bag: Any, state: State, scores: Scores, slot: int) -> float:
    value: float = scores.value[slot]
    return value


@contract.offer_agreed.of(np.ndarray)
def _offer_all(bag: Any, model: Model, state: State, scores: Scores, choice: Choice) -> None:
    pool = state.pool
    for slot in range(pool.counters.high):
        if pool.column[slot] < 0 and pool.state[slot] == ALIVE:
            offer_slot(model, state, scores, choice, slot)


# ---------------------------------------------------------------- vectors and words


@kernel
def _log_predictive(
    rows: VectorClusters, family: Any, row: np.ndarray, x: np.ndarray, union: np.ndarray
) -> float:
    """log H(x | S) of a vector, or of all vectors of a row, given those of another row."""
    if x.shape[0] == rows.dimension[0]:
        return predictive(family, row, x, own(family, x))
    return log_marginal_of_both(family, row, x, union) - log_marginal(family, row)


@contract.sum_up.of(VectorClusters)
def _sum_up(
    rows: VectorClusters,
    bag: Any,
    model: Model,
    state: State,
    scores: Scores,
    record: Incoming,
    log_base: float,
) -> None:
    words, pool, x, family = scores.words, state.pool, record.x, model.family.vector
    known, union, tick, met = has_vector(x), scores.product, scores.words.counters.tick, 0
    new = words.log_ratio[0]
    if known:
        new += _log_predictive(rows, family, rows.empty, x, union)
    for slot in range(pool.counters.high):
        c, cell = state.sizes.of[slot], words.cells[slot]
        scores.value[slot] = -np.inf
        if pool.state[slot] != ALIVE or c < 0:
            continue
        log_value = words.log_ratio[c]
        if is_touched(cell.mark, tick):
            log_value = words.partial[c] + words.log_gain[slot] + math.log(cell.gain / cell.loss)
        if known:
            log_value += _log_predictive(rows, family, rows.block[slot], x, union)
        scores.value[slot] = log_value
        cell.mark, cell.gain = tick << SHARED, 1.0
        words.touched[met] = slot
        met += 1
    words.counters.touched = met
    scores.counters.reference = log_base + _sum(model, state, scores, new)
    most = 0.0
    for j in range(met):
        slot = words.touched[j]
        if pool.column[slot] < 0:
            most = max(most, pool.weight[slot] * scores.value[slot])
        if j % BLOCK == BLOCK - 1 or j == met - 1:
            words.most[j // BLOCK], most = most, 0.0
    for c in range(1, state.sizes.counters.high):
        words.ratio[c] = 0.0
