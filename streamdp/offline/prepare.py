"""From records and a likelihood to a store."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from streamdp.encode.batch import Batch
from streamdp.likelihoods import BagFamily, Categorical, Likelihood, VectorFamily
from streamdp.likelihoods.words import SharedBase
from streamdp.offline.anchors import Anchors
from streamdp.offline.kernels import documents as _documents  # noqa: F401 - it implements what is done
from streamdp.offline.kernels import vectors as _vectors  # noqa: F401 - it implements what is done
from streamdp.offline.kernels import words as _words  # noqa: F401 - to a store, and so does this
from streamdp.offline.kernels.store import Store, VectorStore, vector_store, word_store

FIRST_CAPACITY = 64

Data = Batch
"""A finite set of records in time order."""


def new_store(
    data: Data,
    likelihood: Likelihood,
    base: np.ndarray | None = None,
    capacity: int = FIRST_CAPACITY,
    places: int | None = None,
    anchors: Anchors | None = None,
) -> Store:
    """The records of ``data`` with room for clusters of them; kernels still have to ``prepare`` it.

    Parameters
    ----------
    data
        The records; ``ValueError`` where the likelihood is not for them.
    likelihood
        The family of all clusters.
    base
        p_w by word, shape (V,), where the family needs a base measure and has none.
    capacity
        Slots.
    places
        How many slots may hold a word at a time; None: what clusterings need, where every record is in one.
    anchors
        Clusters of records that do not move.
    """
    name = type(likelihood.main).__name__
    if likelihood.sparse != data.sparse:
        kinds = ("vectors", "word counts")
        raise ValueError(
            f"{name} is for {kinds[likelihood.sparse]}, and the records are {kinds[data.sparse]}"
        )
    if data.size == 0:
        raise ValueError("there are no records")
    bag, family = likelihood.bag, likelihood.vector
    if bag is None:
        if family is None:
            raise ValueError(f"{name} is neither a family of words nor of vectors")
        assert data.vectors is not None
        rows, frozen = _rows(data.vectors, family), None if anchors is None else anchors.rows
        return vector_store(family.terms(), rows, family.width, capacity, frozen)
    _check_words(data)
    if likelihood.ordered and (anchors is not None or places is not None):
        raise ValueError("a document level is for hybrid, gibbs, split-merge, beam, astar; not permutations")
    beside = _beside(data, likelihood, capacity, anchors)
    if anchors is not None:
        data = Batch.concatenate([replace(data, vectors=None), anchors.words])
    offsets, words, counts = data.bags
    terms = _bag_terms(bag, offsets, words, counts, base)
    return word_store(terms, offsets, words, counts, capacity, places, beside, ordered=likelihood.ordered)


def _beside(data: Data, likelihood: Likelihood, capacity: int, anchors: Anchors | None) -> VectorStore | None:
    """The vectors beside words, where the likelihood has a family of them."""
    family = likelihood.vector
    if (family is None) != (data.vectors is None):
        raise ValueError(
            "the likelihood and the records must both have a vector beside the words, or neither"
        )
    if family is None or data.vectors is None:
        return None
    rows, has = data.vectors.astype(family.dtype), ~np.isnan(data.vectors[:, 0])
    rows[has] = _rows(data.vectors[has], family)
    frozen = None if anchors is None else anchors.rows
    return vector_store(family.terms(), rows, family.width, capacity, frozen)


def with_terms(store: Any, likelihood: Likelihood, base: np.ndarray | None = None) -> Any:
    """The store under another likelihood of the same family; kernels still have to ``prepare`` it."""
    if not likelihood.sparse:
        return store._replace(terms=likelihood.terms())
    terms = _bag_terms(likelihood.bag, store.offsets, store.words, store.counts, base)
    beside = store.beside._replace(terms=terms) if likelihood.ordered else store.beside
    return store._replace(terms=terms, beside=beside)


def _bag_terms(
    likelihood: BagFamily, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray, base: np.ndarray | None
) -> Any:
    if base is None:
        base = likelihood.base_of_records(offsets, words)
    return likelihood.set_terms(*word_totals(words, counts), base)


def word_totals(words: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of every word in all records, and in how many records it is, each of shape (V,)."""
    vocabulary = int(words.max(initial=-1)) + 1
    by_word = np.bincount(words, weights=counts, minlength=vocabulary)
    return by_word, np.bincount(words, minlength=vocabulary)


def _check_words(data: Data) -> None:
    if len(data.words) and (data.counts.min() < 1 or data.words.min() < 0):
        raise ValueError("words are numbered from 0, and their counts are at least 1")
    keys = data.rows * (int(data.words.max(initial=0)) + 1) + data.words
    if len(np.unique(keys)) != len(keys):
        raise ValueError("the words of a record must be distinct: add up their counts")


def _rows(values: np.ndarray, likelihood: VectorFamily) -> np.ndarray:
    """The vectors as the family takes them; ValueError where one is none."""
    if values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError("vectors must be the rows of an array of finite numbers")
    if values.shape[1] != likelihood.dimension:
        raise ValueError(
            f"the likelihood has {likelihood.dimension} dimensions, the vectors have {values.shape[1]}"
        )
    if getattr(likelihood, "forget", 1.0) < 1.0:
        raise ValueError("forget must be 1 offline: no record of a finite set is forgotten")
    return np.ascontiguousarray(likelihood.read(values), likelihood.dtype)


def log_coefficients(store: Any, likelihood: Likelihood) -> np.ndarray:
    """log of the multinomial coefficient of every record, shape (N,), in nats; 0 for vectors.

    No clustering depends on it, so the kernels leave it out.
    """
    if likelihood.sparse:
        found: np.ndarray = likelihood.bag.coefficients(store.offsets, store.counts)
        return found
    return np.zeros(len(store.fresh))


def counts_of(data: Data, likelihood: SharedBase | Categorical, labels: np.ndarray) -> np.ndarray:
    """N_w as a stream counts it once it has clustered the records so, shape (V,)."""
    by_word, _ = word_totals(data.words, data.counts)
    pairs = np.unique(np.asarray(labels, np.int64)[data.rows] * len(by_word) + data.words)
    return likelihood.counted(by_word, np.bincount(pairs % max(len(by_word), 1), minlength=len(by_word)))
