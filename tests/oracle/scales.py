"""How vectors look back: pooled scatter, strength by marginal likelihood, unions by the whole joint."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .enumeration import founders_of, log_likelihood, log_prior
from .families import Family
from .priors import Prior

STRENGTHS = (20.0, 50.0, 150.0, 500.0, 2000.0)
MEMBERS = 5
RIDGE = 0.01
LEAST_GAIN = 1e-6

LOOSE = 0.1
TAILS = (4.0, 25.0)

Vector = Sequence[float]
Maker = Callable[[np.ndarray, float, float], Family]
"""The family of a covariance within clusters, of how many records it counts for, and of the share of its
records that the prior mean counts for."""


class Found(NamedTuple):
    """Labels after a look, and the covariance and strength that were chosen."""

    labels: list[int]
    scale: np.ndarray
    strength: float


def grain(vectors: Sequence[Vector]) -> np.ndarray:
    """The variance of rounding to the median gap between different values; at most all that there is."""
    found = []
    for column in zip(*vectors, strict=True):
        values = sorted(set(column))
        gap = float(np.median(np.diff(values))) if len(values) > 1 else 0.0
        found.append(min(gap**2 / 12.0, float(np.var(column))))
    return np.diag(found)


def pooled(
    clusters: Sequence[Sequence[Vector]], first: np.ndarray, least: np.ndarray, ridge: float = RIDGE
) -> np.ndarray:
    """The scatter of clusters of five and more over its degrees of freedom; ``first`` counts for one.

    Variances are larger by a share, ``ridge``, and by what rounding adds.
    """
    size = len(first)
    total, freedom = np.array(first, float), 0
    for members in clusters:
        if len(members) >= MEMBERS:
            mean = [math.fsum(x[d] for x in members) / len(members) for d in range(size)]
            for x in members:
                total = total + np.outer(np.subtract(x, mean), np.subtract(x, mean))
            freedom += len(members) - 1
    scale = total / (freedom + 1)
    share = max(0.0, 1.0 - freedom / (2 * size))
    return (1.0 - share) * scale + (share + ridge) * np.diag(np.diagonal(scale)) + least


def log_joint(
    labels: Sequence[int], vectors: Sequence[Vector], times: Sequence[float], prior: Prior, family: Family
) -> float:
    """log p(z, x)."""
    partition = founders_of(labels)
    views = [None] * len(vectors)
    return log_prior(partition, times, prior) + log_likelihood(partition, vectors, family, views)


def look(
    vectors: Sequence[Vector],
    labels: Sequence[int],
    times: Sequence[float],
    prior: Prior,
    first: np.ndarray,
    make: Maker,
    strengths: Sequence[float] = STRENGTHS,
    *,
    counts: float = 20.0,
    ridge: float = RIDGE,
    strays: bool = True,
) -> Found:
    """Choose scale and strength, then unite while the joint rises; when nothing is united, take strays.

    At first the scale is ``first``, which ``counts`` for so many records.
    """
    found, scale, strength, before = list(labels), first, counts, None
    while found != before:
        before = found
        names = list(dict.fromkeys(found))
        clusters = [[x for x, own in zip(vectors, found, strict=True) if own == name] for name in names]
        suggested = pooled(clusters, first, grain(vectors), ridge)
        ways = [*((suggested, r) for r in strengths), (scale, strength)]
        sums = [sum(make(*way, LOOSE).log_marginal(members) for members in clusters) for way in ways]
        scale, strength = ways[sums.index(max(sums))]
        family = make(scale, strength, LOOSE)
        found = _unite(vectors, found, times, prior, family)
    if strays:
        found = _take_strays(vectors, found, times, prior, family)
    return Found(found, scale, strength)


def _unite(
    vectors: Sequence[Vector], labels: list[int], times: Sequence[float], prior: Prior, family: Family
) -> list[int]:
    """Always the two clusters whose union raises the joint most; the larger one (the older) stays."""
    found = labels
    while True:
        before = log_joint(found, vectors, times, prior, family)
        best, gain = found, LEAST_GAIN
        for a, b in itertools.combinations(dict.fromkeys(found), 2):  # a is the older
            into, gone = (a, b) if found.count(a) >= found.count(b) else (b, a)
            trial = [into if own == gone else own for own in found]
            after = log_joint(trial, vectors, times, prior, family)
            if after - before > gain:
                best, gain = trial, after - before
        if best is found:
            return found
        found = best


def _tailed(family: Any, members: Sequence[Vector], x: Vector, degrees: float) -> float:
    """The log predictive where the variance may be any of the tail's multiples."""
    size, n = len(x), len(members)
    mean = [math.fsum(y[d] for y in members) for d in range(size)]
    centre = [(family.kappa * family.m0[d] + mean[d]) / (family.kappa + n) for d in range(size)]
    scales = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    weights = [scale ** (-degrees / 2.0) * math.exp(-degrees / (2.0 * scale)) for scale in scales]
    total = 0.0
    for scale, weight in zip(scales, weights, strict=True):
        inner = [centre[d] + (x[d] - centre[d]) / math.sqrt(scale) for d in range(size)]
        density = math.exp(family.log_predictive(members, inner, None)) / scale ** (size / 2.0)
        total += weight / math.fsum(weights) * density
    return math.log(total)


def _members(vectors: Sequence[Vector], labels: Sequence[int], name: int) -> list[Vector]:
    return [x for x, label in zip(vectors, labels, strict=True) if label == name]


def _best_home(
    vectors: Sequence[Vector],
    labels: list[int],
    times: Sequence[float],
    prior: Prior,
    family: Any,
    name: int,
    degrees: float,
) -> tuple[float, list[int]]:
    """What a cluster gains as strays of another, at most, and the labels then; 0 where it stays."""
    own = _members(vectors, labels, name)
    before = log_prior(founders_of(labels), times, prior)
    best, gain = labels, LEAST_GAIN
    for other in dict.fromkeys(labels):
        members = _members(vectors, labels, other)
        if other == name or len(members) < max(len(own), MEMBERS):
            continue
        trial = [other if label == name else label for label in labels]
        nats = log_prior(founders_of(trial), times, prior) - before - family.log_marginal(own)
        nats += sum(_tailed(family, members, x, degrees) for x in own)
        if nats > gain:
            best, gain = trial, nats
    return (0.0 if best is labels else gain), best


def evidence_of_tail(
    vectors: Sequence[Vector],
    labels: list[int],
    times: Sequence[float],
    prior: Prior,
    family: Any,
    degrees: float,
) -> float:
    """What records of larger clusters gain, each foretold by the others, and each cluster as strays."""
    total = 0.0
    for i, (x, own) in enumerate(zip(vectors, labels, strict=True)):
        others = [vectors[j] for j, label in enumerate(labels) if label == own and j != i]
        if len(others) + 1 >= MEMBERS:
            total += _tailed(family, others, x, degrees) - family.log_predictive(others, x, None)
    for name in dict.fromkeys(labels):
        total += _best_home(vectors, labels, times, prior, family, name, degrees)[0]
    return total


def _take_strays(
    vectors: Sequence[Vector], labels: list[int], times: Sequence[float], prior: Prior, family: Any
) -> list[int]:
    """Small clusters first: part of a larger one, if its records are better there as maybe further out."""
    if not hasattr(family, "kappa"):
        return labels
    evidence = [evidence_of_tail(vectors, labels, times, prior, family, each) for each in TAILS]
    if max(evidence) <= 0.0:
        return labels
    degrees, found = TAILS[evidence.index(max(evidence))], labels
    for name in sorted(dict.fromkeys(labels), key=labels.count):
        found = _best_home(vectors, found, times, prior, family, name, degrees)[1]
    return found
