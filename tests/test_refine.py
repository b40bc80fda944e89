"""Offline work as a library: records to a fit, an engine to a refinement, and engines of both."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import record, texts, vectors

from streamdp.engine import Engine
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.offline.refine import refine
from streamdp.records import Assignment
from streamdp.settings import Settings
from streamdp.settings.load import ConfigError

FEW = Plan(rounds=6, seconds=None)


@pytest.mark.parametrize("maker", [texts, vectors])
def test_a_fit_answers_every_record(maker: Any) -> None:
    records = maker(60, 3)
    found = fit([*records[::-1], record({"no": -1.0}, 99)], Settings(), FEW)
    assert [reject.position["line"] for reject in found.rejects] == [99]
    assert [line.cluster for line in found.assignments] == found.labels.tolist()
    assert {line.id for line in found.assignments} == {r.id for r in records}
    times = [line.time for line in found.assignments]
    assert times == sorted(times)  # type: ignore[type-var]
    assert len(found.draws) == 3
    assert len(found.traces[0].seconds) == 6
    assert found.log_joint >= max(found.traces[0].log_joint[:1])
    again = fit([*records[::-1], record({"no": -1.0}, 99)], Settings(), FEW)
    assert again.assignments == found.assignments
    assert again.log_joint == found.log_joint


def test_a_fit_is_refused_where_nothing_can_come_of_it() -> None:
    with pytest.raises(ConfigError, match="no records to cluster"):
        fit([])
    with pytest.raises(ConfigError, match="the only one was refused because no words"):
        fit([record("?", 1)])
    with pytest.raises(ConfigError, match="chains"):
        fit(texts(5, 1), Settings(), Plan(chains=0))
    with pytest.raises(ConfigError, match="not for Uniform"):
        fit(texts(5, 1), Settings(prior="uniform"), Plan(method="split-merge"))


@pytest.mark.parametrize("maker", [texts, vectors])
def test_an_engine_goes_on_from_a_fit(maker: Any) -> None:
    records = maker(80, 3)
    found = fit(records[:60], Settings(beam=4, prior="crp"), FEW)
    engine = found.engine()
    assert engine.seq == 60
    stored = engine.dumps()
    lines = engine.advance(records[60:]).lines
    assert isinstance(lines[0], Assignment)
    assert lines[0].seq == 60
    assert Engine.loads(stored, engine.settings).advance(records[60:]).lines == lines
    assert found.engine().dumps() == stored  # the fit has learned nothing from the engine


@pytest.mark.parametrize("maker", [texts, vectors])
def test_a_refinement_is_no_worse_and_keeps_labels(maker: Any) -> None:
    engine = Engine(Settings(beam=1, prior="crp", warmup=20 if maker is vectors else None))
    engine.advance(maker(90, 5))
    before = engine.dumps()
    found = refine(engine, Plan(rounds=10, seconds=None, hyper=False))
    assert engine.dumps() == before
    assert found.log_joint >= found.started - 1e-9
    assert found.improved == (found.log_joint > found.started)
    told = dict(enumerate(found.task.before.tolist()))
    assert all(told[change.seq] == change.was for change in found.changes)
    told.update({change.seq: change.cluster for change in found.changes})
    assert list(told.values()) == found.labels.tolist()
    refined = found.engine()
    refined.advance(maker(120, 5)[90:])
    assert engine.dumps() == before
    assert (refined.seq, engine.seq) == (120, 90)


def test_what_cannot_be_bettered_is_kept() -> None:
    engine = Engine(Settings(beam=1, prior="crp"))
    engine.advance(texts(90, 5))
    refined = refine(engine, Plan(rounds=10, seconds=None, hyper=False))
    assert refined.improved
    assert refined.changes
    found = refine(refined.engine(), Plan(method="beam"))
    assert not found.improved
    assert found.log_joint == pytest.approx(refined.log_joint)
    assert found.changes == []
    assert found.labels.tolist() == found.task.before.tolist()


def test_vectors_that_a_stream_forgot_count_in_full() -> None:
    engine = Engine(Settings(beam=1, warmup=20))
    engine.advance(vectors(40, 1))
    task = refine(engine, FEW).task
    assert any("count in full" in note for note in task.notes)
    assert task.problem.likelihood.forget == 1.0  # type: ignore[attr-defined]
    assert type(task.problem.prior).__name__ == "DistanceDependent"
    plain = Engine(msgspec.structs.replace(engine.settings, forget=1.0))
    plain.advance(vectors(40, 1))
    assert refine(plain, FEW).task.notes == ()


def test_the_seed_is_the_engines_unless_another_is_given() -> None:
    engine = Engine(Settings(beam=1, prior="crp"))
    engine.advance(texts(60, 2))
    one, two = refine(engine, FEW), refine(engine, FEW)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.log_joint == two.log_joint
    assert refine(engine, FEW, seed=7).task.problem.settings.seed == 7
