"""From records and a likelihood to a store."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.encode.batch import Batch
from streamdp.likelihoods import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    Likelihood,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
)
from streamdp.likelihoods.vectors import VectorFamily
from streamdp.offline.kernels import normals, sphere, wishart
from streamdp.offline.kernels.store import (
    BASE,
    BERNOULLI,
    FLAT,
    GAMMA,
    GAUSSIAN,
    N_FLOATS,
    POISSON,
    SPHERE,
    TABLES,
    WISHART,
    Records,
    Store,
    Tables,
    new_clusters,
    new_scratch,
)
from streamdp.offline.kernels.words import log_gammas

FIRST_CAPACITY = 64

Data = Batch
"""A finite set of records in time order."""


def new_store(
    data: Data,
    likelihood: Likelihood[Any, Any],
    base: np.ndarray | None = None,
    capacity: int = FIRST_CAPACITY,
    places: int | None = None,
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
    """
    if likelihood.sparse != (data.vectors is None):
        kinds = ("vectors", "word counts")
        raise ValueError(
            f"{type(likelihood).__name__} is for {kinds[likelihood.sparse]}, "
            f"and the records are {kinds[data.vectors is None]}"
        )
    if data.size == 0:
        raise ValueError("there are no records")
    records = _words(data) if data.vectors is None else _vectors(data.vectors, likelihood)
    tables = new_tables(records, likelihood, base)
    kind = int(tables.kind[0])
    clusters = new_clusters(records, kind, capacity, places)
    scratch = new_scratch(records, clusters.length.shape[0], kind, capacity)
    return Store(records, tables, clusters, scratch)


def _words(data: Data) -> Records:
    if len(data.words) and (data.counts.min() < 1 or data.words.min() < 0):
        raise ValueError("words are numbered from 0, and their counts are at least 1")
    words, offsets = np.ascontiguousarray(data.words, np.int32), np.ascontiguousarray(data.offsets, np.int64)
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = rows * (int(words.max(initial=0)) + 1) + words
    if len(np.unique(keys)) != len(keys):
        raise ValueError("the words of a record must be distinct: add up their counts")
    counts = np.ascontiguousarray(data.counts, np.int32)
    nothing = np.zeros((0, 0))
    return Records(offsets, words, counts, nothing, np.zeros(0), np.zeros(0))


def _vectors(vectors: np.ndarray, likelihood: Likelihood[Any, Any]) -> Records:
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError("vectors must be the rows of an array of finite numbers")
    dimension = likelihood.dimension  # type: ignore[attr-defined]
    if vectors.shape[1] != dimension:
        raise ValueError(f"the likelihood has {dimension} dimensions, the vectors have {vectors.shape[1]}")
    along = np.zeros(0)
    if isinstance(likelihood, VectorFamily):
        if likelihood.forget < 1.0:
            raise ValueError("forget must be 1 offline: no record of a finite set is forgotten")
        rows = np.ascontiguousarray(vectors - np.asarray(likelihood.mean), np.float64)
        squares = np.einsum("nd,nd->n", rows, rows)
    elif isinstance(likelihood, VonMisesFisher):
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
        if np.abs(lengths - 1.0).max() > 1e-3:
            worst = int(np.abs(lengths - 1.0).argmax())
            raise ValueError(f"record {worst} has length {lengths[worst]:.6g}: unit vectors are needed")
        rows = np.ascontiguousarray(vectors / lengths[:, np.newaxis], np.float32)
        squares = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
        along = rows @ likelihood.direction
    else:
        rows = np.ascontiguousarray(vectors, np.float64)
        whole = (rows >= 0.0).all() and (rows == np.floor(rows)).all()
        if isinstance(likelihood, BetaBernoulli):
            if not whole or (rows > 1.0).any():
                raise ValueError("BetaBernoulli is for features of 0 or 1, and there are other numbers")
            squares = np.zeros(len(rows))
        elif not whole:
            raise ValueError(f"{type(likelihood).__name__} is for counts, and there are other numbers")
        else:
            squares = _log_factorials(rows).sum(axis=1)
    nothing = np.zeros(0, np.int32)
    return Records(np.zeros(1, np.int64), nothing, nothing, rows, squares, along)


def log_coefficients(records: Records) -> np.ndarray:
    """log of the multinomial coefficient of every record, shape (N,), in nats; 0 for vectors.

    No clustering depends on it, so the kernels leave it out.
    """
    n = max(len(records.offsets) - 1, len(records.vectors))
    if records.vectors.shape[1]:
        return np.zeros(n)
    rows = np.repeat(np.arange(n), np.diff(records.offsets))
    tokens = np.bincount(rows, records.counts, n).astype(np.int64)
    table = np.zeros(int(tokens.max(initial=0)) + 1)
    np.cumsum(np.log(np.arange(1, len(table))), out=table[1:])
    return np.asarray(table[tokens] - np.bincount(rows, table[records.counts], n))


def _log_factorials(counts: np.ndarray) -> np.ndarray:
    table = np.zeros(int(counts.max(initial=0)) + 1)
    np.cumsum(np.log(np.arange(1, len(table))), out=table[1:])
    return np.asarray(table[counts.astype(np.int64)])


def _log_gammas(start: float, count: int) -> np.ndarray:
    """log Gamma(start + n) for n below ``count``."""
    values = np.empty(count)
    log_gammas(start, values)
    return values


def new_tables(records: Records, likelihood: Likelihood[Any, Any], base: np.ndarray | None = None) -> Tables:
    """What the kernels read of a likelihood."""
    floats, nothing = np.zeros(N_FLOATS), np.zeros(0)
    n = max(len(records.offsets) - 1, len(records.vectors))
    fields: dict[str, Any] = dict.fromkeys(
        ("word", "tokens", "types", "mass", "first", "second", "grid"), nothing
    )
    fields["factor"] = np.zeros((0, 0))
    d = records.vectors.shape[1]
    match likelihood:
        case DirichletMultinomial() | HierarchicalDirichlet() | HierarchicalPitmanYor():
            kind = _word_tables(records, likelihood, base, fields)
        case Gaussian():
            kind = GAUSSIAN
            floats[normals.VARIANCE], floats[normals.MEAN_VARIANCE] = (
                likelihood.variance,
                likelihood.mean_variance,
            )
        case NormalInverseGamma():
            kind = GAMMA
            floats[normals.KAPPA], floats[normals.SHAPE] = likelihood.kappa, likelihood.shape
            fields["second"] = np.full(d, likelihood.scale)
        case NormalInverseWishart():
            kind = WISHART
            floats[wishart.KAPPA], floats[wishart.DEGREES] = likelihood.kappa, likelihood.nu
            fields["factor"] = np.linalg.cholesky(likelihood.prior_scale)
        case BetaBernoulli():
            kind = BERNOULLI
            fields["first"], fields["second"] = np.full(d, likelihood.a), np.full(d, likelihood.b)
        case GammaPoisson():
            kind = POISSON
            fields["first"], fields["second"] = np.full(d, likelihood.shape), np.full(d, likelihood.rate)
        case VonMisesFisher():
            kind = SPHERE
            floats[sphere.MEAN_CONCENTRATION] = likelihood.mean_concentration
            fields["grid"] = np.array(likelihood.concentrations, np.float64)
            fields["first"], fields["second"] = np.zeros(1), np.zeros(len(fields["grid"]))
        case _:
            raise ValueError(f"{type(likelihood).__name__} has no offline kernels")
    return Tables(np.array([kind]), floats, **fields, fresh=np.zeros(n))


def base_measure(data: Data, likelihood: HierarchicalDirichlet | HierarchicalPitmanYor) -> np.ndarray:
    """p_w by word, shape (V,), learned from all records at once (a plug-in)."""
    vocabulary = int(data.words.max(initial=-1)) + 1
    by_word = np.bincount(data.words, weights=data.counts, minlength=vocabulary)
    return _learned(likelihood, by_word, np.bincount(data.words, minlength=vocabulary))


def _learned(
    likelihood: HierarchicalDirichlet | HierarchicalPitmanYor, by_word: np.ndarray, by_record: np.ndarray
) -> np.ndarray:
    """From a word's tokens, or under Pitman-Yor processes from how many records hold it.

    There a word counts once in a cluster, and no clustering is known yet.
    """
    seen = by_word if isinstance(likelihood, HierarchicalDirichlet) else by_record
    return np.asarray((seen + 0.5) / (seen + 0.5).sum())


def _word_tables(
    records: Records,
    likelihood: DirichletMultinomial | HierarchicalDirichlet | HierarchicalPitmanYor,
    base: np.ndarray | None,
    fields: dict[str, Any],
) -> int:
    vocabulary = int(records.words.max(initial=-1)) + 1
    by_word = np.bincount(records.words, weights=records.counts, minlength=vocabulary)
    most, tokens = int(by_word.max(initial=0.0)), int(by_word.sum())
    if isinstance(likelihood, DirichletMultinomial):
        size = likelihood.vocabulary_size or max(vocabulary, 1)
        if size < vocabulary:
            raise ValueError(f"the vocabulary has {size} words, the records have {vocabulary}")
        fields["word"] = _log_gammas(likelihood.beta, most + 2)
        fields["tokens"] = _log_gammas(likelihood.beta * size, tokens + 1)
        return FLAT
    b1 = likelihood.base_concentration
    by_record = np.bincount(records.words, minlength=vocabulary)
    p = _base_measure(likelihood, base, by_word, by_record)
    fields["tokens"] = _log_gammas(b1, tokens + 1)
    if isinstance(likelihood, HierarchicalDirichlet):
        if likelihood.document_beta is not None:
            raise ValueError("document_beta must be None offline: with it the records are not exchangeable")
        fields["mass"] = b1 * p
        return BASE
    d = likelihood.word_discount
    fields["word"] = np.concatenate([[0.0], _log_gammas(1.0 - d, most + 1)])
    fields["types"] = np.concatenate([[0.0], np.cumsum(np.log(b1 + d * np.arange(vocabulary + 1)))])
    with np.errstate(divide="ignore"):
        fields["mass"] = np.log(p)
    return TABLES


def _base_measure(
    likelihood: HierarchicalDirichlet | HierarchicalPitmanYor,
    base: np.ndarray | None,
    by_word: np.ndarray,
    by_record: np.ndarray,
) -> np.ndarray:
    """p_w by word: as given, or the family's, or learned."""
    found = likelihood.base if base is None else base
    if found is not None:
        p = np.asarray(found, np.float64)
        if len(p) < len(by_word) or not (p[np.flatnonzero(by_word)] > 0.0).all():
            raise ValueError("the base measure must give every word of the records a probability above 0")
        return p[: len(by_word)]
    return _learned(likelihood, by_word, by_record)
