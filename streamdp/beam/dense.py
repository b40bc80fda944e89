"""Scoring and updating vectors under the Gaussian families, all clusters at once.

Statistics lie one cluster to a column, so that the inner loop runs over clusters: no reduction, hence
the same bits whatever the vector width. A cluster's predictive is

    constant - power * sum_d precision_d (x_d - location_d)^2           Gaussian, known variance
    constant - power * log prod_d (1 + precision_d (x_d - location_d)^2)   normal inverse gamma (Student t)
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.model import (
    FAMILY,
    FORGET,
    GAUSSIAN,
    KAPPA,
    MEAN_VARIANCE,
    SHAPE,
    VARIANCE,
    Model,
)
from streamdp.beam.pool import ALIVE, SLOT_HIGH
from streamdp.beam.scores import CLASS_SUM, CLASS_WEIGHT, NEW_VALUE, REFERENCE, Scores
from streamdp.beam.state import Dense, State
from streamdp.kernels.jit import kernel

CHUNK = 16
"""Factors of a Student t product that are multiplied before a logarithm is taken."""


@kernel
def _student_constant(dimension: int, shape: float, log_precision: float) -> float:
    per = math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * math.log(math.pi)
    return dimension * per + 0.5 * log_precision


@kernel
def derive(model: Model, dense: Dense, slot: int) -> None:
    """Recompute a slot's predictive from its statistics."""
    dimension = dense.mean.shape[0]
    n = dense.effective[slot]
    if model.ints[FAMILY] == GAUSSIAN:
        s2, v0 = model.floats[VARIANCE], model.floats[MEAN_VARIANCE]
        v = 1.0 / (1.0 / v0 + n / s2)
        for d in range(dimension):
            dense.location[d, slot] = v * (model.location[d] / v0 + n * dense.mean[d, slot] / s2)
        dense.power[slot] = 0.5 / (v + s2)
        dense.constant[slot] = -0.5 * dimension * math.log(2.0 * math.pi * (v + s2))
        return
    kappa = model.floats[KAPPA]
    shape = model.floats[SHAPE] + 0.5 * n
    kappa_n = kappa + n
    log_precision = 0.0
    for d in range(dimension):
        gap = dense.mean[d, slot] - model.location[d]
        b = model.scale[d] + 0.5 * dense.spread[d, slot] + 0.5 * kappa * n / kappa_n * gap * gap
        dense.location[d, slot] = model.location[d] + n / kappa_n * gap
        precision = kappa_n / (2.0 * b * (kappa_n + 1.0))
        dense.precision[d, slot] = precision
        log_precision += math.log(precision)
    dense.power[slot] = shape + 0.5
    dense.constant[slot] = _student_constant(dimension, shape, log_precision)


@kernel
def add_vector(model: Model, dense: Dense, slot: int, x: np.ndarray) -> None:
    """Let a vector join a slot; what the slot held before is discounted by ``forget``."""
    kept = model.floats[FORGET] * dense.effective[slot]
    total = kept + 1.0
    spread = model.ints[FAMILY] != GAUSSIAN
    for d in range(x.shape[0]):
        gap = x[d] - dense.mean[d, slot]
        dense.mean[d, slot] += gap / total
        if spread:
            dense.spread[d, slot] = model.floats[FORGET] * dense.spread[d, slot] + kept / total * gap * gap
    dense.effective[slot] = total
    derive(model, dense, slot)


@kernel
def clear_vector(dense: Dense, slot: int) -> None:
    """An empty slot."""
    dense.effective[slot] = 0.0
    for d in range(dense.mean.shape[0]):
        dense.mean[d, slot] = 0.0
    for d in range(dense.spread.shape[0]):
        dense.spread[d, slot] = 0.0


@kernel
def copy_vector(dense: Dense, source: int, target: int) -> None:
    """Copy the statistics of a slot (what is derived follows with the next record)."""
    dense.effective[target] = dense.effective[source]
    for d in range(dense.mean.shape[0]):
        dense.mean[d, target] = dense.mean[d, source]
    for d in range(dense.spread.shape[0]):
        dense.spread[d, target] = dense.spread[d, source]


@kernel
def _log_prior_predictive(model: Model, x: np.ndarray) -> float:
    dimension = x.shape[0]
    if model.ints[FAMILY] == GAUSSIAN:
        v = model.floats[VARIANCE] + model.floats[MEAN_VARIANCE]
        q = 0.0
        for d in range(dimension):
            q += (x[d] - model.location[d]) ** 2
        return -0.5 * dimension * math.log(2.0 * math.pi * v) - 0.5 * q / v
    kappa, shape = model.floats[KAPPA], model.floats[SHAPE]
    log_precision, log_product = 0.0, 0.0
    for d in range(dimension):
        precision = kappa / (2.0 * model.scale[d] * (kappa + 1.0))
        log_precision += math.log(precision)
        log_product += math.log1p(precision * (x[d] - model.location[d]) ** 2)
    return _student_constant(dimension, shape, log_precision) - (shape + 0.5) * log_product


@kernel
def _distances(model: Model, dense: Dense, scores: Scores, high: int, x: np.ndarray) -> None:
    """Log predictive of every slot below ``high``, vacant ones included, into ``scores.value``."""
    value, product = scores.value, scores.gain
    for s in range(high):
        value[s] = 0.0
    if model.ints[FAMILY] == GAUSSIAN:
        for d in range(x.shape[0]):
            row = dense.location[d]
            xd = x[d]
            for s in range(high):
                gap = xd - row[s]
                value[s] += gap * gap
    else:
        for s in range(high):
            product[s] = 1.0
        for d in range(x.shape[0]):
            row, precision = dense.location[d], dense.precision[d]
            xd = x[d]
            for s in range(high):
                gap = xd - row[s]
                product[s] *= 1.0 + precision[s] * gap * gap
            if d % CHUNK == CHUNK - 1:
                for s in range(high):
                    value[s] += math.log(product[s])
                    product[s] = 1.0
        for s in range(high):
            value[s] += math.log(product[s])
    for s in range(high):
        value[s] = dense.constant[s] - dense.power[s] * value[s]


@kernel
def score_dense(model: Model, state: State, scores: Scores, x: np.ndarray) -> None:
    """Fill ``scores``: the value of every open cluster and of a new one."""
    pool = state.pool
    high = pool.meta[SLOT_HIGH]
    _distances(model, state.dense, scores, high, x)
    value = scores.value
    new = _log_prior_predictive(model, x)
    peak = new
    for s in range(high):
        if pool.state[s] == ALIVE:
            peak = max(peak, value[s])
    total, weight = 0.0, 0.0
    for s in range(high):
        if pool.state[s] != ALIVE:
            continue
        value[s] = math.exp(value[s] - peak)
        if pool.column[s] < 0:
            total += pool.weight[s] * value[s]
            weight += pool.weight[s]
    scores.sums[REFERENCE] = peak
    scores.sums[NEW_VALUE] = math.exp(new - peak)
    scores.sums[CLASS_SUM] = total
    scores.sums[CLASS_WEIGHT] = weight
