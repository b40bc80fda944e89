"""Clusters of fields and of one vector beside them; what is not here is as that of categories.

log H is the sum of both. A vector says something of every cluster, so all that are open are scored, as
those of vectors alone are, and count as clusters that share a word. A record without a vector has NaN; all
records of a cluster as one have its row, which is longer than any vector.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.clusters.categories import (
    CategoryClusters,
    bag_of_words,
    join_words,
    leave_words,
    score_by_words,
)
from streamdp.beam.clusters.index import copy_words
from streamdp.beam.clusters.places import Places, offer_place, offer_places
from streamdp.beam.clusters.vectors import offer_all
from streamdp.beam.clusters.words import clear_words
from streamdp.beam.data.choice import SHARED, Scores, is_touched
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import Incoming, Model, State
from streamdp.beam.step import clusters as contract
from streamdp.beam.step.clusters import clear_slot, copy_slot
from streamdp.beam.step.evidence import may_found
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.vectors import (
    add,
    has_vector,
    log_marginal,
    log_marginal_of_both,
    merge,
    own,
    predictive,
    remove,
    settle,
)

_bag_of_words, _clear_words = kernel(bag_of_words), kernel(clear_words)
_join_words, _leave_words = kernel(join_words), kernel(leave_words)


class VectoredClusters(CategoryClusters):
    """The same, where ``beside`` is :class:`~streamdp.beam.clusters.vectors.VectorClusters`."""

    __slots__ = ()


@kernel
def _log_predictive(model: Model, row: np.ndarray, x: np.ndarray, union: np.ndarray) -> float:
    """log H(x | S) of a vector, or of all vectors of a row, given those of another row."""
    family = model.family.vector
    if x.shape[0] < union.shape[0]:
        return predictive(family, row, x, own(family, x))
    return log_marginal_of_both(family, row, x, union) - log_marginal(family, row)


@contract.score_record.of(VectoredClusters)
def _score_record(
    clusters: VectoredClusters, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    log_base = score_by_words(clusters, model, scores, record)
    words, pool, beside, x = scores.words, state.pool, clusters.beside, record.x
    known, union, founds = has_vector(x), scores.product, may_found(model, state.beam)
    new = words.log_ratio[0]
    if known:
        new += _log_predictive(model, beside.empty, x, union)
    peak, met = new if founds else -math.inf, 0
    for slot in range(pool.counters.high):
        c = clusters.sizes.of[slot]
        if pool.state[slot] != ALIVE or c < 0:
            continue
        cell, log_value = words.cells[slot], words.log_ratio[c]
        if is_touched(cell.mark, words.counters.tick):
            log_value = words.partial[c] + words.log_gain[slot] + math.log(cell.gain / cell.loss)
        cell.mark = words.counters.tick << SHARED
        if known:
            log_value += _log_predictive(model, beside.block[slot], x, union)
        scores.value[slot] = log_value
        peak = max(peak, log_value)
        words.touched[met] = slot
        met += 1
    words.counters.touched = met
    total, weight = 0.0, 0.0
    for j in range(met):
        slot = words.touched[j]
        scores.value[slot] = math.exp(scores.value[slot] - peak)
        if pool.column[slot] < 0:
            total += pool.weight[slot] * scores.value[slot]
            weight += pool.weight[slot]
    scores.counters.reference = log_base + peak
    scores.counters.new_value = math.exp(new - peak) if founds else 0.0
    scores.counters.agreed_sum = total
    scores.counters.agreed_weight = weight


contract.offer_agreed.of(VectoredClusters)(offer_all)


@offer_places.of(VectoredClusters)
def _offer_places(
    clusters: VectoredClusters, state: State, scores: Scores, places: Places, but: int, least: int
) -> None:
    words, pool = scores.words, state.pool
    for j in range(words.counters.touched):
        slot = words.touched[j]
        if pool.column[slot] < 0:
            offer_place(state, places, slot, scores.value[slot], but, least)


@contract.clear_slot.of(VectoredClusters)
def _clear_slot(clusters: VectoredClusters, model: Model, slot: int) -> None:
    _clear_words(clusters, model, slot)
    clear_slot(clusters.beside, model, slot)


@contract.copy_slot.of(VectoredClusters)
def _copy_slot(clusters: VectoredClusters, source: int, target: int) -> None:
    copy_words(clusters.inverted, source, target)
    copy_slot(clusters.beside, source, target)


@contract.join_slot.of(VectoredClusters)
def _join_slot(clusters: VectoredClusters, model: Model, scores: Scores, slot: int, record: Incoming) -> None:
    _join_words(clusters, model, scores, slot, record)
    family, row, x = model.family.vector, clusters.beside.block[slot], record.x
    if not has_vector(x):
        return
    if x.shape[0] < row.shape[0]:
        add(family, row, x, own(family, x))
    else:
        merge(family, row, x)
    settle(family, row)


@contract.leave_slot.of(VectoredClusters)
def _leave_slot(clusters: VectoredClusters, model: Model, slot: int, record: Incoming, last: bool) -> None:
    _leave_words(clusters, model, slot, record, last)
    family, row, x = model.family.vector, clusters.beside.block[slot], record.x
    if last:
        clear_slot(clusters.beside, model, slot)
    elif has_vector(x):
        remove(family, row, x, own(family, x))
        settle(family, row)


@contract.bag_of_slot.of(VectoredClusters)
def _bag_of_slot(clusters: VectoredClusters, state: State, bag: Incoming, slot: int) -> Incoming:
    found = _bag_of_words(clusters, state, bag, slot)
    row = clusters.beside.block[slot]
    return Incoming(found.seq, found.time, found.words, found.counts, row, found.founder)
