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

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.beam.clusters.dense import Bag, Terms, know_gammas, score_all, shares_widely
from streamdp.beam.clusters.index import Index, WordClusters
from streamdp.beam.clusters.rare import (
    NEGLIGIBLE,
    SHARE,
    bound_classes,
    is_slow,
    is_vain,
    look_closer,
    meet_contested,
    pays,
    unvisited,
)
from streamdp.beam.clusters.repeats import repeat_gains, score_repeats
from streamdp.beam.data.choice import BLOCK, SHARED, Scores, WordScores, is_touched, words_shared
from streamdp.beam.data.pool import Pool
from streamdp.beam.data.sizes import Sizes
from streamdp.beam.data.state import Incoming, Model, State
from streamdp.beam.step.evidence import least_new
from streamdp.kernels.jit import constant_kernel, kernel
from streamdp.likelihoods.words import base_measure, log_gamma_beside

SHORT = 16
"""Tokens whose factors are multiplied before a logarithm is taken: no double overflows by them."""

CLOSED_FORM = 32
"""Tokens from which two rising factorials are taken by log Gamma: its price is that of so many factors."""

NOTHING = -300.0
"""Nats below the best at which a value is 0."""

FEW = 64
"""Distinct words of a record up to which rare words are tried: longer ones share rare words with too many."""

MANY = 4096
"""Slots from which rare words are tried first, though scoring all clusters is at hand."""

MUCH = 1e40
"""Products above it become logarithms where as many as ``SHORT`` factors may come before the next test."""


@constant_kernel
def _score_long(
    sizes: Sizes, scores: WordScores, high: int, singles: int, length: int, b1: float, d: float
) -> None:
    """As ``score_singles``, of a record of many tokens: both products are rising factorials."""
    own = singles * math.log(d if d > 0.0 else b1)
    for c in range(high):
        scores.ratio[c] = 1.0
        scores.log_ratio[c] = 0.0
        if c > 0 and sizes.classes[c].refs == 0:
            continue
        tokens, types = know_gammas(sizes, scores, c, b1, d)
        numerator = own
        if d > 0.0:
            numerator += log_gamma_beside(types, singles) - scores.of_types[c]
        scores.log_ratio[c] = numerator - (log_gamma_beside(tokens, length) - scores.of_tokens[c])
        scores.partial[c] = scores.log_ratio[c]


@constant_kernel
def score_singles(
    sizes: Sizes, scores: WordScores, high: int, singles: int, length: int, long: bool, b1: float, d: float
) -> None:
    """Denominators of all tokens, and numerators of those whose word occurs once; ``long``: as logarithms."""
    if length >= CLOSED_FORM:
        _score_long(sizes, scores, high, singles, length, b1, d)
        return
    n, types = sizes.tokens, sizes.types
    ratio, denominator, log_ratio = scores.ratio, scores.denominator, scores.log_ratio
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
def touch_words(
    index: Index,
    scores: WordScores,
    words: np.ndarray,
    singles: int,
    types: np.ndarray,
    frequent: int,
    logs: bool,
    b1: float,
    d: float,
) -> None:
    """Walk the postings of words; multiply the gains of those that occur once.

    ``types``: distinct words by slot; ``frequent``: words that occur once are left alone where they have more
    postings; ``logs``: whether ``log_gain`` is going to be read. What was touched at the same tick stays so.
    """
    cells, touched, met = scores.cells, scores.touched, scores.counters.touched
    tick = scores.counters.tick
    for i in range(words.shape[0]):
        w = words[i]
        start = index.lists[w].start
        inverse = scores.inverse[i]
        single, length = i < singles, index.lists[w].length
        for e in range(start, start + (0 if single and length > frequent else length)):
            slot = np.uintp(index.slot[e])  # no index counts from the end
            cell = cells[slot]
            if not is_touched(cell.mark, tick):
                cell.mark = tick << SHARED
                cell.gain = cell.loss = 1.0
                cell.pull = b1 + d * types[slot]
                if logs:
                    scores.log_gain[slot] = 0.0
                touched[met] = slot
                met += 1
            if single:
                r, q = words_shared(cell.mark), cell.pull
                cell.gain *= (index.occurrences[e] - d) * inverse + (q + d * (i - r))
                cell.loss *= q + d * (singles - 1 - r)
                cell.mark += 1
        if logs and i % SHORT == SHORT - 1:
            for j in range(met):
                slot = touched[j]
                cell = cells[slot]
                if cell.gain > MUCH or cell.loss > MUCH:
                    scores.log_gain[slot] += math.log(cell.gain / cell.loss)
                    cell.gain = cell.loss = 1.0
    scores.counters.touched = met


@kernel
def _log_value(scores: WordScores, slot: int, part: float) -> float:
    """The logarithm of the value of a cluster that shares a word; ``part``: that of its class."""
    cell = scores.cells[slot]
    return part + scores.log_gain[slot] + math.log(cell.gain / cell.loss)


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
def _exp(nats: float) -> float:
    """Of what is next to nothing beside the best, nothing: no bit of a sum is of it."""
    return math.exp(nats) if nats > NOTHING else 0.0


@kernel
def _long_logs(sizes: Sizes, scores: Scores, founds: bool) -> float:
    """Logarithms of the values of the clusters that share a word, and of the classes; the greatest."""
    words, high = scores.words, sizes.counters.high
    peak = words.log_ratio[0] if founds else -np.inf
    for c in range(1, high):
        if sizes.classes[c].refs > 0:
            peak = max(peak, words.log_ratio[c])
    for j in range(words.counters.touched):
        slot = words.touched[j]
        scores.value[slot] = _log_value(words, slot, words.partial[sizes.of[slot]])
        peak = max(peak, scores.value[slot])
    for c in range(1, high):
        words.ratio[c] = _exp(words.log_ratio[c] - peak) if sizes.classes[c].refs > 0 else 0.0
    return peak


@constant_kernel
def _sum(
    pool: Pool, sizes: Sizes, scores: Scores, peak: float, logs: bool, repeats: bool, founds: bool
) -> float:
    """Values of the touched clusters, and the sums of all; ``logs``: logarithms are known of these."""
    words, value = scores.words, scores.value
    if logs:
        words.ratio[0] = _exp(words.log_ratio[0] - peak)
    total, weight = _sum_classes(sizes.weight, words.ratio, sizes.counters.high)
    best, most = 0.0, 0.0
    for j in range(words.counters.touched):  # one walk for all: with many clusters it is memory that it costs
        slot = words.touched[j]
        c, cell = sizes.of[slot], words.cells[slot]
        if logs:
            value[slot] = _exp(value[slot] - peak)
        elif repeats:
            value[slot] = _exp(_log_value(words, slot, math.log(words.partial[c])))
        else:
            value[slot] = words.partial[c] * cell.gain / cell.loss
        if pool.column[slot] < 0:
            total += pool.weight[slot] * (value[slot] - words.ratio[c])
            most = max(most, pool.weight[slot] * value[slot])
        if j % BLOCK == BLOCK - 1 or j == words.counters.touched - 1:
            words.most[j // BLOCK] = most
            best, most = max(best, most), 0.0
    scores.counters.reference = peak
    scores.counters.new_value = words.ratio[0] if founds else 0.0
    scores.counters.agreed_sum = total
    scores.counters.agreed_weight = weight
    return best


@kernel
def sum_values(
    pool: Pool, sizes: Sizes, scores: Scores, length: int, repeats: bool, founds: bool, log_base: float
) -> float:
    """Values of the touched clusters and of the size classes, and their sums.

    Returns the best agreed cluster's stored weight times value.
    """
    long = length > SHORT
    peak = _long_logs(sizes, scores, founds) if long else 0.0
    best = _sum(pool, sizes, scores, peak, long, repeats, founds)
    scores.counters.reference += log_base
    return best


@kernel
def singles_and_length(counts: np.ndarray) -> tuple[int, int]:
    """How many words of a record occur once, these being the first, and how many tokens it has."""
    singles = 0
    while singles < counts.shape[0] and counts[singles] == 1:
        singles += 1
    length = singles
    for i in range(singles, counts.shape[0]):
        length += counts[i]
    return singles, length


@kernel
def _begin(scores: WordScores) -> None:
    """Nothing is touched."""
    scores.counters.tick += 1
    scores.counters.touched = 0


@kernel
def _score_densely(
    pool: Pool,
    index: Index,
    sizes: Sizes,
    scores: Scores,
    record: Bag,
    terms: Terms,
    founds: bool,
    log_base: float,
) -> None:
    """As ``score_words``, with all open clusters touched: of the classes that of the empty cluster counts."""
    words, singles, length = scores.words, record.singles, record.length
    b1, d, repeats = terms.b1, terms.d, singles < record.words.shape[0]
    score_singles(sizes, words, 1, singles, length, True, b1, d)
    if repeats:
        score_repeats(sizes, words, 1, singles, record.counts, True, b1, d, terms.extra)
    _begin(words)
    peak = score_all(pool, index, sizes, scores, record, terms)
    peak = max(peak, words.log_ratio[0]) if founds else peak
    _sum(pool, sizes, scores, peak, True, repeats, founds)
    scores.counters.reference += log_base


def score_words(
    bag: WordClusters, rows: Any, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    """Fill ``scores``: the value of every size class and of every cluster that shares a word."""
    pool, index, sizes, words, counts = state.pool, bag.inverted, state.sizes, record.words, record.counts
    inner, family, new = scores.words, model.family.bag, least_new(model, state.beam)
    singles, length = singles_and_length(counts)
    shown = words.shape[0] if record.seq < 0 else length  # all that a cluster holds
    log_base, b1 = base_measure(family, bag.learned, words, counts, inner.inverse, shown)
    d, extra = family.word_discount, family.inverse_document_beta
    if extra > 0.0:
        for t in range(length):
            log_base -= math.log1p(t * extra)
    frequent = max(model.frequent, pool.counters.open // SHARE)
    rare = words.shape[0] <= FEW and pays(index, words, singles, frequent)
    many = pool.counters.high > MANY
    if not (rare and many) and shares_widely(pool, index, words):
        whole = Bag(words, counts, singles, length)
        _score_densely(pool, index, sizes, scores, whole, Terms(b1, d, extra), new >= 0.0, log_base)
        return
    repeats, high = singles < words.shape[0], sizes.counters.high
    logs = repeats or length > SHORT
    score_singles(sizes, inner, high, singles, length, length > SHORT, b1, d)
    if repeats:
        score_repeats(sizes, inner, high, singles, counts, length > SHORT, b1, d, extra)
    left, largest = 0.0, 0.0
    if rare:
        bound_classes(index, sizes, inner, words, singles, frequent, b1, d)
        _begin(inner)
        touch_words(index, inner, words, singles, index.types, frequent, logs, b1, d)
        meet_contested(pool, inner)
        rare = not (
            is_slow(index, inner, words, singles, frequent) if logs else is_vain(pool, sizes, inner, new)
        )
        if rare:
            left, largest = look_closer(index, pool, sizes, inner, words, singles, logs, b1, d)
    while True:
        if not rare:
            _begin(inner)
            touch_words(index, inner, words, singles, index.types, index.counters.posted, logs, b1, d)
        if repeats:
            repeat_gains(index, inner, words, counts, singles, index.types, b1, d, extra)
        best = sum_values(pool, sizes, scores, length, repeats, new >= 0.0, log_base)
        if not rare:
            break
        mass, most = unvisited(sizes, inner)
        known = scores.counters.agreed_sum + max(new, 0.0) * scores.counters.new_value
        if mass + left <= NEGLIGIBLE * known and max(most, largest) <= best * math.exp(-1.0 - model.slack):
            break
        rare = False
