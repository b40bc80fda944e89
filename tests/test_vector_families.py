"""What is true of families over vectors alone: densities, digits, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from algebra import add, empty, log_marginal, log_predictive, remove
from families import CHURN, NORTH, assert_equal, churn, statistics_of
from oracle import vector_families as va

from streamdp.kernels.jit import entry
from streamdp.likelihoods import (
    BetaBernoulli,
    GammaPoisson,
    Gaussian,
    Likelihood,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
)
from streamdp.likelihoods.vectors import Asked, NormalFamily, Rows, add_entry, leave_out, score_rows

REAL_LINE = [
    Gaussian(1, variance=0.7, mean=2.0),
    Gaussian(1, forget=0.5),
    NormalInverseGamma(1),
    NormalInverseGamma(1, mean=2.0, kappa=1.0, shape=0.8, scale=3.0, forget=0.5),
    NormalInverseWishart(1, mean=0.4, kappa=0.3, degrees=1.6, scale=1.4),
    NormalInverseWishart(1, mean=0.4, kappa=0.3, degrees=1.6, scale=1.4, forget=0.5),
]


@pytest.mark.parametrize("family", REAL_LINE)
@pytest.mark.parametrize("members", [[], [1.0], [0.5, -2.0, 3.0]])
def test_densities_integrate_to_one(family: NormalFamily, members: list[float]) -> None:
    statistics = statistics_of(family, [[x] for x in members])
    edges = np.linspace(-math.pi / 2.0, math.pi / 2.0, 4001)
    angles = (edges[1:] + edges[:-1]) / 2.0  # x = tan(angle) reaches far into heavy tails
    density = [math.exp(log_predictive(family, statistics, np.array([math.tan(u)]))) for u in angles]
    total = float((np.array(density) / np.cos(angles) ** 2).sum() * (edges[1] - edges[0]))
    assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("members", [[], [1.0], [0.5, -2.0, 3.0]])
@pytest.mark.parametrize("forget", [1.0, 0.5])
def test_in_one_dimension_it_is_normal_inverse_gamma(members: list[float], forget: float) -> None:
    wishart = NormalInverseWishart(1, mean=0.4, kappa=0.3, degrees=1.6, scale=1.4, forget=forget)
    gamma = NormalInverseGamma(1, mean=0.4, kappa=0.3, shape=0.8, scale=0.7, forget=forget)
    one, two = (statistics_of(family, [[x] for x in members]) for family in (wishart, gamma))
    for x in np.linspace(-9.0, 9.0, 37):
        found = log_predictive(wishart, one, np.array([x]))
        assert found == pytest.approx(log_predictive(gamma, two, np.array([x])), rel=1e-9)


@pytest.mark.parametrize("members", [[], [[1, 0, 1]], [[0, 0, 1], [0, 0, 1], [0, 1, 1]]])
def test_probabilities_of_binary_vectors_sum_to_one(members: list[Any]) -> None:
    family = BetaBernoulli(3, 0.4, (1.0, 2.0, 0.1))
    statistics = statistics_of(family, members)
    each = [log_predictive(family, statistics, np.array(x)) for x in itertools.product((0, 1), repeat=3)]
    assert math.fsum(map(math.exp, each)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("members", [[], [[7, 0]], [[3, 1], [0, 0], [12, 2]]])
def test_probabilities_of_counts_sum_to_one(members: list[Any]) -> None:
    family = GammaPoisson(2, (1.2, 0.5), (2.0, 3.0))
    statistics = statistics_of(family, members)
    each = [log_predictive(family, statistics, np.array(x)) for x in itertools.product(range(120), range(40))]
    assert math.fsum(map(math.exp, each)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("members", [0, 1, 4])
def test_densities_on_the_sphere_integrate_to_one(size: int, members: int) -> None:
    family = VonMisesFisher(size, (0.5, 3.0, 10.0), NORTH if size == 3 else (1.0, 0.0), 2.0)
    directions, shares = va.sphere(size, 40)
    statistics = statistics_of(family, directions[: 3 * members : 3])
    densities = [math.exp(log_predictive(family, statistics, x)) for x in directions]
    area = 2.0 * math.pi if size == 2 else 4.0 * math.pi
    assert area * float(np.array(densities) @ shares) == pytest.approx(1.0, rel=1e-9)


def scattered(centre: float) -> np.ndarray:
    return np.random.default_rng(6).normal(centre, [0.1, 1.0, 30.0], (200, 3))


def noise(centre: float) -> np.ndarray:
    mixing = np.array([[0.1, 0.0, 0.0], [0.5, 1.0, 0.0], [-20.0, 5.0, 20.0]])
    return np.random.default_rng(6).normal(size=(200, 3)) @ mixing.T + centre


def directions(size: int) -> np.ndarray:
    found = np.random.default_rng(6).normal(size=(200, size)) + 0.3
    return found / np.linalg.norm(found, axis=1)[:, None]


@pytest.mark.parametrize(
    ("family", "records"),
    [
        (Gaussian(3), scattered(0.0)),
        (Gaussian(3), scattered(1e4)),
        (NormalInverseGamma(3), scattered(0.0)),
        (NormalInverseGamma(3), scattered(1e4)),
        (NormalInverseWishart(3), noise(0.0)),
        (NormalInverseWishart(3), noise(1e3)),
        (BetaBernoulli(4, 0.5), np.random.default_rng(6).integers(0, 2, (200, 4))),
        (GammaPoisson(4), np.random.default_rng(6).geometric(0.01, (200, 4)) - 1),
        (VonMisesFisher(16, 1e4), directions(16)),
    ],
    ids=[
        "gaussian",
        "gaussian far from its prior mean",
        "gamma",
        "gamma far from its prior mean",
        "wishart",
        "wishart far from its prior mean",
        "bernoulli",
        "poisson",
        "sphere",
    ],
)
@pytest.mark.parametrize("times", CHURN)
def test_no_drift(family: Likelihood, records: Any, times: int) -> None:
    held = churn(family, statistics := empty(family), records, times)
    fresh = statistics_of(family, records[held])
    assert statistics.count == fresh.count == len(held)
    assert log_marginal(family, statistics) == pytest.approx(log_marginal(family, fresh), rel=1e-6)
    for i in held:
        remove(family, statistics, records[i])
    assert_equal(statistics, empty(family))


def test_many_updates_keep_a_factor() -> None:
    rng = np.random.default_rng(3)
    family = NormalInverseWishart(12, scale=0.1)
    records = list(rng.normal(50.0, 1.0, (60, 12)) @ rng.normal(size=(12, 12)))
    statistics = statistics_of(family, records)
    for _ in range(20):
        for x in records[:40]:
            remove(family, statistics, x)
        for x in records[:40]:
            add(family, statistics, x)
    expected = np.linalg.cholesky(
        family.prior_scale
        + (len(records) - 1) * np.cov(np.array(records).T)
        + 6.0 / 60.1 * np.outer(*[np.mean(records, axis=0)] * 2)
    )
    factor = statistics["factor"].reshape(12, 12)
    assert factor == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert (np.triu(factor, 1) == 0.0).all()


@pytest.mark.parametrize("make", [Gaussian, NormalInverseGamma, NormalInverseWishart])
def test_far_from_zero_digits_are_kept(make: Any) -> None:
    points = np.random.default_rng(8).normal(0.0, 1.0, (500, 2))
    near, far = make(2), make(2, mean=1e7)
    close, away = statistics_of(near, points), statistics_of(far, points + 1e7)
    assert log_marginal(far, away) == pytest.approx(log_marginal(near, close), rel=1e-6)


@pytest.mark.parametrize("make", [Gaussian, NormalInverseGamma, NormalInverseWishart])
def test_an_outlier_that_swallowed_all_digits_can_be_removed(make: Any) -> None:
    family = make(1)
    points = np.random.default_rng(9).normal(0.0, 1.0, (50, 1))
    statistics = statistics_of(family, [*points, np.array([1e12])])
    for x in [np.array([1e12]), *points]:
        remove(family, statistics, x)
    assert (statistics.row == empty(family).row).all()
    assert statistics.count == statistics.largest == 0


@pytest.mark.parametrize("forget", [1.0, 0.9])
def test_an_outlier_that_swallows_all_digits_leaves_a_distribution(forget: float) -> None:
    family = NormalInverseWishart(2, forget=forget)
    points = np.random.default_rng(9).normal(0.0, 1.0, (20, 2))
    outlier = np.array([1e12, -3e11])
    statistics = statistics_of(family, [*points, outlier])
    if forget == 1.0:
        remove(family, statistics, outlier)
    else:
        for x in points:
            add(family, statistics, x)
    assert math.isfinite(log_predictive(family, statistics, points[0]))
    assert (statistics["factor"][::3] > 0.0).all()
    if forget == 1.0:
        for x in points:
            remove(family, statistics, x)
        assert_equal(statistics, empty(family))


def test_a_giant_count_leaves_no_trace() -> None:
    family = GammaPoisson(1)
    statistics = statistics_of(family, [[3], [10**12], [1]])
    remove(family, statistics, np.array([10**12]))
    expected = log_marginal(family, statistics_of(family, [[3], [1]]))
    assert log_marginal(family, statistics) == pytest.approx(expected, rel=1e-9)


def test_almost_unit_vectors_are_made_so() -> None:
    family = VonMisesFisher(2, 5.0, (1.0005, 0.0), 1.0)
    long, exact = statistics_of(family, [[0.0, 1.0008]]), statistics_of(family, [[0.0, 1.0]])
    assert_equal(long, exact)
    assert family.direction.tolist() == [1.0, 0.0]
    x = np.array([0.9993, 0.0])
    assert log_predictive(family, long, x) == pytest.approx(log_predictive(family, exact, x / 0.9993))


def test_a_concentration_that_explains_nothing_has_no_say() -> None:
    family, alone = VonMisesFisher(3, (1.0, 1e6)), VonMisesFisher(3, 1e6)
    x = np.array([1.0, 0.0, 0.0])
    members = [x] * 400
    found = log_predictive(family, statistics_of(family, members), x)
    assert found == pytest.approx(log_predictive(alone, statistics_of(alone, members), x), rel=1e-9)
    assert log_predictive(family, statistics_of(family, members), -x) > -1e4  # of the other, not -2e6


@entry
def score_all(family: Any, rows: Rows, asked: Asked, out: np.ndarray) -> None:
    score_rows(family, rows, asked, out)


@pytest.mark.parametrize("margin", [0.0, 5.0, 10.0, math.inf])
def test_what_is_certain_to_be_too_low_is_left_early_and_nothing_else(margin: float) -> None:
    draw = np.random.default_rng(int(min(margin, 100.0)))
    family = NormalInverseWishart(5, kappa=0.2, degrees=9.0, scale=2.0, forget=0.9)
    x, clusters = draw.normal(size=5), []
    for reach in range(40):
        centre = 5.0 * reach * draw.normal(size=5)
        clusters.append(statistics_of(family, centre + draw.normal(size=(1 + reach % 7, 5))))
    exact = np.array([log_predictive(family, each, x) for each in clusters])
    block = np.array([each.row for each in clusters])
    unused, n = np.zeros((40, 0), np.float32), len(clusters)
    rows = Rows(block, unused, np.zeros(n), np.ones(n, np.int64), np.full(n, -1), n)
    floor, found = float(exact.max()) - 1e-6, np.zeros(n)
    score_all(family.terms(), rows, Asked(x, unused[0], 0.0, floor, margin), found)
    low = exact < floor - margin
    assert (found[low] == -math.inf).all()
    assert (found[~low] == exact[~low]).all()
    assert low.any() == (margin < 100.0)


def test_what_a_vector_adds_is_its_predictive_without_it_beside_that_alone() -> None:
    family, rng = VonMisesFisher(3, (2.0, 9.0), (0.0, 0.0, 1.0), 0.7), np.random.default_rng(4)
    for n in (1, 2, 5):
        vectors = rng.normal((0.0, 1.0, 0.0), size=(n, 3))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        row, gains = family.empty_row(), np.zeros(n + 1)
        for x in vectors:
            add_entry(family.terms(), row, x)
        leave_out(family.terms(), np.tile(row, (n + 1, 1)), np.append(vectors, [[np.nan] * 3], axis=0), gains)
        for i, x in enumerate(vectors):
            rest = family.log_marginal(np.delete(vectors, i, axis=0).tolist())
            expected = family.log_marginal(vectors.tolist()) - rest - family.log_marginal([x])
            assert gains[i] == pytest.approx(expected, abs=1e-9)
        assert gains[n] == 0.0
