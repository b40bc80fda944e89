"""Records of words as two clusters, and what two lose as one."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.beam.clusters.index import Index, count_of
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import ints, reals
from streamdp.likelihoods.words import gain, is_type, whole

RECORDS, TOKENS, TYPES = range(3)

PART = 8
"""Records of the smaller part, at least."""

WORDS = 2
"""Words that are tried as what tells the parts apart."""

SWEEPS = 2
"""How often each record is put where it fits better."""

LEAST_SHARE = 0.1
"""Of the records, with such a word and without, at least."""


@kernel
def _put(
    terms: Any, held: np.ndarray, totals: np.ndarray, words: np.ndarray, counts: np.ndarray, sign: int
) -> None:
    """Add a record to a side, or (sign -1) take it out."""
    totals[RECORDS] += sign
    for p in range(words.shape[0]):
        before = held[words[p]]
        after = before + sign * counts[p]
        held[words[p]] = after
        totals[TOKENS] += sign * counts[p]
        if is_type(terms, words[p]):
            totals[TYPES] += (after > 0) - (before > 0)


@kernel
def _adds(terms: Any, held: np.ndarray, totals: np.ndarray, words: np.ndarray, counts: np.ndarray) -> float:
    """What a record adds to log H of a side, with the prior's part."""
    tokens, types, total = 0, 0, math.log(max(totals[RECORDS], 1))
    for p in range(words.shape[0]):
        before = held[words[p]]
        total += gain(terms, words[p], counts[p], before)
        tokens += counts[p]
        if before == 0:
            types += is_type(terms, words[p])
    after = whole(terms, totals[TOKENS] + tokens, totals[TYPES] + types)
    return total + after - whole(terms, totals[TOKENS], totals[TYPES])


class Bags(NamedTuple):
    """The words of some records, numbered from 0, and room for two clusters of them."""

    offsets: np.ndarray  # int64[N + 1]
    words: np.ndarray  # int32
    counts: np.ndarray  # int32
    held: Annotated[np.ndarray, ints(2, "words")]  # what each side has of each word
    totals: Annotated[np.ndarray, ints(2, 3)]  # records, tokens, distinct words of each
    having: Annotated[np.ndarray, ints("words")]  # scratch
    tried: Annotated[np.ndarray, ints("records")]  # scratch
    telling: Annotated[np.ndarray, ints(WORDS)]  # the words that tell records apart best, -1 for none
    worth: Annotated[np.ndarray, reals(WORDS)]  # how well


@kernel
def _divide(terms: Any, bags: Bags, first: int, side: np.ndarray, sweeps: int) -> float:
    """Put records from number ``first`` on where they fit better, so often; a side below 0 is none yet.

    Returns log H of both sides, with the part of an exchangeable prior of concentration 1.
    """
    held, totals = bags.held, bags.totals
    held[:] = 0
    totals[:] = 0
    for step in range(sweeps + 1):
        for r in range(side.shape[0]):
            a, b = bags.offsets[first + r], bags.offsets[first + r + 1]
            words, counts, own = bags.words[a:b], bags.counts[a:b], side[r]
            if step > 0:
                if own >= 0:
                    _put(terms, held[own], totals[own], words, counts, -1)
                one = _adds(terms, held[0], totals[0], words, counts)
                other = _adds(terms, held[1], totals[1], words, counts)
                own = 1 if other > one else 0
                side[r] = own
            if own >= 0:
                _put(terms, held[own], totals[own], words, counts, 1)
    total = 0.0
    for s in range(2):
        if totals[s, RECORDS] > 0:
            total += log_h(terms, held[s]) + math.lgamma(totals[s, RECORDS])
    return total


@entry
def divide(terms: Any, bags: Bags, side: np.ndarray, sweeps: int) -> float:
    """The same of all records."""
    return _divide(terms, bags, 0, side, sweeps)


@kernel
def _find_telling(bags: Bags, rarity: np.ndarray, first: int, n: int) -> None:
    """Find the words that tell n records from number ``first`` on apart best, of all their words."""
    begin, end = bags.offsets[first], bags.offsets[first + n]
    having, telling, worth = bags.having, bags.telling, bags.worth
    telling[:] = -1
    worth[:] = 0.0
    for p in range(begin, end):
        having[bags.words[p]] += 1
    for p in range(begin, end):
        word = bags.words[p]
        k, j = having[word], WORDS - 1
        having[word] = 0  # each is weighed where it comes first
        if min(k, n - k) < LEAST_SHARE * n:
            continue
        own = (math.log(k / (end - begin)) + rarity[word]) * k * (n - k)
        if own <= worth[j]:
            continue
        while j > 0 and own > worth[j - 1]:
            telling[j], worth[j] = telling[j - 1], worth[j - 1]
            j -= 1
        telling[j], worth[j] = word, own


@kernel
def _as_two(terms: Any, bags: Bags, rarity: np.ndarray, first: int, side: np.ndarray) -> None:
    """Find a side of each record from number ``first`` on, of one cluster; -1 where it is one rather."""
    n = side.shape[0]
    tried = bags.tried[:n]
    tried[:] = 0
    top = _divide(terms, bags, first, tried, 0)
    side[:] = -1
    _find_telling(bags, rarity, first, n)
    for word in bags.telling:
        if word < 0:
            return
        for r in range(n):
            tried[r] = 0
            for p in range(bags.offsets[first + r], bags.offsets[first + r + 1]):
                if bags.words[p] == word:
                    tried[r] = 1
        joint = _divide(terms, bags, first, tried, SWEEPS)
        if joint > top and min(bags.totals[0, RECORDS], bags.totals[1, RECORDS]) >= PART:
            top = joint
            for r in range(n):
                side[r] = tried[r]


@entry
def try_as_two(terms: Any, bags: Bags, rarity: np.ndarray, starts: np.ndarray, side: np.ndarray) -> None:
    """Try clusters, the records of which are side by side, as two."""
    for c in range(starts.shape[0] - 1):
        _as_two(terms, bags, rarity, starts[c], side[starts[c] : starts[c + 1]])


@kernel
def log_h(terms: Any, held: np.ndarray) -> float:
    """log H of so many tokens of each word."""
    total, tokens, types = 0.0, 0, 0
    for w in range(held.shape[0]):
        if held[w] > 0:
            total += gain(terms, w, held[w], 0)
            tokens += held[w]
            types += is_type(terms, w)
    return total + whole(terms, tokens, types)


@kernel
def _adds_all(terms: Any, one: np.ndarray, other: np.ndarray, tokens: int, types: int) -> float:
    """What all tokens of one cluster add to log H of another, of so many tokens and words in all."""
    total, more, fresh = 0.0, 0, 0
    for w in range(one.shape[0]):
        if one[w] > 0:
            total += gain(terms, w, one[w], other[w])
            more += one[w]
            fresh += is_type(terms, w) and other[w] == 0
    return total + whole(terms, tokens + more, types + fresh) - whole(terms, tokens, types)


@entry
def weigh_strangers(
    terms: Any,
    bags: Bags,
    first: int,
    side: np.ndarray,
    known: np.ndarray,
    index: Index,
    slots: np.ndarray,
    out: np.ndarray,
) -> float:
    """What the smaller side loses as one with each slot; with the larger, which is returned."""
    _divide(terms, bags, first, side, 0)
    small = 1 if bags.totals[1, RECORDS] < bags.totals[0, RECORDS] else 0
    one, totals, count = bags.held[small], bags.totals[1 - small], bags.having
    alone = log_h(terms, one)
    for j in range(slots.shape[0]):
        for w in range(one.shape[0]):
            count[w] = count_of(index, known[w], slots[j]) if one[w] > 0 else 0
        out[j] = alone - _adds_all(terms, one, count, index.tokens[slots[j]], index.types[slots[j]])
    count[:] = 0
    return alone - _adds_all(terms, one, bags.held[1 - small], totals[TOKENS], totals[TYPES])
