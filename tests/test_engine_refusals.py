"""Records that the engine refuses, and settings: told in time, without harm to the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from feeds import feed, record

from streamdp.beam import growth
from streamdp.beam.data.trellis import LINEAGE_BITS
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.settings.io_options import Outputs


def reasons(settings: Settings, values: Sequence[Record]) -> list[tuple[int, str]]:
    """Line and reason of every refused record."""
    engine = Engine(settings)
    told = feed(engine, values)
    told.add(engine.finish())
    assert len(told.first()) + len(told.rejects) == len(values)
    assert all(r.data == b"raw %d" % r.position["line"] and r.detail for r in told.rejects)
    return [(r.position["line"], r.reason) for r in told.rejects]


def test_late_and_ahead() -> None:
    times = [100.0, 99.0, 100.0, 98.0, 99.5, 100.0, 103.0, 100.5, 101.0]
    records = [record("a text", i + 1, t) for i, t in enumerate(times)]
    assert reasons(Settings(late="refuse"), records) == [
        (2, "late"),
        (4, "late"),
        (5, "late"),
        (8, "late"),
        (9, "late"),
    ]
    # released: those two seconds behind the newest; equal times in order of arrival
    assert reasons(Settings(max_lateness=2.0, late="refuse"), [*records, record("late", 10, 100.0)]) == [
        (10, "late")
    ]
    arrived = [msgspec.structs.replace(r, arrival=10.0) for r in records[:2]]
    assert reasons(Settings(max_ahead=88.5), arrived) == [(1, "ahead"), (2, "ahead")]
    assert reasons(Settings(max_ahead=89.5, max_lateness=5.0), arrived) == [(1, "ahead")]


def test_late_records_are_put_in_order() -> None:
    times = [100.0, 99.0, 100.0, 98.0, 103.0, 101.5, None, 104.0, 110.0]
    engine = Engine(Settings(max_lateness=2.0))
    told = feed(engine, [record("a text", i + 1, t) for i, t in enumerate(times)])
    assert [line.id for line in told.first()] == ["r4", "r2", "r1", "r3", "r6", "r5", "r7", "r8"]
    told.add(engine.finish())
    assert [line.id for line in told.first()][-1] == "r9"


@pytest.mark.parametrize("likelihood", ["auto", "hierarchical-pitman-yor"])
def test_texts_take_no_vectors(likelihood: str) -> None:
    values: list[Any] = ["a text", [1.0], {"a": 1.0}, {"a": -1.0}, {"a": 0.5}, {"a": 0.0}, "!!", "b text"]
    records = [record(value, i + 1) for i, value in enumerate(values)]
    expected = [(2, "wrong_kind"), (4, "wrong_type"), (5, "wrong_type"), (6, "empty"), (7, "empty")]
    assert reasons(Settings(likelihood=likelihood), records) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("warmup", [0, 3, 200])
def test_vectors_take_nothing_else(warmup: int) -> None:
    values: list[Any] = [[1.0, 2.0], "a text", [1.0], {"a": 1.0}, [1e200, 0.0], [2.0, 1.0], [1.0] * 3]
    records = [record(value, i + 1) for i, value in enumerate(values)]
    expected = [
        (2, "wrong_kind"),
        (3, "wrong_length"),
        (4, "wrong_kind"),
        (5, "too_large"),
        (7, "wrong_length"),
    ]
    assert sorted(reasons(Settings(warmup=warmup), records)) == expected


def test_features_are_those_of_the_first_record() -> None:
    values: list[Any] = [{"a": 1.0, "b": 2.0}, {"a": 3.0}, {"b": 1.0, "c": 1.0}, [1.0, 2.0], "a text"]
    records = [record(value, i + 1) for i, value in enumerate(values)]
    expected = [(3, "unknown_feature"), (4, "wrong_kind"), (5, "wrong_kind")]
    assert reasons(Settings(warmup=0), records) == expected


def test_a_vector_likelihood_takes_no_text() -> None:
    records = [record("a text", 1), record([1.0, 2.0], 2), record("another", 3)]
    assert reasons(Settings(likelihood="gaussian"), records) == [(1, "wrong_kind"), (3, "wrong_kind")]


def test_seconds_need_times() -> None:
    records = [record("a text", 1), record("a text", 2, 1.0), record("a text", 3)]
    settings = Settings(distance="seconds", decay_scale=60.0)
    assert reasons(settings, records) == [(1, "missing_time"), (3, "missing_time")]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ([1e300, 0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]),
        ("...", [[1.0, 2.0], [2.0, 1.0]]),
        ([1e300, 0.0, 1.0], ["a text", "another one"]),
    ],
)
def test_a_refused_first_record_does_not_decide_the_kind(first: Any, then: Any) -> None:
    engine = Engine(Settings())
    told = feed(engine, [record(value, i + 1) for i, value in enumerate([first, *then])])
    told.add(engine.finish())
    assert [r.position["line"] for r in told.rejects] == [1]
    assert len(told.first()) == 2


def test_a_first_record_of_another_kind_does_not_stop_the_stream() -> None:
    """A setting of vectors under the automatic likelihood: a text is refused, and nothing is raised."""
    engine = Engine(Settings(warmup=2))
    told = feed(engine, [record(value, i + 1) for i, value in enumerate(["a text", [1.0, 2.0], [2.0, 1.0]])])
    assert [(r.position["line"], r.reason) for r in told.rejects] == [(1, "wrong_kind")]
    assert len(told.first()) == 2


STORM, VOTE = "storm over the coast", "a vote on the law"


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ([[1.0, 2.0], STORM, VOTE, STORM, VOTE], [1]),  # a lone vector before texts
        ([[1.0, 2.0], STORM, [1.0, 2.0], VOTE, STORM, VOTE], [1, 3]),
        ([[1.0], [1.0, 2.0], [2.0, 1.0], [1.0, 1.0]], [1]),  # a lone length
        ([[1.0, 2.0], STORM, [2.0, 1.0], [1.0, 1.0]], [2]),  # a lone text within
        ([[1.0, 2.0], STORM, [1.0], {"a": 1.0}], [2, 3, 4]),
        ([{"a": 1.0}, [1.0, 2.0], [2.0, 2.0], {"a": 2.0}], [1, 4]),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_one_record_does_not_set_the_kind_for_ever(values: list[Any], refused: list[int], cut: int) -> None:
    """Whatever snapshot lies between: as long as vectors are held back, most records decide."""
    records = [record(value, i + 1) for i, value in enumerate(values)]
    engine = Engine(Settings())
    rejects, first = [], []
    for part in (records[:cut], records[cut:]):
        for one in part:
            answers = engine.advance([one])
            rejects += answers.rejects
            first += answers.assignments
        engine = Engine.loads(engine.dumps(), Settings())
    answers = engine.finish()
    rejects += answers.rejects
    first += answers.assignments
    assert sorted(reject.position["line"] for reject in rejects) == refused
    assert {reject.reason for reject in rejects} <= {"wrong_kind", "wrong_length"}
    taken = [line.position["line"] for line in first if line.revision == 0]
    assert taken == [i + 1 for i in range(len(values)) if i + 1 not in refused]


@pytest.mark.parametrize(
    "wrong",
    [
        {"likelihood": "gaussian", "kappa": 1.0},
        {"likelihood": "normal-inverse-gamma", "variance": 1.0},
        {"likelihood": "gaussian", "beta": 1.0},
        {"likelihood": "dirichlet-multinomial", "word_discount": 0.5},
        {"likelihood": "hierarchical-pitman-yor", "warmup": 3},
        {"prior": "crp", "decay": "window"},
        {"retire_after": 3},
        {"distance": "seconds"},
    ],
)
def test_settings_that_do_not_go_together_are_told_before_the_first_record(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Engine(Settings(**wrong))


def test_more_clusters_than_there_are_names_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label and a lineage share 63 bits; the error comes before a lineage would spill into the label."""
    assert growth.MOST_LINEAGES == 1 << LINEAGE_BITS
    monkeypatch.setattr(growth, "MOST_LINEAGES", 128)
    engine = Engine(Settings(prior="crp", concentration=1000.0, beam=1))
    strange = [record(f"unheard{i} of{i}", i + 1) for i in range(200)]
    with pytest.raises(StreamdpError, match=r"more than 128 .*retire_after or max_clusters") as caught:
        feed(engine, strange)
    assert caught.value.exit_code == Exit.OUT_OF_MEMORY
    assert 120 < engine.seq <= 128
    bounded = Engine(Settings(prior="crp", concentration=1000.0, beam=1, retire_after=60))
    assert len(feed(bounded, strange).first()) == 200


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Engine(baem=4), ConfigError, "baem: no such setting, did you mean beam?"),
        (lambda: Settings(baem=4), ConfigError, "baem: no such setting, did you mean beam?"),  # type: ignore[call-arg]
        (lambda: Outputs(outptu="x"), ConfigError, "outptu: no such setting, did you mean output?"),  # type: ignore[call-arg]
        (lambda: Engine(qqq=4), ConfigError, "qqq: no such setting"),
        (lambda: Engine(Settings(), beam=4), ConfigError, "beam: say it in settings, or leave settings out"),
        (
            lambda: Engine(beam="4"),
            ConfigError,
            "setting beam: '4' is not allowed, must be a whole number, at least 1 and at most 256",
        ),
        (
            lambda: Engine("news.jsonl"),  # type: ignore[arg-type]
            TypeError,
            "settings are streamdp.Settings, or given by name (beam=4), not str 'news.jsonl'",
        ),
    ],
)
def test_settings_by_name_are_checked(make: Callable[[], object], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == said


def test_settings_by_name_are_those_of_an_object() -> None:
    engine = Engine(beam=4, prior="crp", concentration=2.0, with_events=True)
    assert engine.settings == Settings(beam=4, prior="crp", concentration=2.0)
    engine.advance(["storm over the coast"])
    again = Engine.loads(engine.dumps(), beam=4, prior="crp", concentration=2.0)
    assert again.settings == engine.settings
    assert again.dumps() == engine.dumps()
