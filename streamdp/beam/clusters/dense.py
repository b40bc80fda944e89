"""Scoring a record against all clusters, where nearly all share words with it, as with a long one.

The formula is that of ``sparse``; no cluster is looked up by class, as one that shares nothing is the
exception. What belongs to a cluster stands in arrays by slot, vacant slots among them: postings find it by
one step, and words that are repeated are counted in loops without a branch. The words that occur once and are
not shared leave a rising factorial, of which log Gamma is taken. Other factors are multiplied; a product is
brought back by a power of two before it could leave the range of a double, so that each cluster takes one
logarithm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.clusters.index import Index
from streamdp.beam.data.choice import SHARED, Scores, WordScores
from streamdp.beam.data.pool import Pool
from streamdp.beam.data.sizes import Sizes
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.words import log_gamma, log_gamma_beside

WIDELY = 4
"""Postings for each slot from which it pays to score all clusters."""

STEP = 2.0**432
"""Products are kept between this and its inverse, but for factors that may multiply to as much at most."""

LOG_STEP = 432.0 * math.log(2.0)


class Bag(NamedTuple):
    """A record: its words, those that occur once first; how many these are, and how many tokens it has."""

    words: np.ndarray
    counts: np.ndarray
    singles: int
    length: int


class Terms(NamedTuple):
    """Of a family: the concentration of its base measure, the discount, and 1 / beta."""

    b1: float
    d: float
    extra: float


@kernel
def shares_widely(pool: Pool, index: Index, words: np.ndarray) -> bool:
    """Whether a record has so many postings that all clusters may as well be scored."""
    enough = WIDELY * pool.counters.high
    for i in range(words.shape[0]):
        enough -= index.lists[words[i]].length
    return enough < 0


@kernel
def know_gammas(sizes: Sizes, scores: WordScores, c: int, b1: float, d: float) -> tuple[float, float]:
    """Where the rising factorials of a class begin: of tokens, and of types where d > 0.

    Their log Gamma is noted, where it is not known from an earlier record.
    """
    tokens, types = sizes.tokens[c] + b1, 0.0
    if scores.known_tokens[c] != tokens:
        scores.known_tokens[c], scores.of_tokens[c] = tokens, log_gamma(tokens)
    if d > 0.0:
        types = b1 / d + sizes.types[c]
        if scores.known_types[c] != types:
            scores.known_types[c], scores.of_types[c] = types, log_gamma(types)
    return tokens, types


@kernel
def _touch_all(pool: Pool, index: Index, sizes: Sizes, scores: WordScores, words: int) -> tuple[float, float]:
    """Touch all open clusters; the most tokens of any, and the most types with a record's words."""
    mark, met, largest, widest = scores.counters.tick << SHARED, 0, 0.0, 0.0
    for slot in range(pool.counters.high):
        scores.gains[slot], scores.steps[slot], scores.held[slot] = 1.0, 0.0, 0.0
        scores.tokens[slot] = scores.types[slot] = 0.0
        if sizes.of[slot] >= 0:
            scores.cells[slot].mark, scores.touched[met] = mark, slot
            scores.cells[slot].gain = 0.0
            scores.tokens[slot], scores.types[slot] = index.tokens[slot], index.types[slot]
            largest, widest = max(largest, scores.tokens[slot]), max(widest, scores.types[slot])
            met += 1
    scores.counters.touched = met
    return largest, widest + words


@kernel
def _bring_back(scores: WordScores, high: int) -> None:
    """Bring products nearer to one, and count the steps."""
    gains, steps = scores.gains, scores.steps
    for slot in range(high):
        gain = gains[slot]
        down, up = gain > STEP, gain < 1.0 / STEP
        gains[slot] = gain * ((1.0 / STEP if down else 1.0) * (STEP if up else 1.0))
        steps[slot] += (1.0 if down else 0.0) - (1.0 if up else 0.0)


@kernel
def _make_way(scores: WordScores, high: int, reach: float, factor: float, least: float) -> float:
    """Before products are multiplied: how far they may go by that, at most.

    ``factor`` and ``least`` are bounds of what they are multiplied by.
    """
    factor = max(factor, 1.0 / least)
    if reach * factor <= STEP:
        return reach * factor
    _bring_back(scores, high)
    return factor


@kernel
def _multiply_singles(
    index: Index, scores: WordScores, high: int, record: Bag, widest: float, terms: Terms
) -> float:
    """Gains of the words that occur once; how far they may have gone.

    ``types`` loses one by each word that a cluster shares.
    """
    types, gains, reach, b1, d = scores.types, scores.gains, 1.0, terms.b1, terms.d
    for i in range(record.singles):
        row, inverse = index.lists[record.words[i]], scores.inverse[i]
        reach = _make_way(scores, high, reach, row.most * inverse + b1 + d * widest, b1)
        own = b1 + d * i - d * inverse
        for e in range(row.start, row.start + row.length):
            slot = np.uintp(index.slot[e])
            gains[slot] *= index.occurrences[e] * inverse + (own + d * types[slot])
            types[slot] -= 1.0
    return reach


@kernel
def _add_rising(sizes: Sizes, index: Index, scores: WordScores, record: Bag, terms: Terms) -> None:
    """Logarithms of denominators, and of the numerators of the single words that a cluster does not share."""
    b1, d, known = terms.b1, terms.d, scores.partial
    own = math.log(d if d > 0.0 else b1)
    for c in range(1, sizes.counters.high):
        if sizes.classes[c].refs > 0:
            tokens, _ = know_gammas(sizes, scores, c, b1, d)
            known[c] = scores.of_tokens[c] - log_gamma_beside(tokens, record.length)
            known[c] -= scores.of_types[c] if d > 0.0 else 0.0
    for j in range(scores.counters.touched):
        slot = scores.touched[j]
        scores.types[slot] += record.singles
        alone = scores.types[slot] - index.types[slot]
        scores.cells[slot].gain += record.singles - alone
        nats = known[sizes.of[slot]] + alone * own
        if d > 0.0:
            nats += log_gamma_beside(b1 / d + index.types[slot], alone)
        scores.log_gain[slot] = nats


@kernel
def _multiply_twice(scores: WordScores, high: int, inverse: float, position: int, terms: Terms) -> None:
    """Numerators of the first two tokens of a word; of later ones, ``rest`` is what changes no more."""
    held, tokens, types, rest, gains = scores.held, scores.tokens, scores.types, scores.rest, scores.gains
    b1, d, extra = terms.b1, terms.d, terms.extra
    apart, each = inverse * (1.0 + extra * (b1 + position + 1.0)), inverse * extra
    for slot in range(high):
        fresh = 0.0 if held[slot] > 0.0 else 1.0
        q, kept = b1 + d * types[slot], (held[slot] - d) * inverse
        rest[slot] = kept + (q + fresh * d)
        gains[slot] *= (q + (1.0 - fresh) * kept) * (rest[slot] + (apart + each * tokens[slot]))
        types[slot] += fresh
        held[slot] = 0.0


@kernel
def _multiply_more(
    scores: WordScores, high: int, inverse: float, position: int, r: int, terms: Terms
) -> None:
    """Numerators of the r-th repetition of a word and of the next."""
    tokens, rest, gains = scores.tokens, scores.rest, scores.gains
    each, after = inverse * terms.extra * r, inverse * terms.extra * (r + 1)
    apart = inverse * r + each * (terms.b1 + position + r)
    beyond = inverse * (r + 1) + after * (terms.b1 + position + r + 1)
    for slot in range(high):
        first = rest[slot] + (apart + each * tokens[slot])
        gains[slot] *= first * (rest[slot] + (beyond + after * tokens[slot]))


@kernel
def _multiply_last(
    scores: WordScores, high: int, inverse: float, position: int, r: int, terms: Terms
) -> None:
    """Numerators of the r-th repetition of a word alone."""
    tokens, rest, gains, each = scores.tokens, scores.rest, scores.gains, inverse * terms.extra * r
    apart = inverse * r + each * (terms.b1 + position + r)
    for slot in range(high):
        gains[slot] *= rest[slot] + (apart + each * tokens[slot])


@kernel
def _multiply_repeats(
    index: Index,
    scores: WordScores,
    high: int,
    record: Bag,
    reach: float,
    largest: float,
    widest: float,
    terms: Terms,
) -> None:
    """Gains of the words that occur more than once, in every cluster."""
    held, position, b1, extra = scores.held, record.singles, terms.b1, terms.extra
    for i in range(record.singles, record.words.shape[0]):
        row, inverse, count = index.lists[record.words[i]], scores.inverse[i], record.counts[i]
        for e in range(row.start, row.start + row.length):
            slot = np.uintp(index.slot[e])
            held[slot] = index.occurrences[e]
            scores.cells[slot].gain += 1.0
        again = extra * count * (largest + b1 + position + count)
        most = (row.most + count + again) * inverse + b1 + terms.d * widest
        reach = _make_way(scores, high, reach, most * most, b1 * b1)
        _multiply_twice(scores, high, inverse, position, terms)
        for r in range(2, count - 1, 2):
            reach = _make_way(scores, high, reach, most * most, b1 * b1)
            _multiply_more(scores, high, inverse, position, r, terms)
        if count % 2 == 1:
            reach = _make_way(scores, high, reach, most, b1)
            _multiply_last(scores, high, inverse, position, count - 1, terms)
        position += count


@kernel
def score_all(pool: Pool, index: Index, sizes: Sizes, scores: Scores, record: Bag, terms: Terms) -> float:
    """Logarithms of the values of all open clusters; the greatest.

    All count as touched, so that no class but the empty cluster's is of any value.
    """
    inner, value, peak, high = scores.words, scores.value, -np.inf, pool.counters.high
    largest, widest = _touch_all(pool, index, sizes, inner, record.words.shape[0])
    reach = _multiply_singles(index, inner, high, record, widest, terms)
    _add_rising(sizes, index, inner, record, terms)
    _multiply_repeats(index, inner, high, record, reach, largest, widest, terms)
    for j in range(inner.counters.touched):
        slot = inner.touched[j]
        value[slot] = inner.log_gain[slot] + LOG_STEP * inner.steps[slot] + math.log(inner.gains[slot])
        peak = max(peak, value[slot])
    for c in range(1, sizes.counters.high):
        inner.ratio[c] = 0.0
    return peak
