"""Leaving the postings of frequent words alone, where that provably changes nothing.

With many clusters nearly all postings belong to a few frequent words, and a record that matches a
cluster by its rare words owes nothing to the thousands that share only frequent ones. So clusters are
first looked up by the rare words alone (and the contested ones taken besides), their gains worked out
from their own lists of words. What all others could be worth is bounded: sharing a single word raises a
cluster's value at most by the factor

    1 + (m - d) / ((b1 + d T) p_w),

m the largest count that the word has in any cluster, and at most n - T + 1.

Where the bound is below ``NEGLIGIBLE`` of the evidence, and too low for any of them to survive in the
beam, they count as sharing nothing; else all postings are visited after all.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.clusters.index import Index
from streamdp.beam.clusters.sizes import Sizes
from streamdp.beam.data.choice import SHARED, WordScores, is_touched
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.kernels.jit import kernel

NEGLIGIBLE = 1e-8
"""Share of a record's evidence that may be left out."""

SHARE = 64
"""A word is frequent when more than one in so many clusters hold it (and more than ``FREQUENT``)."""

WORTH = 4
"""Entries of clusters' own lists, read in a row, that cost less than visiting one posting."""

FLUSH_EVERY = 16
"""Factors multiplied before a logarithm is taken."""


@kernel
def _meet(scores: WordScores, slot: int | np.int64, met: int) -> int:
    tick = scores.counters.tick
    if not is_touched(scores.cells[slot].mark, tick):
        scores.cells[slot].mark = tick << SHARED
        scores.touched[met] = slot
        return met + 1
    return met


@kernel
def touch_rare(
    index: Index,
    pool: Pool,
    scores: WordScores,
    words: np.ndarray,
    singles: int,
    frequent: int,
    b1: float,
    d: float,
) -> bool:
    """Touch the clusters that share a rare word, with their exact gains; False where it would not pay.

    Words that occur once in the record and have more than ``frequent`` postings are left alone.
    """
    spared = 0
    for i in range(singles):
        n = index.lists[words[i]].length
        if n > frequent:
            spared += n
    if spared == 0:
        return False
    scores.counters.tick += 1
    met, work = 0, 0
    for i in range(words.shape[0]):
        w = words[i]
        n = index.lists[w].length
        if i < singles and n > frequent:
            continue
        for e in range(index.lists[w].start, index.lists[w].start + n):
            met = _meet(scores, np.int64(index.slot[e]), met)
    for j in range(pool.counters.contested):
        if pool.state[pool.slot_of[j]] == ALIVE:
            met = _meet(scores, pool.slot_of[j], met)
    scores.counters.touched = met
    for j in range(met):
        work += index.types[scores.touched[j]] + singles
    if work > WORTH * spared:
        return False
    for i in range(singles):
        scores.position[words[i]] = i + 1
    for j in range(met):
        _gains(index, scores, scores.touched[j], singles, b1, d)
    for i in range(singles):
        scores.position[words[i]] = 0
    return True


@kernel
def _gains(index: Index, scores: WordScores, slot: int, singles: int, b1: float, d: float) -> None:
    """Gain and loss of one cluster over the words that occur once, from its own list of words."""
    here = scores.here
    for i in range(singles):
        here[i] = 0
    begin = index.own[slot].start
    for k in range(begin, begin + index.types[slot]):
        w = index.word[k]
        i = scores.position[w]
        if i > 0:
            here[i - 1] = index.occurrences[index.lists[w].start + index.where[k]]
    q = b1 + d * index.types[slot]
    gain, loss, log_gain = 1.0, 1.0, 0.0
    r = 0
    for i in range(singles):
        if here[i] > 0:
            gain *= (here[i] - d) * scores.inverse[i] + (q + d * (i - r))
            loss *= q + d * (singles - 1 - r)
            r += 1
            if r % FLUSH_EVERY == 0:
                log_gain += math.log(gain / loss)
                gain, loss = 1.0, 1.0
    cell = scores.cells[slot]
    cell.mark += r
    cell.gain, cell.loss = gain, loss
    scores.log_gain[slot] = log_gain


@kernel
def unvisited_bound(
    index: Index,
    sizes: Sizes,
    scores: WordScores,
    words: np.ndarray,
    singles: int,
    frequent: int,
    b1: float,
    d: float,
) -> float:
    """At most what the agreed clusters that were left alone can be worth together, stored weights."""
    bound = scores.denominator
    high = sizes.counters.high
    for c in range(high):
        bound[c] = sizes.weight[c] * scores.ratio[c]
    for i in range(singles):
        if index.lists[words[i]].length > frequent:
            inverse = scores.inverse[i]
            largest = np.float64(index.lists[words[i]].most)
            for c in range(high):
                most = min(sizes.tokens[c] - sizes.types[c] + 1.0, largest)
                bound[c] *= 1.0 + (most - d) * inverse / (b1 + d * sizes.types[c])
    total = 0.0
    for c in range(1, high):
        total += bound[c]
    return total
