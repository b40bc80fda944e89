"""StreamDP as River knows clusterers: its own checks, on real streams, bare and at the end of pipelines."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from feeds import headlines
from river import anomaly, datasets, feature_extraction, preprocessing
from river.checks import check_estimator, common

import streamdp
from streamdp.errors import StreamdpError
from streamdp.priors import CRP

Pair = tuple[Any, None]

DATASET_CHECKS = [
    common.check_learn_one,
    common.check_shuffle_features_no_impact,
    common.check_predict_one_pure,
    common.check_emerging_features,
    common.check_disappearing_features,
    common.check_radically_disappearing_features,
    common.check_pickling,
    common.check_clone_is_independent,
    common.check_predict_one_before_any_learn,
    common.check_no_state_aliasing_with_input,
    common.check_learn_many_matches_learn_one,
    common.check_predict_many_matches_predict_one,
]


def segments() -> Iterator[Pair]:
    """Dense features of images."""
    return ((x, None) for x, _ in datasets.ImageSegments().take(300))


def phishing() -> Iterator[Pair]:
    """Features that have a few values each."""
    return ((x, None) for x, _ in datasets.Phishing().take(150))


def texts() -> Iterator[Pair]:
    """Headlines."""
    return ((record.value, None) for record in headlines(300, 2))


def bags() -> Iterator[Pair]:
    """The words of headlines, counted."""
    bag = feature_extraction.BagOfWords()
    return ((bag.transform_one(x), None) for x, _ in texts())


MAKERS: dict[str, tuple[Callable[[], Any], Callable[[], Iterator[Pair]]]] = {
    "segments": (lambda: streamdp.StreamDP(beam=4), segments),
    "phishing": (lambda: streamdp.StreamDP(beam=1, prior=CRP(2.0)), phishing),
    "bags": (lambda: streamdp.StreamDP(beam=4), bags),
    "scaled": (lambda: preprocessing.StandardScaler() | streamdp.StreamDP(beam=4), segments),
    "bag of words": (lambda: feature_extraction.BagOfWords() | streamdp.StreamDP(beam=4), texts),
    "tf-idf": (lambda: feature_extraction.TFIDF() | streamdp.StreamDP(beam=4), texts),
    "hashed": (lambda: preprocessing.FeatureHasher(20, seed=3) | streamdp.StreamDP(beam=4), segments),
}


def test_rivers_own_checks() -> None:
    check_estimator(streamdp.StreamDP())


@pytest.mark.parametrize("name", ["segments", "phishing", "bags", "scaled", "hashed"])
@pytest.mark.parametrize("check", DATASET_CHECKS, ids=lambda check: check.__name__)
def test_checks_on_streams(check: Callable[..., None], name: str) -> None:
    make, stream = MAKERS[name]
    if name in ("bags", "scaled") and check.__name__.startswith(("check_learn_many", "check_predict_many")):
        return  # makes a frame with the columns of the first record; scales by the batch
    random.seed(4)
    check(make(), list(stream()))


def learned(name: str) -> tuple[Any, list[Any], list[Any]]:
    """A model, the records that it has learned, and what was predicted of each before."""
    make, stream = MAKERS[name]
    model, rows = make(), [x for x, _ in stream()]
    predicted = []
    for x in rows:
        predicted.append(model.predict_one(x))
        model.learn_one(x)
    return model, rows, predicted


@pytest.mark.parametrize("name", MAKERS)
def test_predicting_before_and_between_changes_nothing(name: str) -> None:
    model, rows, _ = learned(name)
    other = MAKERS[name][0]()
    assert other.predict_one(rows[0]) is None
    for x in rows:
        other.learn_one(x)
    assert [other.predict_one(x) for x in rows] == [model.predict_one(x) for x in rows]
    assert len({model.predict_one(x) for x in rows}) > 1


@pytest.mark.parametrize("name", ["segments", "bags"])
def test_what_is_asked_agrees(name: str) -> None:
    model, rows, _ = learned(name)
    for x in rows[-40:]:
        shares, label = model.predict_proba_one(x), model.predict_one(x)
        assert sum(shares.values()) == pytest.approx(1.0)
        assert label in shares
        assert label == model.learn_predict_one(x)
        assert model.score_one(x) == model.score_one(copy.deepcopy(x))
    assert model.n_clusters == len(model.clusters) == len(model.centers)
    assert {e.event for e in model.events()} >= {"born"}
    largest = model.clusters[0].cluster
    assert len(model.top_features(largest, 3)) == 3
    with pytest.raises(KeyError):
        model.top_features(10_000)


@pytest.mark.parametrize("name", ["segments", "bags"])
@pytest.mark.parametrize("after", [0, 5, 15, 60, 250])
def test_a_copy_goes_on_alike(name: str, after: int, tmp_path: Any) -> None:
    make, stream = MAKERS[name]
    model, rows = make(), [x for x, _ in stream()]
    for x in rows[:after]:
        model.learn_one(x)
    model.save(tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), type(model).load(tmp_path / "model")]
    for x in itertools.islice(rows, after, after + 30):
        label = model.learn_predict_one(x)
        assert [each.learn_predict_one(x) for each in copies] == [label] * 3
    assert all(each.__getstate__() == model.__getstate__() for each in copies)


def test_files_are_not_harmed(tmp_path: Any) -> None:
    model, path = (
        streamdp.StreamDP(prior=CRP(3.0), settings=streamdp.Settings(retain=9)),
        tmp_path / "m",
    )
    path.write_bytes(b"somebody's")
    for overwrite in (False, True):
        with pytest.raises(StreamdpError, match="no model of streamdp"):
            model.save(path, overwrite=overwrite)
    with pytest.raises(StreamdpError, match="no model of streamdp"):
        streamdp.StreamDP.load(path)
    assert path.read_bytes() == b"somebody's"
    other = tmp_path / "n"
    model.save(other)
    with pytest.raises(StreamdpError, match="overwrite=True"):
        model.save(other)
    model.save(other, overwrite=True)
    assert streamdp.StreamDP.load(other).prior == CRP(3.0)
    assert b"streamdp.priors:CRP" in other.read_bytes()
    data = bytearray(other.read_bytes())
    data[-3] ^= 1
    other.write_bytes(data)
    with pytest.raises(StreamdpError, match="damaged"):
        streamdp.StreamDP.load(other)


def test_frames_of_every_kind() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [x for x, _ in segments()]
    whole = streamdp.StreamDP(beam=1)
    for x in rows:
        whole.learn_one(x)
    expected = [whole.predict_one(x) for x in rows]
    for frame in (pandas.DataFrame(rows), polars.DataFrame(rows), polars.DataFrame(rows).to_arrow()):
        model = streamdp.StreamDP(beam=1)
        model.learn_many(frame)
        found = model.predict_many(frame)
        assert list(map(int, found)) == expected if not hasattr(found, "to_pylist") else True
    matrix = np.array([list(x.values()) for x in rows])
    model = streamdp.StreamDP(beam=1)
    model.learn_many(matrix)
    assert model.predict_many(matrix).shape == (len(rows),)
    words = streamdp.StreamDP(beam=1)
    words.learn_many(pandas.Series([x for x, _ in texts()]))
    words.learn_many(pandas.DataFrame({"headline": [x for x, _ in texts()]}))
    assert words.engine is not None
    assert words.engine.seq == 600


@pytest.mark.parametrize(
    ("x", "error"),
    [({"a": "text", "b": 1.0}, TypeError), ({"a": float("nan"), "b": 1.0}, ValueError), ([1.0], ValueError)],
)
def test_what_is_wrong_is_said_and_nothing_is_learned(x: Any, error: type[Exception]) -> None:
    vectors = isinstance(x, list)
    model, rng = streamdp.StreamDP(beam=1), random.Random(0)
    for n in range(30):
        row = {"a": rng.gauss(0, 1), "b": rng.gauss(n % 2 * 9, 1)}
        model.learn_one(list(row.values()) if vectors else row)
        before = pickle.dumps(model)
        with pytest.raises(error):
            model.learn_one(x)
        assert n < 9 or pickle.dumps(model) == before


def test_times() -> None:
    rng = random.Random(0)
    rows = [{"at": 10.0 * n, "a": rng.gauss(n % 2 * 9, 1), "b": 1.0 + n % 3} for n in range(60)]
    named = streamdp.StreamDP(beam=1, time="at")
    given = streamdp.StreamDP(beam=1)
    for row in rows:
        named.learn_one(row)
        given.learn_one({"a": row["a"], "b": row["b"]}, t=row["at"])
    assert named.centers == given.centers
    assert max(each.last_time or 0.0 for each in named.clusters) == 590.0
    assert named.predict_one(rows[0]) == given.predict_one({"a": rows[0]["a"], "b": rows[0]["b"]})


def test_an_anomaly_detector() -> None:
    pipeline = preprocessing.StandardScaler() | anomaly.QuantileFilter(
        streamdp.Novelty(streamdp.StreamDP(beam=1)), q=0.95
    )
    scores = []
    for x, _ in segments():
        scores.append(pipeline.score_one(x))
        pipeline.learn_one(x)
    assert scores[0] == 0.0
    assert all(np.isfinite(scores))


HASHES = """
import streamdp, random, pickle, hashlib
from test_river import MAKERS, learned
told = [learned(name)[2] for name in ("segments", "bags", "tf-idf")]
print(hashlib.sha256(repr(told).encode()).hexdigest())
"""


def test_hash_seeds_do_not_matter() -> None:
    path = os.pathsep.join(filter(None, (os.path.dirname(__file__), os.environ.get("PYTHONPATH"))))
    found = {
        subprocess.run(
            [sys.executable, "-c", HASHES],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_directions_whatever_the_length() -> None:
    settings = streamdp.Settings(normalise=True)
    models = [streamdp.StreamDP(beam=1, settings=settings) for _ in range(2)]
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 8))
    for i in range(60):
        row = centres[i % 3] + 0.05 * rng.normal(size=8)
        labels = [
            model.learn_predict_one(scale * row) for model, scale in zip(models, (1.0, 40.0), strict=True)
        ]
        assert labels[0] == labels[1]
        for model in models:
            with pytest.raises(ValueError, match="no direction"):
                model.learn_one(np.zeros(8))
    assert models[0].predict_one(centres[0]) == models[1].predict_one(9.0 * centres[0])


def test_normalise_is_a_parameter() -> None:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(5, 384))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    model = streamdp.StreamDP(normalise=True).clone()
    assert model._get_params()["normalise"] is True
    given, rows = streamdp.StreamDP(settings=streamdp.Settings(normalise=True)), []
    for k in rng.integers(0, 5, 300).tolist():
        row = dict(enumerate((centres[k] + 0.03 * rng.normal(size=384)).tolist()))
        rows.append([5.0 * value for value in row.values()])
        scaled = {name: 5.0 * value for name, value in row.items()}
        assert model.learn_predict_one(scaled) == given.learn_predict_one(row)
    assert model.n_clusters == 5
    assert model.engine is not None
    held = model.engine.retained()
    assert held is not None
    engine = streamdp.Engine(streamdp.Settings(normalise=True))
    engine.advance(rows)
    assert (held.batch.vectors == engine.retained().batch.vectors).all()  # as the engine writes them
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict_one(scaled) == model.predict_one(row) is not None


def test_embeddings_are_recognised_and_a_copy_knows_it() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 32))[np.arange(300) % 5] + 0.1 * rng.normal(size=(300, 32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    model = streamdp.StreamDP()
    for row in rows.tolist():
        model.learn_one(row)
    assert model.n_clusters == 5
    for each in (model, pickle.loads(pickle.dumps(model))):
        assert each.predict_one((3.0 * rows[0]).tolist()) == model.predict_one(rows[0].tolist())
        with pytest.raises(ValueError, match="no direction"):
            each.learn_one([0.0] * 32)
