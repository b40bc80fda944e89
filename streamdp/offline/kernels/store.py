"""Records, and the statistics of clusters of them, as flat arrays.

A cluster has a *slot*. Vectors: a row of each statistic per slot. Words: word w owns the places
``start[w] .. start[w + 1]`` of the postings, one for each record that holds it, so that there is
always room for the clusters that hold it, ``length[w]`` of them; see :func:`new_clusters`. Slot 0 is
always empty; slot 1 holds the group of records under consideration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FLAT, BASE, TABLES, GAUSSIAN, GAMMA, WISHART, BERNOULLI, POISSON, SPHERE = range(9)
"""Kinds: words under a symmetric Dirichlet, a Dirichlet with a base, a Pitman-Yor process; vectors."""

FIRST_VECTOR = GAUSSIAN

EMPTY, GROUP, FIRST_SLOT = range(3)

N_FLOATS = 8


class Records(NamedTuple):
    """What is clustered. Words or vectors are empty where the other is used."""

    offsets: np.ndarray  # int64[N + 1]
    words: np.ndarray  # int32[nnz] distinct within a record
    counts: np.ndarray  # int32[nnz] at least 1
    vectors: np.ndarray  # float64[N, D], or float32; less the prior mean
    squares: np.ndarray  # float64[N] squared length of a vector, or sum of its log factorials
    along: np.ndarray  # float64[N] product of a unit vector with the prior mean direction


class Tables(NamedTuple):
    """What the likelihood's parameters give; ``floats`` are read by the indices of each kind."""

    kind: np.ndarray  # int64[1]
    floats: np.ndarray  # float64[N_FLOATS]
    word: np.ndarray  # float64[most of a word + 2] log Gamma(beta + n), or log Gamma(n - d)
    tokens: np.ndarray  # float64[tokens + 1] log Gamma(b1 + n)
    types: np.ndarray  # float64[V + 1] sum of log(b1 + d t) for t below
    mass: np.ndarray  # float64[V] b1 p_w, or log p_w
    first: np.ndarray  # float64[D] a of beta and gamma priors
    second: np.ndarray  # float64[D] b of beta, gamma and inverse gamma priors
    factor: np.ndarray  # float64[D, D] Psi, or empty
    grid: np.ndarray  # float64[G] concentrations on the sphere
    fresh: np.ndarray  # float64[N] log H of a record alone


class Clusters(NamedTuple):
    """Statistics by slot, C of them."""

    size: np.ndarray  # int64[C] records
    log_h: np.ndarray  # float64[C] log marginal likelihood
    total: np.ndarray  # float64[C] tokens; or sum of ``squares``, or of ``along``
    types: np.ndarray  # int64[C] distinct words
    sums: np.ndarray  # float64[C, D] sum, or mean, of the vectors
    spread: np.ndarray  # float64[C, D] squared deviations, of the inverse gamma kind
    location: np.ndarray  # float64[C, D] of the predictive
    precision: np.ndarray  # float64[C, D] of the predictive
    factor: np.ndarray  # float64[C, D, D] lower Cholesky factor of Psi_n
    constant: np.ndarray  # float64[C] of the predictive
    power: np.ndarray  # float64[C] of the predictive
    weight: np.ndarray  # float64[C] of the predictive
    start: np.ndarray  # int64[V + 1]
    length: np.ndarray  # int64[V]
    slot: np.ndarray  # int32[nnz]
    held: np.ndarray  # int32[nnz] tokens of the word in the slot


class Scratch(NamedTuple):
    """Working memory of a kernel."""

    gain: np.ndarray  # float64[C]
    hits: np.ndarray  # int64[C]
    bag: np.ndarray  # int32[V] tokens of the group by word
    bag_words: np.ndarray  # int32[V] its distinct words
    bag_counts: np.ndarray  # int32[V] their tokens
    meta: np.ndarray  # int64[2] how many distinct words, and tokens
    slot: np.ndarray  # int64[1]
    value: np.ndarray  # float64[1]
    vector: np.ndarray  # float64[D]
    matrix: np.ndarray  # float64[D, D]


BAG_TYPES, BAG_TOKENS = range(2)


class Store(NamedTuple):
    """Everything a likelihood kernel reads and writes."""

    records: Records
    tables: Tables
    clusters: Clusters
    scratch: Scratch


def new_clusters(records: Records, kind: int, capacity: int, places: int | None = None) -> Clusters:
    """Empty clusters, ``capacity`` slots.

    A record may be in one slot at a time, or where ``places`` is given in several, as long as no more
    than that many slots hold any word.
    """
    d = records.vectors.shape[1]
    full = (capacity, d)
    nothing = (0, d)
    two_rows = kind in (GAMMA, BERNOULLI)
    vocabulary = int(records.words.max(initial=-1)) + 1
    start = np.zeros(vocabulary + 1, np.int64)
    room = np.bincount(records.words, minlength=vocabulary)
    np.cumsum(room if places is None else np.full(vocabulary, places), out=start[1:])
    return Clusters(
        size=np.zeros(capacity, np.int64),
        log_h=np.zeros(capacity),
        total=np.zeros(capacity),
        types=np.zeros(capacity, np.int64),
        sums=np.zeros(full),
        spread=np.zeros(full if kind == GAMMA else nothing),
        location=np.zeros(full if two_rows else nothing),
        precision=np.zeros(full if kind == GAMMA else nothing),
        factor=np.zeros((capacity if kind == WISHART else 0, d, d)),
        constant=np.zeros(capacity),
        power=np.zeros(capacity),
        weight=np.zeros(capacity),
        start=start,
        length=np.zeros(vocabulary, np.int64),
        slot=np.zeros(start[-1], np.int32),
        held=np.zeros(start[-1], np.int32),
    )


def new_scratch(records: Records, vocabulary: int, kind: int, capacity: int) -> Scratch:
    """Working memory for clusters of that capacity."""
    d = records.vectors.shape[1]
    side = d if kind == WISHART else 0
    return Scratch(
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(vocabulary, np.int32),
        np.zeros(vocabulary, np.int32),
        np.zeros(vocabulary, np.int32),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros(d),
        np.zeros((side, side)),
    )


_BY_WORD = ("start", "length", "slot", "held")


def grown(store: Store, capacity: int) -> Store:
    """The same with ``capacity`` slots; the new ones are to be cleared before use."""
    old = store.clusters
    fields = {}
    for name, values in zip(old._fields, old, strict=True):
        if name in _BY_WORD or values.shape[0] == 0:
            fields[name] = values
            continue
        fields[name] = np.zeros((capacity, *values.shape[1:]), values.dtype)
        fields[name][: values.shape[0]] = values
    scratch = store.scratch._replace(gain=np.zeros(capacity), hits=np.zeros(capacity, np.int64))
    return store._replace(clusters=Clusters(**fields), scratch=scratch)
