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

from streamdp.beam.clusters.index import Index
from streamdp.beam.clusters.rare import NEGLIGIBLE, SHARE, touch_rare, unvisited_bound
from streamdp.beam.clusters.sizes import Sizes
from streamdp.beam.data.choice import Scores, WordScores
from streamdp.beam.data.pool import Pool
from streamdp.beam.data.state import Model
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import Learned, base_measure, log_rising, shape_of

SHORT = 16
"""Tokens whose factors are multiplied before a logarithm is taken: no double overflows by them."""

CLOSED_FORM = 32
"""Tokens from which two rising factorials are taken by log Gamma: its price is that of so many factors."""

MOST = 1e100
"""Products above it become logarithms: the next factor keeps them within the range of a double."""

MOST_NATS = 600.0
"""Of a class's product, at most: then its logarithm is taken."""

MUCH = 1e40
"""Products above it become logarithms where as many as ``SHORT`` factors may come before the next test."""


@kernel
def _move_to_logs(scores: WordScores, high: int) -> None:
    """Take logarithms of the classes' products, before one leaves the range of a double."""
    ratio, log_ratio = scores.ratio, scores.log_ratio
    for c in range(high):
        log_ratio[c] += math.log(ratio[c])
        ratio[c] = 1.0


@kernel
def _score_long(
    sizes: Sizes, scores: WordScores, high: int, singles: int, length: int, b1: float, d: float
) -> None:
    """As ``_score_singles``, of a record of many tokens: both products are rising factorials."""
    own = singles * math.log(d if d > 0.0 else b1)
    for c in range(high):
        scores.ratio[c] = 1.0
        scores.log_ratio[c] = 0.0
        if c > 0 and sizes.classes[c].refs == 0:
            continue
        numerator = own + log_rising(b1 / d + sizes.types[c], singles) if d > 0.0 else own
        scores.log_ratio[c] = numerator - log_rising(sizes.tokens[c] + b1, length)
        scores.partial[c] = scores.log_ratio[c]


@kernel
def _score_singles(
    sizes: Sizes, scores: WordScores, high: int, singles: int, length: int, b1: float, d: float
) -> None:
    """Denominators of all tokens, and numerators of those whose word occurs once."""
    if length >= CLOSED_FORM:
        _score_long(sizes, scores, high, singles, length, b1, d)
        return
    n, types = sizes.tokens, sizes.types
    ratio, denominator, log_ratio = scores.ratio, scores.denominator, scores.log_ratio
    long = length > SHORT
    for c in range(high):
        ratio[c] = 1.0
        denominator[c] = 1.0
    if long:
        for c in range(high):
            log_ratio[c] = 0.0
    for t in range(length):
        for c in range(high):
            denominator[c] *= n[c] + (b1 + t)
        if t < singles:
            for c in range(high):
                ratio[c] *= b1 + d * (types[c] + t)
        if t % SHORT == SHORT - 1 and long:
            for c in range(high):
                log_ratio[c] += math.log(ratio[c] / denominator[c])
                ratio[c] = 1.0
                denominator[c] = 1.0
    if long:
        for c in range(high):
            log_ratio[c] += math.log(ratio[c] / denominator[c])
            ratio[c] = 1.0
            scores.partial[c] = log_ratio[c]
    else:
        for c in range(high):
            ratio[c] /= denominator[c]
            scores.partial[c] = ratio[c]


@kernel
def _score_repeats(
    sizes: Sizes,
    scores: WordScores,
    high: int,
    singles: int,
    counts: np.ndarray,
    long: bool,
    b1: float,
    d: float,
    extra: float,
) -> None:
    """Numerators of the words that occur more than once; all were new to a cluster that shares none."""
    n, types, ratio, inverse = sizes.tokens, sizes.types, scores.ratio, scores.inverse
    position, spent, largest, widest = singles, 0.0, 0.0, 0.0
    for c in range(high):
        largest, widest = max(largest, n[c]), max(widest, types[c])
    for i in range(singles, counts.shape[0]):
        count = np.float64(counts[i])
        again = extra * count * (largest + b1 + position + count)
        most = math.log((count + again) * inverse[i] + b1 + d * (widest + i + 1))
        most = max(most, -math.log(b1))  # no factor is further from one, in nats
        if long and spent + most > MOST_NATS:
            _move_to_logs(scores, high)
            spent = 0.0
        for c in range(high):
            ratio[c] *= b1 + d * (types[c] + i)
        spent += most
        for r in range(1, counts[i]):
            if long and spent + most > MOST_NATS:
                _move_to_logs(scores, high)
                spent = 0.0
            for c in range(high):
                again = extra * r * (n[c] + (b1 + position + r))
                ratio[c] *= (r - d + again) * inverse[i] + (b1 + d * (types[c] + i + 1))
            spent += most
        position += counts[i]
    if long:
        _move_to_logs(scores, high)


@kernel
def _touch(index: Index, scores: WordScores, words: np.ndarray, singles: int, b1: float, d: float) -> None:
    """Walk the postings of all words; multiply the gains of those that occur once."""
    tick = scores.counters.tick + 1
    scores.counters.tick = tick
    stamp, gain, loss, shared, touched = scores.stamp, scores.gain, scores.loss, scores.shared, scores.touched
    types = index.types
    met = 0
    for i in range(words.shape[0]):
        w = words[i]
        start = index.lists[w].start
        inverse = scores.inverse[i]
        single = i < singles
        for e in range(start, start + index.lists[w].length):
            slot = np.uintp(index.slot[e])  # no index counts from the end
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
                if gain[slot] > MUCH or loss[slot] > MUCH:
                    scores.log_gain[slot] += math.log(gain[slot] / loss[slot])
                    gain[slot] = 1.0
                    loss[slot] = 1.0
    scores.counters.touched = met


@kernel
def _take_logs(scores: WordScores) -> None:
    """Move products that have become too large to their logarithms."""
    product, met, above = scores.product, scores.counters.touched, 0
    for j in range(met):
        above += 1 if product[j] > MOST else 0
    if above == 0:
        return
    for j in range(met):
        if product[j] > MOST:
            scores.log_gain[scores.touched[j]] += math.log(product[j])
            product[j] = 1.0


@kernel
def _repeat_gains(
    index: Index,
    scores: WordScores,
    words: np.ndarray,
    counts: np.ndarray,
    singles: int,
    b1: float,
    d: float,
    extra: float,
) -> None:
    """Numerators of the repeated words for every touched cluster, whether it holds them or not.

    What they need stands side by side, in loops without a branch: a processor takes several clusters at once.
    """
    touched, rank, held, tokens = scores.touched, scores.rank, scores.held, scores.tokens
    types, rest, product, gains = scores.types, scores.rest, scores.product, scores.gains
    met, position = scores.counters.touched, singles
    for j in range(met):
        slot = touched[j]
        rank[slot] = j
        held[j] = 0.0
        tokens[j] = index.tokens[slot]
        types[j] = index.types[slot] + (singles - scores.shared[slot])
        gains[j] = scores.gain[slot]
    for i in range(singles, words.shape[0]):
        start, inverse = index.lists[words[i]].start, scores.inverse[i]
        for e in range(start, start + index.lists[words[i]].length):
            held[rank[np.uintp(index.slot[e])]] = index.occurrences[e]
        for j in range(met):
            known = 1.0 if held[j] > 0.0 else 0.0
            q = b1 + d * types[j]
            product[j] = q + known * ((held[j] - d) * inverse)
            rest[j] = q + (1.0 - known) * d
            types[j] += 1.0 - known
        for r in range(1, counts[i]):
            for j in range(met):
                again = extra * r * (tokens[j] + (b1 + position + r))
                product[j] *= (held[j] + r - d + again) * inverse + rest[j]
            _take_logs(scores)
        for j in range(met):
            product[j] *= gains[j]
            held[j] = 0.0
        _take_logs(scores)
        for j in range(met):
            gains[j] = product[j]
        position += counts[i]
    for j in range(met):
        scores.gain[touched[j]] = gains[j]


@kernel
def _touched_values(scores: Scores, sizes: Sizes, logs: bool, long: bool, peak: float) -> float:
    """Values of the clusters that share a word, in logarithms where asked for; returns the greatest."""
    words, value = scores.words, scores.value
    for j in range(words.counters.touched):
        slot = words.touched[j]
        part = words.partial[sizes.of[slot]]
        if logs:
            lp = (part if long else math.log(part)) + words.log_gain[slot]
            lp += math.log(words.gain[slot] / words.loss[slot])
            value[slot] = lp
            if long:
                peak = max(peak, lp)
        else:
            value[slot] = part * words.gain[slot] / words.loss[slot]
            if words.log_gain[slot] != 0.0:
                value[slot] *= math.exp(words.log_gain[slot])
    return peak


@kernel
def _sum_classes(weight: np.ndarray, value: np.ndarray, high: int) -> tuple[float, float]:
    """Weight times value, and weight, of all size classes but the empty cluster's."""
    # four chains of additions each: the processor need not wait for one to end
    all_0, all_1, all_2, all_3 = 0.0, 0.0, 0.0, 0.0
    own_0, own_1, own_2, own_3 = 0.0, 0.0, 0.0, 0.0
    whole = high - (high - 1) % 4
    for c in range(1, whole, 4):
        all_0 += weight[c] * value[c]
        own_0 += weight[c]
        all_1 += weight[c + 1] * value[c + 1]
        own_1 += weight[c + 1]
        all_2 += weight[c + 2] * value[c + 2]
        own_2 += weight[c + 2]
        all_3 += weight[c + 3] * value[c + 3]
        own_3 += weight[c + 3]
    for c in range(whole, high):
        all_0 += weight[c] * value[c]
        own_0 += weight[c]
    return all_0 + all_1 + (all_2 + all_3), own_0 + own_1 + (own_2 + own_3)


@kernel
def sum_values(
    pool: Pool, sizes: Sizes, scores: Scores, length: int, repeats: bool, founds: bool, log_base: float
) -> float:
    """Values of the touched clusters and of the size classes, and their sums.

    Returns the best agreed cluster's stored weight times value.
    """
    words, value = scores.words, scores.value
    high = sizes.counters.high
    long = length > SHORT
    logs = long or repeats
    peak = 0.0
    if long:
        peak = words.log_ratio[0] if founds else -np.inf
        for c in range(1, high):
            if sizes.classes[c].refs > 0:
                peak = max(peak, words.log_ratio[c])
    peak = _touched_values(scores, sizes, logs, long, peak)
    if logs:
        for j in range(words.counters.touched):
            value[words.touched[j]] = math.exp(value[words.touched[j]] - peak)
        if long:
            for c in range(high):
                words.ratio[c] = math.exp(words.log_ratio[c] - peak) if sizes.classes[c].refs > 0 else 0.0
    total, weight = _sum_classes(sizes.weight, words.ratio, high)
    best = 0.0
    for j in range(words.counters.touched):
        slot = words.touched[j]
        if pool.column[slot] < 0:
            total += pool.weight[slot] * (value[slot] - words.ratio[sizes.of[slot]])
            best = max(best, pool.weight[slot] * value[slot])
    scores.counters.reference = log_base + peak
    scores.counters.new_value = words.ratio[0] if founds else 0.0
    scores.counters.agreed_sum = total
    scores.counters.agreed_weight = weight
    return best


@kernel
def score_words(
    model: Model,
    pool: Pool,
    index: Index,
    sizes: Sizes,
    learned: Learned,
    scores: Scores,
    words: np.ndarray,
    counts: np.ndarray,
    founds: bool,
) -> None:
    """Fill ``scores``: the value of every size class and of every cluster that shares a word."""
    inner = scores.words
    log_base, b1 = base_measure(model.family, learned, words, counts, inner.inverse)
    d, extra = shape_of(model.family)
    singles = 0
    while singles < words.shape[0] and counts[singles] == 1:
        singles += 1
    length = singles
    for i in range(singles, words.shape[0]):
        length += counts[i]
    repeats, high = singles < words.shape[0], sizes.counters.high
    _score_singles(sizes, inner, high, singles, length, b1, d)
    if repeats:
        _score_repeats(sizes, inner, high, singles, counts, length > SHORT, b1, d, extra)
    if extra > 0.0:
        for t in range(length):
            log_base -= math.log1p(t * extra)
    frequent = max(model.frequent, pool.counters.open // SHARE)
    # a tempered prior selects by other weights than those that the bound is made of
    rare = model.temper == 1.0 and touch_rare(index, pool, inner, words, singles, frequent, b1, d)
    while True:
        if not rare:
            _touch(index, inner, words, singles, b1, d)
        if repeats:
            _repeat_gains(index, inner, words, counts, singles, b1, d, extra)
        best = sum_values(pool, sizes, scores, length, repeats, founds, log_base)
        if not rare:
            break
        bound = unvisited_bound(index, sizes, inner, words, singles, frequent, b1, d)
        if bound <= NEGLIGIBLE * best and bound <= best * math.exp(-1.0 - model.slack):
            break
        rare = False
