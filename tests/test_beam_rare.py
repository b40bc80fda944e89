"""Leaving frequent words' postings alone changes nothing that is announced."""

from __future__ import annotations

import numpy as np
import pytest
from models import pair
from streams import SparseRecord, encode

from streamdp.beam.model import FREQUENT, Model
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
        records.append([(int(w), int(c)) for w, c in zip(words, counts, strict=True)])
    return records


def run(model: Model, frequent: int, records: list[SparseRecord]) -> tuple[BeamSearch, list[np.ndarray], int]:
    """The answers, and how many clusters were touched in all."""
    ints = model.ints.copy()
    ints[FREQUENT] = frequent
    beam = BeamSearch(model._replace(ints=ints))
    beam.ensure_words(WORDS)
    answers, touched = [], 0
    for i, record in enumerate(records):
        _, _, out = next(beam.run(encode([record], [float(i)], False)))
        answers.append(
            np.array([out.label[0], out.link[0], out.decided[0], out.probability[0], out.log_predictive[0]])
        )
        touched += int(beam._scores.meta[0])
    return beam, answers, touched


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("family", ["pitman_yor", "dirichlet", "flat"])
@pytest.mark.parametrize("prior", ["crp", "exponential_seconds", "pitman_yor"])
def test_same_answers_with_fewer_clusters_touched(prior: str, family: str, width: int) -> None:
    model, _ = pair(prior, family, width, slack=5.0)
    records = stream(np.random.default_rng(8), 500)
    with_all, everything, touched_all = run(model, 10**9, records)
    with_rare, spared, touched_rare = run(model, 8, records)
    np.testing.assert_allclose(spared, everything, rtol=0, atol=1e-7)
    np.testing.assert_allclose(with_rare.log_joints, with_all.log_joints, rtol=1e-9)
    assert with_rare.counters() == with_all.counters()
    if prior == "crp" and family == "pitman_yor":
        assert touched_rare < 0.8 * touched_all
