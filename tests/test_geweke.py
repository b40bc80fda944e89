"""Getting it right (Geweke 2004): two ways to draw clustering and records together must agree.

One draws the clustering from the prior, parameters for its clusters, records from these. The other goes
on from a draw for ever: the sampler moves the clustering given the records, then parameters are drawn
given both, and new records from these. Whatever a move does wrong is fed back to it with every step.

Power: a sampler that is told a concentration twice as large, or another likelihood, is 7 to 14 standard
errors off in what the tests below allow 4.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from algebra import weights
from covering import covering
from posterior import Problem

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.offline.chain import Chain
from streamdp.offline.diagnostics import effective_sample_size
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, LinkGibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.samplers.permutation import Permutation
from streamdp.priors.base import Prior

N = 6
STEPS = 2_000
MOST, PLANTED = 4.0, 6.0
Random = np.random.Generator


class Model(ABC):
    """A family with its parameters left in. Records are the rows of an array."""

    likelihood: Any
    width: int
    base: np.ndarray | None = None

    @abstractmethod
    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        """Those of a cluster given its records; the prior, where there are none."""

    @abstractmethod
    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        """Record i of a cluster with these parameters."""

    def data(self, x: np.ndarray) -> Data:
        return Data.of_vectors(x)


class Normal(Model):
    likelihood = lk.Gaussian(2, variance=0.5, mean_variance=2.0, mean=(0.5, -0.5))
    width = 2

    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        f = self.likelihood
        v = 1.0 / (1.0 / f.mean_variance + len(members) / f.variance)
        mean = v * (np.array(f.mean) / f.mean_variance + members.sum(axis=0) / f.variance)
        return mean + math.sqrt(v) * rng.standard_normal(2)

    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        return np.asarray(parameters + math.sqrt(self.likelihood.variance) * rng.standard_normal(2))


class NormalGamma(Model):
    likelihood = lk.NormalInverseGamma(2, kappa=0.3, shape=3.0, scale=(1.0, 2.0), mean=0.4)
    width = 2

    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        f, n = self.likelihood, len(members)
        mean, scale, kappa = np.full(2, f.mean), np.array(f.scale), f.kappa + n
        if n:
            gap = members.mean(axis=0) - mean
            scale = scale + 0.5 * n * members.var(axis=0) + 0.5 * f.kappa * n / kappa * gap**2
            mean = mean + n / kappa * gap
        variance = scale / rng.standard_gamma(f.shape + 0.5 * n, 2)
        return mean + np.sqrt(variance / kappa) * rng.standard_normal(2), np.sqrt(variance)

    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        return np.asarray(parameters[0] + parameters[1] * rng.standard_normal(2))


class Bits(Model):
    likelihood = lk.BetaBernoulli(4, a=0.5, b=(0.5, 0.4, 1.0, 0.7))
    width = 4

    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        ones = members.sum(axis=0)
        return rng.beta(self.likelihood.a + ones, np.array(self.likelihood.b) + len(members) - ones)

    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        return np.asarray(rng.random(4) < parameters, float)


class Words(Model):
    likelihood = lk.DirichletMultinomial(0.4, 4)
    lengths = (5, 3, 4, 6, 2, 4)
    width = 4

    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        return rng.dirichlet(self.likelihood.beta + members.sum(axis=0))

    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        return np.asarray(rng.multinomial(self.lengths[i], parameters), float)

    def data(self, x: np.ndarray) -> Data:
        held = [np.flatnonzero(row) for row in x]
        return Data.of_words([(w, row[w]) for w, row in zip(held, x, strict=True)])


class ValueAndDirection(Model):
    """A field of three values, and a direction in the plane beside it."""

    likelihood = lk.Product(lk.Categorical(0.5), lk.VonMisesFisher(2, 3.0))
    width = 3
    base = np.array([0.0, -3.0, 1.0, 1.0, 1.0])

    def parameters(self, members: np.ndarray, rng: Random) -> Any:
        counts = np.bincount(members[:, 0].astype(int), minlength=3)
        x, y = members[:, 1:].sum(axis=0)
        kappa = float(np.mean(self.likelihood.vector.concentration))
        angle = rng.vonmises(math.atan2(y, x), kappa * math.hypot(x, y))
        return rng.dirichlet(self.likelihood.words.beta + counts), angle, kappa

    def record(self, i: int, parameters: Any, rng: Random) -> np.ndarray:
        shares, mean, kappa = parameters
        angle = rng.vonmises(mean, kappa)
        return np.array([rng.choice(3, p=shares), math.cos(angle), math.sin(angle)])

    def data(self, x: np.ndarray) -> Data:
        pairs = [(np.array([0, 1, 2 + int(value)]), np.ones(3, np.int64)) for value in x[:, 0]]
        return msgspec.structs.replace(Data.of_words(pairs), vectors=x[:, 1:].astype(np.float32))


MODELS: dict[str, Model] = {
    "normal": Normal(),
    "gamma": NormalGamma(),
    "bits": Bits(),
    "words": Words(),
    "beside": ValueAndDirection(),
}
PRIORS: dict[str, Any] = {"crp": pr.CRP(1.2), "pitman_yor": pr.PitmanYor(0.7, 0.3)}


def metropolis() -> Move:
    """The weight of a run must not follow the present clustering, so it is not left to the first call."""
    move = Permutation(order="markov")
    move.expansion = -0.6
    return move


SAMPLERS: dict[str, Callable[[], Move]] = {
    "gibbs": Gibbs,
    "split_merge": lambda: SplitMerge(3, scans=1, proposals=2),
    "allocated": lambda: SequentiallyAllocated(proposals=5),
    "exact": lambda: Permutation("exact"),
    "metropolis": metropolis,
}


def clustering(prior: Prior, rng: Random, frozen: tuple[int, ...] = ()) -> np.ndarray:
    """A draw from the prior, given where the first records are."""
    members = [[i for i, k in enumerate(frozen) if k == label] for label in range(len(set(frozen)))]
    labels = np.zeros(N, np.int64)
    labels[: len(frozen)] = frozen
    for i in range(len(frozen), N):
        joins, new = weights(prior, members, i, [0.0] * (i + 1))
        shares = np.array([*joins, new])
        labels[i] = np.searchsorted(np.cumsum(shares), rng.random() * shares.sum(), side="right")
        if labels[i] == len(members):
            members.append([])
        members[labels[i]].append(i)
    return labels


def records(model: Model, labels: np.ndarray, rng: Random, x: np.ndarray | None = None) -> np.ndarray:
    """New records; ``x`` are those that the parameters are drawn by."""
    held = [np.zeros((0, model.width)) if x is None else x[labels == k] for k in range(labels.max() + 1)]
    by_cluster = [model.parameters(members, rng) for members in held]
    return np.array([model.record(i, by_cluster[k], rng) for i, k in enumerate(labels)])


def watched(labels: np.ndarray, x: np.ndarray) -> list[float]:
    """Clusters, the largest one, how large the records are, and how far apart two of them."""
    sizes = np.bincount(labels)
    return [
        len(sizes),
        sizes.max(),
        math.log1p(float((x**2).mean())),
        math.log1p(float(((x[0] - x[1]) ** 2).sum())),
    ]


@cache
def drawn_forwards(family: str, prior: str) -> np.ndarray:
    """Independent draws, shape (STEPS, 4)."""
    rng, rows = np.random.default_rng(1), []
    for _ in range(STEPS):
        labels = clustering(PRIORS[prior], rng)
        rows.append(watched(labels, records(MODELS[family], labels, rng)))
    return np.array(rows)


def gaps(
    family: str, prior: str, make: Callable[[], Move], told: Any = None, likelihood: Any = None
) -> np.ndarray:
    """What the two ways differ by, in standard errors; the sampler may be ``told`` another model."""
    model, rng = MODELS[family], np.random.default_rng(2)
    forwards = drawn_forwards(family, prior)
    labels = clustering(PRIORS[prior], rng)
    x, rows = records(model, labels, rng), []
    for step in range(STEPS):
        own, data = likelihood or model.likelihood, model.data(x)
        chain = Chain(data, own, told or PRIORS[prior], labels, seed=step, base=model.base)
        make()(chain)
        labels = chain.labels
        x = records(model, labels, rng, x)
        rows.append(watched(labels, x))
    backwards = np.array(rows)
    worth = np.array([effective_sample_size(trace[np.newaxis]) for trace in backwards.T])
    error = np.sqrt(forwards.var(axis=0) / STEPS + backwards.var(axis=0) / worth)
    return np.asarray((backwards.mean(axis=0) - forwards.mean(axis=0)) / error)


@pytest.mark.parametrize(("family", "sampler"), covering(MODELS, SAMPLERS))
def test_both_ways_agree(family: str, sampler: str) -> None:
    prior = list(PRIORS)[(list(MODELS).index(family) + list(SAMPLERS).index(sampler)) % 2]
    z = gaps(family, prior, SAMPLERS[sampler])
    assert (np.abs(z) < MOST).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_finds_a_concentration_twice_as_large(sampler: str) -> None:
    z = gaps("normal", "crp", SAMPLERS[sampler], told=pr.CRP(2.4))
    assert np.abs(z).max() > PLANTED
    assert z[0] > 0.0 > z[1]


OTHERS = {
    "normal": {"variance": 0.8},
    "gamma": {"scale": (2.0, 4.0)},
    "bits": {"a": 1.0},
    "words": {"beta": 1.6},
    "beside": {"vectors": lk.VonMisesFisher(2, 12.0)},
}


@pytest.mark.parametrize("family", MODELS)
def test_finds_another_likelihood(family: str) -> None:
    other = dataclasses.replace(MODELS[family].likelihood, **OTHERS[family])
    z = gaps(family, "crp", Gibbs, likelihood=other)
    assert np.abs(z).max() > PLANTED


FROZEN = (0, 1, 0)
BESIDE: dict[str, tuple[Any, Callable[[], Move]]] = {
    "crp": (pr.CRP(1.2), lambda: SplitMerge(3, scans=1, proposals=2)),
    "exponential": (pr.DistanceDependent(0.9, pr.Exponential(2.0)), LinkGibbs),
}


def gaps_beside(prior: Any, make: Callable[[], Move], told: Any = None) -> np.ndarray:
    """As :func:`gaps`, for normal records of which the first are frozen."""
    model, rng = MODELS["normal"], np.random.default_rng(3)
    forwards, backwards = [], []
    for _ in range(STEPS):
        labels = clustering(prior, rng, FROZEN)
        forwards.append(watched(labels, records(model, labels, rng)))
    x = records(model, labels, rng)
    for step in range(STEPS):
        chain = Problem.of(x, model.likelihood).beside(FROZEN, told or prior, seed=step)
        chain.set_labels(labels[len(FROZEN) :])
        make()(chain)
        labels = np.concatenate([FROZEN, chain.labels])
        x = records(model, labels, rng, x)
        backwards.append(watched(labels, x))
    a, b = np.array(forwards), np.array(backwards)
    worth = np.array([effective_sample_size(trace[np.newaxis]) for trace in b.T])
    return np.asarray((b.mean(axis=0) - a.mean(axis=0)) / np.sqrt(a.var(0) / STEPS + b.var(0) / worth))


@pytest.mark.parametrize("name", BESIDE)
def test_both_ways_agree_beside_frozen_records(name: str) -> None:
    prior, move = BESIDE[name]
    assert (np.abs(gaps_beside(prior, move)) < MOST).all()
    told = dataclasses.replace(prior, concentration=3.0 * prior.concentration)
    assert np.abs(gaps_beside(prior, move, told)).max() > PLANTED
