"""A wider beam is no worse than greedy search, which stays in it; and holds little more in memory."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import TRIAL_NATS
from streamdp.beam.facts import facts_of, state_of
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.kernels.packed import pack_all
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_model, build_prior

RECORDS = 3_000


def strangers(start: int = 0, stop: int = RECORDS, length: int = 3) -> Batch:
    """Texts of a few words each, none of which any other text has."""
    words = np.arange(start * length, stop * length, dtype=np.int32)
    offsets = np.arange(stop - start + 1, dtype=np.int64) * length
    return Batch(offsets, words, np.ones_like(words), times=np.arange(start, stop, dtype=float))


def search(prior: str, width: int, state: Any = None) -> BeamSearch:
    """A beam under default settings, that has seen nothing or goes on."""
    settings = Settings(prior=prior, beam=width)
    likelihood = build_likelihood(settings, None)
    found = BeamSearch(build_model(settings, build_prior(settings, True), likelihood), likelihood, state)
    found.ensure_words(RECORDS * 8)
    return found


def fed(found: BeamSearch, batch: Batch) -> BeamSearch:
    for _ in found.run(batch):
        pass
    return found


def nbytes(value: Any) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else sum(nbytes(part) for part in value)


def stored(found: BeamSearch) -> bytes:
    return msgspec.msgpack.encode(pack_all(facts_of(found.state)))


@pytest.mark.parametrize("prior", ["crp", "pitman-yor"])
def test_records_that_share_nothing_do_not_end_in_one_large_cluster(prior: str) -> None:
    """One cluster of all soon looks best to a beam, and predicts what comes next far worse."""
    greedy = fed(search(prior, 1), strangers())
    for width in (2, 4, 16):
        wide = fed(search(prior, width), strangers())
        assert wide.log_joints.max() > greedy.log_joints.max() - 2 * TRIAL_NATS
        assert wide.log_evidence > greedy.log_evidence - 2 * TRIAL_NATS
        assert wide.counters()["clusters_live"] == greedy.counters()["clusters_live"] == RECORDS
        assert nbytes(wide.state) < 3 * nbytes(greedy.state)


def test_a_wide_beam_that_finds_what_greedy_search_finds_holds_as_much() -> None:
    """Of what the other hypotheses wrote down for a while, no space is left behind."""
    narrow, wide = (fed(search("crp", width), strangers(length=8)) for width in (1, 16))
    assert wide.log_joints.max() == pytest.approx(narrow.log_joints.max())
    assert nbytes(wide.state) < 1.25 * nbytes(narrow.state)


def test_a_state_goes_on_where_the_greedy_lane_leads() -> None:
    """However the records come in batches, and whether or not the state was stored meanwhile."""
    whole = fed(search("crp", 16), strangers(0, 700))
    half = fed(search("crp", 16), strangers(0, 333))
    assert half.state.beam.counters.leads == 1
    assert half.head == half.state.beam.counters.greedy
    again = search("crp", 16, state_of(facts_of(half.state), half.model, half.likelihood))
    assert stored(fed(again, strangers(333, 700))) == stored(whole)


def test_what_the_leading_lane_cannot_explain_at_all_has_an_evidence() -> None:
    """A long text that fits the largest cluster of the others is hundreds of nats less likely to the lane."""
    found = fed(search("crp", 16), strangers(0, 1500))
    assert found.state.beam.counters.leads == 1
    pool, index = found.state.pool, found.words.inverted
    largest = np.argmax(np.where(pool.state == ALIVE, pool.slots["size"], 0))
    words = index.word[index.own["start"][largest] :][: index.types[largest]]
    counts = np.full(len(words), 4, np.int32)
    fed(found, Batch(np.array([0, len(words)]), words.copy(), counts, times=np.array([1500.0])))
    assert found.state.beam.counters.leads == 0
    assert np.isfinite(fed(found, strangers(1501, 1600)).log_evidence)
