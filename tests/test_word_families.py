"""What is true of families over words alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from algebra import WordStatistics, add, empty, log_marginal, log_predictive, remove
from families import BASE, CASES, CHURN, Case, P, V, churn, few, over, statistics_of
from hypothesis import given
from hypothesis import strategies as st

from streamdp.likelihoods import (
    DirichletMultinomial,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
)


@over(by_token=True)
@few
@given(data=st.data())
def test_one_token_has_total_probability_one(case: Case, data: st.DataObject) -> None:
    statistics = case.of(data.draw(st.lists(case.records, max_size=7)))
    words = range(V + 1 if case.unseen else V)
    each = [log_predictive(case.family, statistics, case.encoded([(w, 1)]), case.base) for w in words]
    times = [1] * V + [case.unseen]
    assert math.fsum(n * math.exp(p) for n, p in zip(times, each, strict=False)) == pytest.approx(1.0)


@few
@given(data=st.data())
def test_pitman_yor_marginal_seats_all_tokens_of_a_word_at_one_table(data: st.DataObject) -> None:
    case = CASES["hierarchical pitman-yor"]
    records = data.draw(st.lists(case.records, max_size=7))
    expected, counts, n = 0.0, dict.fromkeys(range(V), 0), 0
    for record in records:
        for w, c in record:
            for _ in range(c):
                types = sum(held > 0 for held in counts.values())
                mass = counts[w] - 0.6 if counts[w] else (3.0 + 0.6 * types) * P[w]
                expected += math.log(mass / (3.0 + n))
                counts[w] += 1
                n += 1
    found = log_marginal(case.family, case.of(records), BASE)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    predictives = case.oracle.log_marginal(records, [BASE] * len(records))
    assert found <= predictives + 1e-9


@pytest.mark.parametrize("times", CHURN)
def test_no_drift_of_word_counts(times: int) -> None:
    rng = np.random.default_rng(5)
    records = [(rng.choice(400, 6, replace=False), rng.integers(1, 3, 6)) for _ in range(200)]
    base = np.full(400, 1.0 / 400.0)
    families = DirichletMultinomial(0.03, 400), HierarchicalDirichlet(), HierarchicalPitmanYor()
    held = churn(families[0], statistics := empty(families[0]), records, times)
    fresh = statistics_of(families[0], [records[i] for i in held])
    assert statistics == fresh
    for family in families:
        found, expected = log_marginal(family, statistics, base), log_marginal(family, fresh, base)
        assert found == pytest.approx(expected, rel=1e-6)


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
    statistics = case.of(members)
    with pytest.raises(ValueError, match=message):
        remove(case.family, statistics, case.encoded(gone))
    assert statistics == case.of(members)


def test_document_level_has_no_marginal() -> None:
    with pytest.raises(ValueError, match="document_beta"):
        log_marginal(HierarchicalDirichlet(document_beta=1.0), WordStatistics(), BASE)


@pytest.mark.parametrize("family", [HierarchicalDirichlet(), HierarchicalPitmanYor(), DirichletMultinomial()])
def test_a_missing_base_is_told(family: Any) -> None:
    with pytest.raises(ValueError, match="base"):
        log_marginal(family, empty(family))


@pytest.mark.parametrize("family", [HierarchicalDirichlet(), HierarchicalPitmanYor()])
def test_a_word_without_mass_is_impossible(family: Any) -> None:
    statistics = empty(family)
    x = np.array([1]), np.array([2])
    assert log_predictive(family, statistics, x, [1.0, 0.0]) == -math.inf
    add(family, statistics, x)
    assert log_marginal(family, statistics, [1.0, 0.0]) == -math.inf


@pytest.mark.parametrize("x", [(np.array([1, 2]), np.array([1])), (np.array([1]), np.array([0]))])
def test_malformed_records_are_refused(x: Any) -> None:
    family = DirichletMultinomial(0.3, V)
    statistics = empty(family)
    for act in (add, remove, log_predictive):
        with pytest.raises(ValueError, match="record"):
            act(family, statistics, x)
    assert statistics == WordStatistics()


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (DirichletMultinomial, {"beta": 0.0}, "beta must be a positive number, not 0.0"),
        (DirichletMultinomial, {"beta": math.inf}, "beta"),
        (DirichletMultinomial, {"escape": 0.0}, "escape must be a positive"),
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
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**parameters)
