"""Vectors of any kind: what goes in gets a label for each record, or is refused by its number."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import streamdp
from streamdp.records import Assignment
from streamdp.scoring.agreement import agreement

FINITE = st.one_of(
    st.floats(-1e300, 1e300),
    st.floats(-1e3, 1e3),
    st.integers(-2, 2).map(float),
    st.sampled_from([0.0, 1e-300, 5e-324, 1e-155, 1e-100, 1e-40, 1e-12, 1e12, 1e99, 1e100, 1e300]),
)
SHAPES = st.tuples(st.integers(1, 12), st.integers(2, 6))
ROWS = arrays(np.float64, SHAPES, elements=FINITE, fill=FINITE)


@pytest.mark.filterwarnings("ignore:row:UserWarning")
@pytest.mark.parametrize("normalise", [False, True])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, more=FINITE)
def test_every_row_of_a_finite_matrix_has_a_label(normalise: bool, rows: np.ndarray, more: float) -> None:
    largest = np.abs(rows).max(axis=1)
    usable = (largest <= 1e100) & ((largest > 0.0) | (not normalise))
    model = streamdp.StreamDPClusterer(beam=2, normalise=normalise)
    if not usable.any():
        with pytest.raises(ValueError, match="row 0"):
            model.fit(rows)
        return
    labels = model.fit_predict(rows)
    assert labels.shape == (len(rows),)
    assert ((labels >= 0) == usable).all()
    assert model.predict(rows).shape == (len(rows),)
    other = np.full((3, rows.shape[1]), more)
    assert model.partial_fit(np.concatenate([other, rows])).labels_.shape == (len(rows) + 3,)


@pytest.mark.parametrize("normalise", [False, True])
@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_every_vector_of_a_stream_is_answered_or_refused(normalise: bool, rows: np.ndarray) -> None:
    engine = streamdp.Engine(streamdp.Settings(beam=2, warmup=4, normalise=normalise), with_events=True)
    told = [engine.advance(rows.tolist()), engine.finish()]
    answered = {line.seq for answers in told for line in answers.lines if isinstance(line, Assignment)}
    refused = sum(len(answers.rejects) for answers in told)
    assert len(answered) + refused == len(rows)
    model, taken = streamdp.StreamDP(beam=2, normalise=normalise), 0
    for row in rows.tolist():
        try:
            label = model.learn_predict_one(row)
        except ValueError:
            continue
        taken += 1
        assert isinstance(label, int)
        assert isinstance(model.predict_one(row), int)
        assert sum(model.predict_proba_one(row).values()) == pytest.approx(1.0)
    assert taken == len(answered) or 1e100 in np.abs(rows)
    assert (model.n_clusters > 0) == (taken > 0)


def blobs(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters, which come in no order."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(n) % 3)
    return rng.normal(size=(n, 3)) + 12.0 * np.eye(3)[truth], truth


def long(centres: np.ndarray) -> np.ndarray:
    """Rows of 4,096 numbers around them."""
    rng = np.random.default_rng(1)
    return centres @ rng.normal(size=(centres.shape[1], 4096)) + rng.normal(size=(len(centres), 4096))


def of_engine(rows: np.ndarray) -> list[int]:
    """The last label of each row."""
    engine, found = streamdp.Engine(), dict[int, int]()
    for answers in (engine.advance(rows.tolist()), engine.finish()):
        found |= {line.seq: line.cluster for line in answers.assignments}
    return [found[seq] for seq in range(len(rows))]


def one_by_one(rows: np.ndarray) -> list[int]:
    """What StreamDP says of each row when all are learned."""
    model = streamdp.StreamDP()
    model.learn_many(rows)
    return [model.predict_one(row) or 0 for row in rows.tolist()]


DOORS: dict[str, Callable[[np.ndarray], list[int]]] = {
    "engine": of_engine,
    "StreamDP": one_by_one,
    "clusterer": lambda rows: streamdp.StreamDPClusterer().fit_predict(rows).tolist(),
}

CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they are": lambda rows: rows,
    "whole numbers": lambda rows: (10.0 * rows).astype(np.int32),
    "half precision": lambda rows: rows.astype(np.float16),
    "true or false": lambda rows: rows > 6.0,
    "tiny": lambda rows: 1e-40 * rows,
    "huge": lambda rows: 1e98 * rows,
    "far from zero": lambda rows: rows + 1e9,
    "with constants": lambda rows: np.column_stack([np.full(len(rows), 7.0), rows, np.zeros(len(rows))]),
    "each many times": lambda rows: np.round(rows / 12.0),
    "of 4,096 numbers": lambda rows: long(np.round(rows / 12.0)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("change", CHANGES)
def test_three_clusters_are_three_however_they_are_written(change: str, door: str) -> None:
    rows, truth = blobs()
    found = DOORS[door](CHANGES[change](rows))
    assert agreement(truth.tolist(), found).ari > 0.95


@pytest.mark.parametrize("door", DOORS)
def test_numbers_that_differ_too_little_are_said_to(door: str, caplog: pytest.LogCaptureFixture) -> None:
    rows, _ = blobs()
    with caplog.at_level(logging.WARNING, "streamdp"):
        DOORS[door](1e-300 * rows)
        assert "multiply them" in caplog.text
        caplog.clear()
        DOORS[door](np.ones((300, 3)))
        assert not caplog.text


@pytest.mark.parametrize("x", [[], [10**400, 1], {"a": 10**400}, [1.0, float("nan")], [float("inf")]])
@pytest.mark.parametrize("early", [0, 3, 40])
def test_what_is_no_vector_is_refused_at_any_time(x: Any, early: int) -> None:
    model, engine = streamdp.StreamDP(beam=1), streamdp.Engine(streamdp.Settings(beam=1, warmup=10))
    rows = blobs()[0][:early, : len(x) or 1].tolist()
    values = [dict(zip("a", row, strict=True)) if isinstance(x, dict) else row for row in rows]
    for value in values:
        model.learn_one(value)
    engine.advance(values)
    before = model.n_clusters
    with pytest.raises(ValueError, match=r"number|finite"):
        model.learn_one(x)
    assert model.n_clusters == before
    if 10**400 in (x.values() if isinstance(x, dict) else x):
        with pytest.raises(TypeError, match="numbers"):
            engine.advance([x])
    else:
        assert len(engine.advance([x]).rejects + engine.finish().rejects) == 1  # it may wait for the warm-up


def test_an_array_without_columns_is_refused() -> None:
    assert len(streamdp.Engine().advance(np.zeros((5, 0))).rejects) == 5


def test_records_without_features_teach_nothing_until_there_are_some() -> None:
    model = streamdp.StreamDP()
    assert [model.learn_predict_one({}) for _ in range(3)] == [None] * 3
    assert model.learn_predict_one({"a": 1.0, "b": 2.0}) == 0
    assert model.learn_predict_one({}) is not None


def test_half_precision_is_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    rows = blobs()[0].astype(np.float16)
    model = streamdp.StreamDP()
    for row in rows:
        model.learn_one(dict(enumerate(row)))
    assert model.n_clusters == 3
    assert not recwarn.list


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("wrong", "often"), [(-9999.0, 20), (1e9, 1), (1e90, 3)])
def test_a_wrong_number_among_the_first_does_not_make_one_cluster_of_all(
    door: str, wrong: float, often: int
) -> None:
    rows, truth = blobs()
    at = np.random.default_rng(1).permutation(200)[:often]
    rows[at, 0], truth[at] = wrong, 3
    assert agreement(DOORS[door](rows), truth.tolist()).ari > 0.95
