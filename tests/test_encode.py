"""Which encoder a stream gets, what it learns of vectors, and words that the beam is told to forget."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import encoded, headlines, record, texts, vectors

from streamdp.encode.encoders import choose_encoder
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.encode.word_encoder import WordEncoder
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods.base import Moments
from streamdp.offline.handover import engine_of, stream_of
from streamdp.offline.problem import Collection
from streamdp.records import Reject
from streamdp.settings import Settings
from streamdp.settings.assemble import is_sparse


@pytest.mark.parametrize(
    ("value", "sparse", "kind"),
    [
        ("a text", None, WordEncoder),
        ("a text", True, WordEncoder),
        ("a text", False, Reject),
        ([1.0, 2.0], None, VectorEncoder),
        ([1.0, 2.0], False, VectorEncoder),
        ([1.0, 2.0], True, WordEncoder),  # which then refuses it
        ({"b": 1.0, "a": 2.0}, None, VectorEncoder),
        ({"b": 1.0, "a": 2.0}, True, WordEncoder),
    ],
)
def test_the_settings_or_the_first_record_choose_the_encoder(
    value: Any, sparse: bool | None, kind: type
) -> None:
    assert isinstance(choose_encoder(record(value, 1), Settings(), sparse), kind)


@pytest.mark.parametrize("text", ["\U0001f602", "\u2764\ufe0f \U0001f44d\U0001f3fd", "7", "집", "$5"])
def test_a_short_text_is_no_empty_one(text: str) -> None:
    encoder = choose_encoder(record("a text", 1), Settings(), None)
    assert not isinstance(encoder, Reject)
    assert encoded(encoder, [record(text, 2)]) == [None]


def test_named_features_keep_the_order_of_their_names() -> None:
    encoder = choose_encoder(record({"b": 1.0, "a": 2.0}, 1), Settings(), None)
    assert isinstance(encoder, VectorEncoder)
    assert encoder.names == ["a", "b"]


def test_a_vocabulary_is_no_larger_than_its_likelihood() -> None:
    settings = Settings(likelihood="dirichlet-multinomial", vocabulary_size=7)
    encoder = choose_encoder(record("a text", 1), settings, is_sparse(settings))
    assert isinstance(encoder, WordEncoder)
    assert encoder.vocabulary.limit == 7


def test_a_dimension_that_never_varies_has_some_variance() -> None:
    moments = Moments.of(np.array([[0.0, 5.0], [2.0, 5.0]]))
    assert moments.mean.tolist() == [1.0, 5.0]
    assert moments.variance.tolist() == [1.0, 1.0]
    assert Moments.of(np.array([[3.0, 5.0]])).variance.tolist() == [1.0, 1.0]


def test_forgotten_words_leave_the_base_measure() -> None:
    engine = Engine(Settings(prior="crp"))
    engine.advance(headlines(50, 1))
    search = engine.search
    assert search is not None
    lists, learned = search.words.inverted.lists, search.words.learned
    ids = np.flatnonzero(learned.repeats > 0)[[0, 3]]
    kept, repeats = np.delete(learned.counts, ids), np.delete(learned.repeats, ids)
    evidence = learned.counters.evidence
    search.forget_words(ids)
    assert (
        learned.counts[ids].tolist() == learned.repeats[ids].tolist() == lists["most"][ids].tolist() == [0, 0]
    )
    np.testing.assert_array_equal(np.delete(learned.counts, ids), kept)
    np.testing.assert_array_equal(np.delete(learned.repeats, ids), repeats)
    assert learned.counters.tolist() == (kept.sum(), np.count_nonzero(kept), repeats.sum(), evidence)


@pytest.mark.parametrize("dense", [False, True])
def test_an_engine_of_its_own_records_and_labels_goes_on(dense: bool) -> None:
    settings = Settings(prior="crp", beam=1, warmup=20) if dense else Settings(prior="crp", beam=1)
    maker = vectors if dense else texts
    engine = Engine(settings)
    engine.advance(maker(60, 4))
    stream = stream_of(engine)
    encoded, labels = stream.encoded, stream.held.labels
    names, numbers = np.unique(labels, return_inverse=True)
    first = np.unique(numbers, return_index=True)[1]
    rank = np.argsort(np.argsort(first))
    again = engine_of(settings, encoded, rank[numbers], names[np.argsort(first)], int(labels.max()) + 1)
    assert again.seq == 60
    assert stream_of(again).held.labels.tolist() == labels.tolist()
    samples = [msgspec.structs.replace(cluster, samples=[]) for cluster in engine.clusters()]
    assert again.clusters() == samples
    assert again.log_joint == pytest.approx(engine.log_joint)
    later = maker(80, 4)[60:]
    assert again.advance(later).lines == engine.advance(later).lines


def test_what_is_held_is_known_by_its_first_record() -> None:
    engine = Engine(Settings(retain=10))
    with pytest.raises(ValueError, match="no records"):
        stream_of(engine)
    engine.advance(texts(30, 1))
    held = stream_of(engine).held
    assert (held.first, len(held.labels)) == (20, 10)


def test_a_collection_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^there are no records to cluster$"):
        Collection(Settings(), [])
    with pytest.raises(ConfigError, match="the only one was refused because no words"):
        Collection(Settings(), [record("?", 1)])
