"""Texts of the same few words are in one cluster."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from algebra import add, empty, log_marginal, log_predictive
from families import BASE, P, V, few
from hypothesis import given
from hypothesis import strategies as st
from oracle.enumeration import partitions

from streamdp.engine import Engine
from streamdp.likelihoods import HierarchicalPitmanYor
from streamdp.likelihoods.categorical import Categorical
from streamdp.offline.astar import astar
from streamdp.offline.prepare import Data
from streamdp.priors import CRP
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood

FAMILY = HierarchicalPitmanYor(3.0, 0.6, (0.2, 0.7))
WORDS = ["teacher", "nurse", "driver", "farmer", "lawyer", "cook", "baker", "engineer", "student", "pilot"]
PAIRS = ["disk full", "login failed", "job done", "coffee break", "out sick"]
MORE = st.lists(st.lists(st.integers(0, V - 1), min_size=1, max_size=4), max_size=6)


def bag(words: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """A record of some words, in their order."""
    counts = Counter(words)
    return np.array(list(counts)), np.array(list(counts.values()))


def drawn(labels: list[str], n: int, seed: int) -> list[str]:
    """Records of some labels, each as often as its rank says."""
    weights = 1.0 / np.arange(1, len(labels) + 1)
    rng = np.random.default_rng(seed)
    return [labels[k] for k in rng.choice(len(labels), n, p=weights / weights.sum()).tolist()]


def clusters_of(values: list[Any], **given: Any) -> list[set[int]]:
    """The clusters that records of each value are in, in the end."""
    engine = Engine(Settings(**given))
    newest = {}
    for answers in (
        engine.advance([Record(value, {}, time=float(i)) for i, value in enumerate(values)]),
        engine.finish(),
    ):
        newest.update({a.seq: a.cluster for a in answers.assignments})
    keys = list(dict.fromkeys(map(str, values)))
    return [{newest[i] for i, value in enumerate(values) if str(value) == key} for key in keys]


@few
@given(members=MORE, length=st.integers(1, 2))
def test_the_texts_of_a_length_have_total_probability_one(members: list[list[int]], length: int) -> None:
    statistics = empty(FAMILY)
    for words in members:
        add(FAMILY, statistics, bag(words))
    texts = itertools.product(range(V), repeat=length)
    found = math.fsum(math.exp(log_predictive(FAMILY, statistics, bag(list(text)), BASE)) for text in texts)
    assert found == pytest.approx(1.0)


@few
@given(n=st.integers(1, 30), words=st.integers(1, 4))
def test_twins_as_a_set_have_the_b1_of_their_length(n: int, words: int) -> None:
    statistics, expected, b1 = empty(FAMILY), 0.0, (0.2, 0.7, 3.0, 3.0)[words - 1]
    for i in range(n):
        add(FAMILY, statistics, bag(list(range(words))))
        for w in range(words):
            mass = i - 0.6 if i else (b1 + 0.6 * w) * BASE[w]
            expected += math.log(mass / (b1 + i * words + w))
    assert log_marginal(FAMILY, statistics, BASE) == pytest.approx(expected)
    held = [bag(list(range(words)))] * n
    assert FAMILY.log_marginal(held, P) == pytest.approx(expected)


@few
@given(members=MORE, words=st.lists(st.integers(0, V - 1), min_size=1, max_size=4))
def test_no_text_is_likelier_than_its_bound(members: list[list[int]], words: list[int]) -> None:
    records = [bag(each) for each in [*members, words]]
    data = Data.of_words(records)
    terms = FAMILY.set_terms(np.full(V, 40), np.ones(V, np.int64), P)
    bounds = FAMILY.upper_bounds(terms, data.offsets, data.words, data.counts)
    gain = FAMILY.log_marginal(records, P) - FAMILY.log_marginal(records[:-1], P)
    assert gain <= bounds[-1] + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_a_star_finds_the_best_clustering_of_texts_of_several_lengths(seed: int) -> None:
    rng, prior = np.random.default_rng(seed), CRP(0.8)
    records = [bag(rng.integers(0, 3, rng.integers(1, 5)).tolist()) for _ in range(6)]

    def joint(labels: tuple[int, ...]) -> float:
        clusters = [[x for x, k in zip(records, labels, strict=True) if k == c] for c in set(labels)]
        return prior.log_probability(labels) + math.fsum(FAMILY.log_marginal(held, P) for held in clusters)

    found = astar(Data.of_words(records), FAMILY, prior, base=np.array(P))
    assert found.proved
    assert found.log_joint == pytest.approx(max(map(joint, partitions(6))), abs=1e-9)
    assert joint(tuple(found.labels.tolist())) == pytest.approx(found.log_joint, abs=1e-9)


def test_a_given_base_concentration_is_that_of_all_texts() -> None:
    assert build_likelihood(Settings(texts=()), None).short_concentrations == (0.3, 2.4)  # type: ignore[attr-defined]
    given = build_likelihood(Settings(base_concentration=30.0), None)
    assert given == HierarchicalPitmanYor(30.0)
    mixed = build_likelihood(Settings(texts=("text",), fields=("kind",)), None)
    assert isinstance(mixed, Categorical)
    assert mixed.text is not None
    assert mixed.text.short_concentrations == (0.3, 2.4)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("prior", [{}, {"prior": "crp", "concentration": 60.0}])
def test_labels_of_one_word_are_as_many_clusters(seed: int, prior: dict[str, Any]) -> None:
    found = clusters_of(drawn(WORDS, 500, seed), **prior)
    assert [len(clusters) for clusters in found] == [1] * len(WORDS)
    assert len(set().union(*found)) == len(WORDS)


def test_labels_of_one_and_two_words_are_as_many_clusters() -> None:
    found = clusters_of(drawn([*PAIRS, *WORDS], 800, 3))
    assert [len(clusters) for clusters in found] == [1] * 15
    assert len(set().union(*found)) == 15


def test_labels_that_are_the_only_field_are_as_many_clusters() -> None:
    found = clusters_of([{"text": text} for text in drawn(WORDS, 400, 4)], texts=("text",))
    assert [len(clusters) for clusters in found] == [1] * len(WORDS)
    assert len(set().union(*found)) == len(WORDS)


def test_labels_beside_a_field_are_hardly_more_clusters() -> None:
    values = [{"text": text, "kind": "a"} for text in drawn(WORDS, 400, 4)]
    found = clusters_of(values, texts=("text",), fields=("kind",))
    assert max(len(clusters) for clusters in found) <= 2
    assert len(WORDS) <= len(set().union(*found)) <= len(WORDS) + 2
