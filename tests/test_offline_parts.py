"""Starts, hyperparameters, schedules and held-out evaluation."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from algebra import weights
from oracle.enumeration import partitions
from posterior import EXCHANGEABLE, ORDERED, Problem
from scipy import stats

from streamdp import priors as pr
from streamdp.offline import starts
from streamdp.offline.chain import canonical
from streamdp.offline.held_out import left_to_right
from streamdp.offline.hyper import Hyper, slice_sample, west
from streamdp.offline.samplers import Gibbs, LinkGibbs
from streamdp.offline.samplers.permutation import Permutation
from streamdp.offline.schedule import Budget, Hybrid, run, run_chains


def greedy(problem: Problem, log_weight: object) -> list[int]:
    """The best cluster for one record after the other, by definition."""
    members: list[list[int]] = []
    for i in range(problem.n):
        options = []
        for k in range(len(members) + 1):
            joined = (*members[k], i) if k < len(members) else (i,)
            without = problem.log_h(tuple(members[k])) if k < len(members) else 0.0
            options.append(problem.log_h(joined) - without + log_weight(members, k, i))  # type: ignore[operator]
        best = int(np.argmax(options))
        if best == len(members):
            members.append([])
        members[best].append(i)
    return [next(k for k, m in enumerate(members) if i in m) for i in range(problem.n)]


def weight_under(prior: pr.Prior, times: list[float]) -> object:
    """The log weight of a choice under a prior."""

    def log_weight(members: list[list[int]], k: int, i: int) -> float:
        joins, new = weights(prior, members, i, times)
        weight = [*joins, new][k]
        return math.log(weight) if weight > 0.0 else -math.inf

    return log_weight


@pytest.mark.parametrize("prior", [*EXCHANGEABLE.values(), *ORDERED.values()], ids=lambda p: type(p).__name__)
def test_sequential_greedy_by_definition(prior: pr.Prior) -> None:
    for seed in range(5):
        problem = Problem("multinomial", 7, seed)
        chain = problem.chain(prior)
        starts.sequential(chain)
        expected = greedy(problem, weight_under(prior, problem.data.times.tolist()))
        assert chain.labels.tolist() == canonical(expected).tolist()
        drift = chain.log_joint - problem.log_likelihood(chain.labels.tolist()) - chain.log_prior()
        assert abs(drift) < 1e-9


def log_counted(sizes: list[int], alpha: float) -> float:
    """log P(m) of Daume's eq. 2, from its definition."""
    n = sum(sizes)
    total = math.lgamma(n + 1) - math.lgamma(alpha + n) + math.lgamma(alpha)
    for size in set(sizes):
        m = sizes.count(size)
        total += m * math.log(alpha) - m * math.log(size) - math.lgamma(m + 1)
    return total


def test_count_prior_by_definition() -> None:
    def log_weight(members: list[list[int]], k: int, i: int) -> float:
        sizes = [len(m) for m in members]
        after = [*sizes, 0]
        after[k] += 1
        return log_counted([s for s in after if s], 0.9) - (log_counted(sizes, 0.9) if sizes else 0.0)

    for seed in range(8):
        problem = Problem("gaussian", 7, seed)
        chain = problem.chain(EXCHANGEABLE["crp"])
        starts.sequential(chain, count_prior=True)
        assert chain.labels.tolist() == greedy(problem, log_weight)


def test_starts_and_orders() -> None:
    problem = Problem("gaussian", 7)
    chain = problem.chain(EXCHANGEABLE["crp"])
    starts.one_cluster(chain)
    assert chain.clusters == 1
    starts.singletons(chain)
    assert chain.clusters == 7
    starts.random_clusters(chain, 3)
    assert 1 <= chain.clusters <= 3
    up = starts.order_of(chain, "ascending")
    alone = [problem.log_h((int(i),)) for i in up]
    assert alone == sorted(alone)
    assert starts.order_of(chain, "descending").tolist() == up[::-1].tolist()
    assert sorted(starts.order_of(chain, "random").tolist()) == list(range(7))
    with pytest.raises(ValueError, match="the order is part of the model"):
        starts.order_of(problem.chain(ORDERED["uniform"]), "random")
    with pytest.raises(ValueError, match="count prior"):
        starts.sequential(problem.chain(EXCHANGEABLE["pitman_yor"]), count_prior=True)


@pytest.mark.parametrize("family", ["multinomial", "wishart", "sphere"])
@pytest.mark.parametrize("prior", list(EXCHANGEABLE.values()), ids=lambda p: type(p).__name__)
def test_sureness_by_definition(family: str, prior: pr.Prior) -> None:
    problem = Problem(family, 6)
    z = [0, 0, 1, 0, 1, 2]
    chain = problem.chain(prior)
    chain.set_labels(z)
    probability, of_new, log_predictive = starts.sureness(chain)
    for i in range(6):
        others = [k for j, k in enumerate(z) if j != i]
        joints = []
        for k in [*sorted(set(others)), 9]:
            y = [*z[:i], k, *z[i + 1 :]]
            joints.append((k, prior.log_probability(y) + problem.log_likelihood(y)))
        total = np.logaddexp.reduce([v for _, v in joints])
        own = z[i] if z[i] in others else 9
        assert probability[i] == pytest.approx(math.exp(dict(joints)[own] - total), rel=1e-4)
        assert of_new[i] == pytest.approx(math.exp(dict(joints)[9] - total), rel=1e-4)
        members: dict[int, list[int]] = {}
        for j, k in enumerate(z):
            if j != i:
                members.setdefault(k, []).append(j)
        without = math.fsum(problem.log_h(tuple(m)) for m in members.values())
        rest = prior.log_probability(others)
        assert log_predictive[i] == pytest.approx(total - without - rest, abs=2e-4)
    assert chain.labels.tolist() == z


def test_sureness_under_a_decay() -> None:
    """As if a record came next after those before it; that has founded its cluster as it would a new one."""
    problem, prior = Problem("gaussian", 6), ORDERED["exponential"]
    z = [0, 0, 1, 0, 1, 2]
    chain = problem.chain(prior)
    chain.set_labels(z)
    probability, *_ = starts.sureness(chain)
    times = problem.data.times.tolist()
    for i in range(6):
        others = {k: [j for j in range(6) if z[j] == k and j != i] for k in (0, 1, 2)}
        before = [[j for j in others[k] if j < i] for k in (0, 1, 2)]
        joins, new = weights(prior, before, i, times[: i + 1])
        value = {3: new * math.exp(problem.log_h((i,)))}
        for k, weight in enumerate(joins):
            if others[k]:
                founded = k == z[i] and not before[k]
                gain = problem.log_h(tuple(sorted([*others[k], i]))) - problem.log_h(tuple(others[k]))
                value[k] = (new if founded else weight) * math.exp(gain)
        own = z[i] if others[z[i]] else 3
        assert probability[i] == pytest.approx(value[own] / sum(value.values()), rel=1e-6)


def test_left_to_right_against_enumeration() -> None:
    problem = Problem("multinomial", 6)
    first = (0, 1, 0)

    def total(prior: pr.Prior, n: int) -> float:
        return float(
            np.logaddexp.reduce(
                [
                    prior.log_probability(z) + problem.log_likelihood(z)
                    for z in partitions(n)
                    if z[:3] == first
                ]
            )
        )

    train, test = problem.data.take(np.arange(3)), problem.data.take(np.arange(3, 6))
    for prior in (*EXCHANGEABLE.values(), ORDERED["uniform"]):
        exact = [total(prior, n + 1) - total(prior, n) for n in (3, 4, 5)]
        for resample in (False, True):
            estimate = left_to_right(
                train, np.array(first), test, problem.likelihood, prior, particles=4000, resample=resample
            )
            assert estimate == pytest.approx(exact, abs=0.02)
    with pytest.raises(ValueError, match="exchangeable"):
        left_to_right(train, np.array(first), test, problem.likelihood, ORDERED["window"])


@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
@pytest.mark.parametrize("prior", [EXCHANGEABLE["crp"], ORDERED["uniform"]], ids=lambda p: type(p).__name__)
def test_left_to_right_weighs_particles_that_stay(family: str, prior: pr.Prior) -> None:
    """Alike, they would be off by up to 0.036 nats: what is drawn first is not what the whole past says."""
    problem, first = Problem(family, 7), (0, 1)

    def total(n: int) -> float:
        held = [z for z in partitions(n) if z[:2] == first]
        joints = [prior.log_probability(z) + problem.log_likelihood(z) for z in held]
        return float(np.logaddexp.reduce(joints))

    train, test = problem.data.take(np.arange(2)), problem.data.take(np.arange(2, 7))
    estimate = left_to_right(
        train, np.array(first), test, problem.likelihood, prior, particles=20_000, resample=False
    )
    assert estimate == pytest.approx([total(n + 1) - total(n) for n in range(2, 7)], abs=0.003)


def test_west_against_quadrature() -> None:
    rng = np.random.default_rng(1)
    grid = np.exp(np.linspace(-12.0, 8.0, 4000))
    log_gamma = np.vectorize(math.lgamma)
    density = (2.0 + 7 - 1.0) * np.log(grid) - 0.5 * grid + log_gamma(grid) - log_gamma(grid + 40)
    density = np.exp(density - density.max()) * grid
    density /= density.sum()
    alpha, draws = 1.0, []
    for _ in range(20_000):
        alpha = west(alpha, 7, 40, 2.0, 0.5, rng)
        draws.append(alpha)
    quantiles = np.interp([0.1, 0.25, 0.5, 0.75, 0.9], np.cumsum(density), grid)
    shares = [np.mean(np.array(draws[::4]) < q) for q in quantiles]
    assert shares == pytest.approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.025)


def test_slice_sampling_a_known_density() -> None:
    rng = np.random.default_rng(2)
    x, draws = 0.0, []
    for _ in range(20_000):
        x = slice_sample(lambda y: -0.5 * ((y - 1.0) / 0.3) ** 2, x, rng)
        draws.append(x)
    assert stats.kstest(draws[::10], stats.norm(1.0, 0.3).cdf).pvalue > 1e-3
    # a density that is nowhere sampled from must be told apart
    assert stats.kstest(draws[::10], stats.norm(1.05, 0.3).cdf).pvalue < 1e-3


@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
@pytest.mark.parametrize("name", ["crp", "pitman_yor"])
def test_hyperparameters_with_the_clustering(family: str, name: str) -> None:
    """Gibbs and Hyper in turn sample clusterings with the concentration integrated out."""
    problem = Problem(family, 5)
    prior = EXCHANGEABLE[name]
    grid = np.exp(np.linspace(-9.0, 6.0, 300))
    log_density = 1.5 * np.log(grid) - 0.5 * grid

    def log_prior(z: tuple[int, ...]) -> float:
        values = []
        for alpha in grid.tolist():
            now = pr.CRP(alpha) if name == "crp" else pr.PitmanYor(alpha, prior.discount)  # type: ignore[attr-defined]
            values.append(now.log_probability(z))
        return float(np.logaddexp.reduce(np.array(values) + log_density))

    posterior = problem.posterior(None, log_prior)
    chain = problem.chain(prior, seed=3)
    hyper = Hyper(["concentration"], shape=1.5, rate=0.5)
    met: dict[tuple[int, ...], int] = {}
    gibbs = Gibbs()
    for _ in range(4000):
        gibbs(chain)
        hyper(chain)
        z = tuple(chain.labels.tolist())
        met[z] = met.get(z, 0) + 1
    for z, p in posterior.items():
        if p > 0.03:
            assert met.get(z, 0) / 4000 == pytest.approx(p, abs=0.04)


def test_every_hyperparameter_moves_and_the_joint_stays_true() -> None:
    for family, names in (
        ("multinomial", ["concentration", "beta"]),
        ("hierarchical_pitman_yor", ["concentration", "base_concentration", "word_discount"]),
        ("gaussian", ["variance", "mean_variance"]),
        ("gamma", ["kappa", "shape"]),
    ):
        chain = Problem(family).chain(EXCHANGEABLE["pitman_yor"])
        before = (chain.prior, chain.likelihood)
        for _ in range(5):
            Hyper(names)(chain)
            Gibbs()(chain)
        assert (chain.prior, chain.likelihood) != before
        assert abs(chain.refresh()) < 1e-9
    chain = Problem("gaussian").chain(ORDERED["exponential"])
    for _ in range(5):
        Hyper()(chain)
        LinkGibbs()(chain)
    assert chain.prior.decay.scale != 2.0  # type: ignore[attr-defined]
    assert abs(chain.refresh()) < 1e-9
    with pytest.raises(ValueError, match="neither CRP nor Gaussian"):
        Hyper(["window"])(Problem("gaussian").chain(EXCHANGEABLE["crp"]))


def test_schedules() -> None:
    problem = Problem("multinomial", 6)
    chain = problem.chain(EXCHANGEABLE["crp"], seed=1)
    draws: list[np.ndarray] = []
    trace, best = run(chain, Gibbs(), Budget(rounds=30), draws, thin=5)
    assert len(trace.seconds) == 30
    assert len(draws) == 6
    assert best.log_joint == max([best.log_joint, *trace.log_joint])
    joint = problem.log_likelihood(best.labels.tolist()) + best.prior.log_probability(best.labels.tolist())
    assert best.log_joint == pytest.approx(joint)
    with pytest.raises(ValueError, match="say when to stop"):
        Budget()
    with pytest.raises(ValueError, match="at least one move"):
        Hybrid([])


def test_budgets() -> None:
    stop = threading.Event()
    budget = Budget(9, 4.0, stop)
    assert budget.halves() == (Budget(4, 2.0, stop), Budget(5, 2.0, stop))
    assert Budget(1).halves() == (Budget(1), Budget(1))
    assert Budget(seconds=3.0).halves() == (Budget(seconds=1.5), Budget(seconds=1.5))
    assert not budget.spent(8, 3.9)
    assert budget.spent(9, 0.0)
    assert budget.spent(1, 4.0)
    stop.set()
    assert budget.spent(1, 0.0)
    chain = Problem("multinomial", 6).chain(EXCHANGEABLE["crp"], seed=1)
    trace, _ = run(chain, Gibbs(), Budget(rounds=50, stop=stop))
    assert len(trace.seconds) == 1


def test_chains_side_by_side_are_those_one_after_the_other() -> None:
    problem = Problem("multinomial", 6)

    def job(seed: int) -> tuple[object, object]:
        return run(problem.chain(EXCHANGEABLE["crp"], seed=seed), Gibbs(), Budget(rounds=50))

    alone = [job(seed) for seed in range(4)]
    together = run_chains([lambda seed=seed: job(seed) for seed in range(4)])  # type: ignore[misc]
    assert [t.log_joint for t, _ in together] == [t.log_joint for t, _ in alone]  # type: ignore[attr-defined]


def test_climbing_only_climbs() -> None:
    for family in ("gaussian", "hierarchical_pitman_yor"):
        chain = Problem(family, 7).chain(EXCHANGEABLE["crp"], seed=2)
        starts.one_cluster(chain)
        move = Permutation(keep=1e-3, order="projection-pair")
        for _ in range(20):
            before = chain.log_joint
            move(chain)
            assert chain.log_joint >= before
        assert abs(chain.refresh()) < 1e-9
