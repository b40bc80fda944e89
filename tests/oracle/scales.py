"""How vectors look back: pooled scatter, strength by marginal likelihood, unions by the whole joint."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .enumeration import founders_of, log_likelihood, log_prior
from .families import Family
from .priors import Prior

STRENGTHS = (20.0, 50.0, 150.0, 500.0, 2000.0)
MEMBERS = 5
ROUNDS = 4
LEAST_GAIN = 1e-6

Vector = Sequence[float]
Maker = Callable[[np.ndarray, float], Family]
"""The family of a covariance within clusters, and of how many records it counts for."""


class Found(NamedTuple):
    """Labels after a look, and the covariance and strength that were chosen."""

    labels: list[int]
    scale: np.ndarray
    strength: float


def pooled(clusters: Sequence[Sequence[Vector]], first: np.ndarray) -> np.ndarray:
    """The scatter of clusters of five and more over its degrees of freedom; ``first`` counts for one."""
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
    return (1.0 - share) * scale + share * np.diag(np.diagonal(scale))


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
) -> Found:
    """Choose scale and strength, then unite while the joint rises; until a round unites nothing."""
    found, scale, strength = list(labels), first, strengths[0]
    for _ in range(ROUNDS):
        names = list(dict.fromkeys(found))
        clusters = [[x for x, own in zip(vectors, found, strict=True) if own == name] for name in names]
        scale = pooled(clusters, first)
        sums = [sum(make(scale, r).log_marginal(members) for members in clusters) for r in strengths]
        strength = strengths[sums.index(max(sums))]
        united = _unite(vectors, found, times, prior, make(scale, strength))
        if united == found:
            break
        found = united
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
