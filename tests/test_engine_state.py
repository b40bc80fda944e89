"""An engine stored and loaded at any record goes on as if nothing had happened; scoring leaves no trace."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from engine_cases import CASES, WORDS, Maker, case
from feeds import feed, headlines, nothing, record, reloaded, texts, untidy, vectors

from streamdp.engine import Engine
from streamdp.records import Assignment
from streamdp.settings import Settings


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("final_only", [False, True])
def test_a_snapshot_at_every_record_changes_nothing(name: str, final_only: bool) -> None:
    settings, maker = case(name, max_lateness=2.0)
    records = untidy(maker(60, 5), 11, times=settings.distance == "records")
    modes = {"final_only": final_only, "with_events": True}
    whole = Engine(settings, **modes)
    interrupted = Engine(settings, **modes)
    expected, got = nothing(), nothing()
    for item in records:
        expected.add(whole.advance([item]))
        got.add(interrupted.advance([item]))
        stored = interrupted.dumps()
        assert stored == whole.dumps()
        interrupted = Engine.loads(stored, settings, **modes)
        assert interrupted.dumps() == stored
    expected.add(whole.finish())
    got.add(interrupted.finish())
    assert got.encoded() == expected.encoded()
    assert got.rejects == expected.rejects
    assert interrupted.dumps() == whole.dumps()


def test_a_snapshot_of_a_long_stream_changes_nothing() -> None:
    settings = Settings(max_words=400, retain=300, snapshot_every=1)
    records = headlines(6000, 8)
    cuts = range(375, 6000, 375)
    whole = Engine(settings)
    expected = feed(whole, records, cuts)
    interrupted, got = reloaded(settings, records, cuts)
    assert got.encoded() == expected.encoded()
    assert interrupted.dumps() == whole.dumps()
    assert interrupted.log_evidence == whole.log_evidence
    assert interrupted.clusters() == whole.clusters()
    assert interrupted.counters() == whole.counters()


def test_long_vectors_go_on_from_a_state() -> None:
    """Of more than 100 dimensions a warm-up learns variances, and no covariances."""
    settings, rows = Settings(warmup=5), list(np.random.default_rng(0).normal(size=(12, 101)))
    engine = Engine(settings)
    engine.advance(rows)
    assert Engine.loads(engine.dumps(), settings).dumps() == engine.dumps()


def test_an_engine_that_has_seen_nothing_can_be_stored() -> None:
    stored = Engine(Settings()).dumps()
    engine = Engine.loads(stored, Settings())
    assert engine.dumps() == stored
    assert (engine.seq, engine.clusters(), engine.log_joint) == (0, [], 0.0)
    assert engine.finish().lines == []


def test_a_refused_record_leaves_no_words_behind() -> None:
    """Its words must not fill the vocabulary, nor make a state that differs after loading."""
    settings = Settings(**WORDS)
    engine = Engine(settings)
    engine.advance([record({"a": 1.0}, 1)])
    words = engine.counters()["words"]
    poison = {f"word{i}": 1.0 for i in range(200)} | {"zzz": 0.5}
    assert [r.reason for r in engine.advance([record(poison, 2)]).rejects] == ["wrong_type"]
    stored = engine.dumps()
    assert Engine.loads(stored, settings).dumps() == stored
    assert engine.counters()["words"] == words


@pytest.mark.parametrize(
    ("maker", "strange"), [(texts, "wholly unheard of words"), (vectors, [90.0, -90.0, 90.0])]
)
def test_score_learns_nothing(maker: Maker, strange: Any) -> None:
    engine = Engine(Settings(warmup=20) if maker is vectors else Settings(concentration=1.0))
    records = maker(120, 2)
    told = feed(engine, records)
    before = engine.dumps()
    asked = [*records[-5:], record(strange, 999, 70.0), record({"no": 1.0, "such": 2.0, "word": 3.5}, 1000)]
    answers = engine.score(asked)
    assert engine.score(asked) == answers
    assert engine.dumps() == before
    assert [r.position["line"] for r in answers.rejects] == [1000]
    lines = [line for line in answers.lines if isinstance(line, Assignment)]
    assert len(lines) == 6
    assert lines[-1].cluster == -1
    assert lines[-1].new
    known = set(told.newest())
    assert all(line.cluster in known for line in lines[:-1])
    assert all(0.0 <= line.probability <= 1.0 for line in lines)
    assert [line.seq for line in lines] == list(range(6))
    assert [line.seq for line in engine.score(asked, 40).lines] == list(range(40, 46))
    assert min(line.log_predictive for line in lines[:-1]) > lines[-1].log_predictive
    after = feed(engine, maker(160, 2)[120:])
    undisturbed = Engine.loads(before, engine.settings)
    assert after.encoded() == feed(undisturbed, maker(160, 2)[120:]).encoded()


def test_score_names_live_clusters_only() -> None:
    """Where the best child extends another hypothesis than the best, too."""
    unsure: dict[str, Any] = {"likelihood": "dirichlet-multinomial", "beta": 0.3, "slack": 50.0}
    settings = Settings(**unsure, decay="window", decay_scale=9.0, concentration=0.5)
    engine, records = Engine(settings), texts(200, 0)
    for this, following in itertools.pairwise(records):
        engine.advance([this])
        before = engine.dumps()
        (line,) = engine.score([following]).lines
        assert isinstance(line, Assignment)
        assert engine.dumps() == before
        assert line.new == (line.cluster == -1)
        assert line.new or line.cluster in {c.cluster for c in engine.clusters()}


def test_score_before_anything_was_learned() -> None:
    assert [r.reason for r in Engine(Settings()).score([record("a text", 1)]).rejects] == ["untrained"]
    engine = Engine(Settings(warmup=5))
    engine.advance(vectors(3, 1))
    assert [r.reason for r in engine.score(vectors(1, 2)).rejects] == ["untrained"]
