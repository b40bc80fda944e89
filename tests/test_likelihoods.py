"""Every family against the contract, the oracle and arithmetic done anew."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import families as fa

from streamdp.beam import model
from streamdp.likelihoods import (
    DirichletMultinomial,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    Likelihood,
    NormalInverseGamma,
    VectorStatistics,
    WordStatistics,
)

P = (0.4, 0.3, 0.15, 0.1, 0.05)
V = len(P)


class Case(NamedTuple):
    family: Likelihood[Any, Any]
    oracle: fa.Family
    base: Any = None
    oracle_base: Any = None
    exchangeable: bool = True


BASE = dict(enumerate(P))
FORGETTING = Gaussian(2, variance=0.7, mean_variance=2.0, mean=0.3, forget=0.9)
CASES = {
    "dirichlet-multinomial": Case(DirichletMultinomial(0.3, V), fa.DirichletMultinomial(0.3, V)),
    "growing vocabulary": Case(DirichletMultinomial(0.3), fa.DirichletMultinomial(0.3), V, V),
    "hierarchical dirichlet": Case(
        HierarchicalDirichlet(4.0), fa.HierarchicalDirichlet(4.0), np.array(P), BASE
    ),
    "fixed base": Case(HierarchicalDirichlet(4.0, base=P), fa.HierarchicalDirichlet(4.0), oracle_base=BASE),
    "document level": Case(
        HierarchicalDirichlet(4.0, 2.5), fa.HierarchicalDirichlet(4.0, 2.5), BASE, BASE, False
    ),
    "hierarchical pitman-yor": Case(
        HierarchicalPitmanYor(3.0, 0.6), fa.HierarchicalPitmanYor(3.0, 0.6), BASE, BASE, False
    ),
    "gaussian": Case(
        Gaussian(2, variance=0.7, mean_variance=2.0, mean=(0.3, -1.0)), fa.Gaussian(0.7, 2.0, (0.3, -1.0))
    ),
    "gaussian forgetting": Case(FORGETTING, fa.Gaussian(0.7, 2.0, 0.3, 0.9), exchangeable=False),
    "normal inverse gamma": Case(
        NormalInverseGamma(2, mean=0.3, kappa=0.2, shape=1.7, scale=(1.0, 0.5)),
        fa.NormalInverseGamma(0.3, 0.2, 1.7, (1.0, 0.5)),
    ),
    "normal inverse gamma forgetting": Case(
        NormalInverseGamma(2, kappa=0.2, shape=1.7, forget=0.8),
        fa.NormalInverseGamma(0.0, 0.2, 1.7, 1.0, 0.8),
        exchangeable=False,
    ),
}


def over(*, reversible: bool = False, exchangeable: bool = False) -> Any:
    """Run a check over every case, or over those that allow it."""
    chosen = {
        name: case
        for name, case in CASES.items()
        if (case.exchangeable or not exchangeable) and ("forgetting" not in name or not reversible)
    }
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen.keys())


few = settings(max_examples=40, deadline=None)
words = st.dictionaries(st.integers(0, V - 1), st.integers(1, 3), max_size=V).map(lambda d: list(d.items()))
points = st.lists(st.floats(-5.0, 5.0).map(lambda v: round(v, 3)), min_size=2, max_size=2)


def draw(case: Case, data: st.DataObject, least: int = 0) -> list[Any]:
    return data.draw(st.lists(words if case.family.sparse else points, min_size=least, max_size=7))


def encoded(case: Case, record: Any) -> Any:
    if not case.family.sparse:
        return np.array(record)
    return np.array([w for w, _ in record], int), np.array([c for _, c in record], int)


def statistics_of(case: Case, records: list[Any]) -> Any:
    statistics = case.family.empty()
    for record in records:
        case.family.add(statistics, encoded(case, record))
    return statistics


def assert_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, WordStatistics):
        assert found == expected
    else:
        assert found.count == pytest.approx(expected.count)
        assert found.mean == pytest.approx(expected.mean, abs=1e-9)
        assert found.spread == pytest.approx(expected.spread, abs=1e-9)


@over(reversible=True)
@few
@given(data=st.data())
def test_remove_is_the_inverse_of_add(case: Case, data: st.DataObject) -> None:
    records = draw(case, data)
    order = data.draw(st.permutations(range(len(records))))
    statistics = statistics_of(case, records)
    for i, gone in enumerate(order):
        case.family.remove(statistics, encoded(case, records[gone]))
        assert_equal(statistics, statistics_of(case, [records[j] for j in order[i + 1 :]]))


@over(reversible=True)
@few
@given(data=st.data())
def test_merge_is_the_union(case: Case, data: st.DataObject) -> None:
    one, two = draw(case, data), draw(case, data)
    merged, other = statistics_of(case, one), statistics_of(case, two)
    kept = copy.deepcopy(other)
    case.family.merge(merged, other)
    assert_equal(merged, statistics_of(case, one + two))
    assert_equal(other, kept)
    case.family.add(merged, encoded(case, (one + two + [[(0, 1)] if case.family.sparse else [0.0, 0.0]])[0]))
    assert_equal(other, kept)  # nothing is shared


@over()
@few
@given(data=st.data())
def test_predictive_equals_the_oracle(case: Case, data: st.DataObject) -> None:
    *members, x = draw(case, data, 1)
    found = case.family.log_predictive(statistics_of(case, members), encoded(case, x), case.base)
    expected = case.oracle.log_predictive(members, x, case.oracle_base)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@over(exchangeable=True)
@few
@given(data=st.data())
def test_marginal_equals_the_oracle_in_any_order(case: Case, data: st.DataObject) -> None:
    records = draw(case, data)
    order = data.draw(st.permutations(records))
    expected = case.oracle.log_marginal(records, [case.oracle_base] * len(records))
    found = case.family.log_marginal(statistics_of(case, order), case.base)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@over(exchangeable=True)
@few
@given(data=st.data())
def test_predictive_is_the_ratio_of_marginals(case: Case, data: st.DataObject) -> None:
    *members, x = draw(case, data, 1)
    before, after = (
        case.family.log_marginal(statistics_of(case, records), case.base)
        for records in (members, [*members, x])
    )
    found = case.family.log_predictive(statistics_of(case, members), encoded(case, x), case.base)
    assert found == pytest.approx(after - before, rel=1e-8, abs=1e-8)


@over()
def test_marginal_of_nothing_is_one(case: Case) -> None:
    if case.exchangeable:
        assert case.family.log_marginal(case.family.empty(), case.base) == 0.0


@over()
@few
@given(data=st.data())
def test_one_token_or_value_has_total_probability_one(case: Case, data: st.DataObject) -> None:
    statistics = statistics_of(case, draw(case, data))
    if case.family.sparse:
        total = math.fsum(
            math.exp(case.family.log_predictive(statistics, encoded(case, [(w, 1)]), case.base))
            for w in range(V)
        )
        assert total == pytest.approx(1.0)


FLAT_LINE = [
    Gaussian(1, variance=0.7, mean=2.0),
    Gaussian(1, forget=0.5),
    NormalInverseGamma(1),
    NormalInverseGamma(1, mean=2.0, kappa=1.0, shape=0.8, scale=3.0, forget=0.5),
]


@pytest.mark.parametrize("family", FLAT_LINE)
@pytest.mark.parametrize("members", [[], [1.0], [0.5, -2.0, 3.0]])
def test_densities_integrate_to_one(family: Gaussian | NormalInverseGamma, members: list[float]) -> None:
    statistics = family.empty()
    for x in members:
        family.add(statistics, np.array([x]))
    edges = np.linspace(-math.pi / 2.0, math.pi / 2.0, 4001)
    angles = (edges[1:] + edges[:-1]) / 2.0  # x = tan(angle) reaches far into heavy tails
    density = [math.exp(family.log_predictive(statistics, np.array([math.tan(u)]))) for u in angles]
    total = float((np.array(density) / np.cos(angles) ** 2).sum() * (edges[1] - edges[0]))
    assert total == pytest.approx(1.0, abs=1e-3)


@few
@given(data=st.data())
def test_pitman_yor_marginal_seats_all_tokens_of_a_word_at_one_table(data: st.DataObject) -> None:
    case = CASES["hierarchical pitman-yor"]
    records = draw(case, data)
    expected, counts, n = 0.0, dict.fromkeys(range(V), 0), 0
    for record in records:
        for w, c in record:
            for _ in range(c):
                types = sum(held > 0 for held in counts.values())
                mass = counts[w] - 0.6 if counts[w] else (3.0 + 0.6 * types) * P[w]
                expected += math.log(mass / (3.0 + n))
                counts[w] += 1
                n += 1
    found = case.family.log_marginal(statistics_of(case, records), BASE)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    predictives = case.oracle.log_marginal(records, [BASE] * len(records))
    assert found <= predictives + 1e-9


def test_no_drift_of_word_counts() -> None:
    rng = np.random.default_rng(5)
    records = [(rng.choice(400, 6, replace=False), rng.integers(1, 3, 6)) for _ in range(200)]
    base = np.full(400, 1.0 / 400.0)
    families = DirichletMultinomial(0.03, 400), HierarchicalDirichlet(), HierarchicalPitmanYor()
    held = churn(families[0], statistics := families[0].empty(), records)
    fresh = families[0].empty()
    for i in held:
        families[0].add(fresh, records[i])
    assert statistics == fresh
    for family in families:
        found, expected = family.log_marginal(statistics, base), family.log_marginal(fresh, base)
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("family", [Gaussian(3), NormalInverseGamma(3)])
@pytest.mark.parametrize("centre", [0.0, 1e4])
def test_no_drift_of_vectors(family: Gaussian | NormalInverseGamma, centre: float) -> None:
    rng = np.random.default_rng(6)
    records = list(rng.normal(centre, [0.1, 1.0, 30.0], (200, 3)))
    held = churn(family, statistics := family.empty(), records)
    fresh = family.empty()
    for i in held:
        family.add(fresh, records[i])
    assert statistics.count == fresh.count
    assert family.log_marginal(statistics) == pytest.approx(family.log_marginal(fresh), rel=1e-6)


def churn(family: Likelihood[Any, Any], statistics: Any, records: list[Any]) -> list[int]:
    """Make 10^5 random additions and as many removals; return which records are left."""
    rng = random.Random(7)
    held: list[int] = []
    for _ in range(100_000):
        held.append(rng.randrange(len(records)))
        family.add(statistics, records[held[-1]])
        if rng.random() < 0.01:  # now and then almost all leave, so that a little is left of much
            while len(held) > 2:
                family.remove(statistics, records[held.pop(rng.randrange(len(held)))])
        assert held
    return held


def test_far_from_zero_a_gaussian_keeps_its_digits() -> None:
    rng = np.random.default_rng(8)
    points = rng.normal(0.0, 1.0, (500, 2))
    for make in (Gaussian, NormalInverseGamma):
        near, far = make(2), make(2, mean=1e7)
        close, away = near.empty(), far.empty()
        for x in points:
            near.add(close, x)
            far.add(away, x + 1e7)
        assert far.log_marginal(away) == pytest.approx(near.log_marginal(close), rel=1e-6)


@pytest.mark.parametrize(
    ("members", "gone", "message"),
    [
        ([], [(0, 1)], "not in the cluster"),
        ([], [], "not in the cluster"),
        ([[(0, 1)], [(1, 1)]], [(0, 2)], "cannot remove 2 of word 0: the cluster has 1"),
        ([[(0, 1)], [(1, 1)]], [(4, 1)], "cannot remove 1 of word 4: the cluster has 0"),
        ([[(0, 1), (1, 1)]], [(0, 1)], "not in the cluster"),
        ([[(0, 1)], [(1, 1)]], [(0, 1), (0, 1)], "cannot remove 2 of word 0"),
    ],
)
def test_removing_words_that_are_not_there(members: list[Any], gone: Any, message: str) -> None:
    case = CASES["dirichlet-multinomial"]
    statistics = statistics_of(case, members)
    with pytest.raises(ValueError, match=message):
        case.family.remove(statistics, encoded(case, gone))
    assert statistics == statistics_of(case, members)


@pytest.mark.parametrize(
    ("members", "gone"),
    [([], [0.0, 0.0]), ([[1.0, 2.0]], [1.0, 9.0]), ([[0.0, 1.0], [0.0, 2.0]], [0.0, 5.0])],
)
def test_removing_vectors_that_are_not_there(members: list[Any], gone: list[float]) -> None:
    case = CASES["gaussian"]
    statistics = statistics_of(case, members)
    with pytest.raises(ValueError, match="cannot remove"):
        case.family.remove(statistics, np.array(gone))
    assert_equal(statistics, statistics_of(case, members))


def test_an_outlier_that_swallowed_all_digits_can_be_removed() -> None:
    family = Gaussian(1)
    points = np.random.default_rng(9).normal(0.0, 1.0, (50, 1))
    statistics = family.empty()
    for x in [*points, np.array([1e12])]:
        family.add(statistics, x)
    for x in [np.array([1e12]), *points]:
        family.remove(statistics, x)
    assert statistics == family.empty()


@pytest.mark.parametrize("name", [name for name in CASES if "forgetting" in name])
def test_what_depends_on_the_order_is_refused(name: str) -> None:
    case = CASES[name]
    statistics = statistics_of(case, [[1.0, 2.0], [2.0, 1.0]])
    for act in (
        lambda: case.family.remove(statistics, np.array([2.0, 1.0])),
        lambda: case.family.merge(statistics, case.family.empty()),
        lambda: case.family.log_marginal(statistics),
    ):
        with pytest.raises(ValueError, match=r"forget = 0\.\d: it depends on the records' order"):
            act()


def test_document_level_has_no_marginal() -> None:
    with pytest.raises(ValueError, match="document_beta"):
        HierarchicalDirichlet(document_beta=1.0).log_marginal(WordStatistics(), BASE)


@pytest.mark.parametrize("family", [HierarchicalDirichlet(), HierarchicalPitmanYor(), DirichletMultinomial()])
def test_a_missing_base_is_told(family: Any) -> None:
    with pytest.raises(ValueError, match="base"):
        family.log_marginal(family.empty())


@pytest.mark.parametrize("family", [HierarchicalDirichlet(), HierarchicalPitmanYor()])
def test_a_word_without_mass_is_impossible(family: Any) -> None:
    statistics = family.empty()
    x = np.array([1]), np.array([2])
    assert family.log_predictive(statistics, x, [1.0, 0.0]) == -math.inf
    family.add(statistics, x)
    assert family.log_marginal(statistics, [1.0, 0.0]) == -math.inf


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("dirichlet-multinomial", (np.array([1, 2]), np.array([1]))),
        ("dirichlet-multinomial", (np.array([1]), np.array([0]))),
        ("gaussian", np.array([1.0])),
        ("gaussian", np.array([1.0, math.nan])),
    ],
)
def test_malformed_records_are_refused(name: str, x: Any) -> None:
    family = CASES[name].family
    statistics = family.empty()
    for act in (family.add, family.remove, family.log_predictive):
        with pytest.raises(ValueError, match="record"):
            act(statistics, x)
    assert_equal(statistics, family.empty())


CONFIGURED: list[tuple[Likelihood[Any, Any], dict[int, int], dict[int, float], dict[str, list[float]]]] = [
    (
        DirichletMultinomial(0.1, 9),
        {model.FAMILY: model.FLAT, model.BASE: model.TOKENS, model.VOCABULARY: 9},
        {model.BASE_CONCENTRATION: 0.1, model.WORD_DISCOUNT: 0.0, model.INVERSE_DOCUMENT_BETA: 0.0},
        {},
    ),
    (
        DirichletMultinomial(),
        {model.FAMILY: model.FLAT, model.BASE: model.TOKENS, model.VOCABULARY: 0},
        {model.BASE_CONCENTRATION: 0.03, model.WORD_DISCOUNT: 0.0, model.INVERSE_DOCUMENT_BETA: 0.0},
        {},
    ),
    (
        HierarchicalDirichlet(50.0, 4.0, smoothing=0.3, discount=0.1, escape=2.0),
        {model.FAMILY: model.INTERPOLATED, model.BASE: model.TOKENS, model.VOCABULARY: 0},
        {
            model.BASE_CONCENTRATION: 50.0,
            model.WORD_DISCOUNT: 0.0,
            model.INVERSE_DOCUMENT_BETA: 0.25,
            model.SMOOTHING: 0.3,
            model.BASE_DISCOUNT: 0.1,
            model.ESCAPE: 2.0,
        },
        {},
    ),
    *(
        (
            HierarchicalPitmanYor(base=base),
            {
                model.FAMILY: model.INTERPOLATED,
                model.BASE: model.FIXED if base else model.TABLES,
                model.VOCABULARY: 0,
            },
            {
                model.BASE_CONCENTRATION: 30.0,
                model.WORD_DISCOUNT: 0.6,
                model.INVERSE_DOCUMENT_BETA: 0.0,
                model.SMOOTHING: 0.0,
                model.BASE_DISCOUNT: 0.35,
                model.ESCAPE: 1000.0,
            },
            {"base": list(base)} if base else {},
        )
        for base in (None, P)
    ),
    (
        Gaussian(2, variance=0.5, mean_variance=3.0, mean=1.5, forget=0.9),
        {model.FAMILY: model.GAUSSIAN},
        {model.VARIANCE: 0.5, model.MEAN_VARIANCE: 3.0, model.FORGET: 0.9},
        {"location": [1.5, 1.5], "scale": [1.0, 1.0]},
    ),
    (
        NormalInverseGamma(2, mean=(1.0, 2.0), scale=4.0),
        {model.FAMILY: model.NORMAL_INVERSE_GAMMA},
        {model.KAPPA: 0.1, model.SHAPE: 2.0, model.FORGET: 1.0},
        {"location": [1.0, 2.0], "scale": [4.0, 4.0]},
    ),
]


@pytest.mark.parametrize(("family", "ints", "floats", "arrays"), CONFIGURED)
def test_configures_the_kernels(
    family: Likelihood[Any, Any],
    ints: dict[int, int],
    floats: dict[int, float],
    arrays: dict[str, list[float]],
) -> None:
    written, written_floats = np.full(11, -9, np.int64), np.full(17, -9.0)
    found = family.configure(written, written_floats)
    assert {i: v for i, v in enumerate(written.tolist()) if v != -9} == ints
    assert {i: v for i, v in enumerate(written_floats.tolist()) if v != -9.0} == floats
    assert {name: array.tolist() for name, array in found.items()} == arrays
    assert all(array.dtype == np.float64 and name in model.Model._fields for name, array in found.items())


@over()
def test_is_a_value(case: Case) -> None:
    assert pickle.loads(pickle.dumps(case.family)) == case.family
    assert hash(pickle.loads(pickle.dumps(case.family))) == hash(case.family)


def test_arrays_become_tuples() -> None:
    assert NormalInverseGamma(2, scale=np.array([1, 2])).scale == (1.0, 2.0)  # type: ignore[arg-type]
    assert Gaussian(2, mean=[0, 1]).mean == (0.0, 1.0)  # type: ignore[arg-type]
    assert HierarchicalDirichlet(base=np.array(P)).base == P  # type: ignore[arg-type]
    assert isinstance(Gaussian(2).empty(), VectorStatistics)


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (DirichletMultinomial, {"beta": 0.0}, "beta must be a positive number, not 0.0"),
        (DirichletMultinomial, {"beta": math.inf}, "beta"),
        (DirichletMultinomial, {"vocabulary_size": 0}, "vocabulary_size must be an integer of at least 1"),
        (DirichletMultinomial, {"vocabulary_size": 2.5}, "vocabulary_size"),
        (DirichletMultinomial, {"vocabulary_size": True}, "vocabulary_size"),
        (HierarchicalDirichlet, {"base_concentration": 0.0}, "base_concentration must be a positive"),
        (HierarchicalDirichlet, {"document_beta": -1.0}, "document_beta must be a positive"),
        (HierarchicalDirichlet, {"smoothing": -0.1}, "smoothing must be zero or a positive"),
        (HierarchicalDirichlet, {"discount": 1.0}, "discount must be"),
        (HierarchicalDirichlet, {"escape": 0.0}, "escape must be a positive"),
        (HierarchicalDirichlet, {"base": (0.5, 0.4)}, "base must be positive probabilities that sum to one"),
        (HierarchicalDirichlet, {"base": (1.0, 0.0)}, "base must be positive"),
        (HierarchicalDirichlet, {"base": ()}, "base must be positive"),
        (HierarchicalPitmanYor, {"base_concentration": math.nan}, "base_concentration"),
        (HierarchicalPitmanYor, {"word_discount": 1.0}, "word_discount must be at least 0 and below 1"),
        (HierarchicalPitmanYor, {"word_discount": -0.1}, "word_discount"),
        (HierarchicalPitmanYor, {"smoothing": -1.0}, "smoothing"),
        (Gaussian, {"dimension": 0}, "dimension must be an integer of at least 1, not 0"),
        (Gaussian, {"dimension": 2.0}, "dimension"),
        (Gaussian, {"dimension": 2, "variance": 0.0}, "variance must be a positive"),
        (Gaussian, {"dimension": 2, "mean_variance": math.inf}, "mean_variance must be a positive"),
        (Gaussian, {"dimension": 2, "mean": (1.0, 2.0, 3.0)}, "mean must be one number or 2 of them"),
        (Gaussian, {"dimension": 2, "mean": math.nan}, "mean must be finite"),
        (Gaussian, {"dimension": 2, "forget": 0.0}, "forget must be above 0 and at most 1"),
        (Gaussian, {"dimension": 2, "forget": 1.01}, "forget"),
        (NormalInverseGamma, {"dimension": 2, "kappa": 0.0}, "kappa must be a positive"),
        (NormalInverseGamma, {"dimension": 2, "shape": -1.0}, "shape must be a positive"),
        (NormalInverseGamma, {"dimension": 2, "scale": 0.0}, "scale must be positive"),
        (NormalInverseGamma, {"dimension": 2, "scale": (1.0, -1.0)}, "scale must be positive"),
        (NormalInverseGamma, {"dimension": 2, "scale": (1.0,)}, "scale must be one number or 2 of them"),
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**parameters)
