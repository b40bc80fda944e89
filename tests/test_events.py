"""What is told of clusters adds up, and agrees with what is told of records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from engine_cases import CASES, case
from feeds import feed, headlines, nothing, record, texts, topical
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from replay import Replay

from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings


def replayed(settings: Settings, records: list[Record], batch: int, described: bool = True) -> Counter[str]:
    """How many events there are of each kind, after all have been checked, batch by batch."""
    engine = Engine(settings, with_events=True)
    replay = Replay(records if described else None, telling=settings.embed is not None)
    for start in range(0, len(records), batch):
        told = nothing()
        told.add(engine.advance(records[start : start + batch]))
        replay.take(told)
        replay.compare(engine.clusters())
    told = nothing()
    told.add(engine.finish())
    replay.take(told)
    replay.compare(engine.clusters())
    return replay.kinds


@pytest.mark.parametrize("beam", [1, 4, 16])
@pytest.mark.parametrize("name", CASES)
def test_events_add_up(name: str, beam: int) -> None:
    settings, maker = case(name, beam=beam)
    for seed in range(2):
        replayed(
            settings, maker(120, seed), 1 if seed else 37, described=name not in ("features", "directions")
        )


@pytest.mark.parametrize(
    "name", ["crp", "crp retiring", "window", "exponential", "uniform retiring", "vectors"]
)
@limits(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_events_add_up_in_any_short_stream(name: str, data: st.DataObject) -> None:
    """Few different records, in any order: the beam changes its mind as often as it can."""
    settings, maker = case(name, beam=data.draw(st.sampled_from([2, 4, 16])), max_undecided=12)
    values = [r.value for r in maker(8, data.draw(st.integers(0, 9)))]
    chosen = data.draw(st.lists(st.sampled_from(values), min_size=25, max_size=60))
    replayed(settings, [record(value, i + 1, float(i // 2)) for i, value in enumerate(chosen)], 1)


UNSURE: dict[str, Any] = {
    "likelihood": "dirichlet-multinomial",
    "vocabulary_size": 13,  # all that texts() has about five topics
    "beta": 0.3,
    "slack": 50.0,
    "beam": 16,
}


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({"prior": "crp", "beta": 0.1}, {"born", "split", "merged", "vanished"}),
        ({"prior": "crp", "retire_after": 9}, {"born", "split", "merged", "vanished", "retired"}),
        (
            {"decay_scale": 9.0, "decay": "window", "concentration": 0.5},
            {"born", "split", "merged", "vanished", "closed"},
        ),
    ],
)
def test_every_kind_is_met(more: dict[str, Any], kinds: set[str]) -> None:
    """Or the tests of this module would prove little."""
    found = Counter[str]()
    for seed in range(12):
        found += replayed(Settings(**(UNSURE | more)), texts(300, seed), 50)
    assert set(found) == kinds


@pytest.mark.parametrize("beam", [1, 16])
def test_events_of_headlines_add_up(beam: int) -> None:
    kinds = replayed(Settings(beam=beam, decay_scale=100.0), headlines(4000, 5), 500, described=False)
    assert kinds["closed"] > 10


@pytest.mark.parametrize(
    "more",
    [{"prior": "crp", "retire_after": 9}, {"decay_scale": 9.0, "decay": "window", "concentration": 0.5}],
)
def test_events_do_not_wait_for_final_answers(more: dict[str, Any]) -> None:
    """With ``final_only`` they are the same; what is closed has the size that the final answers give it."""
    ends = 0
    for seed in range(4):
        settings, records = Settings(**UNSURE, **more), texts(300, seed)
        at_once = Engine(settings, with_events=True)
        at_last = Engine(settings, with_events=True, final_only=True)
        full, final = feed(at_once, records), feed(at_last, records, (50, 51, 120))
        final.add(at_last.finish())
        full.add(at_once.finish())
        assert final.events == full.events
        sizes = Counter(final.newest())
        assert set(sizes) <= {e.cluster for e in final.events if e.event in ("born", "split")}
        closed = [e for e in final.events if e.event in ("closed", "retired")]
        assert all(e.size == sizes[e.cluster] for e in closed)
        ends += len(closed)
    assert ends > 3


def test_asking_for_events_changes_nothing_else() -> None:
    settings, maker = case("window", base_concentration=30.0)
    records = maker(200, 6)
    told, silent = Engine(settings, with_events=True), Engine(settings)
    with_events, without = feed(told, records), feed(silent, records)
    assert with_events.lines == without.lines
    assert told.dumps() == silent.dumps()
    assert with_events.events
    assert not without.events


@pytest.mark.parametrize("beam", [1, 4, 16])
@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"decay": "window", "decay_scale": 500.0},
        {"prior": "crp"},
        {"prior": "crp", "retire_after": 300},
        {"prior": "pitman-yor", "max_clusters": 60},
        {"prior": "uniform", "retire_after": 400, "max_clusters": 100},
    ],
    ids=repr,
)
def test_events_of_topics_add_up(more: dict[str, Any], drift: bool, beam: int) -> None:
    records, _ = topical(2000, 5, drift=drift)
    kinds = replayed(Settings(beam=beam, **more), records, 250, described=False)
    assert set(kinds) >= {"born"}
