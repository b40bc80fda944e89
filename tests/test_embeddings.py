"""Streams of unit vectors: what is learned of them, what is refused, and what is left out without a trace."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from algebra import empty, log_predictive
from commands import call, newest_lines, parsed, succeed
from feeds import feed, nothing, record

from streamdp import StreamDP, StreamDPClusterer, fit
from streamdp.beam.data.state import MAX_SLACK
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods import VonMisesFisher
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.von_mises_fisher import concentration_of
from streamdp.priors import DistanceDependent
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_model, build_prior
from streamdp.settings.blueprint import Blueprint


def directions(vectors: np.ndarray) -> np.ndarray:
    """The rows at length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def topics(
    n: int, dimension: int, clusters: int, common: float, seed: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors at a cosine of .75 to one of several directions, which have one of ``common`` to each other."""
    rng = np.random.default_rng(seed)
    own, shared = (
        directions(rng.normal(size=(clusters, dimension))),
        directions(rng.normal(size=(1, dimension))),
    )
    centres = directions(math.sqrt(common) * shared + math.sqrt(1.0 - common) * own)
    truth = rng.integers(0, clusters, n)
    noise = directions(rng.normal(size=(n, dimension)))
    return directions(0.75 * centres[truth] + math.sqrt(1.0 - 0.75**2) * noise), truth


def search_of(vectors: np.ndarray, power: float | None = None, **given: Any) -> BeamSearch:
    """A beam under what the vectors suggest."""
    settings = Settings(normalise=True, **given)
    family: Any = build_likelihood(settings, Moments.of(vectors[:200]))
    prior = build_prior(settings, False)
    if power is not None:
        family = replace(family, power=power)
    return BeamSearch(build_model(settings, prior, family), family)


def answers_of(search: BeamSearch, vectors: np.ndarray) -> np.ndarray:
    """Everything that is answered, record by record."""
    batch = Batch.of_vectors(vectors, np.arange(len(vectors), dtype=float))
    return np.concatenate([out.answers[a:b].copy() for a, b, out in search.run(batch)])


@pytest.mark.parametrize(("dimension", "power"), [(96, 1.0), (384, 1.0), (384, 0.5)])
@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize("common", [0.0, 0.5])
def test_clusters_without_a_say_can_be_left_out(
    dimension: int, beam: int, common: float, power: float
) -> None:
    """With the largest slack nothing is left out, with a small one almost all is: the sums are the same."""
    vectors, _ = topics(600, dimension, 12, common)
    one, other = (search_of(vectors, power, beam=beam, slack=slack) for slack in (None, MAX_SLACK))
    some, every = answers_of(one, vectors), answers_of(other, vectors)
    same = beam == 1  # a beam of several keeps other hypotheses where more slack is given
    assert not same or (some["label"] == every["label"]).all()
    if same:
        for name in ("log_predictive", "probability", "new_probability"):
            np.testing.assert_allclose(some[name], every[name], rtol=1e-12, atol=1e-12)
    assert agreement(some["label"], every["label"]).nmi > 0.99
    left_out = (one.scores.value[one.head_slots()] == 0.0).sum()
    assert left_out > 0


def test_what_is_scored_does_not_depend_on_who_looks_first() -> None:
    """Scores of the last record, coarse first, beside the predictive of each cluster by itself."""
    vectors, _ = topics(400, 64, 6, 0.3)
    search = search_of(vectors, beam=1, slack=MAX_SLACK)
    answers_of(search, vectors[:-1])
    family, x = search.likelihood, vectors[-1]
    search.score(Batch.of_vectors(vectors[-1:], np.array([400.0])))
    slots = search.head_slots()
    values = np.log(search.scores.value[slots])
    expected = []
    for slot in slots:
        statistics = empty(family)
        statistics.row[:] = search.state.clusters.rows.block[slot]
        expected.append(log_predictive(family, statistics, x))
    np.testing.assert_allclose(values - values[0], np.array(expected) - expected[0], rtol=1e-10, atol=1e-9)


def test_the_concentration_is_found() -> None:
    """Nearest neighbours are nearer than members are on average, so it may be too high, not by far."""
    for dimension in (64, 384):
        vectors, _ = topics(200, dimension, 4, 0.0)
        family = build_likelihood(Settings(normalise=True), Moments.of(vectors))
        assert isinstance(family, VonMisesFisher)
        true = concentration_of(dimension, 0.75)
        assert family.concentrations[0] <= true <= family.concentrations[-1]
        assert (family.concentrations == family.concentrations[0] * np.array([1.0, 2.0, 4.0, 8.0])).all()


def test_what_all_vectors_have_in_common_is_found() -> None:
    vectors, _ = topics(2_000, 128, 100, 0.5)
    family = build_likelihood(Settings(normalise=True), Moments.of(vectors[:200]))
    assert isinstance(family, VonMisesFisher)
    assert family.direction @ directions(vectors.mean(axis=0, keepdims=True))[0] > 0.95
    expected = concentration_of(128, math.sqrt(0.5))
    assert family.mean_concentration == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("clusters", [3, 8])
def test_what_few_topics_have_in_common_is_not_taken_for_what_all_have(clusters: int) -> None:
    vectors, truth = topics(3_000, 128, 60, 0.0)
    order = np.argsort(truth >= clusters, kind="stable")
    labels = answers_of(search_of(vectors[order], beam=1), vectors[order])["label"]
    assert agreement(labels, truth[order]).ari > 0.9


@pytest.mark.parametrize("common", [0.0, 0.3, 0.6])
def test_topics_are_told_apart_whatever_they_have_in_common(common: float) -> None:
    vectors, truth = topics(2_000, 128, 30, common)
    labels = answers_of(search_of(vectors, beam=4), vectors)["label"]
    assert agreement(labels, truth).ari > 0.9


def uneven(n: int, dimension: int, clusters: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Topics within which vectors differ in a tenth of the dimensions more than in the others."""
    rng = np.random.default_rng(seed)
    centres, truth = directions(rng.normal(size=(clusters, dimension))), rng.integers(0, clusters, n)
    noise = rng.normal(size=(n, dimension)) * np.where(np.arange(dimension) < dimension // 10, 3.0, 0.5)
    return directions(centres[truth] + 0.8 * directions(noise)), truth


@pytest.mark.parametrize(("dimension", "power"), [(64, 50.0 / 64.0), (512, 0.2)])
def test_vectors_that_lie_unevenly_count_for_fewer_numbers(dimension: int, power: float) -> None:
    vectors, truth = uneven(1_500, dimension, 6)
    search = search_of(vectors, beam=2)
    family: Any = search.likelihood
    assert family.power == power
    assert isinstance(family.concentration, float)
    assert family.concentration >= 0.7 * dimension
    assert agreement(answers_of(search, vectors)["label"], truth).ari > 0.95
    even: Any = search_of(topics(200, dimension, 6, 0.3)[0]).likelihood
    assert (even.power, len(even.concentration)) == (1.0, 4)


@pytest.mark.parametrize("dimension", [48, 384])
@pytest.mark.parametrize("shares", [[1.0], [0.95, 0.05], [0.85, 0.05, 0.05, 0.05]])
def test_a_topic_that_is_most_of_a_stream_is_one_cluster(dimension: int, shares: list[float]) -> None:
    vectors, truth = topics(6_000, dimension, len(shares), 0.0)
    kept = np.random.default_rng(1).random(6_000) < np.array(shares)[truth]
    labels = answers_of(search_of(vectors[kept], beam=2), vectors[kept])["label"]
    large = np.bincount(labels) > 5
    assert large.sum() == len(shares)
    assert large[labels].mean() > 0.98


@pytest.mark.parametrize("same", [[[0.6, 0.8]], [[0.6, 0.8]] * 50])
def test_where_nothing_varies_nothing_is_learned(same: list[list[float]]) -> None:
    family = build_likelihood(Settings(normalise=True), Moments.of(np.array(same)))
    assert family == VonMisesFisher(2)


def test_vectors_that_are_mostly_repeated_leave_room() -> None:
    rng = np.random.default_rng(3)
    vectors = directions(rng.normal(size=(4, 32)))[rng.integers(0, 4, 200)]
    family = build_likelihood(Settings(normalise=True), Moments.of(vectors))
    assert isinstance(family, VonMisesFisher)
    assert family.concentrations.max() <= 2.0 * 50.0 * 32


# ---------------------------------------------------------------- settings


def test_normalise_names_the_family_and_its_prior() -> None:
    prior, of_texts = build_prior(Settings(normalise=True), False), build_prior(Settings(), True)
    assert isinstance(prior, DistanceDependent)
    assert prior == of_texts
    assert build_prior(Settings(likelihood="von-mises-fisher"), False) == of_texts
    assert build_prior(Settings(), False) != of_texts


def test_normalise_is_for_vectors() -> None:
    with pytest.raises(ConfigError, match="normalise has no meaning with the hierarchical-pitman-yor"):
        Blueprint(Settings(likelihood="hierarchical-pitman-yor", normalise=True)).check()
    engine = Engine(Settings(normalise=True))
    (reject,) = engine.advance([record("a text", 1)]).rejects
    assert (reject.reason, reject.detail) == (
        "wrong_kind",
        "it holds a text, and the settings are for vectors",
    )


def rejects_of(settings: Settings, values: list[list[float]]) -> list[tuple[int, str, str]]:
    engine = Engine(settings)
    told = engine.advance([record(value, i) for i, value in enumerate(values)]).rejects
    told += engine.finish().rejects  # what may be of the stream's kind is refused when that is settled
    return sorted((r.position["line"], r.reason, r.detail) for r in told)


def test_what_has_no_direction_is_refused_with_a_reason() -> None:
    values = [
        [3.0, 4.0, 0.0],
        [0.0, 0.0, 0.0],
        [math.nan, 1.0, 0.0],
        [math.inf, 1.0, 0.0],
        [1.0, 2.0],
        [1e120, 0.0, 0.0],
        [1e-200, 0.0, 1e-200],
        [-0.0, 0.0, -5e-324],
    ]
    assert rejects_of(Settings(normalise=True), values) == [
        (1, "zero_vector", "its vector is all zeros, which has no direction"),
        (2, "not_finite", "a number in it is not finite"),
        (3, "not_finite", "a number in it is not finite"),
        (4, "wrong_length", "its vector has 2 numbers where this stream has 3"),
        (5, "too_large", "a number in it is beyond 1e+100"),
    ]


def test_other_lengths_are_refused_where_they_are_not_scaled() -> None:
    settings = Settings(likelihood="von-mises-fisher")
    assert rejects_of(settings, [[1.0, 0.0], [0.6, 0.9], [0.0, 0.0]]) == [
        (
            1,
            "wrong_value",
            "under the von-mises-fisher likelihood a record is 2 numbers of length one, not of 1.08167 "
            "(normalise makes it one)",
        ),
        (
            2,
            "wrong_value",
            "under the von-mises-fisher likelihood a record is 2 numbers of length one, not of 0 "
            "(normalise makes it one)",
        ),
    ]


@pytest.mark.parametrize("likelihood", ["von-mises-fisher", "gaussian"])
def test_scaled_vectors_are_as_good_as_unit_vectors(likelihood: str) -> None:
    vectors, _ = topics(300, 16, 3, 0.0)
    lengths = np.random.default_rng(1).uniform(1e-3, 1e3, 300)
    told = []
    for rows, normalise in ((vectors, False), (vectors * lengths[:, None], True)):
        engine = Engine(Settings(likelihood=likelihood, normalise=normalise, warmup=50))
        answers = feed(engine, [Record(row, {"line": i}) for i, row in enumerate(rows.tolist())])
        told.append(answers.newest())
    assert told[0] == told[1]


def test_a_state_goes_on_where_it_was(tmp_path: Path) -> None:
    """In the warm-up, at its end and later: the same answers, and what was learned is the same."""
    vectors, _ = topics(500, 48, 8, 0.4)
    records = [record((3.0 * row).tolist(), i) for i, row in enumerate(vectors)]
    settings = Settings(normalise=True)
    whole, parts, expected, got = Engine(settings), Engine(settings), nothing(), nothing()
    for first, last in ((0, 120), (120, 200), (200, 330), (330, 500)):
        expected.add(whole.advance(records[first:last]))
        got.add(parts.advance(records[first:last]))
        stored = parts.dumps()
        assert stored == whole.dumps()
        parts = Engine.loads(stored, settings)
    assert got.encoded() == expected.encoded()
    assert len(got.first()) == 500


def test_from_the_command_line(tmp_path: Path) -> None:
    vectors, truth = topics(400, 48, 4, 0.0)
    rows = [[0.0] * 48, *(2.0 * vectors).tolist()]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"vector": row}) + "\n" for row in rows))
    command = ("consume", "--file", "in.jsonl", "--normalise", "--output", "out", "--state", "st")
    succeed(tmp_path, *command)
    found = [line["cluster"] for line in newest_lines((tmp_path / "out").read_bytes())]
    assert agreement(truth, found).nmi > 0.95
    (reject,) = parsed((tmp_path / "out.rejects.jsonl").read_bytes())
    assert (reject["reason"], reject["position"]["line"]) == ("zero_vector", 1)
    again = ("consume", "--file", "in.jsonl", "--output", "out", "--state", "st")
    done = call(tmp_path, *again, "--no-normalise")
    assert done.returncode == 78
    assert b"normalise: was true, is false" in done.stderr
    done = call(tmp_path, *again)
    assert done.returncode == 0
    assert b"settings of the state that differ from today's defaults: normalise true\n" in done.stderr


# ---------------------------------------------------------------- vectors of length one, as nobody has said


def test_vectors_of_length_one_are_clustered_by_direction() -> None:
    """In an engine, an estimator and a fit; a state goes on with it, and later ones are scaled."""
    vectors, truth = topics(400, 256, 5, 0.0)
    engine, told = Engine(Settings()), Engine(Settings(normalise=True))
    records = [record(row, i) for i, row in enumerate([*vectors[:250].tolist(), [0.0] * 256])]
    records += [record(row, 251 + i) for i, row in enumerate((2.0 * vectors[250:]).tolist())]
    got, expected = nothing(), nothing()
    got.add(engine.advance(records[:250]))
    engine = Engine.loads(engine.dumps(), Settings())
    got.add(engine.advance(records[250:]))
    expected.add(told.advance(records))
    assert got.encoded() == expected.encoded()
    assert [reject.reason for reject in got.rejects] == ["zero_vector"]
    assert len(engine.clusters()) == 5
    model = StreamDP()
    labels = [model.learn_predict_one(dict(enumerate(row))) for row in vectors.tolist()]
    assert (agreement(truth[200:], labels[200:]).ari, model.n_clusters) == (1.0, 5)
    with pytest.raises(ValueError, match="no direction"):
        model.learn_one(dict.fromkeys(range(256), 0.0))
    rows = StreamDPClusterer().partial_fit(vectors[:250])
    assert (agreement(truth[:250], rows.labels_).ari, rows.n_clusters_) == (1.0, 5)
    with pytest.warns(UserWarning, match="no direction"):
        later = rows.partial_fit(np.vstack([np.zeros(256), 2.0 * vectors[250:]])).labels_
    assert later[0] == -1
    assert agreement(truth[250:], later[1:]).ari == 1.0
    assert agreement(truth, fit(vectors.tolist()).labels).ari == 1.0


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (1.01, {}),  # one vector is longer
        (1.0, {"forget": 0.99}),
        (1.0, {"kappa": 0.5}),
        (1.0, {"likelihood": "normal-inverse-gamma"}),
    ],
)
def test_other_vectors_stay_points(change: float, given: dict[str, Any]) -> None:
    vectors, _ = topics(60, 24, 3, 0.0)
    vectors[7] *= change
    engine = Engine(Settings(warmup=50, **given))
    engine.advance(vectors.tolist())
    assert engine.search is not None
    assert not isinstance(engine.search.likelihood, VonMisesFisher)


def test_few_numbers_of_length_one_stay_points() -> None:
    vectors, _ = topics(60, 8, 3, 0.0)
    engine = Engine(Settings(warmup=50))
    engine.advance(vectors.tolist())
    assert engine.search is not None
    assert not isinstance(engine.search.likelihood, VonMisesFisher)


def test_that_vectors_have_length_one_is_said(tmp_path: Path) -> None:
    vectors, truth = topics(300, 32, 4, 0.0)
    rows = "".join(json.dumps({"vector": row}) + "\n" for row in vectors.tolist())
    (tmp_path / "in.jsonl").write_text(rows)
    said = call(tmp_path, "check", "in.jsonl").stdout.decode()
    assert "clustered by: vectors of 32 numbers, from 'vector', by direction as under --normalise\n" in said
    command = ("consume", "in.jsonl", "--output", "out")
    assert call(tmp_path, *command).stderr.count(b"of length one") == 1
    found = [line["cluster"] for line in newest_lines((tmp_path / "out").read_bytes())]
    assert agreement(truth, found).ari > 0.95
    for more in (("--normalise",), ("--likelihood", "normal-inverse-gamma")):
        (tmp_path / "out").unlink()
        assert b"of length one" not in call(tmp_path, *command, *more).stderr
