"""What the words that occur more than once in a record multiply the clusters' values by."""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.clusters.index import Index
from streamdp.beam.data.choice import WordScores, words_shared
from streamdp.beam.data.sizes import Sizes
from streamdp.kernels.jit import constant_kernel, kernel

MOST = 1e100
"""Products above it become logarithms: the next factor keeps them within the range of a double."""

SAFE = 4
"""Factors of a repeated word that are multiplied before the next test: no such factor is beyond 1e40."""

MOST_NATS = 600.0
"""Of a class's product, at most: then its logarithm is taken."""


@constant_kernel
def _move_to_logs(scores: WordScores, high: int) -> None:
    """Take logarithms of the classes' products, before one leaves the range of a double."""
    ratio, log_ratio = scores.ratio, scores.log_ratio
    for c in range(high):
        log_ratio[c] += math.log(ratio[c])
        ratio[c] = 1.0


@constant_kernel
def score_repeats(
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
        if counts[i] == 2 and not (long and spent + 2.0 * most > MOST_NATS):
            for c in range(high):
                again = extra * (n[c] + (b1 + position + 1.0))
                first, second = b1 + d * (types[c] + i), b1 + d * (types[c] + i + 1)
                ratio[c] = ratio[c] * first * ((1.0 - d + again) * inverse[i] + second)
            spent += 2.0 * most
            position += 2
            continue
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
def _take_logs(scores: WordScores, product: np.ndarray) -> None:
    """Move products that have become too large to their logarithms."""
    met, above = scores.counters.touched, 0
    for j in range(met):
        above += 1 if product[j] > MOST else 0
    if above == 0:
        return
    for j in range(met):
        if product[j] > MOST:
            scores.log_gain[scores.touched[j]] += math.log(product[j])
            product[j] = 1.0


@kernel
def _gain_twice(
    scores: WordScores, inverse: float, position: float, b1: float, d: float, extra: float
) -> None:
    """The same of a word that comes twice, as most repeated ones do: all in one loop."""
    held, tokens, types, gains = scores.held, scores.tokens, scores.types, scores.gains
    for j in range(scores.counters.touched):
        known = 1.0 if held[j] > 0.0 else 0.0
        q = b1 + d * types[j]
        first = q + known * ((held[j] - d) * inverse)
        again = extra * (tokens[j] + (b1 + position + 1.0))
        second = (held[j] + 1.0 - d + again) * inverse + (q + (1.0 - known) * d)
        gains[j] = first * second * gains[j]
        types[j] += 1.0 - known
        held[j] = 0.0
    _take_logs(scores, gains)


@kernel
def repeat_gains(
    index: Index,
    scores: WordScores,
    words: np.ndarray,
    counts: np.ndarray,
    singles: int,
    of_slots: np.ndarray,
    b1: float,
    d: float,
    extra: float,
) -> None:
    """Numerators of the repeated words for every touched cluster, whether it holds them or not.

    ``of_slots``: distinct words by slot.

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
        types[j] = of_slots[slot] + (singles - words_shared(scores.cells[slot].mark))
        gains[j] = scores.cells[slot].gain
    for i in range(singles, words.shape[0]):
        start, inverse = index.lists[words[i]].start, scores.inverse[i]
        for e in range(start, start + index.lists[words[i]].length):
            held[rank[np.uintp(index.slot[e])]] = index.occurrences[e]
        if counts[i] == 2:
            _gain_twice(scores, inverse, position, b1, d, extra)
            position += 2
            continue
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
            if r % SAFE == 0:
                _take_logs(scores, product)
        for j in range(met):
            gains[j] *= product[j]
            held[j] = 0.0
        _take_logs(scores, gains)
        position += counts[i]
    for j in range(met):
        scores.cells[touched[j]].gain = gains[j]
