"""What speaks for two records being of one cluster, word by word and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.describe import MEANING
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.encode.vocabulary import is_nameless
from streamdp.likelihoods import Categorical, HierarchicalPitmanYor
from streamdp.likelihoods.categorical import FIELD, RECORD, TEXT, FieldsLearned


class Evidence(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What speaks for two records being of one cluster, by the model's family of likelihoods.

    ``nats`` is log p(both in one cluster) - log p(one) - log p(other): by how much likelier the records are
    together than in a cluster each, before the prior says anything. ``words`` are those of both, or their
    values, each with by how much less that is without it in either; below 0 it speaks against. They come by
    how much they say, and need not add up. Vectors count as ``meaning``.

    Examples
    --------
    >>> from streamdp import Engine
    >>> engine = Engine()
    >>> answers = engine.advance(["storm over the coast", "coast storm", "late goal wins"])
    >>> engine.together("a storm", "the coast storm").nats > 0 > engine.together("a storm", "a goal").nats
    True
    """

    nats: float
    words: list[tuple[str, float]]


NO_WORD = -1

OF_TEXT = -3
"""In the place of a value's field, of a word of a text."""


def together(search: BeamSearch, pair: Batch, words: Sequence[str | None] | None) -> Evidence:
    """What speaks for the two records of a batch being of one cluster."""
    fields = _fields(search, pair)
    lengths = [int(pair.counts[(pair.rows == i) & (fields == OF_TEXT)].sum()) for i in (0, 1)]
    total, found = _likelier(search, pair, lengths), list[tuple[str, float]]()
    whole = TEXT if search.sparse and isinstance(search.words.learned, FieldsLearned) else NO_WORD
    for word in np.unique(pair.words[fields != FIELD]).tolist():
        name = words[word] if words is not None and word < len(words) else None
        if name is not None and not is_nameless(name):
            rest = _without(pair, word, int(fields[pair.words == word][0]), whole)
            found.append((name, total - _likelier(search, rest, lengths)))
    if pair.vectors is not None:
        blind = msgspec.structs.replace(pair, vectors=np.full_like(pair.vectors, np.nan))
        found.append((MEANING, total - (_likelier(search, blind, lengths) if search.sparse else 0.0)))
    found.sort(key=lambda each: (-abs(each[1]), each[0]))
    return Evidence(nats=round(total, 2), words=[(name, round(by, 2)) for name, by in found])


def _fields(search: BeamSearch, pair: Batch) -> np.ndarray:
    """By word of a pair: the word of the field that it is a value of, OF_TEXT, or FIELD for anything else."""
    learned = search.words.learned if search.sparse else None
    if not isinstance(learned, FieldsLearned):
        return np.full(len(pair.words), OF_TEXT)
    fields = learned.field[pair.words].astype(np.int64)
    # where there are no texts, the word of this number is a field
    return np.where((fields == TEXT) & (search.likelihood.bag.text is not None), OF_TEXT, fields)


def _without(pair: Batch, word: int, field: int, whole: int) -> Batch:
    """Two records without a word.

    A value goes with its ``field``; the word ``whole`` counts the tokens of a text.
    """
    rows, own = pair.rows, pair.words == word
    left_out = np.bincount(rows[own], pair.counts[own], 2).astype(np.int32)
    counts = np.where(own, 0, pair.counts)
    if field >= 0:
        counts[(pair.words == field) & (left_out[rows] > 0)] = 0
    else:
        counts = np.where(pair.words == whole, counts - left_out[rows], counts)
    keep = counts > 0
    offsets = np.append(0, np.cumsum(keep))[pair.offsets]
    return msgspec.structs.replace(pair, offsets=offsets, words=pair.words[keep], counts=counts[keep])


def _likelier(search: BeamSearch, pair: Batch, lengths: Sequence[int]) -> float:
    """By how many nats two records are likelier in one cluster, mean of both orders.

    ``lengths`` are those of their texts before any word was left out: the family may take short ones in
    another way, and a word is not to count for that.
    """
    if pair.vectors is None and not pair.lengths.all():
        return 0.0
    total = 0.0
    for order in ((0, 1), (1, 0)):
        ordered = msgspec.structs.replace(
            pair.take(np.array(order)), times=pair.times
        )  # time does not run back
        total += _gain(search, ordered, lengths[order[1]])
    return 0.5 * total


def _gain(search: BeamSearch, pair: Batch, length: int) -> float:
    """By how many nats the second of two is likelier in a cluster of the first than in a new one."""
    family = search.likelihood.with_main(_of_length(search.likelihood.main, length))
    alone = BeamSearch(search.model._replace(family=family.part_terms), family)
    _teach(alone, search)
    for _ in alone.run(pair.slice(0, 1), np.zeros(1, np.int64)):
        pass
    _teach(alone, search)
    joined, new = alone.weigh(pair.slice(1), alone.head_slots())[1][0].tolist()
    return float(joined - new)


def _of_length(family: Any, length: int) -> Any:
    """The family that takes texts of any length as those of one."""
    if isinstance(family, Categorical):
        return family if family.text is None else replace(family, text=_of_length(family.text, length))
    if not isinstance(family, HierarchicalPitmanYor):
        return family
    short = family.terms().short
    b1 = float(short[length - 1]) if 0 < length <= len(short) else family.base_concentration
    return replace(family, base_concentration=b1, short_concentrations=())


def _teach(alone: BeamSearch, search: BeamSearch) -> None:
    """Let a search know of all words what another one has learned."""
    if not search.sparse:
        return
    alone.ensure_words(len(search.words.learned.counts))
    for own, known in zip(alone.words.learned, search.words.learned, strict=True):
        own[() if own.ndim == 0 else slice(len(known))] = known
    if isinstance(alone.words.learned, FieldsLearned):
        alone.words.learned.counts[RECORD] += 1  # so no field is one that all records have: they may lack it
