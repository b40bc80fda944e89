"""The contract of a likelihood family.

A family is a value: parameters, their checks, and what follows from them. Its statistics and kernels
stand in the same file, and serve the stream and the offline side alike.

And how wide clusters are and how far apart, where that is unknown: near neighbours mostly share theirs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.likelihoods.rows import squared_distance

WITHIN = 0.2
"""Share of the variance of all vectors that is expected inside a cluster, where scales are automatic."""


ROUNDING = 1e-12
"""Share of the largest number of a column by which it may differ for being rounded."""


class Moments(NamedTuple):
    """What automatic parameters of families of vectors follow from.

    ``mean`` and ``variance`` of the vectors are of shape (D,); ``within`` is the covariance to be expected
    inside a cluster, of :func:`~streamdp.likelihoods.base.within`. ``directions``, of shape (4,), is what
    :func:`~streamdp.likelihoods.base.directions` says, and :func:`~streamdp.likelihoods.base.even` of the
    vectors in units of their deviation.
    """

    mean: np.ndarray
    variance: np.ndarray
    within: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> Moments:
        """The moments of the rows; a column that never varies has the mean variance of the others, or 1."""
        variance = vectors.var(axis=0)
        varies = np.sqrt(variance) > ROUNDING * np.abs(vectors).max(axis=0, initial=0.0)
        variance[~varies] = variance[varies].mean() if varies.any() else 1.0
        share = even(_sample(vectors) / np.sqrt(variance))
        like = np.append(directions(vectors), share)
        return cls(vectors.mean(axis=0), variance, within(vectors, variance, share), like)


ABSENT = np.zeros(0)
"""In the place of a part that records do not have."""


class Parts(NamedTuple):
    """What there is for the words, or fields, of records, and for their vectors; may be ``ABSENT``."""

    bag: Any
    vector: Any


def is_absent(part: Any) -> bool:
    """Whether there is nothing in the place of a part."""
    return len(part) == 0


class Likelihood(ABC):
    """A family of distributions over records with the parameters of a cluster integrated out."""

    sparse: ClassVar[bool]
    """Whether records are word counts (else: vectors)."""

    of_texts: ClassVar[bool] = False
    """Whether records mostly stand for texts, so that what they are about comes and goes as that of texts."""

    settings: ClassVar[Mapping[str, str]]
    """The settings that mean something to the family, and the parameter that each of them is."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Parameters that samplers draw anew where they are automatic."""

    @classmethod
    def automatic(cls, given: Mapping[str, Any], moments: Moments) -> Self:
        """The family with these parameters, the others as the records suggest; by default, as they are."""
        return cls(**given)

    @property
    def bag(self) -> Any:
        """The family of the words, or fields, of each record; None where records have none."""
        return None

    @property
    def vector(self) -> Any:
        """The family of the vector of each record; None where records have none."""
        return None

    @property
    def main(self) -> Any:
        """The part whose parameters settings name, and samplers draw."""
        return self

    def with_main(self, part: Any) -> Any:
        """The family with another main part."""
        return part

    @property
    def part_terms(self) -> Parts:
        """What the stream's kernels read, by part."""
        return Parts(*(ABSENT if part is None else part.terms() for part in (self.bag, self.vector)))

    @property
    def ordered(self) -> bool:
        """Whether log H of a cluster depends on the order of its records."""
        return False

    @abstractmethod
    def terms(self) -> Any:
        """What the stream's kernels read: a named tuple, whose class says which kernels are meant."""

    @abstractmethod
    def log_marginal(self, records: Sequence[Any], base: Any = None) -> float:
        """log H of records as one cluster, in nats; ``base`` is p_w by word where the family needs it."""


SAMPLE = 200
"""Vectors that are compared with each other, at most."""
PER = 40
"""One neighbour of each is looked at for so many vectors: five of 200."""
ROUNDS = 3
"""Times that neighbours are sought, each by the distance that the last ones suggest."""
FULL = 100
"""Dimensions up to which covariances are learned, too: of more, 200 vectors say too little."""
SINGLE = 0.2
"""Share of the variance within a cluster where one vector has no neighbours."""
LEAST_WITHIN = 1e-3
"""Share of the variance that is within clusters at least, though all neighbours be equal."""
AMONG = 0.07
"""Share of a cluster's members that are taken to be the near neighbours of one."""
ENOUGH = 10
"""Dimensions from which on near neighbours are far enough apart."""


def within(vectors: np.ndarray, variance: np.ndarray, share: float = 1.0) -> np.ndarray:
    """The covariance to be expected inside a cluster.

    Half the mean square of the differences between vectors and their nearest neighbours, where "near" is
    first by the variance in each dimension, then by what such differences have come to, so that directions
    which tell clusters apart count for more (cf. Hastie and Tibshirani 1996). Neighbours are nearer than two
    members of a cluster are on average, so it is rather too small: a cluster learns that it is wider, while
    two clusters that began as one are told apart late. In less than ten dimensions they would be nearer by
    far, so their differences are taken to be as large as in ten.

    Parameters
    ----------
    vectors
        Of shape (N, D); of more than 200, 200 are looked at, evenly spaced.
    variance
        Of each dimension, > 0, of shape (D,).
    share
        That of the dimensions in which neighbours differ (:func:`even`).

    Returns
    -------
    Of shape (D, D), symmetric and positive definite, in the square of the data's unit; of shape (D,), the
    diagonal, for more than 100 dimensions.
    """
    vectors = _sample(vectors)
    count, dimension = vectors.shape
    if count < 2:
        return np.diag(SINGLE * variance) if dimension <= FULL else SINGLE * variance
    deviation = np.sqrt(variance)
    unit = (vectors - vectors.mean(axis=0)) / deviation
    least = np.maximum(grain(vectors) / variance, LEAST_WITHIN)
    least = np.where(vectors.var(axis=0) > LEAST_WITHIN * variance, least, 1.0)
    near = -(-count // PER)
    scatter = np.ones(dimension)
    for _ in range(ROUNDS):
        gaps = (unit[:, None] - unit[nearest(whitened(unit, scatter), near)]).reshape(-1, dimension)
        scatter = _scatter(gaps) + (least if dimension > FULL else np.diag(least))
    independent = dimension * share
    if independent < ENOUGH:
        scatter *= nearness(ENOUGH) / nearness(independent)
    return scatter * (variance if scatter.ndim == 1 else np.outer(deviation, deviation))


RECORDS = 20.0
"""How many records the spread that neighbours suggest counts for."""

STRENGTHS = (20.0, 50.0, 150.0, 500.0, 2000.0)
"""For how many records the spread of the clusters found may count in what is expected of the next cluster."""

NOTHING = np.zeros(1)
"""No variance of rounding, for any number of dimensions."""

MEMBERS = 5
"""Records that a cluster has at least which tells how wide clusters are."""


COARSE = 0.1
"""Share of a column's variance from which on its values are few."""


def grain(vectors: np.ndarray) -> np.ndarray:
    """The variance that each dimension has for its values being few, shape (D,), at most all of it.

    That of numbers on either side of the median gap between neighbouring values: a column of two values does
    not count for all, and one that is continuous loses nothing. A quarter of it where all columns are so.
    """
    vectors = _sample(vectors)
    found = np.zeros(vectors.shape[1])
    for d, column in enumerate(np.sort(vectors, axis=0).T):
        gaps = np.diff(column)
        gaps = gaps[gaps > 0.0]
        found[d] = min(float(np.median(gaps)) ** 2 / 4.0, float(column.var())) if len(gaps) else 0.0
    fine = found < COARSE * vectors.var(axis=0)
    return found if fine.any() else found / 4.0


RIDGE = 1e-2
"""Share of the variances that is added to them, so that columns which nearly follow from others do not count
for all."""


def pooled(
    counts: np.ndarray, scatters: np.ndarray, first: np.ndarray, least: np.ndarray
) -> np.ndarray | None:
    """The covariance within clusters, or the variances, as the clusters found show it.

    The sum of the clusters' scatters over that of their degrees of freedom; ``first`` counts for one more.
    Below 2D of them it is drawn to its diagonal.

    Parameters
    ----------
    counts
        Records of each cluster, shape (K,).
    scatters
        Sums of squares and products of deviations from the clusters' means: (K, D, D), or (K, D).
    first
        What was expected at first, of shape (D, D), or (D,).
    least
        The variance that each dimension has for its values being few, of shape (D,).

    Returns
    -------
    Of the shape of ``first``; None where no cluster has five records.
    """
    large = counts >= MEMBERS
    if not large.any():
        return None
    freedom = float((counts[large] - 1.0).sum())
    scale = (scatters[large].sum(axis=0) + first) / (freedom + 1.0)
    if scale.ndim == 1:
        return np.asarray(scale + least)
    share = max(1.0 - freedom / (2.0 * len(first)), 0.0)
    variances = np.diagonal(scale)
    return np.asarray((1.0 - share) * scale + np.diag((share + RIDGE) * variances + least))


def nearness(dimension: float) -> float:
    """Mean square of the difference of near neighbours, as a share of that of any two of a Gaussian cluster.

    The density of the difference is taken to be what it is at 0: with p = ``AMONG``, D dimensions and half
    the squared difference x in units of the variance, p = (x / 2)^(D/2) / Gamma(D/2 + 1) within radius x,
    whose mean there is D / (D + 2) of the largest.
    """
    half = dimension / 2.0
    return (AMONG * math.gamma(half + 1.0)) ** (1.0 / half) / (half + 1.0)


EVENLY = 16
"""Dimensions from which on it is asked whether differences lie evenly in all of them."""


def directions(vectors: np.ndarray) -> np.ndarray:
    """What vectors, shape (N, D), are like as directions, shape (3,).

    The lower quartile of the cosines between them, and the median; 0 where there are no two. Where clusters
    are several, a quarter of all pairs and more are of different ones: so the first tells what these have in
    common, whatever the few clusters are like that the vectors happen to be of.

    Then in which share of the dimensions they differ from their nearest neighbours (:func:`even`). Of more
    than 200 vectors, 200 are compared.
    """
    units = _units(_sample(vectors))
    if len(units) < 2:
        return np.array([0.0, 0.0, 1.0])
    first, median = np.quantile(_cosines(units), (0.25, 0.5))
    return np.array([first, median, even(units)])


def even(vectors: np.ndarray) -> float:
    """In which share of the dimensions vectors, shape (N, D), differ from their nearest neighbours.

    One over D times the mean squared cosine between such differences, which is 1 where these lie evenly on
    all sides; rather too high by what chance may do, and 1 in less than 16 dimensions.
    """
    dimension, gaps, free = vectors.shape[1], [], np.ones(len(vectors), bool)
    if dimension < EVENLY or len(vectors) < 2:
        return 1.0
    for i, j in enumerate(nearest(vectors, 1)[:, 0].tolist()):
        if free[i] and free[j] and (vectors[i] != vectors[j]).any():  # each once: so they are independent
            free[[i, j]] = False
            gaps.append(vectors[i] - vectors[j])
    if len(gaps) < 2:
        return 1.0
    squares = np.square(_cosines(_units(np.array(gaps))))
    least = squares.mean() * (1.0 - min(2.0 * math.sqrt(2.0 / len(squares)), 1.0))
    return float(1.0 / max(dimension * least, 1.0))


def _units(vectors: np.ndarray) -> np.ndarray:
    """At length one; zeros as they are."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(largest > 0.0, largest, 1.0)
    lengths = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    return np.asarray(scaled / np.where(lengths > 0.0, lengths, 1.0))


def _cosines(units: np.ndarray) -> np.ndarray:
    """Of every two."""
    products = np.einsum("id,jd->ij", units, units)  # without BLAS, as below
    return np.asarray(products[np.triu_indices(len(units), 1)])


def _sample(vectors: np.ndarray) -> np.ndarray:
    """So many of the vectors as are compared, evenly spaced."""
    found = len(vectors)
    return vectors if found <= SAMPLE else vectors[np.arange(SAMPLE) * found // SAMPLE]


def nearest(vectors: np.ndarray, near: int) -> np.ndarray:
    """The nearest other vectors of each, nearest first (ties: the earlier), of shape (N, ``near``)."""
    found = np.empty((len(vectors), near), np.int64)
    if near:
        find_nearest(np.ascontiguousarray(vectors, np.float64), np.empty(near), found)
    return found


@entry
def find_nearest(vectors: np.ndarray, squares: np.ndarray, found: np.ndarray) -> None:
    """The same; ``squares`` is room for as many numbers."""
    near = found.shape[1]
    for i in range(vectors.shape[0]):
        known = 0
        for j in range(vectors.shape[0]):
            square = squared_distance(vectors[i], 0, vectors[j])
            if j == i or (known == near and not square < squares[near - 1]):
                continue
            known = min(known + 1, near)
            at = known - 1
            while at > 0 and square < squares[at - 1]:
                squares[at], found[i, at] = squares[at - 1], found[i, at - 1]
                at -= 1
            squares[at], found[i, at] = square, j


def _scatter(gaps: np.ndarray) -> np.ndarray:
    """Half the mean square of differences; the more it is drawn to its diagonal, the fewer they are."""
    # einsum without BLAS, whose sums may depend on the number of threads
    count, dimension = gaps.shape
    squares = 0.5 * np.square(gaps).mean(axis=0)
    if dimension > FULL:
        return np.asarray(squares)
    products = np.einsum("nd,ne->de", gaps, gaps) / (2.0 * count)
    share = dimension / (dimension + count)
    return np.asarray((1.0 - share) * products + share * np.diag(squares))


def variances(covariance: np.ndarray) -> np.ndarray:
    """The diagonal of a covariance, shape (D, D); or it is the diagonal, shape (D,)."""
    return covariance if covariance.ndim == 1 else np.diagonal(covariance)


def whitened(vectors: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """Vectors of which the squared distances are those under the inverse of ``scatter``."""
    if scatter.ndim == 1:
        return np.asarray(vectors / np.sqrt(scatter))
    factor, seen = np.linalg.cholesky(scatter), np.empty_like(vectors)
    for d in range(len(factor)):
        seen[:, d] = (vectors[:, d] - (seen[:, :d] * factor[d, :d]).sum(axis=1)) / factor[d, d]
    return seen
