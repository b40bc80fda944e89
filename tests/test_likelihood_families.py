"""The families over vectors that the stream does not serve yet: against oracles and arithmetic done anew."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from typing import Any, NamedTuple

import numba.extending
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import families as fa
from oracle import vector_families as va
from scipy import special

from streamdp.likelihoods import (
    BetaBernoulli,
    GammaPoisson,
    Likelihood,
    MatrixStatistics,
    NormalInverseGamma,
    NormalInverseWishart,
    SumStatistics,
    VectorStatistics,
    VonMisesFisher,
    bessel,
)


class Case(NamedTuple):
    family: Likelihood[Any, Any]
    oracle: fa.Family
    records: st.SearchStrategy[list[float]]
    reversible: bool = True


def unit(values: list[float]) -> list[float]:
    return (np.array(values) / np.linalg.norm(values)).tolist()


def vectors(size: int, element: st.SearchStrategy[Any]) -> st.SearchStrategy[list[float]]:
    return st.lists(element, min_size=size, max_size=size)


reals = st.floats(-5.0, 5.0).map(lambda v: round(v, 3))
bits, counts = st.integers(0, 1), st.integers(0, 9)
points = vectors(2, reals)
circle = st.floats(0.0, 2.0 * math.pi).map(lambda u: [math.cos(u), math.sin(u)])
ball = vectors(3, reals).filter(any).map(unit)
ROWS = ((2.0, 0.7, -0.3), (0.7, 1.0, 0.2), (-0.3, 0.2, 0.5))
NORTH = (0.0, 0.6, 0.8)
CASES = {
    "wishart": Case(
        NormalInverseWishart(3, mean=(0.3, -1.0, 0.5), kappa=0.2, degrees=2.5, scale=ROWS),
        va.NormalInverseWishart((0.3, -1.0, 0.5), 0.2, 2.5, np.array(ROWS)),
        vectors(3, reals),
    ),
    "wishart diagonal": Case(
        NormalInverseWishart(2, scale=(1.0, 0.5)),
        va.NormalInverseWishart(0.0, 0.1, 4.0, np.diag([1.0, 0.5])),
        points,
    ),
    "wishart forgetting": Case(
        NormalInverseWishart(2, mean=0.3, kappa=0.2, scale=2.0, forget=0.8),
        va.NormalInverseWishart(0.3, 0.2, 4.0, 2.0 * np.eye(2), 0.8),
        points,
        False,
    ),
    "bernoulli": Case(
        BetaBernoulli(3, (0.5, 1.0, 2.0), 0.7), va.BetaBernoulli((0.5, 1.0, 2.0), 0.7), vectors(3, bits)
    ),
    "poisson": Case(GammaPoisson(2, 1.5, (0.2, 2.0)), va.GammaPoisson(1.5, (0.2, 2.0)), vectors(2, counts)),
    "circle": Case(VonMisesFisher(2, 3.0), va.VonMisesFisher([3.0]), circle),
    "sphere": Case(
        VonMisesFisher(3, (1.0, 6.0), NORTH, 1.7), va.VonMisesFisher([1.0, 6.0], NORTH, 1.7), ball
    ),
}
REVERSIBLE = [name for name, case in CASES.items() if case.reversible]
few = settings(max_examples=30, deadline=None)
every = pytest.mark.parametrize("name", CASES)
reversible = pytest.mark.parametrize("name", REVERSIBLE)


def statistics_of(family: Likelihood[Any, Any], records: Any) -> Any:
    statistics = family.empty()
    for x in records:
        family.add(statistics, np.array(x))
    return statistics


def assert_equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.count == pytest.approx(expected.count)
    if isinstance(expected, SumStatistics):
        assert found.total == pytest.approx(expected.total, abs=1e-12)
        return
    for part in ("mean", "spread", "scatter", "factor"):
        assert getattr(found, part) == pytest.approx(getattr(expected, part), rel=1e-8, abs=1e-8)


@reversible
@few
@given(data=st.data())
def test_remove_is_the_inverse_of_add(name: str, data: st.DataObject) -> None:
    family, _, strategy, _ = CASES[name]
    records = data.draw(st.lists(strategy, max_size=8))
    order = data.draw(st.permutations(range(len(records))))
    statistics = statistics_of(family, records)
    for i, gone in enumerate(order):
        family.remove(statistics, np.array(records[gone]))
        assert_equal(statistics, statistics_of(family, [records[j] for j in order[i + 1 :]]))


@reversible
@few
@given(data=st.data())
def test_merge_is_the_union(name: str, data: st.DataObject) -> None:
    family, _, strategy, _ = CASES[name]
    one, two = data.draw(st.lists(strategy, max_size=6)), data.draw(st.lists(strategy, max_size=6))
    merged, other = statistics_of(family, one), statistics_of(family, two)
    kept = copy.deepcopy(other)
    family.merge(merged, other)
    assert_equal(merged, statistics_of(family, one + two))
    family.add(merged, np.array(data.draw(strategy)))
    assert_equal(other, kept)  # nothing is shared


@every
@few
@given(data=st.data())
def test_predictive_equals_the_oracle(name: str, data: st.DataObject) -> None:
    family, oracle, strategy, _ = CASES[name]
    *members, x = data.draw(st.lists(strategy, min_size=1, max_size=6))
    found = family.log_predictive(statistics_of(family, members), np.array(x))
    assert found == pytest.approx(oracle.log_predictive(members, x, None), rel=1e-8, abs=1e-8)


@reversible
@few
@given(data=st.data())
def test_marginal_equals_the_oracle_in_any_order(name: str, data: st.DataObject) -> None:
    family, oracle, strategy, _ = CASES[name]
    records = data.draw(st.lists(strategy, max_size=6))
    order = data.draw(st.permutations(records))
    found = family.log_marginal(statistics_of(family, order))
    assert found == pytest.approx(oracle.log_marginal(records), rel=1e-8, abs=1e-8)


@reversible
@few
@given(data=st.data())
def test_predictives_sum_up_to_the_marginal(name: str, data: st.DataObject) -> None:
    family, _, strategy, _ = CASES[name]
    records = data.draw(st.lists(strategy, max_size=8))
    total, statistics = 0.0, family.empty()
    assert family.log_marginal(statistics) == 0.0
    for x in records:
        total += family.log_predictive(statistics, np.array(x))
        family.add(statistics, np.array(x))
        assert family.log_marginal(statistics) == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("members", [[], [[1, 0, 1]], [[0, 0, 1], [0, 0, 1], [0, 1, 1]]])
def test_probabilities_of_binary_vectors_sum_to_one(members: list[Any]) -> None:
    family = BetaBernoulli(3, 0.4, (1.0, 2.0, 0.1))
    statistics = statistics_of(family, members)
    each = [family.log_predictive(statistics, np.array(x)) for x in itertools.product((0, 1), repeat=3)]
    assert math.fsum(map(math.exp, each)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("members", [[], [[7, 0]], [[3, 1], [0, 0], [12, 2]]])
def test_probabilities_of_counts_sum_to_one(members: list[Any]) -> None:
    family = GammaPoisson(2, (1.2, 0.5), (2.0, 3.0))
    statistics = statistics_of(family, members)
    each = [family.log_predictive(statistics, np.array(x)) for x in itertools.product(range(120), range(40))]
    assert math.fsum(map(math.exp, each)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("members", [0, 1, 4])
def test_densities_on_the_sphere_integrate_to_one(size: int, members: int) -> None:
    family = VonMisesFisher(size, (0.5, 3.0, 10.0), NORTH if size == 3 else (1.0, 0.0), 2.0)
    directions, shares = va.sphere(size, 40)
    statistics = statistics_of(family, directions[: 3 * members : 3])
    densities = [math.exp(family.log_predictive(statistics, x)) for x in directions]
    area = 2.0 * math.pi if size == 2 else 4.0 * math.pi
    assert area * float(np.array(densities) @ shares) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("members", [[], [1.0], [0.5, -2.0, 3.0]])
@pytest.mark.parametrize("forget", [1.0, 0.5])
def test_in_one_dimension_it_is_normal_inverse_gamma(members: list[float], forget: float) -> None:
    wishart = NormalInverseWishart(1, mean=0.4, kappa=0.3, degrees=1.6, scale=1.4, forget=forget)
    gamma = NormalInverseGamma(1, mean=0.4, kappa=0.3, shape=0.8, scale=0.7, forget=forget)
    one, two = wishart.empty(), gamma.empty()
    for x in members:
        wishart.add(one, np.array([x]))
        gamma.add(two, np.array([x]))
    edges = np.linspace(-math.pi / 2.0, math.pi / 2.0, 2001)
    total = 0.0
    for angle in (edges[1:] + edges[:-1]) / 2.0:  # x = tan(angle) reaches far into heavy tails
        x = np.array([math.tan(angle)])
        found = wishart.log_predictive(one, x)
        assert found == pytest.approx(gamma.log_predictive(two, x), rel=1e-9)
        total += math.exp(found) / math.cos(angle) ** 2 * (edges[1] - edges[0])
    assert total == pytest.approx(1.0, abs=1e-3)


def churn(family: Likelihood[Any, Any], statistics: Any, records: Any) -> list[int]:
    """Make 10^5 random additions and as many removals; return which records are left."""
    rng = random.Random(7)
    held: list[int] = []
    for _ in range(100_000):
        held.append(rng.randrange(len(records)))
        family.add(statistics, records[held[-1]])
        if rng.random() < 0.01:  # now and then almost all leave, so that a little is left of much
            while len(held) > 2:
                family.remove(statistics, records[held.pop(rng.randrange(len(held)))])
    return held


def noise(centre: float) -> np.ndarray:
    mixing = np.array([[0.1, 0.0, 0.0], [0.5, 1.0, 0.0], [-20.0, 5.0, 20.0]])
    return np.random.default_rng(6).normal(size=(200, 3)) @ mixing.T + centre


def directions(size: int) -> np.ndarray:
    found = np.random.default_rng(6).normal(size=(200, size)) + 0.3
    return found / np.linalg.norm(found, axis=1)[:, None]


@pytest.mark.parametrize(
    ("family", "records"),
    [
        (NormalInverseWishart(3), noise(0.0)),
        (NormalInverseWishart(3), noise(1e3)),
        (BetaBernoulli(4, 0.5), np.random.default_rng(6).integers(0, 2, (200, 4))),
        (GammaPoisson(4), np.random.default_rng(6).geometric(0.01, (200, 4)) - 1),
        (VonMisesFisher(16, 1e4), directions(16)),
    ],
    ids=["wishart", "wishart far from its prior mean", "bernoulli", "poisson", "sphere"],
)
def test_no_drift(family: Likelihood[Any, Any], records: Any) -> None:
    held = churn(family, statistics := family.empty(), records)
    fresh = statistics_of(family, records[held])
    assert statistics.count == fresh.count == len(held)
    assert family.log_marginal(statistics) == pytest.approx(family.log_marginal(fresh), rel=1e-6)
    for i in held:
        family.remove(statistics, records[i])
    assert_equal(statistics, family.empty())


def test_many_updates_keep_a_factor() -> None:
    rng = np.random.default_rng(3)
    family = NormalInverseWishart(12, scale=0.1)
    records = list(rng.normal(50.0, 1.0, (60, 12)) @ rng.normal(size=(12, 12)))
    statistics = statistics_of(family, records)
    for _ in range(20):
        for x in records[:40]:
            family.remove(statistics, x)
        for x in records[:40]:
            family.add(statistics, x)
    expected = np.linalg.cholesky(
        family.prior_scale
        + (len(records) - 1) * np.cov(np.array(records).T)
        + 6.0 / 60.1 * np.outer(*[np.mean(records, axis=0)] * 2)
    )
    assert statistics.factor == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert (np.triu(statistics.factor, 1) == 0.0).all()


def test_far_from_zero_digits_are_kept() -> None:
    points = np.random.default_rng(8).normal(0.0, 1.0, (300, 2))
    near, far = NormalInverseWishart(2), NormalInverseWishart(2, mean=1e7)
    close, away = statistics_of(near, points), statistics_of(far, points + 1e7)
    assert far.log_marginal(away) == pytest.approx(near.log_marginal(close), rel=1e-6)


@pytest.mark.parametrize("forget", [1.0, 0.9])
def test_an_outlier_that_swallows_all_digits_leaves_a_distribution(forget: float) -> None:
    family = NormalInverseWishart(2, forget=forget)
    points = np.random.default_rng(9).normal(0.0, 1.0, (20, 2))
    outlier = np.array([1e12, -3e11])
    statistics = statistics_of(family, [*points, outlier])
    if forget == 1.0:
        family.remove(statistics, outlier)
    else:
        for x in points:
            family.add(statistics, x)
    assert math.isfinite(family.log_predictive(statistics, points[0]))
    assert (np.diagonal(statistics.factor) > 0.0).all()
    if forget == 1.0:
        for x in points:
            family.remove(statistics, x)
        assert_equal(statistics, family.empty())


def test_a_giant_count_leaves_no_trace() -> None:
    family = GammaPoisson(1)
    statistics = statistics_of(family, [[3], [10**12], [1]])
    family.remove(statistics, np.array([10**12]))
    expected = family.log_marginal(statistics_of(family, [[3], [1]]))
    assert family.log_marginal(statistics) == pytest.approx(expected, rel=1e-9)


def test_almost_unit_vectors_are_made_so() -> None:
    family = VonMisesFisher(2, 5.0, (1.0005, 0.0), 1.0)
    long, exact = statistics_of(family, [[0.0, 1.0008]]), statistics_of(family, [[0.0, 1.0]])
    assert_equal(long, exact)
    assert family.direction.tolist() == [1.0, 0.0]
    x = np.array([0.9993, 0.0])
    assert family.log_predictive(long, x) == pytest.approx(family.log_predictive(exact, x / 0.9993))


def test_a_concentration_that_explains_nothing_has_no_say() -> None:
    family, alone = VonMisesFisher(3, (1.0, 1e6)), VonMisesFisher(3, 1e6)
    x = np.array([1.0, 0.0, 0.0])
    members = [x] * 400
    found = family.log_predictive(statistics_of(family, members), x)
    assert found == pytest.approx(alone.log_predictive(statistics_of(alone, members), x), rel=1e-9)
    assert family.log_predictive(statistics_of(family, members), -x) > -1e4  # of the other, not -2e6


NORMALISERS = [  # log C_D(k) computed with 40 digits
    (2, 0.5, -1.89942678559482679),
    (2, 100.0, -98.6176097563519292),
    (3, 1e8, -99999983.4171963225),
    (5, 12.5, -11.0409152352794323),
    (16, 1e4, -9944.70408758646058),
    (100, 40.0, 79.1624220703084866),
    (768, 900.0, 1084.25997493533215),
    (4096, 250.0, 11211.6111393772906),
    (4096, 5000.0, 9089.38085830716319),
]


@pytest.mark.parametrize(("size", "k", "expected"), NORMALISERS)
def test_normaliser_to_all_digits(size: int, k: float, expected: float) -> None:
    assert bessel.log_vmf_normaliser(size, k) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 50, 119, 120, 121, 122, 123, 124, 768, 4096])
def test_normaliser_of_von_mises_fisher(size: int) -> None:
    edge = math.sqrt(16.0 * size)  # where the power series gives way
    for k in (0.0, 1e-13, 1e-11, 1e-3, 0.7, edge - 1e-6, edge + 1e-6, 30.0, size / 2.0, 3e3, 1e5, 1e8):
        expected = va.log_sphere_normaliser(size, k)
        assert bessel.log_vmf_normaliser(size, k) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 7.3, 30.0, 59.5, 60.0, 61.0, 200.0])
def test_bessel_function(order: float) -> None:
    for x in (1e-5, 0.3, 2.0, 5.5, 6.0, 40.0, 44.2, 300.0, 5e4):
        scaled = float(special.ive(order, x))
        if scaled > 1e-290:
            assert bessel.log_iv(order, x) == pytest.approx(math.log(scaled) + x, rel=1e-12, abs=1e-12)


def test_bessel_function_in_closed_form() -> None:
    for x in (1e-9, 0.1, 1.0, 8.0, 100.0, 1e8, 1e200):
        log_sinh = x - math.log(2.0) + math.log(-math.expm1(-2.0 * x))
        assert bessel.log_iv(0.5, x) == pytest.approx(0.5 * math.log(2.0 / (math.pi * x)) + log_sinh)
    assert bessel.log_iv(0.0, 0.0) == 0.0
    assert bessel.log_iv(0.5, 0.0) == -math.inf


def test_bessel_function_compiles() -> None:
    numba.extending.register_jitable(bessel.log_iv)
    compiled = numba.njit(error_model="numpy")(bessel.log_vmf_normaliser)
    for size, k in itertools.product((2, 3, 130), (0.0, 0.5, 50.0, 1e6)):
        assert compiled(size, k) == pytest.approx(bessel.log_vmf_normaliser(size, k), rel=1e-13)


@pytest.mark.parametrize(
    ("name", "members", "gone"),
    [
        ("wishart diagonal", [], [0.0, 0.0]),
        ("wishart diagonal", [[1.0, 2.0]], [1.0, 9.0]),
        ("wishart diagonal", [[0.0, 1.0], [0.0, 2.0]], [0.0, 5.0]),
        ("wishart diagonal", [[-5.0, -5.0], [5.0, 5.0], [0.0, 0.0]], [3.0, -3.0]),
        ("bernoulli", [], [0, 0, 0]),
        ("bernoulli", [[0, 1, 1]], [0, 1, 0]),
        ("bernoulli", [[0, 1, 1], [0, 1, 1]], [1, 1, 1]),
        ("bernoulli", [[0, 1, 1], [0, 1, 1]], [0, 0, 1]),
        ("poisson", [], [0, 0]),
        ("poisson", [[1, 2], [3, 4]], [5, 0]),
        ("poisson", [[1, 2]], [1, 1]),
        ("poisson", [[1, 2], [1, 2]], [2, 2]),
        ("circle", [], [1.0, 0.0]),
        ("circle", [[1.0, 0.0]], [0.0, 1.0]),
        ("circle", [[1.0, 0.0], [0.0, 1.0]], [-1.0, 0.0]),
    ],
)
def test_removing_vectors_that_are_not_there(name: str, members: list[Any], gone: list[float]) -> None:
    family = CASES[name].family
    statistics = statistics_of(family, members)
    with pytest.raises(ValueError, match="cannot remove a vector"):
        family.remove(statistics, np.array(gone))
    assert_equal(statistics, statistics_of(family, members))


def test_what_depends_on_the_order_is_refused() -> None:
    family, _, _, _ = CASES["wishart forgetting"]
    statistics = statistics_of(family, [[1.0, 2.0], [2.0, 1.0]])
    for act in (
        lambda: family.remove(statistics, np.array([2.0, 1.0])),
        lambda: family.merge(statistics, family.empty()),
        lambda: family.log_marginal(statistics),
    ):
        with pytest.raises(ValueError, match=r"forget = 0\.8: it depends on the records' order"):
            act()


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("wishart diagonal", [1.0]),
        ("wishart diagonal", [1.0, math.nan]),
        ("bernoulli", [0.0, 1.0]),
        ("bernoulli", [0.0, 1.0, 0.5]),
        ("bernoulli", [0.0, 1.0, -1.0]),
        ("poisson", [1.0, -1.0]),
        ("poisson", [1.0, 1.5]),
        ("poisson", [1.0, math.inf]),
        ("circle", [1.0, 0.1]),
        ("circle", [0.0, 0.998]),
        ("sphere", [1.0, 0.0]),
    ],
)
def test_malformed_records_are_refused(name: str, x: list[float]) -> None:
    family = CASES[name].family
    statistics = family.empty()
    for act in (family.add, family.remove, family.log_predictive):
        with pytest.raises(ValueError, match=r"a record is \d "):
            act(statistics, np.array(x))
    assert_equal(statistics, family.empty())


def test_statistics_of_another_family_are_refused() -> None:
    with pytest.raises(TypeError, match="must be MatrixStatistics, not VectorStatistics"):
        NormalInverseWishart(2).add(VectorStatistics(0.0, np.zeros(2), np.zeros(2)), np.zeros(2))


@every
def test_the_beam_does_not_serve_them(name: str) -> None:
    family = CASES[name].family
    message = f"the stream's beam does not serve {type(family).__name__} yet: use `streamdp fit`"
    with pytest.raises(ValueError, match=message):
        family.configure(np.zeros(20, np.int64), np.zeros(20))


@every
def test_is_a_value(name: str) -> None:
    family = CASES[name].family
    family.empty()
    again = pickle.loads(pickle.dumps(family))
    assert again == family
    assert hash(again) == hash(family)


def test_parameters_are_stored_as_numbers_and_tuples() -> None:
    matrix: Any = np.array(ROWS)
    assert NormalInverseWishart(3, scale=matrix).scale == ROWS
    assert NormalInverseWishart(2, scale=[1, 2]).scale == (1.0, 2.0)  # type: ignore[arg-type]
    assert NormalInverseWishart(2).nu == 4.0
    assert NormalInverseWishart(2, scale=3).prior_scale.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert isinstance(NormalInverseWishart(2).empty(), MatrixStatistics)
    assert BetaBernoulli(2, [1, 2]).a == (1.0, 2.0)  # type: ignore[arg-type]
    assert GammaPoisson(2, rate=2).rate == 2.0
    assert VonMisesFisher(2, [1, 2]).concentration == (1.0, 2.0)  # type: ignore[arg-type]
    assert VonMisesFisher(4).concentration == (2.0, 4.0, 8.0, 16.0, 32.0)
    assert VonMisesFisher(2, 3).concentrations.tolist() == [3.0]
    assert VonMisesFisher(2, mean=[0, 1]).mean == (0.0, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (NormalInverseWishart, {"dimension": 0}, "dimension must be an integer of at least 1, not 0"),
        (NormalInverseWishart, {"mean": (1.0, 2.0, 3.0)}, "mean must be one number or 2 of them"),
        (NormalInverseWishart, {"forget": 0.0}, "forget must be above 0 and at most 1"),
        (NormalInverseWishart, {"kappa": 0.0}, "kappa must be a positive number"),
        (NormalInverseWishart, {"degrees": 1.0}, "degrees must be a number above dimension - 1 = 1, not 1.0"),
        (NormalInverseWishart, {"degrees": math.inf}, "degrees must be a number above"),
        (NormalInverseWishart, {"scale": 0.0}, "scale must be positive and finite"),
        (NormalInverseWishart, {"scale": (1.0, -1.0)}, "scale must be positive and finite"),
        (NormalInverseWishart, {"scale": (1.0, 2.0, 3.0)}, "scale must be one number, 2 of them or 2 rows"),
        (NormalInverseWishart, {"scale": ((1.0, 2.0), (3.0,))}, "scale must be one number, 2 of them or"),
        (NormalInverseWishart, {"scale": ((1.0, 0.5), (0.4, 1.0))}, "scale must be symmetric and finite"),
        (NormalInverseWishart, {"scale": ((1.0, math.nan), (0.4, 1.0))}, "scale must be symmetric and"),
        (NormalInverseWishart, {"scale": ((1.0, 2.0), (2.0, 1.0))}, "scale must be positive definite"),
        (BetaBernoulli, {"dimension": True}, "dimension must be an integer of at least 1, not True"),
        (BetaBernoulli, {"a": 0.0}, "a must be positive and finite, not 0.0"),
        (BetaBernoulli, {"b": (1.0, math.inf)}, "b must be positive and finite"),
        (BetaBernoulli, {"b": (1.0,)}, "b must be one number or 2 of them"),
        (GammaPoisson, {"shape": -1.0}, "shape must be positive and finite"),
        (GammaPoisson, {"rate": (1.0, 0.0)}, "rate must be positive and finite"),
        (VonMisesFisher, {"dimension": 1}, "dimension must be at least 2, not 1"),
        (VonMisesFisher, {"concentration": 0.0}, "concentration must be one or several positive numbers"),
        (VonMisesFisher, {"concentration": ()}, "concentration must be one or several positive numbers"),
        (VonMisesFisher, {"concentration": (1.0, -1.0)}, "concentration must be one or several positive"),
        (VonMisesFisher, {"mean": (1.0, 1.0)}, "mean must be 2 numbers of length one"),
        (VonMisesFisher, {"mean": (1.0, 0.0, 0.0)}, "mean must be 2 numbers of length one"),
        (
            VonMisesFisher,
            {"mean_concentration": -1.0},
            "mean_concentration must be zero or a positive",
        ),
        (VonMisesFisher, {"mean_concentration": 1.0}, "mean_concentration needs a mean"),
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**{"dimension": 2, **parameters})
