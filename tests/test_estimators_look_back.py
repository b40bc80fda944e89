"""StreamDP over vectors from its first record on, and how it looks back: as an engine does."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

import streamdp
from streamdp.records import Event


def blobs(n: int, seed: int = 0) -> np.ndarray:
    """Wide clusters on a grid, in two dimensions."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 4.0 * rng.integers(-3, 4, size=(n, 2))


def one_gaussian(n: int, seed: int = 0) -> np.ndarray:
    """Rows of a cluster that the first records show as several."""
    return np.random.default_rng(seed).normal(size=(n, 3))


def kinds(events: Iterable[Event]) -> Counter[str]:
    """What happened after the warm-up."""
    return Counter(event.event for event in events if event.seq >= 200)


@pytest.mark.parametrize(("rows", "beam"), [(one_gaussian(4200), 8), (blobs(2200), 8), (blobs(2200), 1)])
def test_one_at_a_time_ends_with_the_clusters_of_an_engine(rows: np.ndarray, beam: int) -> None:
    engine = streamdp.Engine(streamdp.Settings(beam=beam), with_events=True)
    answers = engine.advance(rows.tolist())
    model = streamdp.StreamDP(beam=beam)
    for row in rows.tolist():
        model.learn_one(row)
    assert model.engine is not None
    found, expected = model.engine.lately()[0], engine.lately()[0]
    assert len(found) == len(expected) == len(rows)
    pairs = set(zip(found.tolist(), expected.tolist(), strict=True))
    assert len(pairs) == len(np.unique(found)) == len(np.unique(expected)) == model.n_clusters
    assert kinds(model.events()) == kinds(answers.events)


def test_what_is_one_cluster_ends_as_one() -> None:
    model = streamdp.StreamDP()
    for row in one_gaussian(4200).tolist():
        model.learn_one(row)
    assert model.n_clusters == 1


def test_what_is_remembered_is_bounded() -> None:
    model = streamdp.StreamDP(beam=1, settings=streamdp.Settings(retain=300))
    for row in blobs(1500).tolist():
        model.learn_one(row)
    assert model.engine is not None
    assert len(model.engine.lately()[0]) == 300
    none = streamdp.StreamDP(beam=1, settings=streamdp.Settings(retain=0))
    for row in blobs(1100).tolist():
        none.learn_one(row)
    assert none.n_clusters > 1


@pytest.mark.parametrize("after", [1, 3, 150, 700, 1024])
def test_a_copy_looks_back_alike(after: int) -> None:
    rows, model = one_gaussian(1100).tolist(), streamdp.StreamDP(beam=4)
    for row in rows[:after]:
        model.learn_one(row)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.n_clusters == model.n_clusters
    labels = [[each.learn_predict_one(row) for row in rows[after:]] for each in (model, copied)]
    assert labels[0] == labels[1]
    assert model.__getstate__() == copied.__getstate__()


def test_a_state_without_records_goes_on() -> None:
    settings = streamdp.Settings(retain=0)
    model = streamdp.StreamDP(settings=settings)
    for row in one_gaussian(700).tolist():
        model.learn_one(row)
    state = model.__getstate__()
    state["parameters"]["settings"] = None
    older = streamdp.StreamDP.__new__(streamdp.StreamDP)
    older.__setstate__(state)
    for row in one_gaussian(2500, 1).tolist():
        older.learn_one(row)
    assert older.engine is not None
    assert len(older.engine.lately()[0]) == 2500


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("named", [False, True])
def test_the_first_answer_comes_after_one_record(scale: float, named: bool) -> None:
    model, rows = streamdp.StreamDP(), (scale * blobs(40)).tolist()
    assert model.predict_one(rows[0]) is None
    for n, row in enumerate(rows):
        x = {"a": row[0], "b": row[1]} if named else row
        assert isinstance(model.learn_predict_one(x), int)
        assert n > 0 or model.predict_one(x) == 0
        assert np.isfinite(model.score_one(x))
        assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)


def test_a_bag_of_words_is_taken_for_one_after_ten_records() -> None:
    texts = ["storm over the coast", "parliament votes on budget"] * 20
    model = streamdp.StreamDP()
    for text in texts:
        model.learn_one(dict(Counter(text.split())))
    assert model.n_clusters == 2
    assert "storm" in dict(model.top_features(model.predict_one({"storm": 1, "coast": 1}) or 0))


@pytest.mark.parametrize("early", [4, 300])
def test_a_record_of_another_form_is_refused(early: int) -> None:
    vectors, features = streamdp.StreamDP(beam=1), streamdp.StreamDP(beam=1)
    for row in blobs(early).tolist():
        vectors.learn_one(row)
        features.learn_one({0: row[0], 1: row[1]})
    for model, wrong in (
        (vectors, [1.0]),
        (vectors, [1.0, 2.0, 3.0]),
        (vectors, {0: 1.0, 1: 2.0}),
        (features, [1.0, 2.0]),
    ):
        for each in (model, pickle.loads(pickle.dumps(model))):
            before = each.n_clusters
            for use in (each.learn_one, each.predict_one, each.score_one):
                with pytest.raises((TypeError, ValueError), match="those before"):
                    use(wrong)
            assert each.n_clusters == before
