"""Leaving frequent words' postings alone changes no label, and numbers by no more than is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from models import Problem, pair
from streams import SparseRecord, encode, ordered

from streamdp.beam.clusters.rare import NEGLIGIBLE
from streamdp.beam.search import BeamSearch

TOPICS, OWN, SHARED = 60, 12, 6
WORDS = SHARED + TOPICS * OWN


def stream(rng: np.random.Generator, n: int) -> list[SparseRecord]:
    """Topics with words of their own, told in records that also hold words shared by all."""
    records = []
    for _ in range(n):
        topic = int(rng.integers(TOPICS))
        own = SHARED + topic * OWN + rng.permutation(OWN)[:7]
        common = rng.permutation(SHARED)[: rng.integers(1, 4)]
        counts = rng.choice([1, 1, 1, 2], size=len(own) + len(common))
        words = np.concatenate([own, common])
        records.append(ordered([(int(w), int(c)) for w, c in zip(words, counts, strict=True)]))
    return records


def run(problem: Problem, records: list[SparseRecord]) -> tuple[BeamSearch, list[np.ndarray], int]:
    """The answers, and how many clusters were touched in all."""
    beam = problem.search()
    beam.ensure_words(WORDS)
    answers, touched = [], 0
    for i, record in enumerate(records):
        _, _, out = next(beam.run(encode([record], [float(i)], False)))
        row = out.answers[0]
        names = ("label", "link", "decided", "probability", "new_probability", "log_predictive")
        answers.append(np.array([row[name] for name in names]))
        touched += int(beam.scores.words.counters.touched)
    return beam, answers, touched


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize(
    ("prior", "family"),
    [
        ("crp", "pitman_yor"),
        ("crp", "dirichlet"),
        ("exponential_seconds", "pitman_yor"),
        ("exponential_seconds", "flat"),
        ("pitman_yor", "pitman_yor"),
    ],
)
def test_same_answers_with_fewer_clusters_touched(prior: str, family: str, width: int) -> None:
    records = stream(np.random.default_rng(8), 500)
    with_all, everything, touched_all = run(pair(prior, family, width, 5.0, frequent=10**9), records)
    with_rare, spared, touched_rare = run(pair(prior, family, width, 5.0, frequent=8), records)
    exact, close = np.array(everything), np.array(spared)
    np.testing.assert_array_equal(close[:, :3], exact[:, :3])
    np.testing.assert_allclose(close[:, 3:], exact[:, 3:], rtol=0, atol=2 * NEGLIGIBLE)
    np.testing.assert_allclose(with_rare.log_joints, with_all.log_joints, rtol=1e-9)
    assert with_rare.counters() == with_all.counters()
    if prior == "crp" and family == "pitman_yor":
        assert touched_rare < 0.8 * touched_all
