"""The one-step predictive of the beam is a distribution over records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from models import SPARSE, WORDS, pair, pairs, prior_of
from streams import encode, random_stream

from streamdp.beam.data.choice import is_touched
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.likelihoods.words import WORD_SPACE

GROWING = ("flat_growing", "dirichlet", "dirichlet_document", "pitman_yor")
"""The base of these leaves something to words that never came."""

OF_WORDS = tuple(family for family in SPARSE if family != "categorical")
"""Of which any word may be a record; of records of categories test_categorical.py has the sums."""

CONTINUOUS = ("gaussian", "gaussian_forget", "gamma", "gamma_forget", "wishart", "wishart_forget")


def trained(prior: str, family: str, width: int, dense: bool) -> BeamSearch:
    """A beam that has seen a short stream."""
    beam = pair(prior, family, width).search()
    records, times = random_stream(np.random.default_rng(3), 20, dense, WORDS)
    for _ in beam.run(encode(records, times, dense)):
        pass
    return beam


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize(("prior", "family"), pairs(OF_WORDS))
def test_one_word_records_sum_to_one(prior: str, family: str, width: int) -> None:
    """Over the vocabulary; where the base is learned, over all words that could ever come."""
    beam = trained(prior, family, width, dense=False)
    later = np.full(WORDS + 1, 1e3)
    out = beam.score(encode([[(w, 1)] for w in range(WORDS + 1)], later, dense=False))
    p = np.exp(out.answers["log_predictive"][: WORDS + 1])
    seen = int(np.count_nonzero(beam.words.learned.counts[:WORDS]))
    if family in GROWING:
        assert seen == WORDS
        total = p[:WORDS].sum() + p[WORDS] * (WORD_SPACE - seen)
    else:
        total = p[:WORDS].sum()
    assert total == pytest.approx(1.0, abs=1e-9)


def of_each_cluster(beam: BeamSearch) -> list[float]:
    """Predictive of the record that was scored last: under each cluster by slot, then under an empty one."""
    pool, scores = beam.state.pool, beam.scores
    words, sizes = scores.words, beam.state.sizes
    reference = math.exp(scores.counters.reference)
    touched = is_touched(words.cells["mark"], words.counters.tick)
    slots = np.flatnonzero(pool.state == ALIVE)
    values = [scores.value[s] if touched[s] else words.ratio[sizes.of[s]] for s in slots]
    return [reference * float(value) for value in (*values, scores.counters.new_value)]


@pytest.mark.parametrize("records", [0, 1, 5, 20])
@pytest.mark.parametrize("family", OF_WORDS)
def test_every_cluster_foretells_some_word(family: str, records: int) -> None:
    """Over the words seen so far and all that were not, in each cluster and in one that has no record yet."""
    beam = pair(prior_of(family), family, 7).search()
    some, times = random_stream(np.random.default_rng(5), 20, False, WORDS)
    for _ in beam.run(encode(some[:records], times[:records], False)):
        pass
    seen = sorted({w for record in some[:records] for w, _ in record})
    growing = family in GROWING
    words = [*seen, WORDS] if growing else list(range(WORDS))
    times_of = [1.0] * len(words)
    if growing:
        times_of[-1] = WORD_SPACE - len(seen)
    totals = np.zeros(len(beam.state.pool.state))
    for word, many in zip(words, times_of, strict=True):
        beam.score(encode([[(word, 1)]], [times[-1]], False))
        each = of_each_cluster(beam)
        totals[: len(each)] += many * np.array(each)
    clusters = int(np.count_nonzero(beam.state.pool.state == ALIVE))
    assert (clusters > 0) == (records > 0)
    assert totals[: clusters + 1] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("prior", "family"), pairs(CONTINUOUS))
def test_vectors_integrate_to_one(prior: str, family: str) -> None:
    """Numerically, over a plane wide enough for the Student tails."""
    beam = trained(prior, family, 7, dense=True)
    u = np.linspace(-1, 1, 401)
    x = 60 * u**3  # dense in the middle
    area = np.gradient(x)
    grid = np.array([(a, b) for a in x for b in x])
    out = beam.score(Batch.of_vectors(grid, np.full(len(grid), 1e3)))
    total = (
        np.exp(out.answers["log_predictive"][: len(grid)]).reshape(401, 401) * np.outer(area, area)
    ).sum()
    assert total == pytest.approx(1.0, abs=0.02)
