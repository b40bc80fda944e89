"""How vectors look back: pooled scatter, strength by marginal likelihood, unions and parts by the joint.

Slow on purpose: what a change gains is the difference of two joints, each summed over all records.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .enumeration import founders_of, log_likelihood, log_prior
from .families import Family
from .priors import DistanceDependent, Prior

STRENGTHS = (20.0, 50.0, 150.0, 500.0, 2000.0)
MEMBERS = 5
RIDGE = 0.01
COARSE = 0.1
LEAST_GAIN = 1e-6

LOOSE = 0.1
TAILS = (4.0, 25.0)

Vector = Sequence[float]
PIECE = 8
TRUSTED = 2.0

Maker = Callable[[np.ndarray, float, float], Family]
"""The family of a covariance within clusters, of how many records it counts for, and of the share of its
records that the prior mean counts for."""

Cutter = Callable[[np.ndarray, int], Sequence[int]]
"""The piece, of so many points or fewer, that each point is in."""


class Found(NamedTuple):
    """Labels after a look, the covariance and strength that were chosen, and whether clusters were parted."""

    labels: list[int]
    scale: np.ndarray
    strength: float
    parted: bool = False


def grain(vectors: Sequence[Vector]) -> np.ndarray:
    """The square of half the median gap between different values; a quarter where all columns are so."""
    found, fine = [], False
    for column in zip(*vectors, strict=True):
        values = sorted(set(column))
        gap = float(np.median(np.diff(values))) if len(values) > 1 else 0.0
        found.append(min(gap**2 / 4.0, float(np.var(column))))
        fine = fine or found[-1] < COARSE * float(np.var(column))
    return np.diag(found) / (1.0 if fine else 4.0)


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


class Records(NamedTuple):
    """Records in order, their prior, and of which kind their family is."""

    vectors: Sequence[Vector]
    times: Sequence[float]
    prior: Prior
    make: Maker
    form: str
    """"full", "diagonal", or "known" where the variance is."""

    def of(self, labels: Sequence[int], name: int) -> list[Vector]:
        return [x for x, label in zip(self.vectors, labels, strict=True) if label == name]

    def clusters(self, labels: Sequence[int]) -> list[list[Vector]]:
        return [self.of(labels, name) for name in dict.fromkeys(labels)]


class Draft:
    """Labels, and the parameters that were chosen for them."""

    def __init__(
        self, records: Records, labels: Sequence[int], first: np.ndarray, scale: np.ndarray, strength: float
    ) -> None:
        self.records, self.labels, self.first = records, list(labels), first
        self.scale, self.strength = scale, strength

    def copied(self) -> "Draft":
        return Draft(self.records, self.labels, self.first, self.scale, self.strength)

    @property
    def family(self) -> Any:
        return self.records.make(self.scale, self.strength, LOOSE)

    def joint(self, labels: Sequence[int], known: dict[tuple[Vector, ...], float]) -> float:
        """The log joint; ``known`` are log H of clusters that were weighed under the same family."""
        total = log_prior(founders_of(labels), self.records.times, self.records.prior)
        for members in self.records.clusters(labels):
            key = tuple(map(tuple, members))
            if key not in known:
                known[key] = self.family.log_marginal(members)
            total += known[key]
        return total

    def choose(self, strengths: Sequence[float]) -> None:
        """Take what makes the clusters likeliest of what they suggest and what was."""
        clusters = self.records.clusters(self.labels)
        least = grain(self.records.vectors)
        ridge = RIDGE if self.records.form == "full" else 0.0
        ways = [(self.scale, self.strength)]
        if max(map(len, clusters)) >= MEMBERS:
            suggested = pooled(clusters, self.first, least, ridge)
            ways = [*((suggested, r) for r in strengths), *ways]
        make = self.records.make
        sums = [sum(make(*way, LOOSE).log_marginal(members) for members in clusters) for way in ways]
        self.scale, self.strength = ways[sums.index(max(sums))]

    def unite(self, strengths: Sequence[float], near: int) -> None:
        """Unite while that gains, choose, and again until none is united."""
        while self._unite(near):
            self.choose(strengths)

    def whitened(self, points: Sequence[Vector], *, full: bool = True) -> np.ndarray:
        """In units of the expected spread; not ``full``: of its variances alone."""
        if full and self.records.form == "full":
            return np.linalg.solve(np.linalg.cholesky(self.scale), np.array(points).T).T
        variances = np.diagonal(self.scale)
        return np.array(points) / np.sqrt(variances.mean() if self.records.form == "known" else variances)

    def nearest(self, near: int) -> dict[int, list[int]]:
        """The nearest clusters of each."""
        names = list(dict.fromkeys(self.labels))
        means = self.whitened([np.mean(members, axis=0) for members in self.records.clusters(self.labels)])
        far = {
            (a, b): math.dist(x, y)
            for (a, x), (b, y) in itertools.permutations(zip(names, means, strict=True), 2)
        }
        return {
            a: sorted((b for b in names if b != a), key=lambda b, a=a: far[a, b])[:near]  # type: ignore[misc]
            for a in names
        }

    def _unite(self, near: int) -> bool:
        """Always the two clusters whose union gains most; the larger one (the older) stays."""
        known: dict[tuple[Vector, ...], float] = {}
        united = False
        while True:
            before, best, gain = self.joint(self.labels, known), self.labels, LEAST_GAIN
            nearest = self.nearest(near)
            for a, b in itertools.combinations(dict.fromkeys(self.labels), 2):  # a is the older
                if b not in nearest[a] and a not in nearest[b]:
                    continue
                into, gone = (a, b) if self.labels.count(a) >= self.labels.count(b) else (b, a)
                trial = [into if own == gone else own for own in self.labels]
                nats = self.joint(trial, known) - before
                trust = min(TRUSTED / len(self.scale), 1.0)
                if trust < 1.0:
                    nats = trust * nats - (1.0 - trust) * self.told_apart(a, b)
                if nats > gain:
                    best, gain = trial, nats
            if best is self.labels:
                return united
            self.labels, united = best, True

    def told_apart(self, a: int, b: int) -> float:
        """What two clusters gain by two means on the line that tells them apart best."""
        one, other = self.records.of(self.labels, a), self.records.of(self.labels, b)
        n, p = len(one) + len(other), len(one) / (len(one) + len(other))
        between = 0.5 * math.log1p(p * (1.0 - p) * self.squared_gap(one, other))
        return n * (between + p * math.log(p) + (1.0 - p) * math.log(1.0 - p))

    def squared_gap(self, one: Sequence[Vector], other: Sequence[Vector]) -> float:
        """The squared Mahalanobis distance of two means, less what chance and its deviation make of it."""
        size, gap = len(self.scale), np.mean(one, axis=0) - np.mean(other, axis=0)
        if self.records.form == "known":
            square = float(gap @ gap) / float(np.trace(self.scale) / size)
        else:
            scatter = self.strength * self.scale
            for members in (one, other):
                centred = np.array(members) - np.mean(members, axis=0)
                scatter = scatter + centred.T @ centred
            freedom = len(one) + len(other) - 2.0 + self.strength
            if self.records.form == "full":
                square = float(gap @ np.linalg.inv(scatter) @ gap) * max(freedom - size - 1.0, 1.0)
            else:
                square = float(np.sum(gap**2 / np.diagonal(scatter))) * freedom
        chance = (size + math.sqrt(2.0 * size)) * (1.0 / len(one) + 1.0 / len(other))
        return max(square - chance, 0.0)

    def rearrange(
        self, cut: Cutter, tried: Sequence[int], strengths: Sequence[float], near: int, piece: int
    ) -> bool:
        """Cut clusters, unite the pieces, put records where they are likeliest, unite again; whether any."""
        names, last = set(), max(self.labels)
        for name in tried:
            places = [i for i, label in enumerate(self.labels) if label == name]
            if len(places) <= piece:
                continue
            most = max(piece, len(self.scale)) if self.records.form == "full" else piece
            points = self.whitened([self.records.vectors[i] for i in places], full=False)
            names.add(name)
            for i, number in zip(places, cut(points, most), strict=True):
                if number:
                    self.labels[i] = last + number
                    names.add(last + number)
            last = max(self.labels)
        if not names:
            return False
        self.choose(strengths)
        self.unite(strengths, near)
        self._settle(names, near)
        self.choose(strengths)
        self.unite(strengths, near)
        return True

    def _settle(self, names: set[int], near: int) -> None:
        """Put records of these clusters, and of those near them, where the joint is highest.

        Where records link to records, the first of a cluster stays: others would have to link elsewhere.
        """
        nearest, known = self.nearest(near), {}
        linked = isinstance(self.records.prior, DistanceDependent)
        concerned = {each for name in names if name in nearest for each in (name, *nearest[name])}
        for i, own in enumerate(list(self.labels)):
            if (
                own not in concerned
                or self.labels.count(own) == 1
                or (linked and self.labels.index(own) == i)
            ):
                continue
            trials = [
                [*self.labels[:i], name, *self.labels[i + 1 :]]
                for name in (own, *nearest[own])
                if name in self.labels
            ]
            best = self.joint(trials[0], known)
            for trial in trials[1:]:
                joint = self.joint(trial, known)
                if joint > best + LEAST_GAIN:
                    self.labels, best = trial, joint

    def take_strays(self) -> None:
        records = self.records
        self.labels = _take_strays(records.vectors, self.labels, records.times, records.prior, self.family)

    @property
    def weight(self) -> float:
        """The joint, and the best evidence of a tail, if there is any."""
        tails = [_evidence_of(self.records.vectors, self.labels, self.family, each) for each in TAILS]
        return self.joint(self.labels, {}) + max(0.0, *tails)


def look(
    vectors: Sequence[Vector],
    labels: Sequence[int],
    times: Sequence[float],
    prior: Prior,
    first: np.ndarray,
    make: Maker,
    strengths: Sequence[float] = STRENGTHS,
    *,
    form: str = "full",
    counts: float = 20.0,
    cut: Cutter | None = None,
    near: int = 1000,
    piece: int = PIECE,
    strays: bool = True,
) -> Found:
    """Choose scale and strength, unite while the joint rises, and take strays.

    At first the scale is ``first``, which ``counts`` for so many records. All clusters are ``cut`` and
    rearranged, too, and the better of both is taken.
    """
    draft = Draft(Records(vectors, times, prior, make, form), labels, first, first, counts)
    draft.choose(strengths)
    draft.unite(strengths, near)
    other, parted = draft.copied(), False
    if strays:
        draft.take_strays()
    if cut is not None and other.rearrange(cut, list(dict.fromkeys(other.labels)), strengths, near, piece):
        if strays:
            other.take_strays()
        parted = other.weight > draft.weight
    chosen = other if parted else draft
    return Found(chosen.labels, chosen.scale, chosen.strength, parted)


def _tailed(family: Any, members: Sequence[Vector], x: Vector, degrees: float) -> float:
    """The log predictive where the variance may be any of the tail's multiples."""
    size, n = len(x), len(members)
    mean = [math.fsum(y[d] for y in members) for d in range(size)]
    kappa = family.kappa if hasattr(family, "kappa") else family.s2 / family.v0
    centre = [(kappa * family.m0[d] + mean[d]) / (kappa + n) for d in range(size)]
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


def _evidence_of(vectors: Sequence[Vector], labels: list[int], family: Any, degrees: float) -> float:
    """What records of larger clusters gain, each foretold by the others."""
    total = 0.0
    for i, (x, own) in enumerate(zip(vectors, labels, strict=True)):
        others = [vectors[j] for j, label in enumerate(labels) if label == own and j != i]
        if len(others) + 1 >= MEMBERS:
            total += _tailed(family, others, x, degrees) - family.log_predictive(others, x, None)
    return total


def evidence_of_tail(
    vectors: Sequence[Vector],
    labels: list[int],
    times: Sequence[float],
    prior: Prior,
    family: Any,
    degrees: float,
) -> float:
    """What records of larger clusters gain, and each cluster as strays."""
    total = _evidence_of(vectors, labels, family, degrees)
    for name in dict.fromkeys(labels):
        total += _best_home(vectors, labels, times, prior, family, name, degrees)[0]
    return total


def _take_strays(
    vectors: Sequence[Vector], labels: list[int], times: Sequence[float], prior: Prior, family: Any
) -> list[int]:
    """Small clusters first: part of a larger one, if its records are better there as maybe further out."""
    evidence = [evidence_of_tail(vectors, labels, times, prior, family, each) for each in TAILS]
    if max(evidence) <= 0.0:
        return labels
    degrees, found = TAILS[evidence.index(max(evidence))], labels
    for name in sorted(dict.fromkeys(labels), key=labels.count):
        found = _best_home(vectors, found, times, prior, family, name, degrees)[1]
    return found
