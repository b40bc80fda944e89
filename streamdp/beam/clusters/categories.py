"""Clusters of named categories: what is theirs alone, the rest being as that of words.

What a cluster that shares nothing with a record scores depends on its records alone (n_k), as long as all
records have a field; a field that some lack makes the postings of its own word be visited besides, and so
does a text, of which records have several words.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.clusters.index import Index, add_words, count_in, take_words, telling, top_words
from streamdp.beam.clusters.sizes import Sizes, join_class
from streamdp.beam.clusters.sparse import SHORT, sum_values
from streamdp.beam.clusters.words import WordClusters
from streamdp.beam.data.choice import SHARED, Scores, WordScores, is_touched
from streamdp.beam.data.pool import CLOSED, Pool
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step.clusters import describe_slot, enter_class, join_slot, leave_slot, score_record
from streamdp.beam.step.evidence import may_found
from streamdp.kernels.jit import kernel
from streamdp.likelihoods.categorical import (
    FIELD,
    RECORD,
    FieldsLearned,
    field_of,
    is_text,
    mass_of_field,
    mass_of_value,
    place_of_text,
    rising,
)


class CategoryClusters(WordClusters):
    """The same, where ``learned`` is :class:`~streamdp.likelihoods.categorical.FieldsLearned`.

    The tokens of a slot are its records, so that a size class is of clusters with as many records.
    """

    __slots__ = ()


@kernel
def _count_records(index: Index, slot: int, words: np.ndarray, counts: np.ndarray, sign: int) -> None:
    """Let a slot's tokens be its records, after words have joined (1) or left (-1) it."""
    for i in range(words.shape[0]):
        if words[i] != RECORD:
            index.tokens[slot] -= sign * counts[i]


@kernel
def _flush(scores: WordScores, met: int) -> None:
    """Take the logarithms of gains, before one leaves the range of a double."""
    for j in range(met):
        slot = scores.touched[j]
        scores.log_gain[slot] += math.log(scores.cells[slot].gain)
        scores.cells[slot].gain = 1.0


@kernel
def _touch(index: Index, scores: WordScores, word: int, count: int, mass: float, sign: int, met: int) -> int:
    """Walk the postings of a word; returns how many slots have been met.

    Sign is 1 for a value and -1 for a field: by how much likelier the records are where the cluster holds
    some of them, or less likely.
    """
    tick = scores.counters.tick
    start = index.lists[word].start
    alone = rising(mass, count) if count > 1 else 0.0
    for e in range(start, start + index.lists[word].length):
        slot = np.int64(index.slot[e])
        cell = scores.cells[slot]
        if not is_touched(cell.mark, tick):
            cell.mark = tick << SHARED
            cell.gain = cell.loss = 1.0
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
    return met


@kernel
def _score_classes(sizes: Sizes, scores: WordScores, high: int, mass: float, count: int) -> None:
    """Count a field that all records have into the classes: what it costs where there are n records."""
    alone = rising(mass, count)
    for c in range(high):
        if sizes.tokens[c] > 0.0:
            scores.log_ratio[c] += alone - rising(mass + sizes.tokens[c], count)


@score_record.of(CategoryClusters)
def _score_record(
    clusters: CategoryClusters, model: Model, state: State, scores: Scores, record: Incoming
) -> None:
    """Fill ``scores``: the value of every size class and of every cluster that shares a value."""
    index, sizes, learned = clusters.inverted, clusters.sizes, clusters.learned
    words, counts = record.words, record.counts
    inner, family, high = scores.words, model.family, sizes.counters.high
    inner.counters.tick += 1
    for c in range(high):
        inner.log_ratio[c] = 0.0
    log_base, met, text = 0.0, 0, place_of_text(family, words)
    for i in range(words.shape[0]):
        word, count = words[i], counts[i]
        if word == RECORD:
            continue
        field = field_of(learned, words, i, text)
        if field != FIELD:
            mass = mass_of_value(family, learned, field, word)
            log_base += rising(mass, count)
            met = _touch(index, inner, word, count, mass, 1, met)
        else:
            mass = mass_of_field(family, learned, word)
            log_base -= rising(mass, count)
            if learned.counts[word] == learned.counts[RECORD] and not is_text(family, word):
                _score_classes(sizes, inner, high, mass, count)
            else:
                met = _touch(index, inner, word, count, mass, -1, met)
        if i % SHORT == SHORT - 1:
            _flush(inner, met)
    inner.counters.touched = met
    for c in range(high):
        inner.partial[c] = inner.log_ratio[c]
    sum_values(state.pool, sizes, scores, SHORT + 1, False, may_found(model, state.beam), log_base)


@join_slot.of(CategoryClusters)
def _join_slot(clusters: CategoryClusters, model: Model, scores: Scores, slot: int, record: Incoming) -> None:
    add_words(clusters.inverted, slot, record.words, record.counts, scores.words.fresh)
    _count_records(clusters.inverted, slot, record.words, record.counts, 1)


@leave_slot.of(CategoryClusters)
def _leave_slot(clusters: CategoryClusters, model: Model, slot: int, record: Incoming, last: bool) -> None:
    take_words(clusters.inverted, slot, record.words, record.counts)
    _count_records(clusters.inverted, slot, record.words, record.counts, -1)


@enter_class.of(CategoryClusters)
def _enter_class(clusters: CategoryClusters, slot: int) -> None:
    join_class(clusters.sizes, slot, clusters.inverted.tokens[slot], 0)


@telling.of(FieldsLearned)
def _telling(by: FieldsLearned, index: Index, slot: int, closed: bool, word: int, count: int) -> float:
    """A value that is frequent in the cluster, and more so than elsewhere (see FieldsLearned)."""
    field = by.field[word]
    if field == FIELD:
        return -np.inf
    more = (by.counts[field] + 1.0) / by.counts[word] * count / count_in(index, slot, closed, field)
    return count * math.log(more) if more > 1.0 else -np.inf


@describe_slot.of(CategoryClusters)
def _describe_slot(clusters: CategoryClusters, pool: Pool, slot: int, out: Output, event: int) -> None:
    closed, words, counts = pool.state[slot] == CLOSED, out.event_words[event], out.event_counts[event]
    top_words(clusters.inverted, clusters.learned, slot, closed, words, counts)
