"""Records of words as two clusters, and what two lose as one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.clusters.index import Index, count_of
from streamdp.kernels.jit import entry, kernel
from streamdp.likelihoods.words import gain, is_type, whole

RECORDS, TOKENS, TYPES = range(3)


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
    held: np.ndarray  # int64[2, V] what each side has of each word
    totals: np.ndarray  # int64[2, 3] records, tokens, distinct words of each
    having: np.ndarray  # int64[V] scratch


@entry
def divide(terms: Any, bags: Bags, first: int, side: np.ndarray, sweeps: int) -> float:
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
    terms: Any, bags: Bags, side: int, known: np.ndarray, index: Index, slots: np.ndarray, out: np.ndarray
) -> float:
    """What a side loses as one with each slot; with the other side, which is returned."""
    one, totals, count = bags.held[side], bags.totals[1 - side], bags.having
    alone = log_h(terms, one)
    for j in range(slots.shape[0]):
        for w in range(one.shape[0]):
            count[w] = count_of(index, known[w], slots[j]) if one[w] > 0 else 0
        out[j] = alone - _adds_all(terms, one, count, index.tokens[slots[j]], index.types[slots[j]])
    count[:] = 0
    return alone - _adds_all(terms, one, bags.held[1 - side], totals[TOKENS], totals[TYPES])
