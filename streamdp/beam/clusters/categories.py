"""Clusters of named categories, and of texts beside them; what is not here is as that of words.

What a cluster that shares nothing with a record scores depends on how many records, words of texts and
distinct ones of these it has, as long as all records have a field; a field that some lack makes the postings
of its own word be visited besides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.beam.clusters.index import Index, WordClusters, add_words, count_in, take_words
from streamdp.beam.clusters.repeats import repeat_gains, score_repeats
from streamdp.beam.clusters.sparse import SHORT, score_singles, singles_and_length, sum_values, touch_words
from streamdp.beam.clusters.words import telling
from streamdp.beam.data.choice import SHARED, Scores, WordScores, is_touched
from streamdp.beam.data.pool import CLOSED, Pool
from streamdp.beam.data.sizes import Sizes, join_class
from streamdp.beam.data.state import Incoming, Model, State
from streamdp.beam.step import clusters as contract
from streamdp.beam.step.evidence import least_new
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.categorical import (
    FIELD,
    RECORD,
    TEXT,
    CategoricalTerms,
    field_of,
    mass_of_field,
    mass_of_value,
    place_of_text,
    rising,
)
from streamdp.likelihoods.words import base_measure


class CategoryClusters(WordClusters):
    """The same, where ``learned`` is :class:`~streamdp.likelihoods.categorical.FieldsLearned`.

    The tokens of a slot are those of its texts.
    """

    __slots__ = ()


@kernel
def _count_records(
    index: Index, family: CategoricalTerms, slot: int, words: np.ndarray, counts: np.ndarray, sign: int
) -> int:
    """Let a slot's tokens be those of texts, after words have joined (1) or left (-1) it.

    Returns where the words of the record's text begin.
    """
    text = place_of_text(family, words)
    for i in range(min(text + 1, words.shape[0])):
        index.tokens[slot] -= sign * counts[i]
        if words[i] == RECORD:
            index.records[slot] += sign * counts[i]
    return min(text + 1, words.shape[0])


@kernel
def _flush(scores: WordScores) -> None:
    """Take the logarithms of gains, before one leaves the range of a double."""
    for j in range(scores.counters.touched):
        slot = scores.touched[j]
        scores.log_gain[slot] += math.log(scores.cells[slot].gain)
        scores.cells[slot].gain = 1.0


@kernel
def _touch(
    index: Index,
    scores: WordScores,
    b1: float,
    d: float,
    word: int,
    count: int,
    mass: float,
    sign: int,
) -> None:
    """Walk the postings of a word.

    Sign is 1 for a value and -1 for a field: by how much likelier the records are where the cluster holds
    some of them, or less likely.
    """
    tick = scores.counters.tick
    start = index.lists[word].start
    alone = rising(mass, count) if count > 1 else 0.0
    met = scores.counters.touched
    for e in range(start, start + index.lists[word].length):
        slot = np.int64(index.slot[e])
        cell = scores.cells[slot]
        if not is_touched(cell.mark, tick):
            cell.mark = tick << SHARED
            cell.gain = cell.loss = 1.0
            cell.pull = b1 + d * index.distinct[slot]
            scores.log_gain[slot] = 0.0
            scores.touched[met] = slot
            met += 1
        held = mass + index.occurrences[e]
        if count > 1:
            scores.log_gain[slot] += sign * (rising(held, count) - alone)
        elif sign > 0:
            cell.gain *= held / mass
        else:
            cell.gain *= mass / held
    scores.counters.touched = met


@kernel
def _score_classes(sizes: Sizes, scores: WordScores, mass: float, count: int) -> None:
    """Count a field that all records have into the classes: what it costs where there are n records."""
    alone = rising(mass, count)
    for c in range(sizes.counters.high):
        if sizes.records[c] > 0.0:
            change = alone - rising(mass + sizes.records[c], count)
            scores.log_ratio[c] += change
            scores.partial[c] += change


@kernel
def _score_fields(
    clusters: CategoryClusters,
    sizes: Sizes,
    family: CategoricalTerms,
    scores: WordScores,
    words: np.ndarray,
    counts: np.ndarray,
    b1: float,
) -> float:
    """Values of a record's words but those of its text; returns what of all clusters is the same."""
    index, learned, log_base, text = clusters.inverted, clusters.learned, 0.0, words.shape[0]
    d = family.text.word_discount
    for i in range(text):
        word = words[i]
        if word == RECORD:
            continue
        field = field_of(learned, words, i, text)
        if field != FIELD:
            mass = mass_of_value(family, learned, field, word)
            log_base += rising(mass, counts[i])
            _touch(index, scores, b1, d, word, counts[i], mass, 1)
        else:
            mass = mass_of_field(family, learned, word)
            log_base -= rising(mass, counts[i])
            if learned.counts[word] == learned.counts[RECORD]:
                _score_classes(sizes, scores, mass, counts[i])
            else:
                _touch(index, scores, b1, d, word, counts[i], mass, -1)
        if i % SHORT == SHORT - 1:
            _flush(scores)
    return log_base


@kernel
def _score_by_words(
    clusters: CategoryClusters, sizes: Sizes, family: CategoricalTerms, scores: Scores, record: Incoming
) -> float:
    """Parts of the values of every size class and of every cluster that shares a value or a word.

    Returns what of all clusters is the same.
    """
    index = clusters.inverted
    inner, high, log_base = scores.words, sizes.counters.high, 0.0
    inner.counters.tick += 1
    inner.counters.touched = 0
    text = place_of_text(family, record.words)
    words, counts = record.words[text + 1 :], record.counts[text + 1 :]
    singles, length = singles_and_length(counts)
    d, shown = family.text.word_discount, words.shape[0] if record.seq < 0 else length
    b1 = family.text.concentration
    if length > 0:
        log_base, b1 = base_measure(family.text, clusters.learned, words, counts, inner.inverse, shown)
        score_singles(sizes, inner, high, singles, length, True, b1, d)
        if singles < words.shape[0]:
            score_repeats(sizes, inner, high, singles, counts, True, b1, d, 0.0)
    else:
        for c in range(high):
            inner.log_ratio[c] = inner.partial[c] = 0.0
    log_base += _score_fields(clusters, sizes, family, inner, record.words[:text], record.counts[:text], b1)
    if length > 0:
        _flush(inner)
        touch_words(index, inner, words, singles, index.distinct, index.counters.posted, True, b1, d)
        if singles < words.shape[0]:
            repeat_gains(index, inner, words, counts, singles, index.distinct, b1, d, 0.0)
    return log_base


@contract.score.of(CategoryClusters)
def _score(
    bag: CategoryClusters, rows: Any, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    """Fill ``scores``: the value of every size class and of every cluster that shares a value or a word."""
    log_base = _score_by_words(bag, state.sizes, model.family.bag, scores, record)
    contract.sum_up(rows, bag, model, state, scores, record, log_base)


@contract.sum_up.of(np.ndarray)
def _sum_up(
    rows: Any, bag: Any, model: Model, state: State, scores: Scores, record: Incoming, log_base: float
) -> None:
    founds = least_new(model, state.beam) >= 0.0
    sum_values(state.pool, state.sizes, scores, SHORT + 1, False, founds, log_base)


@contract.whole.of(CategoryClusters)
def _whole(clusters: CategoryClusters, slot: int, bag: Incoming) -> Incoming:
    """As encoders give it: fields and values, the word of texts, then words of theirs, single ones first."""
    index, field, n = clusters.inverted, clusters.learned.field, 0
    begin, types = index.own[slot].start, index.types[slot]
    for part in range(4):
        for k in range(begin, begin + types):
            word = index.word[k]
            count = index.occurrences[index.lists[word].start + index.where[k]]
            own = 0
            if index.distinct[slot] > 0 and word == TEXT:
                own = 1
            elif index.distinct[slot] > 0 and field[word] == TEXT:
                own = 2 if count == 1 else 3
            if own == part:
                bag.words[n], bag.counts[n] = word, count
                n += 1
    return Incoming(bag.seq, bag.time, bag.words[:n], bag.counts[:n], bag.x, bag.founder)


@contract.join.of(CategoryClusters)
def _join(
    bag: CategoryClusters, terms: CategoricalTerms, scores: Scores, slot: int, record: Incoming
) -> None:
    index, fresh = bag.inverted, scores.words.fresh
    add_words(index, slot, record.words, record.counts, fresh)
    first = _count_records(index, terms, slot, record.words, record.counts, 1)
    for i in range(first, record.words.shape[0]):
        index.distinct[slot] += 1 if fresh[i] else 0


@contract.leave.of(CategoryClusters)
def _leave(bag: CategoryClusters, terms: CategoricalTerms, slot: int, record: Incoming, last: bool) -> None:
    index = bag.inverted
    first = _count_records(index, terms, slot, record.words, record.counts, -1)
    take_words(index, slot, record.words[:first], record.counts[:first])
    before = index.types[slot]
    take_words(index, slot, record.words[first:], record.counts[first:])
    index.distinct[slot] -= before - index.types[slot]


@contract.enter_class.of(CategoryClusters)
def _enter_class(clusters: CategoryClusters, sizes: Sizes, slot: int) -> None:
    index = clusters.inverted
    join_class(sizes, slot, index.tokens[slot], index.distinct[slot], index.records[slot])


@telling.of(CategoryClusters)
def _telling(bag: CategoryClusters, pool: Pool, slot: int, word: int, count: int) -> float:
    """A value that is frequent in the cluster, and more so than elsewhere (see FieldsLearned)."""
    learned, field = bag.learned, bag.learned.field[word]
    if field == FIELD:
        return -np.inf
    own = count_in(bag.inverted, slot, pool.state[slot] == CLOSED, field)
    more = (learned.counts[field] + 1.0) / learned.counts[word] * count / own
    return count * math.log(more) if more > 1.0 else -np.inf
