"""Whole clusters made one beside frozen records, against the joint of all records in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from feeds import BESIDE, embedded, record, texts, vectors
from oracle import enumeration, priors
from posterior import FAMILIES, PRIORS, Problem, problem_of

from streamdp.beam.looks.second_look import LEAST_GAIN
from streamdp.engine import Engine
from streamdp.offline.anchors import Anchors
from streamdp.offline.chain import Chain
from streamdp.offline.plan import Plan
from streamdp.offline.refine import refine, task_of
from streamdp.offline.task import Merged, Task
from streamdp.offline.unite import _Pairs, unite
from streamdp.records import Record
from streamdp.settings import Settings

N, OLD = 7, 4
NEAR = 1e-6
"""Nats; samplers keep directions in single precision."""
ORACLE: dict[str, Any] = {
    "crp": priors.CRP(0.9),
    "pitman_yor": priors.PitmanYor(0.6, 0.35),
    "finite": priors.FiniteMixture(4, 1.7),
    "uniform": priors.Uniform(0.8),
    "window": priors.DistanceDependent(0.7, priors.Window(3.0), "records"),
    "exponential": priors.DistanceDependent(0.7, priors.Exponential(2.0), "records", close_below=0.0),
    "logistic": priors.DistanceDependent(0.7, priors.Logistic(2.0), "records", close_below=0.0),
    "seconds": priors.DistanceDependent(0.7, priors.Exponential(2.0), "seconds", close_below=0.0),
}


def joint(problem: Problem, prior: str, labels: list[int]) -> float:
    """log p(z, x) of all records."""
    z = enumeration.founders_of(labels)
    log_prior = enumeration.log_prior(z, problem.data.times.tolist(), ORACLE[prior])
    return log_prior + problem.log_likelihood(labels)


def clusterings(problem: Problem, prior: str, every: int = 1) -> Iterator[tuple[tuple[int, ...], Chain]]:
    """Clusterings of all records, and chains at them whose first ``OLD`` records are frozen.

    Those that the prior allows, and of them each ``every``-th.
    """
    for old in enumeration.restricted_growth_strings(OLD):
        chain = problem.beside(old, PRIORS[prior], lumped=prior in ("exponential", "seconds"))
        for n, z in enumerate(enumeration.restricted_growth_strings(N)):
            if z[:OLD] != old or n % every or joint(problem, prior, list(z)) == -math.inf:
                continue
            chain.set_labels(np.array(z[OLD:]))
            yield z, chain


def gains(chain: Chain) -> np.ndarray:
    """By pair of clusters, as they are weighed: shape (A, K)."""
    return _Pairs(chain).all(chain)


def one(z: tuple[int, ...], a: int, b: int) -> list[int]:
    """A clustering with cluster b in cluster a."""
    return [a if k == b else k for k in z]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", ["hierarchical_pitman_yor", "gamma"])
def test_a_union_gains_what_the_joint_of_all_records_says(family: str, prior: str) -> None:
    problem, seen = problem_of(family, N), 0
    for z, chain in clusterings(problem, prior, every=3):
        found, before = gains(chain), joint(problem, prior, list(z))
        assert found.shape == (max(z[:OLD]) + 1, max(z) + 1)
        for a, b in itertools.combinations(range(max(z) + 1), 2):
            if a < chain.held:
                assert found[a, b] == pytest.approx(joint(problem, prior, one(z, a, b)) - before, abs=1e-9)
                seen += 1
    assert seen > 100


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_unions_are_made_until_none_is_better(family: str, prior: str) -> None:
    problem, done, kept = problem_of(family, N), 0, 0
    for z, chain in clusterings(problem, prior, every=11):
        names = np.arange(max(z) + 1)[::-1]  # so that of two clusters the one of the larger number is older
        before, start = chain.labels.tolist(), joint(problem, prior, list(z))
        left, unions = unite(chain, names)
        assert chain.labels.tolist() == before
        for union in unions:
            at = joint(problem, prior, list(z))
            pairs = [p for p in itertools.permutations(sorted(set(z)), 2) if min(p) < chain.held]
            better = [joint(problem, prior, one(z, *pair)) - at for pair in pairs]
            assert union.nats == pytest.approx(max(better), abs=NEAR)
            assert union.size == z.count(union.gone)
            assert union.into < chain.held
            assert names[union.into] < names[union.gone] or union.gone >= chain.held
            z = tuple(one(z, union.into, union.gone))
            assert joint(problem, prior, list(z)) - at == pytest.approx(union.nats, abs=NEAR)
        end = joint(problem, prior, list(z))
        for a, b in itertools.permutations(sorted(set(z)), 2):
            assert min(a, b) >= chain.held or joint(problem, prior, one(z, a, b)) - end <= LEAST_GAIN
        assert sum(union.nats for union in unions) == pytest.approx(end - start, abs=NEAR)
        assert left.clusters == len(set(z))
        check_statistics(problem, left, z)
        done, kept = done + len(unions), kept + (not unions)
    assert done > 0
    assert kept > 0


def check_statistics(problem: Problem, chain: Chain, z: tuple[int, ...]) -> None:
    """A chain's clusters are those of a clustering of all records."""
    sizes = sorted(z.count(k) for k in set(z))
    assert sorted(chain.sizes.tolist()) == sizes
    together = chain.log_likelihood + float(chain.allocation.counters.frozen)
    assert together == pytest.approx(problem.log_likelihood(z), abs=NEAR)


def test_without_frozen_records_there_is_nothing_to_unite() -> None:
    chain = problem_of("gamma", N).chain(PRIORS["crp"])
    left, unions = unite(chain, np.arange(N))
    assert left is chain
    assert unions == []


# ---------------------------------------------------------------- of streams

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "words": (texts, {"prior": "crp"}),
    "words, uniform": (texts, {"prior": "uniform"}),
    "words, Pitman-Yor": (texts, {"prior": "pitman-yor", "discount": 0.3}),
    "words and vectors": (embedded, {"prior": "crp", "vector_weight": 1.0, "concentration": 9.0, **BESIDE}),
    "vectors": (
        vectors,
        {"warmup": 20, "likelihood": "normal-inverse-gamma", "prior": "crp", "forget": 1.0},
    ),
}


def tasks(kind: str, retain: int = 40) -> tuple[Task, Task]:
    """What there is to refine of one stream where its last records are held, and where all are."""
    maker, given = KINDS[kind]
    found = []
    for held in (retain, 5000):
        engine = Engine(Settings(beam=1, retain=held, second_look=0, **given))
        engine.advance(maker(100, 6))
        found.append(task_of(engine))
    return found[0], found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_stream_it_is_the_joint_of_all_its_records(kind: str) -> None:
    some, whole = tasks(kind)
    chain = some.problem.chain(0, some.start)
    found, before = gains(chain), whole.log_joint(whole.before)
    held = some.names.tolist()
    assert len(held) > 1
    for a, b in itertools.combinations(range(len(held)), 2):
        labels = np.where(whole.before == held[b], held[a], whole.before)
        assert found[a, b] == pytest.approx(whole.log_joint(labels) - before, abs=1e-6)


DECAYS: dict[str, dict[str, Any]] = {
    "exponential": {"decay_scale": 40.0},
    "window": {"decay": "window", "decay_scale": 40.0},
    "logistic": {"decay": "logistic", "decay_scale": 40.0},
    "seconds": {"distance": "seconds", "decay_scale": 20.0},
}


@pytest.mark.parametrize("decay", DECAYS)
def test_what_a_stream_knows_of_when_older_records_came(decay: str) -> None:
    found = []
    for held in (8, 5000):
        engine = Engine(
            Settings(beam=1, retain=held, second_look=0, concentration=1.0, **DECAYS[decay])  # type: ignore[arg-type]
        )
        engine.advance(texts(300, 1, 30))
        found.append(task_of(engine))
    some, whole = found
    anchors, first = some.problem.anchors, 292
    assert anchors is not None
    assert anchors.past is not None
    times = whole.problem.data.times
    assert times is not None
    places = times if decay == "seconds" else np.arange(300.0)
    known = 0
    for k, label in enumerate(some.names.tolist()):
        told = anchors.past.of_cluster(k)
        true = places[np.flatnonzero(whole.before[:first] == label)]
        assert len(told) == len(true) == anchors.sizes[k]
        assert told[0] == true[0]
        assert (np.diff(told) >= 0.0).all()
        assert told[-1] <= places[first]
        if label not in some.before and len(true) > 1:
            assert told[-1] == true[-1]
            known += 1
    assert known > 0
    chain = some.problem.chain(0, some.start)
    weighed, before = gains(chain), whole.log_joint(whole.before)
    assert len(some.names) > 3
    for a, b in itertools.combinations(range(len(some.names)), 2):
        labels = np.where(whole.before == some.names[b], some.names[a], whole.before)
        # a logistic decay is never quite 0, so that every record is still known
        near = 1e-6 if decay == "logistic" else 5.0
        assert weighed[a, b] == pytest.approx(whole.log_joint(labels) - before, abs=near)


def halves(n: int) -> list[Record]:
    """Numbers around zero; those that come first let a greedy stream take them for two groups."""
    values = [*[-2.0, 2.0] * 5, *np.random.default_rng(3).normal(size=n - 10).tolist()]
    return [record([value], i + 1, float(i)) for i, value in enumerate(values)]


SPLIT = {"beam": 1, "likelihood": "gaussian", "variance": 1.0, "retain": 50, "prior": "crp", "forget": 1.0}
FEW = Plan(rounds=6, seconds=None, hyper=False)


def test_a_refinement_tells_of_clusters_that_are_one() -> None:
    engine = Engine(Settings(**SPLIT))  # type: ignore[arg-type]
    engine.advance(halves(400))
    sizes = {cluster.cluster: cluster.size for cluster in engine.clusters()}
    before = engine.dumps()
    found = refine(engine, FEW)
    assert engine.dumps() == before
    assert [(line.cluster, line.other) for line in found.merged] == [(1, 0)]
    line = found.merged[0]
    assert found.improved
    assert found.clusters == len(sizes) - 1
    assert line.nats > 50.0
    assert found.united >= line.nats
    assert found.log_joint == pytest.approx(found.solution.chain.log_joint + found.united)
    assert 1 not in found.labels
    moved = (found.task.before != found.labels) & (found.task.before != 1)
    assert [change.seq for change in found.changes] == found.task.seqs[moved].tolist()
    assert abs(line.size - sizes[1]) <= 50


@pytest.mark.parametrize("given", [{"prior": "crp"}, {"prior": "uniform"}, {"decay_scale": 40.0}], ids=str)
def test_what_is_told_is_where_every_record_is(given: dict[str, Any]) -> None:
    both = 0
    for seed in (2, 3, 5):
        engine = Engine(Settings(beam=1, retain=100, second_look=0, concentration=5.0, **given))
        engine.advance(texts(300, seed, 30))
        found = refine(engine, FEW)
        was = dict(zip(found.task.seqs.tolist(), found.task.before.tolist(), strict=True))
        labels = {seq: told(found.merged, label) for seq, label in was.items()}
        for change in found.changes:
            assert change.was == was[change.seq]
            assert change.cluster != labels[change.seq]
            labels[change.seq] = change.cluster
        assert list(labels.values()) == found.labels.tolist()
        for line in found.merged:
            assert line.cluster in found.task.names
            assert line.other in found.task.names
            assert line.other < line.cluster
            assert line.other == told(found.merged, line.other)
        both += bool(found.merged) and bool(found.changes)
    assert both > 0


def told(merged: tuple[Merged, ...], label: int) -> int:
    """The label that records of a cluster have from now on."""
    return next((line.other for line in merged if line.cluster == label), label)


def test_under_the_uniform_process_closed_clusters_are_in_the_way() -> None:
    engine = Engine(Settings(beam=1, retain=20, second_look=0, prior="uniform", retire_after=8))
    engine.advance(texts(60, 6))
    found = refine(engine, FEW)
    anchors: Anchors | None = found.task.problem.anchors
    assert anchors is not None
    assert anchors.closed > 0
    assert found.merged == ()
    assert found.united == 0.0
    assert any("no clusters of older records are merged" in note for note in found.task.notes)
