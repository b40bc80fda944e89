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
from oracle.families import LearnedBase

from streamdp.kernels.jit import entry
from streamdp.likelihoods import (
    DirichletMultinomial,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
)
from streamdp.likelihoods.words import WORD_SPACE, Learned, learn, learned_from


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
        (HierarchicalPitmanYor, {"short_concentrations": (0.0,)}, "short_concentrations"),
        (HierarchicalPitmanYor, {"short_concentrations": (2.0, 1.0)}, "short_concentrations must not fall"),
        (HierarchicalPitmanYor, {"smoothing": -1.0}, "smoothing"),
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**parameters)


LEARNING = HierarchicalPitmanYor(smoothing=0.3, discount=0.2, escape=1.5)


@entry
def learn_entry(
    family: Any,
    learned: Any,
    words: np.ndarray,
    counts: np.ndarray,
    fresh: np.ndarray,
    new_probability: float,
) -> None:
    """Count a record into the base measure."""
    learn(family, learned, words, counts, fresh, new_probability)


def learn_record(learned: Learned, record: Any, fresh: Any, new_probability: float) -> None:
    words, counts = (np.array(values, np.int32) for values in zip(*record, strict=True))
    learn_entry(LEARNING.terms(), learned, words, counts, np.array(fresh), new_probability)


@pytest.mark.parametrize("evidence", [-800.0, -3.0, 0.0, 0.7, 40.0, 800.0])
def test_a_base_of_clusters_and_tokens_sums_to_one(evidence: float) -> None:
    learned = learned_from(np.array([3, 0, 1, 7, 2]), np.array([5, 0, 0, 900, 1]), evidence)
    p = LEARNING.measure(learned)
    assert (p > 0.0).all()
    assert math.fsum([p.sum(), (WORD_SPACE - 5) * p[1]]) == pytest.approx(1.0, rel=1e-12)
    share = 1.0 / (1.0 + math.exp(min(-evidence, 700.0)) / 1000.0)
    of_frequent = share * 7.1 / (13 + 4 * 0.3 + 1.5) + (1.0 - share) * 907.1 / (919 + 4 * 0.3 + 1.5)
    assert p[3] == pytest.approx(of_frequent, rel=1e-12)


@few
@given(data=st.data())
def test_a_base_learns_from_clusters_and_tokens_as_defined(data: st.DataObject) -> None:
    learned, base = learned_from(np.zeros(V, int)), LearnedBase("mixed", 0.3, 1.5, 0.2)
    earlier: list[Any] = []
    for record in data.draw(st.lists(CASES["hierarchical pitman-yor"].records.filter(len), max_size=12)):
        cluster = [x for x in earlier if data.draw(st.booleans())]
        probability = data.draw(st.sampled_from([0.0, 1e-12, 0.3, 1.0 - 1e-12, 1.0]))
        known = {w for x in cluster for w, _ in x}
        learn_record(learned, record, [w not in known for w, _ in record], probability)
        base.absorb(record, cluster, probability)
        earlier.append(record)
        assert learned.counts.tolist() == [base.T[w] for w in range(V)]
        assert (learned.counts + learned.repeats).tolist() == [base.N[w] for w in range(V)]
        assert learned.counters.evidence == pytest.approx(base.evidence, rel=1e-9, abs=1e-12)
        assert LEARNING.measure(learned) == pytest.approx([base.probability(w) for w in range(V)], rel=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1e-300, 0.5, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("by", ["clusters", "tokens"])
def test_a_long_record_leaves_evidence_that_is_a_number(probability: float, by: str) -> None:
    """Its probability by counts of one kind is more than e^1000 times that by the other."""
    # of each word of the record, and of one more, which makes the measure by the other counts small
    each, more = {"clusters": ((100_000, 0), (100, 2 * 10**9)), "tokens": ((100, 100_000), (2 * 10**6, 0))}[
        by
    ]
    counts, repeats = (np.append(np.full(2000, each[i]), more[i]) for i in (0, 1))
    learned = learned_from(counts, repeats, 30.0)
    learn_record(learned, [(word, 1) for word in range(2000)], [False] * 2000, probability)
    evidence = learned.counters.evidence
    assert math.isfinite(evidence)
    assert (evidence < -1000.0) == (by == "tokens" and probability > 0.0)
    assert (LEARNING.measure(learned) > 0.0).all()
