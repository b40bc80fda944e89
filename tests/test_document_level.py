"""The document level in finite sets, against its equations in plain Python and enumerated posteriors.

Wallach, Jensen, Dicker and Heller 2010, eqs. 13-17: the twin takes the tokens of a cluster one by one, in the
order of its records.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import families
from oracle.enumeration import partitions
from posterior import PRIORS, Problem, draw, p_value

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.offline.astar import astar
from streamdp.offline.chain import Chain
from streamdp.offline.fit import fit
from streamdp.offline.held_out import left_to_right
from streamdp.offline.hyper import Hyper
from streamdp.offline.plan import Plan
from streamdp.offline.prepare import Data
from streamdp.offline.refine import refine
from streamdp.offline.samplers import Gibbs, LinkGibbs, Move, Permutation, SequentiallyAllocated, SplitMerge
from streamdp.settings import Settings

BETA, B1 = 0.7, 2.0
LEAST, PLANTED = 1e-3, 1e-6


class Documents(Problem):
    """Records of repeated words, and log H by the twin."""

    def __init__(self, n: int = 6, seed: int = 4, beta: float = BETA) -> None:
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(4, 3.0))
        words = [rng.choice(4, size, replace=False) for size in rng.integers(1, 4, n)]
        self.n, self.base = n, None
        self.records = [(w, rng.integers(1, 4, len(w))) for w in words]
        self.data = Data.of_words(self.records, np.arange(float(n)))
        self.likelihood = lk.HierarchicalDirichlet(B1, beta, base=tuple(p))
        self.twin, self.p = families.HierarchicalDirichlet(B1, beta), dict(enumerate(p.tolist()))
        self._log_h = {}

    def log_h(self, members: tuple[int, ...]) -> float:
        if members not in self._log_h:
            pairs = [[(int(w), int(c)) for w, c in zip(*self.records[i], strict=True)] for i in members]
            self._log_h[members] = self.twin.log_marginal(pairs, [self.p] * len(pairs))
        return self._log_h[members]


def bag(text: str) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([text.count("a"), text.count("b")])
    return np.flatnonzero(counts), counts[counts > 0]


def test_log_marginal_is_that_of_the_equations_in_the_order_of_the_records() -> None:
    problem = Documents()
    family, records = problem.likelihood, problem.records
    assert family.log_marginal(records) == pytest.approx(problem.log_h((0, 1, 2, 3, 4, 5)), abs=1e-10)
    reverse = family.log_marginal(records[::-1])
    assert reverse == pytest.approx(problem.log_h((5, 4, 3, 2, 1, 0)), abs=1e-10)
    assert abs(reverse - family.log_marginal(records)) > 1e-3


def test_the_order_of_records_matters_and_conditionals_as_if_last_belong_to_no_distribution() -> None:
    family = lk.HierarchicalDirichlet(1.0, 1.0, base=(0.5, 0.5))
    texts = {t: bag(t) for t in ("a", "b", "aa", "ab")}
    aa, b = texts["aa"], texts["b"]
    assert math.exp(family.log_marginal([aa, b])) == pytest.approx(7 / 96)
    assert math.exp(family.log_marginal([b, aa])) == pytest.approx(9 / 96)

    def last(x: str, other: str) -> float:
        return math.exp(family.log_marginal([texts[other], texts[x]]) - family.log_marginal([texts[other]]))

    # of any distribution, the products once round "aa", "b", "ab", "a" are the same either way
    there = last("aa", "a") * last("a", "ab") * last("ab", "b") * last("b", "aa")
    back = last("a", "aa") * last("ab", "a") * last("b", "ab") * last("aa", "b")
    assert (there, back) == (pytest.approx(11 / 3072), pytest.approx(15 / 3072))


def test_log_joint_of_all_clusterings() -> None:
    problem = Documents()
    chain = problem.chain(pr.CRP(0.9))
    for z in partitions(problem.n):
        chain.set_labels(z)
        assert chain.log_likelihood == pytest.approx(problem.log_likelihood(z), abs=1e-10)
    chain.replace(likelihood=dataclasses.replace(problem.likelihood, document_beta=None))
    plain = dataclasses.replace(problem.likelihood, document_beta=None)
    assert chain.log_likelihood == pytest.approx(Chain(problem.data, plain, chain.prior, z).log_likelihood)
    chain.replace(likelihood=problem.likelihood)
    assert chain.log_likelihood == pytest.approx(problem.log_likelihood(z), abs=1e-10)


SAMPLERS: dict[str, tuple[str, Callable[[], Move]]] = {
    "gibbs": ("pitman_yor", Gibbs),
    "gibbs in any order": ("crp", lambda: Gibbs(shuffled=True)),
    "gibbs under the uniform process": ("uniform", lambda: Gibbs(shuffled=True)),
    "split and merge": ("crp", lambda: SplitMerge(2, scans=1, proposals=3)),
    "allocated": ("finite", SequentiallyAllocated),
    "links": ("exponential", LinkGibbs),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_are_from_the_enumerated_posterior(name: str) -> None:
    problem, (prior, make) = Documents(), SAMPLERS[name]
    chain = problem.chain(PRIORS[prior])
    if prior == "finite":
        chain.set_labels(np.arange(problem.n) % 2)
    drawn = draw(chain, [make()], 3_000)
    assert p_value(drawn, problem.posterior(PRIORS[prior])) > LEAST
    assert abs(chain.refresh()) < 1e-9
    assert p_value(drawn, Documents(beta=1e6).posterior(PRIORS[prior])) < PLANTED


@pytest.mark.parametrize("prior", ["crp", "uniform"])
def test_astar_proves_the_most_probable_clustering(prior: str) -> None:
    problem = Documents()
    found = astar(problem.data, problem.likelihood, PRIORS[prior], score="admissible")
    posterior = problem.posterior(PRIORS[prior])
    assert found.proved
    assert tuple(found.labels.tolist()) == max(posterior, key=lambda z: posterior[z])
    for wrong in ({"score": "replica"}, {"order": "random"}):
        with pytest.raises(ValueError, match=r"order|replica"):
            astar(problem.data, problem.likelihood, pr.CRP(1.0), **wrong)  # type: ignore[arg-type]


def test_its_concentration_is_drawn_with_the_clustering() -> None:
    """Gibbs and Hyper in turn: the concentration has its marginal posterior, summed over all clusterings."""
    problem, prior = Documents(5), PRIORS["uniform"]
    grid = np.exp(np.linspace(-7.0, 5.0, 121))
    joints = []
    for beta in grid.tolist():
        now = Documents(5, beta=beta)
        joints.append([prior.log_probability(z) + now.log_likelihood(z) for z in partitions(5)])
    density = np.logaddexp.reduce(np.array(joints), axis=1) + 1.5 * np.log(grid) - 0.5 * grid
    mass = np.cumsum(np.exp(density - density.max()))
    chain, gibbs, drawn = problem.chain(prior), Gibbs(), []
    hyper = Hyper(["document_beta"], shape=1.5, rate=0.5)
    for _ in range(4_000):
        gibbs(chain)
        hyper(chain)
        drawn.append(chain.likelihood.document_beta)  # type: ignore[attr-defined]
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        quantile = np.interp(share, mass / mass[-1], grid * math.exp(0.05))  # where each cell ends
        assert np.mean(np.array(drawn) < quantile) == pytest.approx(share, abs=0.035)


@pytest.mark.parametrize("prior", ["crp", "uniform"])
def test_held_out_probability_against_enumeration(prior: str) -> None:
    problem, first = Documents(), (0, 1, 0)

    def total(n: int) -> float:
        held = [z for z in partitions(n) if z[:3] == first]
        joints = [PRIORS[prior].log_probability(z) + problem.log_likelihood(z) for z in held]
        return float(np.logaddexp.reduce(joints))

    train, test = problem.data.take(np.arange(3)), problem.data.take(np.arange(3, 6))
    exact = [total(n + 1) - total(n) for n in (3, 4, 5)]
    for resample in (False, True):
        estimate = left_to_right(
            train,
            np.array(first),
            test,
            problem.likelihood,
            PRIORS[prior],
            particles=4000,
            resample=resample,
        )
        assert estimate == pytest.approx(exact, abs=0.02)


TEXTS = ["storm storm rain", "rain storm rain", "goal match goal goal", "match goal", "storm wind wind"] * 8


@pytest.mark.parametrize("method", ["hybrid", "gibbs", "split-merge", "beam", "astar"])
def test_fit_takes_a_document_level(method: Any) -> None:
    settings = Settings(likelihood="hierarchical-dirichlet", document_beta=2.0, prior="crp")
    found = fit(TEXTS, settings, Plan(method=method, rounds=6))
    assert math.isfinite(found.log_joint)
    kept = found.solution.chain
    assert kept.likelihood.document_beta == 2.0  # type: ignore[attr-defined]
    assert abs(kept.refresh()) < 1e-9


def test_what_needs_no_order_is_refused() -> None:
    settings = Settings(likelihood="hierarchical-dirichlet", document_beta=2.0, prior="crp")
    with pytest.raises(ConfigError, match="hybrid, gibbs"):
        fit(TEXTS, settings, Plan(method="permutation", rounds=2))
    problem = Documents()
    with pytest.raises(ValueError, match="not permutations"):
        Permutation()(problem.chain(pr.CRP(1.0)))
    with pytest.raises(ConfigError, match="hierarchical-dirichlet"):
        fit(TEXTS, Settings(likelihood="dirichlet-multinomial", document_beta=2.0))


def test_a_stream_is_refined_as_long_as_all_its_records_are_there() -> None:
    settings = Settings(likelihood="hierarchical-dirichlet", document_beta=2.0, retain=30)
    engine = Engine(settings)
    engine.advance(TEXTS[:30])
    assert math.isfinite(refine(engine).log_joint)
    engine.advance(TEXTS[30:])
    with pytest.raises(ValueError, match="more --retain"):
        refine(engine)
    with pytest.raises(ConfigError, match="refine_every has no meaning with a document_beta"):
        Engine(Settings(likelihood="hierarchical-dirichlet", document_beta=2.0, refine_every=512))


def test_a_stream_with_many_clusters_goes_on() -> None:
    """Clusters that have grown are tried as two, which needs a closed form of log H."""
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 24, 4_500)
    texts = [" ".join(f"w{t}x{k}" for k in rng.integers(0, 20, 8)) for t in topics]
    settings = Settings(likelihood="hierarchical-dirichlet", document_beta=5.0)
    engine = Engine(settings)
    engine.advance(texts)
    engine.finish()
    assert len(engine.clusters()) >= 10
