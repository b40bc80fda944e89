"""The log joint that a chain keeps, its slots, and what it is made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from algebra import add, empty, log_marginal
from oracle.enumeration import partitions
from posterior import EXCHANGEABLE, FAMILIES, ORDERED, Problem

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.offline.chain import Chain, canonical
from streamdp.offline.kernels.store import FIRST_SLOT
from streamdp.offline.prepare import FIRST_CAPACITY, Data
from streamdp.offline.samplers import Gibbs, LinkGibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.samplers.permutation import Permutation

PRIORS = {**EXCHANGEABLE, **ORDERED}
CHANGED: dict[str, dict[str, Any]] = {
    "multinomial": {"beta": 0.1},
    "hierarchical_dirichlet": {"base_concentration": 5.0},
    "hierarchical_pitman_yor": {"word_discount": 0.7},
    "categorical": {"beta": 0.5},
    "gaussian": {"mean": (0.5, -1.0), "variance": 1.3},
    "gamma": {"shape": 3.0, "scale": (0.5, 2.0)},
    "wishart": {"kappa": 1.5, "mean": -0.4},
    "bernoulli": {"b": 2.0},
    "poisson": {"rate": (0.2, 0.6)},
    "sphere": {"concentration": 4.0, "mean": (1.0, 0.0, 0.0)},
}
"""Other parameters of every family."""


def tolerance(family: str) -> float:
    """Relative: unit vectors are kept in single precision."""
    return 1e-6 if family == "sphere" else 1e-9


def settled(problem: Problem, chain: Chain) -> float:
    """log p(z, x) from the classes of the prior and the likelihood."""
    labels = chain.labels.tolist()
    times = problem.data.times
    assert times is not None
    return float(chain.prior.log_probability(labels, times.tolist()) + problem.log_likelihood(labels))


def check_slots(chain: Chain) -> None:
    """Every slot is in use or free, and holds what the labels say."""
    allocation, size = chain.allocation, chain.store.size
    active = allocation.active[: allocation.counters.active]
    free = allocation.free[: allocation.counters.free]
    assert sorted([*active, *free]) == list(range(FIRST_SLOT, len(size)))
    assert (active[allocation.where[active]] == active).all()
    assert set(active.tolist()) == set(allocation.labels.tolist())
    held = np.bincount(allocation.labels, minlength=len(size))
    np.testing.assert_array_equal(size[FIRST_SLOT:], held[FIRST_SLOT:])
    assert not chain.store.log_h[free].any()


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_log_joint_of_any_labels(family: str, prior: str) -> None:
    problem = Problem(family, 30, seed=3)
    chain = problem.chain(PRIORS[prior])
    rng = np.random.default_rng(4)
    finite = 0
    for clusters in (1, 2, 3, 4) if prior == "finite" else (1, 2, 3, 4, 6, 30):
        labels = rng.integers(0, clusters, 30)
        chain.set_labels(labels)
        expected = settled(problem, chain)
        assert chain.log_joint == pytest.approx(expected, rel=tolerance(family))
        assert chain.log_likelihood == pytest.approx(problem.log_likelihood(labels), rel=tolerance(family))
        assert chain.log_prior() + chain.log_likelihood == chain.log_joint
        assert chain.clusters == len(np.unique(labels)) == chain.labels.max() + 1
        assert sorted(chain.sizes) == sorted(np.unique(labels, return_counts=True)[1])
        assert chain.labels.tolist() == canonical(labels).tolist()
        check_slots(chain)
        finite += math.isfinite(expected)
    assert finite >= 1


@pytest.mark.parametrize("family", FAMILIES)
def test_log_joint_after_a_hundred_thousand_moves(family: str) -> None:
    problem = Problem(family, 50, seed=5)
    chain, sweep = problem.chain(pr.CRP(2.0)), Gibbs()
    before, moved = chain.allocation.labels.copy(), 0
    for _ in range(2_000):
        sweep(chain)
        moved += int((chain.allocation.labels != before).sum())
        before = chain.allocation.labels.copy()
    assert moved > 2_000
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=tolerance(family))
    assert abs(chain.refresh()) < 1e-9 * abs(chain.log_joint)


OTHERS: dict[str, tuple[str, Callable[[], Move], int]] = {
    "uniform": ("uniform", lambda: Gibbs(shuffled=True), 500),
    "split_merge": ("pitman_yor", lambda: SplitMerge(2, scans=1), 300),
    "allocated": ("finite", SequentiallyAllocated, 300),
    "mixed": ("crp", lambda: SplitMerge(3), 200),
    "links": ("logistic", LinkGibbs, 200),
    "permutation": ("crp", Permutation, 100),
}


@pytest.mark.parametrize("family", ["multinomial", "gamma", "wishart", "poisson", "sphere"])
@pytest.mark.parametrize("name", OTHERS)
def test_log_joint_after_other_moves(name: str, family: str) -> None:
    prior, make, rounds = OTHERS[name]
    problem, move = Problem(family, 50, seed=6), make()
    chain = problem.chain(PRIORS[prior])
    for _ in range(rounds):
        move(chain)
    check_slots(chain)
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=tolerance(family))
    assert abs(chain.refresh()) < 1e-9 * abs(chain.log_joint)


@pytest.mark.parametrize("family", ["hierarchical_pitman_yor", "gaussian", "wishart", "sphere"])
def test_slots_come_and_go(family: str) -> None:
    problem, sweep = Problem(family, 300, seed=7), Gibbs()
    chain = Chain(problem.data, problem.likelihood, pr.CRP(1e9))
    slots = len(chain.allocation.free)
    sweep(chain)
    assert chain.clusters > 250
    assert len(chain.allocation.free) == len(chain.store.size) >= 4 * slots
    check_slots(chain)
    chain.replace(prior=pr.CRP(1e-9))
    for _ in range(20):
        sweep(chain)
    assert chain.clusters < 100
    check_slots(chain)
    assert abs(chain.refresh()) < 1e-9 * abs(chain.log_joint)
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=tolerance(family))


GROWING: list[tuple[Any, Callable[[], Move]]] = [
    (pr.Uniform(1e9), lambda: Gibbs(shuffled=True)),
    (pr.DistanceDependent(1e9, pr.Exponential(5.0)), LinkGibbs),
    (pr.CRP(1e9), lambda: SplitMerge(2, scans=0, proposals=3_000)),
    (pr.CRP(1e9), lambda: SequentiallyAllocated(proposals=3_000)),
    (pr.PitmanYor(1e9, 0.5), lambda: Permutation("exact")),
]


@pytest.mark.parametrize("family", ["multinomial", "gamma"])
@pytest.mark.parametrize(("prior", "make"), GROWING)
def test_every_move_finds_room(prior: Any, make: Callable[[], Move], family: str) -> None:
    problem, move = Problem(family, 150, seed=8), make()
    chain = Chain(problem.data, problem.likelihood, prior)
    for _ in range(2):
        move(chain)
    assert chain.clusters > FIRST_CAPACITY
    check_slots(chain)
    assert abs(chain.refresh()) < 1e-9 * abs(chain.log_joint)
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=1e-9)


def test_room_is_made_before_it_is_wanted() -> None:
    chain = Problem("gaussian", 6).chain(pr.CRP(1.0))
    before = chain.log_joint
    chain.more_room(500)
    assert chain.allocation.counters.free >= 500
    check_slots(chain)
    Gibbs()(chain)
    check_slots(chain)
    chain.set_labels(np.arange(6))
    assert chain.log_joint == before


def test_labels_may_be_any_integers() -> None:
    chain = Problem("gaussian", 5).chain(pr.CRP(1.0))
    chain.set_labels([7, -3, 7, 2**60, -3])
    assert chain.labels.tolist() == [0, 1, 0, 2, 1]
    kept = chain.log_joint
    chain.set_labels(np.array([1, 0, 1, 2, 0], np.int32))
    assert chain.log_joint == kept
    for labels in ([0, 1], np.zeros(6), []):
        with pytest.raises(ValueError, match=f"{len(labels)} labels for 5 records"):
            chain.set_labels(labels)
    assert chain.labels.tolist() == [0, 1, 0, 2, 1]
    assert chain.log_joint == kept
    check_slots(chain)
    assert Chain(chain.data, chain.likelihood, chain.prior).labels.tolist() == [0] * 5


def test_canonical_labels_count_clusters_by_first_members() -> None:
    assert canonical([]).tolist() == []
    assert canonical([5, 5, -1, 5, 0, -1]).tolist() == [0, 0, 1, 0, 2, 1]
    rng = np.random.default_rng(9)
    for z in partitions(5):
        names = rng.permutation(100)
        labels = canonical(names[list(z)])
        first = [labels.tolist().index(k) for k in range(labels.max() + 1)]
        assert first == sorted(first)
        assert ((labels[:, None] == labels) == (np.array(z)[:, None] == np.array(z))).all()
        assert canonical(labels).tolist() == labels.tolist()
    assert len({tuple(canonical(z)) for z in partitions(5)}) == 52


@pytest.mark.parametrize("family", FAMILIES)
def test_another_likelihood(family: str) -> None:
    problem = Problem(family, 120, seed=10)
    chain = problem.chain(pr.CRP(3.0))
    Gibbs()(chain)
    labels, other = chain.labels, dataclasses.replace(problem.likelihood, **CHANGED[family])
    chain.replace(likelihood=other)
    fresh = Chain(problem.data, other, pr.CRP(3.0), labels)
    assert chain.likelihood is other
    assert chain.labels.tolist() == labels.tolist()
    assert chain.log_joint == pytest.approx(fresh.log_joint, rel=1e-12)
    check_slots(chain)
    problem.likelihood, problem._log_h = other, {}
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=tolerance(family))
    for _ in range(20):
        Gibbs()(chain)
        SequentiallyAllocated()(chain)
    assert chain.log_joint == pytest.approx(settled(problem, chain), rel=tolerance(family))


def test_another_prior() -> None:
    problem = Problem("gamma", 30, seed=11)
    chain = problem.chain(pr.CRP(1.0))
    chain.set_labels(np.arange(30) // 8)
    for prior in [*PRIORS.values(), *PRIORS.values()][::-1]:
        chain.replace(prior=prior)
        fresh = Chain(problem.data, problem.likelihood, prior, chain.labels)
        assert chain.log_joint == pytest.approx(fresh.log_joint, rel=1e-12)
        assert (chain.weights is None) == (not prior.exchangeable)
        if isinstance(prior, pr.DistanceDependent):
            LinkGibbs()(chain)
        else:
            Gibbs()(chain)
        assert chain.log_joint == pytest.approx(settled(problem, chain), rel=1e-9)
        chain.set_labels(np.arange(30) // 8)
    both = pr.PitmanYor(1.0, 0.2), dataclasses.replace(problem.likelihood, kappa=2.0)
    chain.replace(prior=both[0], likelihood=both[1])
    fresh = Chain(problem.data, both[1], both[0], chain.labels)
    assert chain.log_joint == pytest.approx(fresh.log_joint, rel=1e-12)


MOVES: list[tuple[str, Callable[[], Move]]] = [
    ("crp", Gibbs),
    ("finite", lambda: Gibbs(shuffled=True)),
    ("uniform", lambda: Gibbs(shuffled=True)),
    ("seconds", LinkGibbs),
    ("pitman_yor", lambda: SplitMerge(3)),
    ("crp", SequentiallyAllocated),
    ("crp", lambda: Permutation("exact", order="markov")),
    ("crp", lambda: Permutation(keep=0.01)),
    ("crp", lambda: Permutation(order="projection-pair")),
]


@pytest.mark.parametrize(("prior", "make"), MOVES)
def test_the_seed_decides(prior: str, make: Callable[[], Move]) -> None:
    problem = Problem("gaussian", 40, seed=12)
    sides = np.array(problem.records).sum(axis=1) > 0.0
    runs = []
    for seed in (1, 1, 2, np.random.SeedSequence(1)):
        move, trace = make(), []
        chain = Chain(problem.data, problem.likelihood, PRIORS[prior], sides, seed=seed)
        for _ in range(10):
            move(chain)
            trace.append((chain.labels.tolist(), chain.log_joint))
        runs.append(trace)
    assert runs[0] == runs[1] == runs[3] != runs[2]


def test_random_numbers_of_a_chain() -> None:
    problem = Problem("gaussian", 5)
    a, b, c = (problem.chain(pr.CRP(1.0), seed=seed) for seed in (3, 3, 4))
    draws = np.array([a.uniform() for _ in range(20_000)])
    assert ((draws >= 0.0) & (draws < 1.0)).all()
    assert abs(draws.mean() - 0.5) < 4.0 / math.sqrt(12.0 * len(draws))
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 4.0 / math.sqrt(len(draws))
    assert [b.uniform() for _ in range(3)] == draws[:3].tolist() != [c.uniform() for _ in range(3)]
    one, other = (chain.generator().random(3).tolist() for chain in (b, b))
    assert one != other


def words(*pairs: tuple[list[int], list[int]]) -> Data:
    return Data.of_words([(np.array(w, np.int64), np.array(c, np.int64)) for w, c in pairs])


def test_records_taken_in_another_order() -> None:
    order = np.array([3, 0, 2])
    for family in ("multinomial", "gaussian"):
        problem = Problem(family, 4)
        taken = problem.data.take(order)
        fresh = [problem.records[i] for i in order]
        made = Data.of_words(fresh) if family == "multinomial" else Data.of_vectors(np.array(fresh))
        assert taken.size == made.size == 3
        for name in ("offsets", "words", "counts", "vectors"):
            np.testing.assert_array_equal(getattr(taken, name), getattr(made, name))
        assert taken.times is not None
        assert problem.data.times is not None
        assert taken.times.tolist() == problem.data.times[order].tolist()
        taken = msgspec.structs.replace(taken, times=problem.data.times[:3])  # a chain wants them in order
        chain = Chain(taken, problem.likelihood, ORDERED["seconds"], [0, 1, 0])
        expected = chain.log_prior() + problem.log_h((3, 2)) + problem.log_h((0,))
        assert chain.log_joint == pytest.approx(expected)
    assert words(([0], [1])).take(np.array([0, 0])).times is None


def test_records_without_words() -> None:
    data = words(([], []), ([1, 3], [2, 1]), ([], []))
    assert data.offsets.tolist() == [0, 0, 2, 2]
    assert data.take(np.array([1, 0])).offsets.tolist() == [0, 2, 2]
    chain = Chain(data, lk.DirichletMultinomial(0.5, 5), pr.CRP(1.0), [0, 1, 0])
    alone = Chain(words(([1, 3], [2, 1])), lk.DirichletMultinomial(0.5, 5), pr.CRP(1.0))
    assert chain.log_likelihood == pytest.approx(alone.log_likelihood)
    for _ in range(50):
        Gibbs()(chain)
        SequentiallyAllocated()(chain)
    assert chain.refresh() == pytest.approx(0.0, abs=1e-12)


MULTINOMIAL, GAUSSIAN = lk.DirichletMultinomial(0.5, 5), lk.Gaussian(2)
UNFIT: list[tuple[str, Data, Any, str]] = [
    ("no words", Data.of_words([]), MULTINOMIAL, "there are no records"),
    ("no vectors", Data.of_vectors(np.zeros((0, 2))), GAUSSIAN, "there are no records"),
    ("count of 0", words(([1], [0])), MULTINOMIAL, "their counts are at least 1"),
    ("word below 0", words(([-1], [1])), MULTINOMIAL, "words are numbered from 0"),
    ("word twice", words(([0], [1]), ([2, 2], [1, 1])), MULTINOMIAL, "must be distinct"),
    ("word beyond V", words(([5], [1])), MULTINOMIAL, "the vocabulary has 5 words, the records have 6"),
    ("vectors for words", Data.of_vectors(np.zeros((3, 2))), MULTINOMIAL, "is for word counts"),
    ("words for vectors", words(([1], [1])), GAUSSIAN, "is for vectors"),
    ("one row", Data.of_vectors(np.zeros(2)), GAUSSIAN, "rows of an array"),
    ("nan", Data.of_vectors(np.array([[0.0, math.nan]])), GAUSSIAN, "finite numbers"),
    ("infinity", Data.of_vectors(np.array([[0.0, math.inf]])), GAUSSIAN, "finite numbers"),
    ("too wide", Data.of_vectors(np.zeros((3, 3))), GAUSSIAN, "has 2 dimensions, the vectors have 3"),
    ("forgetful", Data.of_vectors(np.zeros((3, 2))), lk.Gaussian(2, forget=0.9), "forget must be 1"),
    ("no unit", Data.of_vectors(np.full((3, 2), 0.9)), lk.VonMisesFisher(2), "length one, not of 1.27279"),
    ("below 0", Data.of_vectors(np.full((3, 2), -1.0)), lk.GammaPoisson(2), "whole numbers of at least 0"),
    ("no count", Data.of_vectors(np.full((3, 2), 0.5)), lk.GammaPoisson(2), "whole numbers of at least 0"),
    ("no bit", Data.of_vectors(np.full((3, 2), 2.0)), lk.BetaBernoulli(2), "each 0 or 1"),
    (
        "base without a word",
        words(([0, 2], [1, 1])),
        lk.HierarchicalDirichlet(base_concentration=2.0, base=(0.5, 0.5)),
        "must give every word",
    ),
]


@pytest.mark.parametrize(
    ("data", "likelihood", "message"), [case[1:] for case in UNFIT], ids=[case[0] for case in UNFIT]
)
def test_unfit_records_are_refused(data: Data, likelihood: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chain(data, likelihood, pr.CRP(1.0))


def test_times_are_checked_where_they_matter() -> None:
    vectors, prior = np.zeros((3, 2)), ORDERED["seconds"]
    with pytest.raises(ValueError, match="times are needed"):
        Chain(Data.of_vectors(vectors), GAUSSIAN, prior)
    for times, message in (([0.0, 1.0], "2 times for 3 records"), ([0.0, 2.0, 1.0], "must not decrease")):
        with pytest.raises(ValueError, match=message):
            Chain(Data.of_vectors(vectors, np.array(times)), GAUSSIAN, prior)


def test_distances_are_checked() -> None:
    data, prior = Data.of_vectors(np.zeros((3, 2))), ORDERED["window"]
    d = np.array([[9.0, -1.0, np.nan], [1.0, 9.0, 9.0], [2.5, 0.5, np.nan]])
    chain = Chain(data, GAUSSIAN, prior, distances=d)  # above the diagonal and on it nothing is read
    assert np.isfinite(chain.log_joint)
    for other in (d[:2], -d, np.full((3, 3), math.inf)):
        with pytest.raises(ValueError, match="distances must"):
            Chain(data, GAUSSIAN, prior, distances=other)
    with pytest.raises(ValueError, match="not for CRP"):
        Chain(data, GAUSSIAN, pr.CRP(1.0), distances=d)


def test_links_cannot_start_where_none_is_possible() -> None:
    chain = Chain(Data.of_vectors(np.zeros((4, 2))), GAUSSIAN, ORDERED["window"], [0, 1, 1, 0])
    assert chain.log_joint == -math.inf
    with pytest.raises(ValueError, match="too far from all earlier ones"):
        LinkGibbs()(chain)


@pytest.mark.parametrize("discount", [None, 0.4])
def test_base_measure(discount: float | None) -> None:
    """As given to the chain, or to the family, or learned by the rule of the stream.

    That counts tokens, or the records with a word.
    """
    data = words(([0, 1], [3, 1]), ([1], [2]), ([1, 2], [1, 1]))

    def family(base: Any) -> Any:
        if discount is None:
            return lk.HierarchicalDirichlet(base_concentration=2.0, base=base)
        return lk.HierarchicalPitmanYor(base_concentration=2.0, word_discount=discount, base=base)

    seen = np.array([3.0, 4.0, 1.0] if discount is None else [1.0, 3.0, 1.0])
    labels = [0, 0, 1]
    learned = Chain(data, family(None), pr.CRP(1.0), labels)
    stream = (seen - 0.35) / (seen.sum() + 1000.0)
    if discount is None:
        stream /= stream.sum()  # the words of a set are all there are
    same = Chain(data, family(None), pr.CRP(1.0), labels, base=stream)
    assert learned.log_joint == pytest.approx(same.log_joint, rel=1e-12)
    given = Chain(data, family(None), pr.CRP(1.0), labels, base=np.array([0.2, 0.5, 0.3]))
    same = Chain(data, family((0.2, 0.5, 0.3)), pr.CRP(1.0), labels)
    assert given.log_joint == pytest.approx(same.log_joint, rel=1e-12)
    assert given.log_joint != pytest.approx(learned.log_joint)
    for base in ([0.5, 0.5], [0.5, 0.0, 0.5], [-0.5, 1.0, 0.5], [math.nan, 0.5, 0.5]):
        with pytest.raises(ValueError, match="must give every word of the records"):
            Chain(data, family(None), pr.CRP(1.0), base=np.array(base))
    given.replace(likelihood=dataclasses.replace(given.likelihood, base_concentration=4.0))
    other = dataclasses.replace(same.likelihood, base_concentration=4.0)
    assert given.log_joint == pytest.approx(Chain(data, other, pr.CRP(1.0), labels).log_joint, rel=1e-12)
    statistics = empty(other)
    for i in (0, 1):
        add(other, statistics, (data.take(np.array([i])).words, data.take(np.array([i])).counts))
    alone = empty(other)
    add(other, alone, (data.take(np.array([2])).words, data.take(np.array([2])).counts))
    expected = log_marginal(other, statistics) + log_marginal(other, alone)
    assert given.log_likelihood == pytest.approx(expected, rel=1e-12)


def test_another_family_takes_another_store() -> None:
    data = Data.of_vectors(np.random.default_rng(0).normal(size=(9, 2)))
    z = [0, 0, 1, 1, 2, 2, 0, 1, 2]
    chain = Chain(data, lk.Gaussian(2), pr.CRP(1.0), z)
    for family in (lk.NormalInverseGamma(2), lk.NormalInverseWishart(2), lk.Gaussian(2, mean=1.0)):
        chain.replace(likelihood=family)
        Gibbs()(chain)
        fresh = Chain(data, family, pr.CRP(1.0), chain.labels)
        assert chain.log_joint == pytest.approx(fresh.log_joint, abs=1e-9)
    for wrong in (lk.Gaussian(3), lk.Gaussian(2, forget=0.9), lk.DirichletMultinomial(1.0, 5)):
        before = chain.log_joint
        with pytest.raises(ValueError, match=r"dimensions|forget|word counts"):
            chain.replace(likelihood=wrong)
        assert chain.likelihood == lk.Gaussian(2, mean=1.0)
        assert chain.refresh() == pytest.approx(0.0, abs=1e-9)
        assert chain.log_joint == pytest.approx(before)


def test_more_clusters_than_components_are_refused() -> None:
    data = Data.of_vectors(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="4 clusters are impossible with 2 components"):
        Chain(data, lk.Gaussian(2), pr.FiniteMixture(2), np.arange(4))
    chain = Chain(data, lk.Gaussian(2), pr.CRP(1.0), np.arange(4))
    with pytest.raises(ValueError, match="impossible"):
        chain.replace(prior=pr.FiniteMixture(3))
    assert chain.prior == pr.CRP(1.0)
