"""Leaving the postings of frequent words alone, where that provably changes next to nothing.

With many clusters nearly all postings belong to a few frequent words, and a record that matches a
cluster by its rare words owes nothing to the thousands that share only frequent ones. So clusters are
first looked up by the rare words alone (and the contested ones taken besides). What any cluster could be
worth by more words is bounded: sharing a single word raises its value at most by the factor

    1 + (m - d) / ((b1 + d T) p_w),

m the largest count that the word has in any cluster, and at most n - T + 1. Clusters that could matter
are looked up in their own lists of words. Where the bounds of all others are together below ``NEGLIGIBLE``
of the evidence, and each too low to survive in the beam, these count as not sharing the frequent words; else
all postings are visited after all.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.clusters.index import Index
from streamdp.beam.data.choice import SHARED, WordScores, is_touched
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.beam.data.sizes import Sizes
from streamdp.kernels.jit import kernel

NEGLIGIBLE = 1e-5
"""Share of a record's evidence that may be left out."""

SHARE = 64
"""A word is frequent when more than one in so many clusters hold it (and more than ``FREQUENT``)."""

WORTH = 4
"""Entries of clusters' own lists, read in a row, that cost less than visiting one posting."""

FAINT = 1e-8
"""What a cluster could be worth beside the best that rare words lead to, that its own list is not read."""

FLUSH_EVERY = 16
"""Factors multiplied before a logarithm is taken."""


@kernel
def _common(index: Index, words: np.ndarray, singles: int, frequent: int) -> int:
    """Postings of the words that occur once in a record and have more than ``frequent``."""
    n = 0
    for i in range(singles):
        length = index.lists[words[i]].length
        n += length if length > frequent else 0
    return n


@kernel
def pays(index: Index, words: np.ndarray, singles: int, frequent: int) -> bool:
    """Whether most postings of a record are of frequent words."""
    n, common = 0, _common(index, words, singles, frequent)
    for i in range(words.shape[0]):
        n += index.lists[words[i]].length
    return 2 * common > n


@kernel
def is_slow(index: Index, scores: WordScores, words: np.ndarray, singles: int, frequent: int) -> bool:
    """Whether visiting all postings takes no longer than reading the lists of all touched clusters."""
    work = 0
    for j in range(scores.counters.touched):
        work += index.types[scores.touched[j]] + singles
    return work > WORTH * _common(index, words, singles, frequent)


@kernel
def meet_contested(pool: Pool, scores: WordScores) -> None:
    """Touch the contested clusters, whatever words they hold."""
    tick = scores.counters.tick
    for j in range(pool.counters.contested):
        slot = pool.slot_of[j]
        if pool.state[slot] == ALIVE and not is_touched(scores.cells[slot].mark, tick):
            scores.cells[slot].mark = tick << SHARED
            scores.touched[scores.counters.touched] = slot
            scores.counters.touched += 1


@kernel
def bound_classes(
    index: Index,
    sizes: Sizes,
    scores: WordScores,
    words: np.ndarray,
    singles: int,
    frequent: int,
    b1: float,
    d: float,
) -> None:
    """Fill ``bound``: at most by what factor frequent words raise the value of a cluster, by size class."""
    bound, high = scores.bound, sizes.counters.high
    for c in range(high):
        bound[c] = 1.0
    for i in range(singles):
        if index.lists[words[i]].length > frequent:
            inverse = scores.inverse[i]
            largest = np.float64(index.lists[words[i]].most)
            for c in range(high):
                most = min(sizes.tokens[c] - sizes.types[c] + 1.0, largest)
                bound[c] *= 1.0 + (most - d) * inverse / (b1 + d * sizes.types[c])


@kernel
def unvisited(sizes: Sizes, scores: WordScores) -> tuple[float, float]:
    """At most what the agreed clusters that were left alone are worth together, and each: stored weights."""
    total, most = 0.0, 0.0
    for c in range(1, sizes.counters.high):
        value = scores.ratio[c] * scores.bound[c]
        total += sizes.weight[c] * value
        most = max(most, sizes.top[c] * value)
    return total, most


@kernel
def _promise(pool: Pool, sizes: Sizes, scores: WordScores, slot: int) -> float:
    """Stored weight times value of an agreed cluster by its rare words alone."""
    cell = scores.cells[slot]
    return pool.weight[slot] * scores.partial[sizes.of[slot]] * cell.gain / cell.loss


@kernel
def is_vain(pool: Pool, sizes: Sizes, scores: WordScores, new: float) -> bool:
    """Whether what was left alone may be too much, whatever the clusters at hand are worth."""
    total, _ = unvisited(sizes, scores)
    known = max(new, 0.0) * scores.ratio[0]
    for c in range(1, sizes.counters.high):
        known += sizes.weight[c] * scores.ratio[c]
    for j in range(scores.counters.touched):
        slot = scores.touched[j]
        if pool.column[slot] < 0:
            known += _promise(pool, sizes, scores, slot) * scores.bound[sizes.of[slot]]
    return total > NEGLIGIBLE * known


@kernel
def look_closer(
    index: Index,
    pool: Pool,
    sizes: Sizes,
    scores: WordScores,
    words: np.ndarray,
    singles: int,
    all_of_them: bool,
    b1: float,
    d: float,
) -> tuple[float, float]:
    """Count the frequent words of those touched clusters that could matter, from their own lists of words.

    Returns at most what the others are worth together, and each: stored weights.
    """
    best, total, most = 0.0, 0.0, 0.0
    for i in range(singles):
        scores.position[words[i]] = i + 1
    for j in range(scores.counters.touched):
        if pool.column[scores.touched[j]] < 0 and not all_of_them:
            best = max(best, _promise(pool, sizes, scores, scores.touched[j]))
    for j in range(scores.counters.touched):
        slot = scores.touched[j]
        if pool.column[slot] < 0 and not all_of_them:
            promise = _promise(pool, sizes, scores, slot) * scores.bound[sizes.of[slot]]
            if promise < FAINT * best:
                total, most = total + promise, max(most, promise)
                continue
        _gains(index, scores, slot, singles, b1, d)
    for i in range(singles):
        scores.position[words[i]] = 0
    return total, most


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
    cell.mark = (scores.counters.tick << SHARED) + r
    cell.gain, cell.loss = gain, loss
    scores.log_gain[slot] = log_gain
