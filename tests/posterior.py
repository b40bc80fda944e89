"""Small clustering problems of every kind, their enumerated posteriors, and a test of draws against them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from algebra import add, empty, log_marginal
from oracle.enumeration import partitions
from scipy.stats import chi2, ncx2

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.offline.anchors import Anchors, Past
from streamdp.offline.chain import Chain, canonical
from streamdp.offline.kernels.links import Held
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.prepare import Data

FAMILIES = (
    "multinomial",
    "hierarchical_dirichlet",
    "hierarchical_pitman_yor",
    "gaussian",
    "gamma",
    "wishart",
    "bernoulli",
    "poisson",
    "sphere",
    "categorical",
)
EXCHANGEABLE = {
    "crp": pr.CRP(0.9),
    "pitman_yor": pr.PitmanYor(0.6, 0.35),
    "finite": pr.FiniteMixture(4, 1.7),
}
ORDERED = {
    "uniform": pr.Uniform(0.8),
    "window": pr.DistanceDependent(0.7, pr.Window(3.0)),
    "exponential": pr.DistanceDependent(0.7, pr.Exponential(2.0)),
    "logistic": pr.DistanceDependent(0.7, pr.Logistic(2.0)),
    "seconds": pr.DistanceDependent(0.7, pr.Exponential(2.0), unit="seconds"),
}
PRIORS = {**EXCHANGEABLE, **ORDERED}


class Problem:
    """Records, a family, and log H of every set of records."""

    def __init__(self, family: str, n: int = 6, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(5, 3.0))
        times = np.cumsum(rng.exponential(1.0, n))
        self.n, named = n, family == "categorical"
        self.records: list[Any]
        if family in ("multinomial", "hierarchical_dirichlet", "hierarchical_pitman_yor"):
            lengths = rng.integers(1, 4, n)
            words = [np.sort(rng.choice(5, size, replace=False)) for size in lengths]
            self.records = [(w, rng.integers(1, 3, len(w))) for w in words]
            self.data = Data.of_words(self.records, times)
        elif named:
            fields = [rng.choice(2, rng.integers(1, 3), replace=False) for _ in range(n)]
            values = [[(1 + 3 * f, 2 + 3 * f + rng.integers(2 + f)) for f in sorted(own)] for own in fields]
            words = [np.array([0, *(w for pair in own for w in pair)]) for own in values]
            self.records = [(w, np.ones(len(w), np.int64)) for w in words]
            self.data = Data.of_words(self.records, times)
        else:
            self.records = list(self._vectors(family, rng, n))
            self.data = Data.of_vectors(np.array(self.records), times)
        self.likelihood: Any = {
            "multinomial": lk.DirichletMultinomial(0.5, 5),
            "categorical": lk.Categorical(0.5),
            "hierarchical_dirichlet": lk.HierarchicalDirichlet(base_concentration=2.0, base=tuple(p)),
            "hierarchical_pitman_yor": lk.HierarchicalPitmanYor(
                base_concentration=2.0, word_discount=0.4, base=tuple(p)
            ),
            "gaussian": lk.Gaussian(2, variance=0.7, mean_variance=1.5, mean=0.2),
            "gamma": lk.NormalInverseGamma(2, kappa=0.3, mean=0.1, scale=0.8),
            "wishart": lk.NormalInverseWishart(2, kappa=0.3, mean=0.1, scale=((0.8, 0.2), (0.2, 0.6))),
            "bernoulli": lk.BetaBernoulli(3, a=0.6, b=(0.7, 1.0, 0.5)),
            "poisson": lk.GammaPoisson(2, shape=(0.8, 1.3), rate=0.4),
            "sphere": lk.VonMisesFisher(
                3, concentration=(2.0, 9.0), mean=(0.0, 0.0, 1.0), mean_concentration=0.7
            ),
        }[family]
        self.base = self.likelihood.base_of_records(self.data.offsets, self.data.words) if named else None
        self._log_h: dict[tuple[int, ...], float] = {}

    @classmethod
    def of(cls, records: np.ndarray, likelihood: Any) -> Problem:
        """Vectors under a family that is not among the above."""
        self = cls.__new__(cls)
        self.n, self.records, self.likelihood = len(records), list(records), likelihood
        self.data = Data.of_vectors(records, np.arange(float(len(records))))
        self._log_h, self.base = {}, None
        return self

    @staticmethod
    def _vectors(family: str, rng: np.random.Generator, n: int) -> np.ndarray:
        if family == "bernoulli":
            return rng.integers(0, 2, (n, 3)).astype(float)
        if family == "poisson":
            return rng.poisson(rng.choice([0.5, 4.0], (n, 1)), (n, 2)).astype(float)
        if family == "sphere":
            x = rng.normal(size=(n, 3)) + np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0)
            return x / np.linalg.norm(x, axis=1, keepdims=True)
        return rng.normal(size=(n, 2)) + np.where(rng.random((n, 1)) < 0.5, 0.9, -0.9)

    def log_h(self, members: tuple[int, ...]) -> float:
        """log H of a set of records."""
        if members not in self._log_h:
            statistics = empty(self.likelihood)
            for i in members:
                add(self.likelihood, statistics, self.records[i])
            self._log_h[members] = log_marginal(self.likelihood, statistics, self.base)
        return self._log_h[members]

    def log_likelihood(self, labels: Iterable[int]) -> float:
        """log p(x | z)."""
        members: dict[int, list[int]] = {}
        for i, k in enumerate(labels):
            members.setdefault(k, []).append(i)
        return math.fsum(self.log_h(tuple(m)) for m in members.values())

    def posterior(self, prior: Any, log_prior: Callable[..., float] | None = None) -> dict[Any, float]:
        """p(z | x) of every partition, as tuples of canonical labels."""
        times = self.data.times.tolist()
        if log_prior is None:

            def log_prior(z: Any) -> float:
                return prior.log_probability(z, times)

        joint = {}
        for z in partitions(self.n):
            lj = log_prior(z)
            if lj > -math.inf:
                joint[tuple(canonical(z).tolist())] = lj + self.log_likelihood(z)
        peak = max(joint.values())
        total = math.fsum(math.exp(v - peak) for v in joint.values())
        return {z: math.exp(v - peak) / total for z, v in joint.items()}

    def chain(self, prior: Any, seed: int = 0, **options: Any) -> Chain:
        """A chain over the records, started from singletons (which every prior but a finite one allows)."""
        start = np.zeros(self.n) if isinstance(prior, pr.FiniteMixture) else np.arange(self.n)
        return Chain(self.data, self.likelihood, prior, start, seed=seed, base=self.base, **options)

    def beside(self, frozen: Sequence[int], prior: Any, seed: int = 0, *, lumped: bool = False) -> Chain:
        """A chain over the later records, beside the first ones clustered so.

        ``lumped``: what they still weigh stands at one place, as an exponential decay allows.
        """
        z = canonical(frozen)
        members = [np.flatnonzero(z == k) for k in range(int(z.max()) + 1)]
        positions = np.arange(float(self.n))
        if getattr(prior, "unit", "") == "seconds":
            positions = np.asarray(self.data.times, float)
        places = [positions[m] for m in members]
        shares = [np.ones(len(m)) for m in members]
        past, first = Past.of(places), len(z)
        if lumped:
            shares = [np.array([prior.decay(positions[first] - p).sum()]) for p in places]
            places = [positions[first : first + 1] for _ in places]
        words, rows = Data(), None
        if self.data.sparse:
            words = Data.of_words([_summed([self.records[i] for i in m]) for m in members])
        else:
            rows = np.array([self._row(m) for m in members])
        starts = np.cumsum([0, *map(len, places)])
        anchors = Anchors(
            np.array([len(m) for m in members]),
            words,
            rows,
            Held(starts, np.concatenate(places), np.concatenate(shares)),
            positions[first:],
            past=past,
        )
        start = np.zeros(self.n - first) if isinstance(prior, pr.FiniteMixture) else np.arange(first, self.n)
        data = self.data.slice(first)
        return Chain(data, self.likelihood, prior, start, seed=seed, base=self.base, anchors=anchors)

    def _row(self, members: np.ndarray) -> np.ndarray:
        statistics = empty(self.likelihood)
        for i in members:
            add(self.likelihood, statistics, self.records[i])
        return np.asarray(statistics.row)

    def given(self, frozen: Sequence[int], posterior: dict[Any, float]) -> dict[Any, float]:
        """p(z of the later records | that of the first ones, x), as a posterior of all is given."""
        z = tuple(canonical(frozen).tolist())
        some = {all_: p for all_, p in posterior.items() if all_[: len(z)] == z}
        total = math.fsum(some.values())
        return {all_: p / total for all_, p in some.items()}


@cache
def problem_of(family: str, n: int = 6) -> Problem:
    return Problem(family, n)


@cache
def posterior_of(family: str, prior: str, n: int = 6) -> dict[Any, float]:
    return problem_of(family, n).posterior(PRIORS[prior])


def _summed(records: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The counts of several records together."""
    counts: Counter[int] = Counter()
    for words, held in records:
        for w, c in zip(words.tolist(), held.tolist(), strict=True):
            counts[w] += c
    words = np.array(sorted(counts))
    return words, np.array([counts[w] for w in words.tolist()])


def draw_beside(
    chain: Chain, frozen: Sequence[int], moves: Iterable[Any], draws: int, thin: int = 2
) -> Counter[Any]:
    """As :func:`draw`, the frozen records before the others."""
    counts: Counter[Any] = Counter()
    for labels, times in draw(chain, moves, draws, thin).items():
        counts[tuple(canonical([*canonical(frozen), *labels]).tolist())] += times
    return counts


def draw(chain: Chain, moves: Iterable[Any], draws: int, thin: int = 2) -> Counter[Any]:
    """Clusterings of a chain by how often they were met."""
    counts: Counter[Any] = Counter()
    moves = list(moves)
    for _ in range(draws):
        for _ in range(thin):
            for move in moves:
                move(chain)
        counts[labels_of(chain)] += 1
    assert labels_of(chain) == tuple(chain.labels.tolist())
    return counts


def labels_of(chain: Chain) -> tuple[int, ...]:
    """The labels of a chain as it has them, which takes it longer than most moves."""
    numbers = {slot: slot for slot in range(chain.held)}
    slots = (chain.allocation.labels - FIRST_SLOT).tolist()
    return tuple([numbers.setdefault(slot, len(numbers)) for slot in slots])


def p_value(counts: Counter[Any], posterior: dict[Any, float]) -> float:
    """Chi-square probability of so large a gap between draws and posterior; 0 where the impossible was drawn.

    Partitions expected fewer than five times are taken together.
    """
    if set(counts) - set(posterior):
        return 0.0
    draws = counts.total()
    seen, expected = _cells(counts, posterior, draws), draws * _cells(posterior, posterior, draws)
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), max(len(seen) - 1, 1)))


def power(posterior: dict[Any, float], other: dict[Any, float], draws: int, level: float) -> float:
    """How often draws of another distribution have a p-value below ``level``."""
    p, q = _cells(posterior, posterior, draws), _cells(other, posterior, draws)
    df = len(p) - 1
    return float(ncx2.sf(chi2.isf(level, df), df, draws * ((q - p) ** 2 / p).sum()))


def _cells(values: Mapping[Any, float], posterior: dict[Any, float], draws: int) -> np.ndarray:
    """Values of the partitions that are expected five times or more, and the sum of the others."""
    likely = [z for z, p in posterior.items() if p * draws >= 5.0]
    cells = np.array([values.get(z, 0.0) for z in likely])
    rest = sum(values.values()) - cells.sum()
    if draws * (1.0 - math.fsum(posterior[z] for z in likely)) >= 5.0:
        return np.append(cells, rest)
    cells[-1] += rest
    return cells
