"""Scoring a record of word counts against all clusters at once.

All sparse families are one formula. With p_w the base measure, b1 its concentration, d the
discount and 1/beta the inverse document concentration, the numerator of a token is

    n_kw - d [n_kw > 0] + (b1 + d T_k) p_w    (Teh 2006, one table per word and cluster)

and its denominator n_k + b1; d = 0 gives the hierarchical Dirichlet, p_w = 1/V and b1 = V beta the
flat Dirichlet-multinomial. With a document level (Wallach et al. 2010, eqs. 13-17) a word's r-th
repetition in the record adds r (n_k + b1) / beta to the numerator. A record comes with its words of
count one first, then the repeated ones; n_kw, n_k and T_k grow token by token.

Numerators are kept divided by p_w. A cluster that shares no word with the record has a numerator
that depends on T_k alone; that of a cluster that shares some replaces, for each of them, the *last*
factor of the rising sequence b1 + d T_k, b1 + d (T_k + 1), ... by the shared word's.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.index import SEEN, TOTAL, Index
from streamdp.beam.model import (
    BASE,
    BASE_CONCENTRATION,
    BASE_DISCOUNT,
    ESCAPE,
    FAMILY,
    FIXED,
    FLAT,
    FREQUENT,
    INVERSE_DOCUMENT_BETA,
    SLACK,
    SMOOTHING,
    TABLES,
    TEMPER,
    VOCABULARY,
    WORD_DISCOUNT,
    WORD_SPACE,
    Model,
)
from streamdp.beam.pool import OPEN, Pool
from streamdp.beam.rare import NEGLIGIBLE, SHARE, touch_rare, unvisited_bound
from streamdp.beam.scores import CLASS_SUM, CLASS_WEIGHT, NEW_VALUE, REFERENCE, TICK, TOUCHED, Scores
from streamdp.beam.sizes import HIGH, Sizes
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel

SHORT = 16
"""Tokens whose factors are multiplied before a logarithm is taken: no double overflows by them."""


@kernel
def base_measure(
    model: Model, index: Index, words: np.ndarray, counts: np.ndarray, inverse: np.ndarray
) -> tuple[float, float]:
    """Fill 1 / p_w; return log of the product of p_w over tokens, and b1."""
    b1 = model.floats[BASE_CONCENTRATION]
    if model.ints[FAMILY] == FLAT:
        size = model.ints[VOCABULARY]
        if size == 0:  # the words seen so far, this record's included
            size = index.totals[SEEN]
            for i in range(words.shape[0]):
                if index.base[words[i]] == 0:
                    size += 1
        for i in range(words.shape[0]):
            inverse[i] = size
        total = 0
        for i in range(words.shape[0]):
            total += counts[i]
        return -total * math.log(size), b1 * size
    log_base = 0.0
    if model.ints[BASE] == FIXED:
        for i in range(words.shape[0]):
            p = model.base[words[i]]
            inverse[i] = 1.0 / p
            log_base += counts[i] * math.log(p)
        return log_base, b1
    seen = index.totals[SEEN]
    smoothing, escape = model.floats[SMOOTHING], model.floats[ESCAPE]
    discount = model.floats[BASE_DISCOUNT]
    mass = index.totals[TOTAL] + smoothing * seen + escape
    unseen = mass * max(WORD_SPACE - seen, 1) / (escape + discount * seen)
    shift = smoothing - discount
    product = 1.0
    for i in range(words.shape[0]):
        count = index.base[words[i]]
        inverse[i] = mass / (count + shift) if count > 0 else unseen
        if counts[i] == 1:
            product *= inverse[i]
            if product > 1e200:
                log_base -= math.log(product)
                product = 1.0
        else:
            log_base -= counts[i] * math.log(inverse[i])
    return log_base - math.log(product), b1


@kernel
def learn_base(model: Model, index: Index, words: np.ndarray, counts: np.ndarray, fresh: np.ndarray) -> None:
    """Count an absorbed record into the base measure; ``fresh``: new to the announced cluster."""
    if model.ints[FAMILY] == FLAT:
        if model.ints[VOCABULARY] > 0:
            return
    elif model.ints[BASE] == FIXED:
        return
    tables = model.ints[BASE] == TABLES
    for i in range(words.shape[0]):
        w = words[i]
        if index.base[w] == 0:
            index.totals[SEEN] += 1
        step = counts[i]
        if tables:
            step = 1 if fresh[i] else 0
        index.base[w] += step
        index.totals[TOTAL] += step


@kernel
def _score_classes(
    sizes: Sizes,
    scores: Scores,
    high: int,
    singles: int,
    counts: np.ndarray,
    b1: float,
    d: float,
    extra: float,
) -> int:
    """``ratio`` of every size class, ``partial`` of it without the repeated words' numerators."""
    n, types = sizes.tokens, sizes.types
    ratio, partial, below, log_ratio = scores.ratio, scores.partial, scores.below, scores.log_ratio
    inverse = scores.inverse
    length = 0
    for i in range(counts.shape[0]):
        length += counts[i]
    long = length > SHORT
    for c in range(high):
        ratio[c] = 1.0
        below[c] = 1.0
    if long:
        for c in range(high):
            log_ratio[c] = 0.0
    for t in range(length):
        for c in range(high):
            below[c] *= n[c] + (b1 + t)
        if t < singles:
            for c in range(high):
                ratio[c] *= b1 + d * (types[c] + t)
        if t % SHORT == SHORT - 1 and long:
            for c in range(high):
                log_ratio[c] += math.log(ratio[c] / below[c])
                ratio[c] = 1.0
                below[c] = 1.0
    if long:
        for c in range(high):
            log_ratio[c] += math.log(ratio[c] / below[c])
            ratio[c] = 1.0
            partial[c] = log_ratio[c]
    else:
        for c in range(high):
            ratio[c] /= below[c]
            partial[c] = ratio[c]
    position = singles
    factors = 0
    for i in range(singles, counts.shape[0]):
        step = i  # all earlier words of the record were new to a cluster that shares none
        for c in range(high):
            ratio[c] *= b1 + d * (types[c] + step)
        for r in range(1, counts[i]):
            for c in range(high):
                again = extra * r * (n[c] + (b1 + position + r))
                ratio[c] *= (r - d + again) * inverse[i] + (b1 + d * (types[c] + step + 1))
            factors += 1
            if long and factors % SHORT == 0:
                for c in range(high):
                    log_ratio[c] += math.log(ratio[c])
                    ratio[c] = 1.0
        position += counts[i]
        factors += 1
        if long and factors % SHORT == 0:
            for c in range(high):
                log_ratio[c] += math.log(ratio[c])
                ratio[c] = 1.0
    if long and factors > 0:
        for c in range(high):
            log_ratio[c] += math.log(ratio[c])
            ratio[c] = 1.0
    return length


@kernel
def _touch(
    index: Index, pool: Pool, scores: Scores, words: np.ndarray, singles: int, b1: float, d: float
) -> None:
    """Walk the postings of all words; multiply the gains of those that occur once."""
    tick = scores.meta[TICK] + 1
    scores.meta[TICK] = tick
    stamp, gain, loss, shared, touched = scores.stamp, scores.gain, scores.loss, scores.shared, scores.touched
    types = pool.types
    met = 0
    for i in range(words.shape[0]):
        w = words[i]
        start = index.start[w]
        inverse = scores.inverse[i]
        single = i < singles
        for e in range(start, start + index.length[w]):
            slot = index.slot[e]
            if stamp[slot] != tick:
                stamp[slot] = tick
                gain[slot] = 1.0
                loss[slot] = 1.0
                shared[slot] = 0
                scores.log_gain[slot] = 0.0
                touched[met] = slot
                met += 1
            if single:
                r = shared[slot]
                q = b1 + d * types[slot]
                gain[slot] *= (index.occurrences[e] - d) * inverse + (q + d * (i - r))
                loss[slot] *= q + d * (singles - 1 - r)
                shared[slot] = r + 1
        if i % SHORT == SHORT - 1:
            for j in range(met):
                slot = touched[j]
                scores.log_gain[slot] += math.log(gain[slot] / loss[slot])
                gain[slot] = 1.0
                loss[slot] = 1.0
    scores.meta[TOUCHED] = met


@kernel
def _repeat_gains(
    index: Index,
    pool: Pool,
    scores: Scores,
    words: np.ndarray,
    counts: np.ndarray,
    singles: int,
    b1: float,
    d: float,
    extra: float,
) -> None:
    """Numerators of the repeated words for every touched cluster, whether it holds them or not."""
    touched, held, gain = scores.touched, scores.held, scores.gain
    met = scores.meta[TOUCHED]
    position = singles
    for j in range(met):
        scores.shared[touched[j]] = singles - scores.shared[touched[j]]  # from here on: words new to it
        held[touched[j]] = 0.0
    for i in range(singles, words.shape[0]):
        start = index.start[words[i]]
        stop = start + index.length[words[i]]
        inverse = scores.inverse[i]
        for e in range(start, stop):
            held[index.slot[e]] = index.occurrences[e]
        for j in range(met):
            slot = touched[j]
            n = held[slot]
            types = pool.types[slot] + scores.shared[slot]
            q = b1 + d * types
            product = q
            if n > 0.0:
                product += (n - d) * inverse
            else:
                q += d
                scores.shared[slot] += 1
            for r in range(1, counts[i]):
                again = extra * r * (pool.tokens[slot] + (b1 + position + r))
                product *= (n + r - d + again) * inverse + q
                if product > 1e100:
                    scores.log_gain[slot] += math.log(product)
                    product = 1.0
            held[slot] = 0.0
            product *= gain[slot]
            if product > 1e100:
                scores.log_gain[slot] += math.log(product)
                product = 1.0
            gain[slot] = product
        position += counts[i]


@kernel
def _values(state: State, scores: Scores, length: int, repeats: bool, log_base: float) -> float:
    """Values of the touched clusters and of the size classes, and their sums.

    Returns the best agreed cluster's stored weight times value.
    """
    pool, sizes = state.pool, state.sizes
    high = sizes.meta[HIGH]
    long = length > SHORT
    logs = long or repeats
    met = scores.meta[TOUCHED]
    value, touched = scores.value, scores.touched
    peak = 0.0
    if long:
        peak = scores.log_ratio[0]
        for c in range(1, high):
            if sizes.refs[c] > 0:
                peak = max(peak, scores.log_ratio[c])
    if logs:
        for j in range(met):
            slot = touched[j]
            part = scores.partial[sizes.of[slot]]
            lp = (part if long else math.log(part)) + scores.log_gain[slot]
            lp += math.log(scores.gain[slot] / scores.loss[slot])
            value[slot] = lp
            if long:
                peak = max(peak, lp)
        for j in range(met):
            value[touched[j]] = math.exp(value[touched[j]] - peak)
        if long:
            for c in range(high):
                scores.ratio[c] = math.exp(scores.log_ratio[c] - peak) if sizes.refs[c] > 0 else 0.0
    else:
        for j in range(met):
            slot = touched[j]
            value[slot] = scores.partial[sizes.of[slot]] * scores.gain[slot] / scores.loss[slot]
            if scores.log_gain[slot] != 0.0:
                value[slot] *= math.exp(scores.log_gain[slot])
    total, weight = 0.0, 0.0
    for c in range(1, high):
        total += sizes.weight[c] * scores.ratio[c]
        weight += sizes.weight[c]
    best = 0.0
    for j in range(met):
        slot = touched[j]
        if pool.column[slot] < 0:
            total += pool.weight[slot] * (value[slot] - scores.ratio[sizes.of[slot]])
            best = max(best, pool.weight[slot] * value[slot])
    scores.sums[REFERENCE] = log_base + peak
    scores.sums[NEW_VALUE] = scores.ratio[0]
    scores.sums[CLASS_SUM] = total
    scores.sums[CLASS_WEIGHT] = weight
    return best


@kernel
def score_sparse(model: Model, state: State, scores: Scores, words: np.ndarray, counts: np.ndarray) -> None:
    """Fill ``scores``: the value of every size class and of every cluster that shares a word."""
    index, pool, sizes = state.inverted, state.pool, state.sizes
    log_base, b1 = base_measure(model, index, words, counts, scores.inverse)
    d = model.floats[WORD_DISCOUNT]
    extra = model.floats[INVERSE_DOCUMENT_BETA]
    singles = 0
    while singles < words.shape[0] and counts[singles] == 1:
        singles += 1
    high = sizes.meta[HIGH]
    length = _score_classes(sizes, scores, high, singles, counts, b1, d, extra)
    if extra > 0.0:
        for t in range(length):
            log_base -= math.log1p(t * extra)
    frequent = max(model.ints[FREQUENT], pool.meta[OPEN] // SHARE)
    # a tempered prior selects by other weights than those that the bound is made of
    rare = model.floats[TEMPER] == 1.0 and touch_rare(index, pool, scores, words, singles, frequent, b1, d)
    while True:
        if not rare:
            _touch(index, pool, scores, words, singles, b1, d)
        if singles < words.shape[0]:
            _repeat_gains(index, pool, scores, words, counts, singles, b1, d, extra)
        best = _values(state, scores, length, singles < words.shape[0], log_base)
        if not rare:
            break
        bound = unvisited_bound(index, sizes, scores, words, singles, frequent, b1, d)
        if bound <= NEGLIGIBLE * best and bound <= best * math.exp(-1.0 - model.floats[SLACK]):
            break
        rare = False
