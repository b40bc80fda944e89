"""What every family must do: checks over all of them, against oracles and arithmetic done anew."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from algebra import add, empty, log_marginal, log_predictive, merge, remove
from families import CASES, ROWS, Case, P, assert_equal, few, over, statistics_of
from hypothesis import given
from hypothesis import strategies as st

from streamdp.likelihoods import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    Likelihood,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
)
from streamdp.settings.registry import LIKELIHOODS, find


def draw(case: Case, data: st.DataObject, least: int = 0) -> list[Any]:
    return data.draw(st.lists(case.records, min_size=least, max_size=7))


def test_every_family_is_among_the_cases() -> None:
    assert {find(LIKELIHOODS, name) for name in LIKELIHOODS} == {type(c.family) for c in CASES.values()}


@over(reversible=True)
@few
@given(data=st.data())
def test_remove_is_the_inverse_of_add(case: Case, data: st.DataObject) -> None:
    records = draw(case, data)
    order = data.draw(st.permutations(range(len(records))))
    statistics = case.of(records)
    for i, gone in enumerate(order):
        remove(case.family, statistics, case.encoded(records[gone]))
        assert_equal(statistics, case.of([records[j] for j in order[i + 1 :]]))


@over(reversible=True)
@few
@given(data=st.data())
def test_merge_is_the_union(case: Case, data: st.DataObject) -> None:
    one, two = draw(case, data), draw(case, data)
    merged, other = case.of(one), case.of(two)
    kept = copy.deepcopy(other)
    merge(case.family, merged, other)
    assert_equal(merged, case.of(one + two))
    assert_equal(other, kept)
    add(case.family, merged, case.encoded(data.draw(case.records)))
    assert_equal(other, kept)  # nothing is shared


@over()
@few
@given(data=st.data())
def test_predictive_equals_the_oracle(case: Case, data: st.DataObject) -> None:
    *members, x = draw(case, data, 1)
    found = log_predictive(case.family, case.of(members), case.encoded(x), case.base)
    expected = case.oracle.log_predictive(members, x, case.oracle_base)
    assert found == pytest.approx(expected, rel=case.exact, abs=case.exact)


@over(exchangeable=True)
@few
@given(data=st.data())
def test_marginal_equals_the_oracle_in_any_order(case: Case, data: st.DataObject) -> None:
    records = draw(case, data)
    order = data.draw(st.permutations(records))
    expected = case.oracle.log_marginal(records, [case.oracle_base] * len(records))
    found = log_marginal(case.family, case.of(order), case.base)
    assert found == pytest.approx(expected, rel=case.exact, abs=case.exact)


@over(exchangeable=True)
@few
@given(data=st.data())
def test_predictives_sum_up_to_the_marginal(case: Case, data: st.DataObject) -> None:
    total, statistics = 0.0, empty(case.family)
    assert log_marginal(case.family, statistics, case.base) == pytest.approx(0.0, abs=1e-12)
    for record in draw(case, data):
        x = case.encoded(record)
        total += log_predictive(case.family, statistics, x, case.base)
        add(case.family, statistics, x)
        assert log_marginal(case.family, statistics, case.base) == pytest.approx(total, rel=1e-9, abs=1e-9)


@over(exchangeable=True)
@few
@given(data=st.data())
def test_marginals_of_a_merger_and_of_what_is_left_equal_the_oracle(case: Case, data: st.DataObject) -> None:
    one, two = draw(case, data, 1), draw(case, data)
    statistics = case.of(one)
    merge(case.family, statistics, case.of(two))
    remove(case.family, statistics, case.encoded(one[0]))
    left = one[1:] + two
    expected = case.oracle.log_marginal(left, [case.oracle_base] * len(left))
    found = log_marginal(case.family, statistics, case.base)
    assert found == pytest.approx(expected, rel=case.exact, abs=10.0 * case.exact)


@over(reversible=False)
def test_what_depends_on_the_order_is_refused(case: Case) -> None:
    family, x = case.family, np.array([2.0, 1.0])
    statistics = case.of([[1.0, 2.0], x])
    for act in (
        lambda: remove(family, statistics, x),
        lambda: merge(family, statistics, empty(family)),
        lambda: log_marginal(family, statistics),
    ):
        with pytest.raises(ValueError, match=r"forget = 0\.\d: it depends on the records' order"):
            act()


@over()
def test_is_a_value(case: Case) -> None:
    empty(case.family)
    again = pickle.loads(pickle.dumps(case.family))
    assert again == case.family
    assert hash(again) == hash(case.family)


@over(sparse=False)
@few
@given(data=st.data())
def test_records_are_read_once(case: Case, data: st.DataObject) -> None:
    rows = case.family.read(np.array(draw(case, data, 1), float))
    assert case.family.read(rows) == pytest.approx(rows, abs=1e-15)


@over(sparse=False, reversible=True)
@few
@given(data=st.data())
def test_no_predictive_is_above_its_bound(case: Case, data: st.DataObject) -> None:
    rows = case.family.read(np.array(draw(case, data, 1), float))
    for i, bound in enumerate(case.family.upper_bounds(rows)):
        for members in (rows[:i], rows[:i:2], rows[:0]):
            found = log_predictive(case.family, statistics_of(case.family, members), rows[i])
            assert found <= bound + 1e-9


def flat(terms: Any) -> list[Any]:
    """The numbers and arrays of terms, and of terms within them."""
    parts = ([*flat(each)] if isinstance(each, tuple) else [each] for each in terms)
    return list(itertools.chain.from_iterable(parts))


@over()
def test_terms_name_the_kernels(case: Case) -> None:
    terms, again = case.family.terms(), case.family.terms()
    assert type(terms) is type(again)
    others = {type(c.family.terms()) for c in CASES.values() if type(c.family) is not type(case.family)}
    assert type(terms) not in others
    for one, two in zip(flat(terms), flat(again), strict=True):
        assert np.array_equal(one, two)
        assert isinstance(one, float | int) or one.flags.c_contiguous


TERMS: list[tuple[Likelihood, dict[str, Any]]] = [
    (DirichletMultinomial(0.1, 9), {"beta": 0.1, "vocabulary": 9, "escape": 0.0}),
    (DirichletMultinomial(), {"beta": 0.03, "vocabulary": 0, "escape": 10.0}),
    (
        HierarchicalDirichlet(50.0, 4.0, smoothing=0.3, discount=0.1, escape=2.0),
        {
            "concentration": 50.0,
            "inverse_document_beta": 0.25,
            "smoothing": 0.3,
            "discount": 0.1,
            "escape": 2.0,
            "base": [],
        },
    ),
    *(
        (
            HierarchicalPitmanYor(short_concentrations=short, base=base),
            {
                "concentration": 30.0,
                "word_discount": 0.6,
                "smoothing": 0.0,
                "discount": 0.35,
                "escape": 1000.0,
                "base": list(base or ()),
                "short": list(short),
            },
        )
        for base, short in ((None, ()), (P, (0.2, 3.0)))
    ),
    (
        Gaussian(2, variance=0.5, mean_variance=3.0, mean=1.5, forget=0.9),
        {"variance": 0.5, "mean_variance": 3.0, "forget": 0.9, "mean": [1.5, 1.5]},
    ),
    (
        NormalInverseGamma(2, mean=(1.0, 2.0), scale=4.0),
        {"kappa": 0.1, "shape": 2.0, "forget": 1.0, "power": 1.0, "mean": [1.0, 2.0], "scale": [4.0, 4.0]},
    ),
    (
        NormalInverseWishart(2, mean=1.0, scale=(4.0, 9.0)),
        {
            "kappa": 0.1,
            "degrees": 4.0,
            "forget": 1.0,
            "log_prior": np.log(36.0),
            "mean": [1.0, 1.0],
            "scale": [4.0, 0.0, 0.0, 9.0],
            "factor": [2.0, 0.0, 0.0, 3.0],
            "scratch": [0.0, 0.0],
        },
    ),
    (BetaBernoulli(2, 0.5, (1.0, 2.0)), {"a": [0.5, 0.5], "b": [1.0, 2.0]}),
    (GammaPoisson(2, (1.0, 2.0), 3.0), {"shape": [1.0, 2.0], "rate": [3.0, 3.0]}),
    (
        VonMisesFisher(3, (1.0, 6.0), (0.0, 0.0, 1.0005), 1.7),
        {
            "grid": [1.0, 6.0],
            "normalisers": [-2.692463608540, -6.046111452950],  # k / (4 pi sinh k), in logarithms
            "mean_concentration": 1.7,
            "log_start": -2.973305949066,
            "mean": [0.0, 0.0, 1.0],
            "power": 1.0,
        },
    ),
]


ALIKE: dict[str, Any] = {"word_discount": 0.0, "inverse_document_beta": 0.0, "short": []}
"""What the terms of all families of words hold, where the family has nothing of the kind."""


@pytest.mark.parametrize(("family", "expected"), TERMS)
def test_terms_hold_the_parameters(family: Likelihood, expected: dict[str, Any]) -> None:
    found = family.terms()._asdict()
    if "escape" in expected:  # a family of words
        expected = {name: value for name, value in ALIKE.items() if name in found} | expected
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
        assert not isinstance(found[name], np.ndarray) or found[name].dtype == np.float64


def test_a_row_of_another_family_is_refused() -> None:
    family, other = NormalInverseWishart(2), NormalInverseGamma(2)
    x, row, strange = np.zeros(2), empty(family), empty(other)
    for act in (
        lambda: add(family, strange, x),
        lambda: merge(family, row, strange),
        lambda: log_predictive(family, strange, x),
        lambda: log_marginal(family, strange),
    ):
        with pytest.raises(TypeError, match="are not those of NormalInverseWishart"):
            act()
    assert_equal(strange, empty(other))


def test_parameters_are_kept_as_numbers_and_tuples() -> None:
    array: Any = np.array
    assert NormalInverseGamma(2, scale=array([1, 2])).scale == (1.0, 2.0)
    assert Gaussian(2, mean=[0, 1]).mean == (0.0, 1.0)  # type: ignore[arg-type]
    assert HierarchicalDirichlet(base=array(P)).base == P
    assert NormalInverseWishart(3, scale=array(ROWS)).scale == ROWS
    assert NormalInverseWishart(2, scale=[1, 2]).scale == (1.0, 2.0)  # type: ignore[arg-type]
    assert NormalInverseWishart(2).nu == 4.0
    assert NormalInverseWishart(2, scale=3).prior_scale.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert BetaBernoulli(2, [1, 2]).a == (1.0, 2.0)  # type: ignore[arg-type]
    assert GammaPoisson(2, rate=2).rate == 2.0
    assert VonMisesFisher(2, [1, 2]).concentration == (1.0, 2.0)  # type: ignore[arg-type]
    assert VonMisesFisher(4).concentration == (2.0, 4.0, 8.0, 16.0, 32.0)
    assert VonMisesFisher(2, 3).concentrations.tolist() == [3.0]
    assert VonMisesFisher(2, mean=[0, 1]).mean == (0.0, 1.0)  # type: ignore[arg-type]
