"""The clusters' part of a state as facts (see ``facts``): words, categories or vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamdp.beam.clusters.categories import CategoryClusters
from streamdp.beam.clusters.index import Index, WordClusters
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.beam.data.sizes import Sizes, new_sizes, rehash
from streamdp.beam.data.state import Clusters, State
from streamdp.beam.growth import SLOTS
from streamdp.kernels.blocks import blocks_for, places_of
from streamdp.kernels.rows import grown, made, power_of_two
from streamdp.kernels.sound import RECORDS, chain_of_runs, ints_of, length_of, narrow, reals_of, require, runs
from streamdp.likelihoods.base import Parts, is_absent
from streamdp.likelihoods.categorical import FIELD, RECORD, UNKNOWN, FieldsLearned, worded_by
from streamdp.likelihoods.vectors import coarsen_rows
from streamdp.likelihoods.words import learned_from, totals_of

Facts = Mapping[str, Any]

COUNTS = 1 << 31


def facts_of_clusters(state: State, used: np.ndarray) -> dict[str, Any]:
    """Facts of the clusters in the slots in use."""
    bag, rows = state.clusters
    found = {} if is_absent(bag) else _facts_of_words(bag, state, used)
    return found if is_absent(rows) else {**found, "rows": rows.block[used]}


def _facts_of_words(bag: WordClusters, state: State, used: np.ndarray) -> dict[str, Any]:
    pool, sizes, index, learned = state.pool, state.sizes, bag.inverted, bag.learned
    types, alive = index.types[used], pool.state[used] == ALIVE
    entries = places_of(index.own["start"][used], types)
    words, shown = index.word[entries], np.repeat(alive, types)
    counts = index.where[entries].copy()  # of a closed cluster
    counts[shown] = index.occurrences[index.lists["start"][words[shown]] + counts[shown]]
    known = np.flatnonzero((learned.counts > 0) | (index.lists["most"] > 0))
    last = int(known.max(initial=-1)) + 1
    of = sizes.of[used[alive]]
    return {
        "types": narrow(types),
        "word": narrow(words),
        "count": narrow(counts),
        "order": narrow(index.slot[places_of(index.lists["start"], index.lists["length"])]),
        "most": narrow(index.lists["most"][:last]),
        "learned": narrow(learned.counts[:last]),
        "classes": len(sizes.classes),
        "class_free": runs(sizes.classes["next"], int(sizes.counters.free)),
        "class_of": narrow(of),
        "class_weight": sizes.weight[np.unique(of)],
        "repeats": narrow(learned.repeats[:last]),
        "base_evidence": float(learned.counters.evidence),
        **({"field": narrow(learned.field[:last])} if isinstance(learned, FieldsLearned) else {}),
    }


def clusters_of(
    facts: Facts, fresh: Clusters, family: Parts, pool: Pool, used: np.ndarray
) -> tuple[Clusters, Sizes]:
    """The clusters that facts are of, and their classes of size.

    ``fresh`` are clusters of the model's kind, ``family`` its terms.
    """
    bag, rows = fresh
    named = isinstance(bag, CategoryClusters)
    words, vectors = not is_absent(bag), not is_absent(rows)
    for name, there in (("rows", vectors), ("types", words), ("field", named)):
        require((name in facts) == there, "clusters of another kind")
    if vectors:
        rows = grown(rows, "slots", len(pool.slots))
        rows.block[:] = rows.empty
        rows.block[used] = reals_of(facts, "rows", (len(used), len(rows.empty)))
        if rows.coarse.shape[1]:
            coarsen_rows(family.vector, rows.block, rows.coarse)
    if not words:
        return Clusters(bag, rows), grown(new_sizes(SLOTS, SLOTS, 16 * SLOTS), "slots", len(pool.slots))
    bag = _words_of(facts, bag, family.bag, pool, used)
    distinct = bag.inverted.distinct if named else bag.inverted.types
    return Clusters(bag, rows), _sizes_of(facts, bag.inverted, pool, distinct)


def _words_of(facts: Facts, fresh: WordClusters, family: Any, pool: Pool, used: np.ndarray) -> WordClusters:
    named = isinstance(fresh, CategoryClusters)
    if named:
        learned: Any = _learned_of(facts, family)
        counted = worded_by(family, learned.field)
    else:
        learned = learned_from(*_counts_of(facts))
        counted = np.ones(len(learned.counts), bool)
    return type(fresh)(_index_of(facts, counted, pool, used, named), learned)


def _counts_of(facts: Facts) -> tuple[np.ndarray, np.ndarray, float]:
    """What is learned of every word: counts, repeats, and the evidence for the first."""
    counts = ints_of(facts, "learned", 0, RECORDS)
    size = max(power_of_two(len(counts)), SLOTS)
    padded, repeats = np.zeros((2, size), np.int64)
    padded[: len(counts)] = counts
    repeats[: len(counts)] = ints_of(facts, "repeats", 0, RECORDS, len(counts))
    evidence = facts["base_evidence"]
    require((padded[repeats > 0] > 0).all(), "a word that was never seen is repeated")
    known = isinstance(evidence, float) and math.isfinite(evidence)
    require(known, "the evidence for the base measure is no number")
    return padded, repeats, evidence


def _learned_of(facts: Facts, family: Any) -> FieldsLearned:
    padded, repeats, evidence = _counts_of(facts)
    size, last = len(padded), len(facts["learned"])
    field, values = np.full(size, UNKNOWN), np.zeros(size, np.int64)
    field[:last] = ints_of(facts, "field", UNKNOWN, last, last)
    of = np.flatnonzero(field >= 0)
    require((field[of] != RECORD).all() and (field[field[of]] == FIELD).all(), "the field of a value is none")
    require(((field == UNKNOWN) == (padded == 0)).all(), "a value of no field")
    np.add.at(values, field[of], 1)
    total = np.zeros(size, np.int64)
    np.add.at(total, field[of], padded[of])
    fields = np.flatnonzero(field == FIELD)
    fields = fields[fields != RECORD]
    require((total[fields] == padded[fields]).all(), "a field is not as common as its values")
    worded = worded_by(family, field)
    require(not repeats[~worded].any(), "a word of no text is repeated")
    words = np.where(worded, padded, 0)
    totals = totals_of(FieldsLearned, words, repeats=int(repeats.sum()), evidence=evidence)
    return FieldsLearned(padded, repeats, totals, field, values)


def _index_of(facts: Facts, counted: np.ndarray, pool: Pool, used: np.ndarray, named: bool) -> Index:
    """Entries by slot and postings by word, which point at each other.

    ``counted``: of which words there are tokens, shape (V,); ``named``: whether records have fields.
    """
    vocabulary, slots = len(counted), len(pool.slots)
    types = ints_of(facts, "types", 0, COUNTS, len(used))
    entries = int(types.sum())
    word = ints_of(facts, "word", 0, vocabulary, entries)
    count = ints_of(facts, "count", 1, COUNTS, entries)
    owner = np.repeat(used, types)
    shown = np.flatnonzero(pool.state[owner] == ALIVE)
    by_slot = ints_of(facts, "order", 0, slots, len(shown))
    lengths = np.bincount(word[shown], minlength=vocabulary)
    of_word = np.repeat(np.arange(vocabulary), lengths)
    mine, theirs = np.lexsort((owner[shown], word[shown])), np.lexsort((by_slot, of_word))
    matched = (owner[shown][mine] == by_slot[theirs]).all() and (word[shown][mine] == of_word[theirs]).all()
    pairs = word[shown][mine] * slots + owner[shown][mine]
    require(matched and (np.diff(pairs) > 0).all(), "the clusters of a word are others")
    own_start, own_block, own_end = blocks_for(types)
    start, block, end = blocks_for(lengths)
    room = {"entries": max(power_of_two(own_end), SLOTS), "postings": max(power_of_two(end), SLOTS)}
    index = made(Index, {"slots": slots, "words": vocabulary, **room})
    index.counters.posted, index.postings[0], index.entries[0] = len(shown), end, own_end
    index.types[used] = types
    np.add.at(index.tokens, owner, np.where(counted[word], count, 0))
    if named:
        np.add.at(index.distinct, owner, counted[word])
        np.add.at(index.records, owner, np.where(word == RECORD, count, 0))
    index.own["start"][used], index.own["block"][used] = own_start, own_block
    for name, values in (("start", start), ("block", block), ("length", lengths)):
        index.lists[name] = values
    most = ints_of(facts, "most", 0, COUNTS)
    require(len(most) <= vocabulary, "counts of words that are not known")
    index.lists["most"][: len(most)] = most
    entry, posting = places_of(own_start, types), places_of(start, lengths)
    index.word[entry], index.where[entry] = word, count
    within_own, within_list = entry - np.repeat(own_start, types), posting - np.repeat(start, lengths)
    index.slot[posting] = by_slot
    index.back[posting[theirs]] = within_own[shown[mine]]
    index.occurrences[posting[theirs]] = count[shown[mine]]
    index.where[entry[shown[mine]]] = within_list[theirs]
    require((index.lists["most"][word[shown]] >= count[shown]).all(), "a word more often than ever")
    return index


def _sizes_of(facts: Facts, index: Index, pool: Pool, distinct: np.ndarray) -> Sizes:
    """Classes of the clusters that are open, and heaps of those that all hypotheses hold.

    ``distinct``: T_k by slot.
    """
    alive = np.flatnonzero(pool.state == ALIVE)
    room = length_of(facts, "classes", SLOTS)
    of = ints_of(facts, "class_of", 1, room, len(alive))
    numbers = np.unique(of)
    agreed = alive[pool.column[alive] < 0]
    sizes = made(Sizes, {"classes": room, "slots": len(pool.slots), "table": 4 * room, "heap": 0})
    sizes.of[alive] = of
    kinds = ((sizes.tokens, index.tokens), (sizes.types, distinct), (sizes.records, index.records))
    for array, by_slot in kinds:
        array[of] = by_slot[alive]
        require((array[of] == by_slot[alive]).all(), "the clusters of a class are not alike")
    different = np.unique(np.stack([array[numbers] for array, _ in kinds]), axis=1)
    require(different.shape[1] == len(numbers), "two classes are alike")
    sizes.weight[numbers] = reals_of(facts, "class_weight", (len(numbers),))
    sizes.classes["refs"] = np.bincount(of, minlength=room)
    sizes.classes["refs"][0] = 1  # the empty cluster
    heap = agreed[np.lexsort((pool.founder[agreed], -pool.weight[agreed], sizes.of[agreed]))]
    sizes.agreed[:] = np.bincount(sizes.of[heap], minlength=room)
    start, block, end = blocks_for(sizes.agreed)
    at = places_of(start, sizes.agreed)
    sizes = sizes._replace(heap=np.zeros(max(power_of_two(end), 16 * SLOTS), np.int64))
    sizes.heap[at] = heap
    sizes.place[heap] = at - start[sizes.of[heap]]
    held = sizes.agreed > 0
    sizes.top[held] = pool.weight[sizes.heap[start[held]]]
    sizes.classes["start"], sizes.classes["block"], sizes.header[0] = start, block, end
    counters = sizes.counters
    counters.used, counters.high = len(numbers) + 1, int(numbers.max(initial=0)) + 1
    free = np.flatnonzero(sizes.classes["refs"] == 0)
    counters.free = chain_of_runs(sizes.classes["next"], facts["class_free"], free)
    rehash(sizes)
    return sizes
