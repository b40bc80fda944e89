"""Offline work as a library: records to a fit, an engine to a refinement, and engines of both."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from algebra import add, empty
from feeds import BESIDE, embedded, record, texts, vectors

from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods import HierarchicalPitmanYor
from streamdp.offline.chain import recount
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.offline.prepare import counts_of
from streamdp.offline.refine import Task, refine, task_of
from streamdp.offline.schedule import Best
from streamdp.records import Assignment
from streamdp.settings import Settings

FEW = Plan(rounds=6, seconds=None)
SHORT = Plan(rounds=6, seconds=None, hyper=False)


@pytest.mark.parametrize("maker", [texts, vectors])
def test_a_fit_answers_every_record(maker: Any) -> None:
    records = maker(60, 3)
    found = fit([*records[::-1], record({"no": -1.0}, 99)], Settings(), FEW)
    assert [reject.position["line"] for reject in found.rejects] == [99]
    assert [line.cluster for line in found.assignments] == found.labels.tolist()
    assert {line.id for line in found.assignments} == {r.id for r in records}
    times = [line.time for line in found.assignments]
    assert times == sorted(times)  # type: ignore[type-var]
    rounds = 3 if maker is texts else 6  # three choose the prior and the start of texts
    assert len(found.draws) == rounds - rounds // 2
    assert len(found.traces[0].seconds) == rounds
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
    engine = found.to_engine()
    assert engine.seq == 60
    stored = engine.dumps()
    lines = engine.advance(records[60:]).lines
    assert isinstance(lines[0], Assignment)
    assert lines[0].seq == 60
    assert Engine.loads(stored, engine.settings).advance(records[60:]).lines == lines
    assert found.to_engine().dumps() == stored  # the fit has learned nothing from the engine


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
    refined = found.to_engine()
    refined.advance(maker(120, 5)[90:])
    assert engine.dumps() == before
    assert (refined.seq, engine.seq) == (120, 90)


def test_what_cannot_be_bettered_is_kept() -> None:
    engine = Engine(Settings(beam=1, prior="crp"))
    engine.advance(texts(90, 5))
    refined = refine(engine, Plan(rounds=10, seconds=None, hyper=False))
    assert refined.improved
    assert refined.changes
    goes_on = refined.to_engine()
    found = refine(goes_on, Plan(method="beam"))
    assert not found.improved
    assert found.log_joint == found.started
    assert found.changes == []
    assert found.labels.tolist() == found.task.before.tolist()


def test_a_refinement_is_under_the_base_measure_of_the_stream() -> None:
    engine = Engine(Settings(beam=2, base_smoothing=0.2, base_escape=50.0))
    engine.advance(texts(90, 5))
    search = engine.search
    assert search is not None
    learned = search.words.learned
    clusters, tokens = learned.counts, learned.counts + learned.repeats
    base = refine(engine, FEW).solution.chain.base
    assert base is not None
    held, seen = clusters > 0, np.count_nonzero(clusters)
    share = 1.0 / (1.0 + math.exp(-learned.counters.evidence) / 1000.0)
    mass = [counts.sum() + 0.2 * seen + 50.0 for counts in (clusters, tokens)]
    expected = share * (clusters - 0.15) / mass[0] + (1.0 - share) * (tokens - 0.15) / mass[1]
    np.testing.assert_allclose(base[held], expected[held], rtol=1e-12)
    left = (50.0 + 0.35 * seen) * (share / mass[0] + (1.0 - share) / mass[1])
    np.testing.assert_allclose(base[~held], left / (2**20 - seen))


def test_a_set_counts_its_words_by_its_clusters() -> None:
    records = texts(120, 2)
    found = fit(records, Settings(), Plan(rounds=6, seconds=None, hyper=False))
    chain, data = found.solution.chain, found.problem.data
    assert isinstance(chain.likelihood, HierarchicalPitmanYor)
    # held fixed while the draws were made, it is that of a clustering met before
    joint = found.problem.chain(0, found.labels)
    assert joint.log_joint != pytest.approx(found.log_joint)
    joint.rebase(chain.base)  # type: ignore[arg-type]
    assert joint.log_joint == pytest.approx(found.log_joint)
    tables = counts_of(data, chain.likelihood, found.labels)
    clusters = [set(data.words[found.labels[data.rows] == k]) for k in range(int(found.labels.max()) + 1)]
    assert tables.tolist() == [sum(w in words for words in clusters) for w in range(len(tables))]
    engine = found.to_engine()
    assert engine.search.words.learned.counts[: len(tables)].tolist() == tables.tolist()  # type: ignore[union-attr]


def test_what_was_best_is_judged_again_when_words_are_counted_again() -> None:
    problem = fit(texts(60, 2), Settings(prior="crp"), Plan(method="beam")).problem
    chain = problem.chain(0, np.arange(60) % 3)
    recount([chain])
    best = Best.of(chain)
    chain.set_labels(np.arange(60) % 7)
    before = chain.labels
    recount([chain])
    again = best.under(chain)
    assert chain.labels.tolist() == before.tolist()
    assert again.labels.tolist() == best.labels.tolist()
    assert again.log_joint != best.log_joint
    chain.set_labels(best.labels)
    assert chain.log_joint == again.log_joint
    both = [problem.chain(0, labels) for labels in (best.labels, before)]
    recount(both)
    assert both[0].base is both[1].base


def test_dated_texts_have_the_prior_of_a_stream() -> None:
    def prior(records: Any, **asked: Any) -> str:
        plan = Plan(method="beam")
        return type(fit(records, Settings(beam=1, **asked), plan).problem.prior).__name__

    assert prior(texts(12, 1)) == "DistanceDependent"
    assert prior(texts(12, 1), prior="crp") == "CRP"
    assert prior([msgspec.structs.replace(r, time=None) for r in texts(12, 1)]) == "CRP"
    assert prior(vectors(12, 1)) == "CRP"


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


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "words": (texts, {"decay_scale": 12.0, "concentration": 1.0}),
    "words, none forgotten": (texts, {"prior": "crp"}),
    "words in a window": (texts, {"decay": "window", "decay_scale": 9.0, "concentration": 1.0}),
    "words and vectors": (embedded, {"prior": "crp", **BESIDE}),
    "vectors": (
        vectors,
        {"warmup": 20, "likelihood": "normal-inverse-gamma", "forget": 1.0, "decay_scale": 30.0},
    ),
    "vectors, none forgotten": (
        vectors,
        {"warmup": 20, "likelihood": "normal-inverse-gamma", "prior": "crp", "forget": 1.0},
    ),
}


def split_in_two(kind: str, beam: int) -> tuple[Task, Task, int]:
    """What there is to refine of one stream where 40 of 100 records are held, and where all are."""
    maker, given = KINDS[kind]
    tasks = []
    for retain in (40, 5000):
        engine = Engine(Settings(beam=beam, retain=retain, **given))
        engine.advance(maker(100, 6))
        tasks.append(task_of(engine))
    return tasks[0], tasks[1], 60


@pytest.mark.parametrize("beam", [1, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_older_records_are_what_clusters_hold_of_them(kind: str, beam: int) -> None:
    some, whole, first = split_in_two(kind, beam)
    anchors, data = some.problem.anchors, whole.problem.data
    assert anchors is not None
    free = np.isin(whole.seqs, some.seqs)
    assert free[:first].sum() == 0
    np.testing.assert_array_equal(some.before, whole.before[free])
    labels = whole.before[:first]
    for k, label in enumerate(some.names.tolist()):
        members = np.flatnonzero(labels == label)
        assert anchors.sizes[k] == len(members) > 0
        if data.sparse:
            held, ours = data.take(members), anchors.words.take(np.array([k]))
            total = np.bincount(held.words, held.counts)
            assert ours.counts.tolist() == total[ours.words].tolist()
            assert ours.counts.sum() == total.sum()
        family = some.problem.likelihood.vector
        if family is not None:
            assert anchors.rows is not None
            assert data.vectors is not None
            members = members[~np.isnan(data.vectors[members, 0])]
            statistics = empty(family)
            for i in members:
                add(family, statistics, data.vectors[i])
            near = 1e-6 if data.vectors.dtype == np.float32 else 1e-9  # their lengths are one as nearly
            np.testing.assert_allclose(anchors.rows[k], statistics.row, rtol=near, atol=near)
    # those of clusters that are gone
    stay = ~free[first:]
    assert not np.isin(whole.before[first:][stay], some.names).any()


@pytest.mark.parametrize("kind", ["words", "words, none forgotten", "vectors", "vectors, none forgotten"])
def test_what_is_compared_is_the_joint_given_older_records(kind: str) -> None:
    some, whole, _ = split_in_two(kind, 1)
    free = np.isin(whole.seqs, some.seqs)
    chain = some.problem.chain(0, some.start)

    def joint(labels: np.ndarray) -> float:
        return whole.problem.chain(0, labels).log_joint

    other = whole.before.copy()
    place = np.flatnonzero(free)[-1]
    target = int(some.names[0]) if other[place] != some.names[0] else int(some.names[-1])
    other[place] = target
    moved = some.start.copy()
    moved[-1] = some.names.tolist().index(target)
    before = chain.log_joint
    chain.set_labels(moved)
    expected = joint(other) - joint(whole.before)
    assert chain.log_joint - before == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_let_records_go_is_refined(kind: str) -> None:
    maker, given = KINDS[kind]
    engine = Engine(Settings(beam=1, retain=40, **given))
    engine.advance(maker(100, 6))
    before = engine.dumps()
    found = refine(engine, SHORT)
    assert engine.dumps() == before
    assert found.log_joint >= found.started - 1e-9
    assert any("can move" in note for note in found.task.notes)
    told = dict(zip(found.task.seqs.tolist(), found.task.before.tolist(), strict=True))
    for change in found.changes:
        assert told[change.seq] == change.was != change.cluster
        assert change.seq >= 60
    with pytest.raises(ValueError, match="has let older ones go"):
        found.to_engine()
    with pytest.raises(ConfigError, match="needs all records"):
        refine(engine, Plan(method="beam"))
    with pytest.raises(ConfigError, match="needs all records"):
        refine(engine, Plan(rounds=2, seconds=None))


def test_vectors_that_a_stream_forgot_are_frozen_as_they_counted() -> None:
    engine = Engine(Settings(beam=1, retain=40, warmup=20, likelihood="normal-inverse-gamma"))
    records = vectors(100, 6)
    engine.advance(records[:60])
    early = engine.clusters()
    engine.advance(records[60:])
    task = task_of(engine)
    anchors = task.problem.anchors
    assert anchors is not None
    assert anchors.rows is not None
    counted = {cluster.cluster: cluster.size for cluster in early}
    mean = {c.cluster: c.mean for c in early}
    for k, label in enumerate(task.names.tolist()):
        assert anchors.sizes[k] == counted[label]
        assert anchors.rows[k][0] <= counted[label] + 1e-9
        found = task.problem.likelihood.centre(anchors.rows[k])  # type: ignore[attr-defined]
        np.testing.assert_allclose(found, mean[label], atol=1e-6)
    assert refine(engine, SHORT).log_joint >= -math.inf
    full = Engine(Settings(beam=1, retain=40, warmup=20, likelihood="normal-inverse-wishart", forget=0.9))
    full.advance(records)
    with pytest.raises(ValueError, match="cannot be told"):
        refine(full, SHORT)
