"""Clusters of words: an inverted index, and the base measure that all share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.beam.clusters.index import (
    Index,
    WordClusters,
    add_words,
    copy_words,
    count_at,
    release_words,
    take_words,
    unindex,
)
from streamdp.beam.clusters.sparse import score_words
from streamdp.beam.data.choice import BLOCK, GUARD, NEW, Choice, Scores, is_touched, rounded
from streamdp.beam.data.pool import ALIVE, CLOSED, Pool
from streamdp.beam.data.sizes import Sizes, join_class
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step import clusters as contract
from streamdp.beam.step.candidates import log_offer, offer_candidate, offer_slot, raise_floor, turned_away
from streamdp.beam.step.capacity import need
from streamdp.kernels.jit import generic, kernel
from streamdp.likelihoods.words import learn

contract.score.of(WordClusters)(score_words)


@contract.value_of.of(WordClusters)
def _value_of(clusters: WordClusters, state: State, scores: Scores, slot: int) -> float:
    words = scores.words
    if not is_touched(words.cells[slot].mark, words.counters.tick):
        scores.value[slot] = words.ratio[state.sizes.of[slot]]
    value: float = scores.value[slot]
    return value


@kernel
def _explore_class(model: Model, state: State, scores: Scores, choice: Choice, c: int) -> None:
    """Offer the untouched agreed clusters of a size class, heaviest first, down to the floor."""
    pool, sizes, words = state.pool, state.sizes, scores.words
    start, n = sizes.classes[c].start, sizes.agreed[c]
    scale, reference = state.beam.counters.scale, scores.counters.reference
    stack, top = choice.stack, 1
    stack[0] = 0
    while top > 0:
        top -= 1
        i = stack[top]
        slot = sizes.heap[start + i]
        score = log_offer(pool.weight[slot], scale, words.ratio[c], reference)
        if score < choice.counters.floor:
            continue
        if turned_away(choice, pool.founder, model.beam, slot, rounded(score - choice.counters.anchor)):
            continue
        if not is_touched(words.cells[slot].mark, words.counters.tick):
            scores.value[slot] = words.ratio[c]
            offer_candidate(choice, pool.founder, model.beam, slot, score)
        j = 2 * i + 2
        if j < n:
            stack[top] = j
            top += 1
        if j - 1 < n:
            stack[top] = j - 1
            top += 1


@contract.offer_agreed.of(WordClusters)
def _offer_agreed(clusters: WordClusters, model: Model, state: State, scores: Scores, choice: Choice) -> None:
    pool, sizes, words = state.pool, state.sizes, scores.words
    scale, touched = state.beam.counters.scale, words.counters.touched
    for first in range(0, touched, BLOCK):
        if words.most[first // BLOCK] * scale < choice.counters.bar * (1.0 - GUARD):
            continue
        for i in range(first, min(first + BLOCK, touched)):
            slot = words.touched[i]
            if pool.column[slot] < 0 and pool.state[slot] == ALIVE:
                offer_slot(model, state, scores, choice, slot)
    for c in range(1, sizes.counters.high):
        if sizes.top[c] * scale * words.ratio[c] < choice.counters.bar or sizes.agreed[c] == 0:
            continue
        _explore_class(model, state, scores, choice, c)
        if choice.counters.candidates == model.beam:
            raise_floor(scores, choice, choice.candidates[0].score - GUARD)


@contract.clear.of(WordClusters)
def _clear(bag: WordClusters, terms: Any, slot: int) -> None:
    index = bag.inverted
    index.types[slot] = index.tokens[slot] = index.records[slot] = index.distinct[slot] = 0


@contract.copy.of(WordClusters)
def _copy(bag: WordClusters, source: int, target: int) -> None:
    copy_words(bag.inverted, source, target)


@contract.join.of(WordClusters)
def _join(bag: WordClusters, terms: Any, scores: Scores, slot: int, record: Incoming) -> None:
    add_words(bag.inverted, slot, record.words, record.counts, scores.words.fresh)


@contract.leave.of(WordClusters)
def _leave(bag: WordClusters, terms: Any, slot: int, record: Incoming, last: bool) -> None:
    take_words(bag.inverted, slot, record.words, record.counts)


@contract.hide_slot.of(WordClusters)
def _hide_slot(clusters: WordClusters, slot: int) -> None:
    unindex(clusters.inverted, slot)


@contract.whole.of(WordClusters)
def _whole(clusters: WordClusters, slot: int, bag: Incoming) -> Incoming:
    index, n = clusters.inverted, 0
    begin, types = index.own[slot].start, index.types[slot]
    for single in (True, False):  # a record comes with its words of count one first
        for k in range(begin, begin + types):
            count = index.occurrences[index.lists[index.word[k]].start + index.where[k]]
            if (count == 1) == single:
                bag.words[n], bag.counts[n] = index.word[k], count
                n += 1
    return Incoming(bag.seq, bag.time, bag.words[:n], bag.counts[:n], bag.x, bag.founder)


@contract.room_for_bag.of(WordClusters)
def _room_for_bag(clusters: WordClusters, out: Output, slot: int, words: np.ndarray) -> None:
    index, fresh = clusters.inverted, words.shape[0]
    out.needs.postings = need(
        out, index.postings[0] + 4 * (index.counters.posted + fresh), index.slot.shape[0]
    )
    out.needs.entries = need(out, index.entries[0] + 4 * (index.types[slot] + fresh + 2), index.word.shape[0])


@contract.learn_record.of(WordClusters)
def _learn_record(
    bag: WordClusters, terms: Any, scores: Scores, record: Incoming, new_probability: float
) -> None:
    learn(terms, bag.learned, record.words, record.counts, scores.words.fresh, new_probability)


@generic
def telling(bag: Any, pool: Pool, slot: int, word: int, count: int) -> float:
    """How much it says of a slot that it has so many of a word; -inf for what nobody is to be told."""
    raise NotImplementedError


@telling.of(WordClusters)
def _telling(bag: WordClusters, pool: Pool, slot: int, word: int, count: int) -> float:
    return count * math.log((1.0 + pool.counters.open) / max(bag.inverted.lists[word].length, 1))


@contract.describe.of(WordClusters)
def _describe(bag: WordClusters, pool: Pool, slot: int, out: Output, event: int) -> None:
    """Note the slot's most telling words (older entry first), -1 padded."""
    words, counts, closed = out.event_words[event], out.event_counts[event], pool.state[slot] == CLOSED
    index, size = bag.inverted, words.shape[0]
    for j in range(size):
        words[j] = -1
        counts[j] = 0
    begin = index.own[slot].start
    for i in range(index.types[slot]):
        w = index.word[begin + i]
        count = count_at(index, begin + i, closed)
        score = telling(bag, pool, slot, w, count)
        j = size if score > -np.inf else 0
        while j > 0:
            if words[j - 1] >= 0 and telling(bag, pool, slot, words[j - 1], counts[j - 1]) >= score:
                break
            if j < size:
                words[j] = words[j - 1]
                counts[j] = counts[j - 1]
            j -= 1
        if j < size and score > -np.inf:
            words[j] = w
            counts[j] = count


@contract.enter_class.of(WordClusters)
def _enter_class(clusters: WordClusters, sizes: Sizes, slot: int) -> None:
    join_class(sizes, slot, clusters.inverted.tokens[slot], clusters.inverted.types[slot])


@contract.release_slot.of(WordClusters)
def _release_slot(clusters: WordClusters, slot: int) -> None:
    release_words(clusters.inverted, slot)


@contract.room_for_classes.of(WordClusters)
def _room_for_classes(clusters: WordClusters, state: State, out: Output, limit: int) -> None:
    sizes = state.sizes
    out.needs.classes = need(out, sizes.counters.used + limit + 2, sizes.classes.shape[0])
    heap = sizes.header[0] + 8 * (state.pool.counters.used + limit + 8)
    out.needs.heap = need(out, heap, sizes.heap.shape[0])


@kernel
def _posting_need(index: Index, word: int, children: int) -> int:
    n = index.lists[word].length + children + 2
    block = index.lists[word].block
    return 4 * n if block < 0 or n > (4 << block) else 0


@contract.room_for_words.of(WordClusters)
def _room_for_words(clusters: WordClusters, out: Output, choice: Choice, words: np.ndarray) -> None:
    # A posting list that moves takes a block of at most four times its new length in all, so four times all
    # postings, old and new, is enough; only where there is not that much is the need worked out.
    index, children = clusters.inverted, choice.counters.children
    fresh = words.shape[0]
    entries, new = 4 * (fresh + 2), fresh
    for a in range(children):
        slot = choice.children[a].slot
        if slot != NEW and choice.children[a].group == a:
            entries += 4 * (index.types[slot] + fresh + 2)
            new += index.types[slot] + fresh
    enough = index.postings[0] + 4 * (index.counters.posted + new)
    if fresh > 0 and enough > index.slot.shape[0]:
        postings = 0
        for i in range(fresh):
            postings += _posting_need(index, words[i], children)
        for a in range(children):
            slot = choice.children[a].slot
            if slot != NEW and choice.children[a].group == a and children > 1:
                begin = index.own[slot].start
                for i in range(begin, begin + index.types[slot]):
                    postings += _posting_need(index, index.word[i], children)
        if index.postings[0] + postings > index.slot.shape[0]:
            out.needs.postings = need(out, enough, index.slot.shape[0])
    out.needs.entries = need(out, index.entries[0] + entries, index.word.shape[0])
