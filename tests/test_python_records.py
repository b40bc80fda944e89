"""Records made in Python: what works is taken, all else is said, and no batch is lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

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
