"""Records made in Python: what works is taken, all else is said, and no batch is lost."""

from __future__ import annotations

import datetime
import math
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamdp
from benchmarks.sharded import Sharded
from streamdp import StreamDP
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.records import Record
from streamdp.settings import Settings


def vectors(values: list[Any], **settings: Any) -> tuple[int, list[str]]:
    engine = Engine(Settings(**settings))
    records = [Record(value, {"line": i}) for i, value in enumerate(values)]
    answers, end = engine.advance(records), engine.finish()
    lines = [*answers.lines, *end.lines]
    return sum(getattr(line, "revision", 1) == 0 for line in lines), [
        r.reason for r in answers.rejects + end.rejects
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.array(x, np.float32),
        lambda x: np.array(x, np.int64),
        tuple,
        lambda x: [np.float32(v) for v in x],
        lambda x: {f"f{i}": np.float64(v) for i, v in enumerate(x)},
    ],
)
def test_numbers_of_every_kind(make: Any) -> None:
    values = [make([float(i % 3), float(i % 5), 1.0]) for i in range(30)]
    assert vectors(values, warmup=10) == (30, [])
    engine = Engine(Settings(warmup=100))
    engine.advance([Record(value, {"line": 0}) for value in values])
    assert Engine.loads(engine.dumps(), engine.settings).held_back == 30


@pytest.mark.parametrize("warmup", [0, 3, 20])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_before_and_after_the_warmup(warmup: int, bad: float) -> None:
    values = [[float(i), 2.0] for i in range(10)]
    values[1] = [bad, 1.0]
    values[8] = [1.0, bad]
    settings = {"likelihood": "gaussian", "variance": 1.0, "mean_variance": 9.0} if warmup == 0 else {}
    assert vectors(values, warmup=warmup, **settings) == (8, ["not_finite", "not_finite"])


@pytest.mark.parametrize("record", [["a", "list"], None, {"text": ["x"]}, b"bytes", 3, np.zeros((2, 2))])
def test_what_is_no_record_is_said_and_nothing_is_taken(record: Any) -> None:
    engine = Engine(Settings())
    with pytest.raises(TypeError, match="the value of a record is a text, a sequence") as caught:
        engine.advance([Record("storm over coast", {"line": 1}), record])
    assert "\n" not in str(caught.value)
    assert engine.seq == 0


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"id": "\ud800a"}, {"id": "\ufffda"}),
        ({"id": 2**70}, {"id": str(2**70)}),
        ({"id": 17.0}, {"id": 17}),
        ({"id": np.int64(17)}, {"id": 17}),
        ({"value": "storm \ud800 coast"}, {}),
        ({"value": {"a": "\ud800", "\udc00": "b"}}, {}),
        (
            {"keep": {"a": 2**70, "b": ["\ud800", (1, np.arange(2))]}},
            {"keep": {"a": str(2**70), "b": ["\ufffd", [1, [0, 1]]]}},
        ),
    ],
)
def test_what_no_state_could_hold_is_held_as_decoders_do(
    given: dict[str, Any], found: dict[str, Any]
) -> None:
    """A state could not be stored, or loaded, once a record of Python's own had come with such a thing."""
    made = {"value": "storm over coast", "position": {"line": 1}} | given
    engine = Engine(Settings())
    answer = engine.advance([Record(**made)]).assignments[0]
    assert {name: getattr(answer, name) for name in found} == found
    again = Engine.loads(engine.dumps(), engine.settings)
    assert again.dumps() == engine.dumps()
    assert again.open_answers() == engine.open_answers()


@pytest.mark.parametrize("given", [{"id": 1.5}, {"id": True}, {"id": ["a"]}, {"keep": ["a"]}])
def test_ids_and_kept_fields_that_are_none_are_said_and_nothing_is_taken(given: dict[str, Any]) -> None:
    engine, good = Engine(Settings()), Record("storm over coast", {"line": 1})
    with pytest.raises(TypeError, match="of a record"):
        engine.advance([good, msgspec.structs.replace(good, **given)])
    assert engine.seq == 0


@pytest.mark.parametrize("value", [["a", "b"], b"bytes", 5, None, np.zeros((2, 2)), {"a": ["b"]}, object()])
def test_values_that_cannot_be_clustered(value: Any) -> None:
    engine = Engine(Settings())
    with pytest.raises(TypeError, match="the value of a record is a text, a sequence of numbers"):
        engine.advance([Record(value, {"line": 1})])
    with pytest.raises(TypeError, match="the value of a record"):
        engine.score([Record(value, {"line": 1})])


@pytest.mark.parametrize(
    "wrong", [{"beam": 0}, {"beam": "many"}, {"max_lateness": math.nan}, {"prior": "none"}]
)
def test_settings_made_in_python_are_checked(wrong: dict[str, Any]) -> None:
    state = Engine(Settings()).dumps()
    for make in (lambda s: Engine(s), lambda s: Engine.loads(state, s)):
        with pytest.raises(ConfigError):
            make(Settings(**wrong))


# ---------------------------------------------------------------- frames, times, and what is missing


MOMENT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
"""1767571200 seconds since 1970."""

MOMENTS: dict[str, Callable[[int], Any]] = {
    "seconds": lambda i: 1_767_571_200.0 + i,
    "whole seconds": lambda i: 1_767_571_200 + i,
    "numpy seconds": lambda i: np.float64(1_767_571_200.0 + i),
    "datetime": lambda i: MOMENT.replace(tzinfo=None) + datetime.timedelta(seconds=i),
    "datetime of a zone": lambda i: (MOMENT + datetime.timedelta(seconds=i)).astimezone(
        datetime.timezone(datetime.timedelta(hours=9))
    ),
    "Timestamp": lambda i: pd.Timestamp("2026-01-05") + pd.Timedelta(seconds=i),
    "Timestamp of a zone": lambda i: (
        pd.Timestamp("2026-01-05 01:00", tz="Europe/Berlin") + pd.Timedelta(seconds=i)
    ),
    "datetime64[s]": lambda i: np.datetime64("2026-01-05", "s") + np.timedelta64(i, "s"),
    "datetime64[ns]": lambda i: np.datetime64("2026-01-05", "ns") + np.timedelta64(i, "s"),
}


@pytest.mark.parametrize("form", MOMENTS)
def test_times_of_every_form_are_times_wherever_one_is_taken(form: str) -> None:
    at, expected = MOMENTS[form], [1_767_571_200.0 + i for i in range(30)]
    by_argument, by_feature, words = StreamDP(), StreamDP(time="moment"), StreamDP()
    for i in range(30):
        by_argument.learn_one({"a": float(i % 2 * 10), "b": 1.0}, t=at(i))
        by_feature.learn_one({"a": float(i % 2 * 10), "b": 1.0, "moment": at(i)})
        words.learn_one("storm over the coast", t=at(i))
    for model in (by_argument, by_feature, words):
        (first,) = [each for each in model.clusters if each.cluster == 0]
        assert model.engine is not None
        assert first.first_time == expected[0]
        assert max(each.last_time or 0.0 for each in model.clusters) == expected[-1]
        pickle.loads(pickle.dumps(model))
    answers = Engine().advance([Record("storm over coast", time=at(i)) for i in range(30)])
    assert [line.time for line in answers.assignments if not line.revision] == expected
    rows = [{"text": "storm over coast", "time": at(i), "id": f"r{i}"} for i in range(30)]
    found = [line for line in streamdp.cluster(rows) if not line.revision]
    assert [(line.time, line.id) for line in found] == [(t, f"r{i}") for i, t in enumerate(expected)]
    named = Settings(likelihood="categorical", fields=("bag",))
    bags = Engine(named).advance([{"bag": "Blue", "time": at(i)} for i in range(30)])
    dated = form not in ("seconds", "whole seconds", "numpy seconds")  # a number may be a category
    assert [line.time for line in bags.assignments] == (expected if dated else [None] * 30)


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), pd.NaT, np.datetime64("NaT"), pd.NA])
def test_a_time_that_is_missing_is_none(missing: Any) -> None:
    engine = Engine()
    answers = engine.advance(
        [Record("storm over coast", {}, time=MOMENT), Record("storm coast", {}, time=missing)]
    )
    assert [line.time for line in answers.assignments] == [MOMENT.timestamp(), None]
    model = StreamDP(time="at")
    for i in range(12):
        model.learn_one({"a": float(i), "at": missing})
    assert model.n_clusters


@pytest.mark.parametrize("wrong", ["noon", "2026-01-05", object(), [1.0], b"1"])
def test_what_is_no_time_is_said_before_anything_is_taken(wrong: Any) -> None:
    engine, model = Engine(), StreamDP()
    with pytest.raises(TypeError, match="a time is seconds since 1970, a datetime or a datetime64, not"):
        engine.advance(["storm", Record("storm over coast", {}, time=wrong)])
    with pytest.raises(TypeError, match="a time is seconds"):
        model.learn_one("storm over coast", t=wrong)
    assert engine.seq == 0
    assert model.engine is None or model.engine.seq == 0


BAGS = ["Blue", "Red", None, "Green", "Red", None]
ORIGINS = ["JFK", None, "NWK", "BRM", "GTW", None]


def learned(frame: Any) -> StreamDP:
    model = StreamDP()
    model.learn_many(frame)
    return model


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT, np.float32("nan")])
@pytest.mark.parametrize("first", range(6))
def test_what_a_frame_lacks_is_a_missing_category(missing: Any, first: int) -> None:
    """Whichever row comes first; a row that lacks all teaches nothing."""
    bags, origins = (BAGS[first:] + BAGS[:first]) * 20, (ORIGINS[first:] + ORIGINS[:first]) * 20
    given = [
        {name: missing if value is None else value for name, value in (("bag", bag), ("origin", origin))}
        for bag, origin in zip(bags, origins, strict=True)
    ]
    alone = StreamDP(likelihood="categorical")
    for row in given:
        present = {name: value for name, value in row.items() if isinstance(value, str)}
        if present:
            alone.learn_one(present)
    assert alone.engine is not None
    frames = [pd.DataFrame(given), pl.DataFrame({"bag": bags, "origin": origins}), given]
    frames.append(pd.DataFrame({"bag": pd.Categorical(bags), "origin": pd.array(origins, dtype="string")}))
    for frame in frames:
        model = learned(frame)
        assert model.engine is not None
        assert model.engine.seq == alone.engine.seq == 100
        assert [c.size for c in model.clusters] == [c.size for c in alone.clusters]
        assert [c.words for c in model.clusters] == [c.words for c in alone.clusters]
        assert (np.array(model.predict_many(frame)) == -1).sum() == 20
    engine = Engine(Settings(likelihood="categorical"))
    answers = engine.advance(pd.DataFrame(given))
    answered = [line for line in answers.assignments if not line.revision]
    assert (len(answered), {reject.reason for reject in answers.rejects}) == (100, {"empty"})


def test_a_text_that_is_missing_teaches_nothing() -> None:
    model = learned(pd.Series([None, "storm over the coast", math.nan, "", "coast storm"]))
    assert model.engine is not None
    assert model.engine.seq == 2
    assert model.predict_many(pd.Series(["coast storm", None])).tolist() == [0, -1]


BAD_ROWS: dict[str, tuple[list[Any], Any, str]] = {
    "a number among texts": (["storm over the coast", "coast storm"], 5, "row 2: the value of a record"),
    "a fraction among categories": (
        [{"a": "x"}, {"a": "y"}],
        {"a": 1.5},
        "row 2: feature 'a' is no category",
    ),
    "NaN among numbers": ([{"a": 1.0}, {"a": 2.0}], {"a": math.nan}, "row 2: feature 'a' is nan"),
    "another length": ([[1.0, 2.0], [2.0, 1.0]] * 20, [1.0], "row 40: a vector has 1 numbers"),
    "a text among vectors": ([[1.0, 2.0]] * 300, "storm", "row 300: "),
    "a late record": (
        [{"a": "x", "at": 1e9 + i} for i in range(50)],
        {"a": "x", "at": 5e8},
        "row 50: its time is ",
    ),
}


@pytest.mark.parametrize("before", [0, 60])
@pytest.mark.parametrize("case", BAD_ROWS)
def test_learning_many_takes_all_or_nothing(case: str, before: int) -> None:
    rows, bad, told = BAD_ROWS[case]
    model = StreamDP(time="at", settings=Settings(late="refuse"))
    for i in range(before):
        model.learn_one(rows[0 if case == "a late record" else i % 2])
    state, known = pickle.dumps(model), model.predict_one(rows[0])
    with pytest.raises((ValueError, TypeError)) as caught:
        model.learn_many([*rows, bad, *rows])
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith("; none of the rows is learned")
    assert pickle.dumps(model) == state
    assert model.predict_one(rows[0]) == known
    model.learn_many(rows)
    assert model.predict_one(rows[0]) is not None or len(rows) < 10


def test_a_frame_is_its_rows() -> None:
    texts = ["storm over the coast", "coast storm", "late goal wins the match", "match goal"] * 3
    times = pd.date_range("2026-01-05", periods=12, freq="min")
    frame = pd.DataFrame({"text": texts, "time": times, "score": 1.5})
    records = [Record(text, {"record": i}, MOMENT.timestamp() + 60.0 * i) for i, text in enumerate(texts)]
    expected = [*streamdp.cluster(records)]
    for given in (
        frame,
        frame[["text", "time"]],
        pl.from_pandas(frame),
        pl.from_pandas(frame).to_arrow(),
        frame.to_dict("records"),
        frame.assign(time=times.strftime("%Y-%m-%d %H:%M:%S")),
        frame.assign(time=times.tz_localize("UTC").tz_convert("Asia/Tokyo")),
    ):
        assert [*streamdp.cluster(given)] == expected
        engine = Engine()
        assert [*engine.advance(given).assignments, *engine.finish().assignments][:12] == expected[:12]
        assert len(engine.score(given).assignments) == 12
        assert len(Sharded().advance(given).assignments) == 12
    assert [line.cluster for line in streamdp.cluster(frame["text"])] == [line.cluster for line in expected]
    assert [line.cluster for line in streamdp.cluster(frame[["text"]])] == [line.cluster for line in expected]
    numbers = pd.DataFrame({"a": [0.0, 30.0] * 20, "b": [1.0, 1.1, 0.9, 1.2] * 10})
    assert [*streamdp.cluster(numbers)] == [*streamdp.cluster(numbers.to_dict("records"))]
    vectors = pd.DataFrame({"vector": [np.array([1.0, i % 2 * 9.0]) for i in range(20)], "time": range(20)})
    assert [line.time for line in streamdp.cluster(vectors)][:20] == [float(i) for i in range(20)]
    with pytest.raises(ValueError, match=r"missing_field: .*'record': 1"):
        [*streamdp.cluster(pd.DataFrame({"text": ["storm coast", None], "time": times[:2]}))]
