"""Refinement inside a running stream: what is adopted, and that nothing depends on batches or threads."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from algebra import add, empty
from commands import call
from feeds import Told, feed, headlines, nothing, record, texts, vectors

from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.sizes import Sizes
from streamdp.beam.looks.moves import Moves, apply, head_by_label
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods import VectorFamily, WordFamily
from streamdp.offline import passes
from streamdp.offline.adopt import Proposal, better, prepared
from streamdp.offline.task import Stream
from streamdp.records import Record
from streamdp.settings import Settings

PRIORS: dict[str, dict[str, Any]] = {
    "crp": {"prior": "crp"},
    "pitman-yor": {"prior": "pitman-yor", "discount": 0.3},
    "uniform": {"prior": "uniform"},
    "exponential": {"decay_scale": 150.0, "concentration": 2.0},
    "window": {"decay": "window", "decay_scale": 300.0, "concentration": 2.0},
    "logistic": {"decay": "logistic", "decay_scale": 200.0, "concentration": 2.0},
    "seconds": {"distance": "seconds", "decay_scale": 80.0, "concentration": 2.0},
}
OFTEN: dict[str, Any] = {
    "refine_every": 512,
    "retain": 1024,
    "refine_moves": 10000,
    "beam": 4,
    "stop_words": "none",
}
"""With stop words, so that there is something to mend."""


def points(n: int, seed: int) -> list[Record]:
    """Points around thirty centres that touch."""
    rng = np.random.default_rng(seed)
    rows = 1.5 * rng.normal(size=(30, 8))[rng.integers(0, 30, n)] + rng.normal(size=(n, 8))
    return [record(row, i + 1, float(i)) for i, row in enumerate(rows.tolist())]


def refining(**settings: Any) -> Engine:
    return Engine(Settings(**{**OFTEN, **settings}), with_events=True)


def adopted(engine: Engine) -> int:
    return int(engine.refined()["refinements_adopted"])


def stream_of(engine: Engine) -> Stream:
    stream = engine.stream()
    assert stream is not None
    return stream


def check(engine: Engine, newest: list[int], records: list[Record]) -> None:
    """The statistics, sizes and weights of the clusters are those of the records that have their labels."""
    stream = stream_of(engine)
    search, batch = stream.search, stream.held.batch
    pool, rows, family = search.state.pool, search.state.lineages.rows, search.likelihood
    if isinstance(family, WordFamily):
        check_classes(search.state.sizes)
    labels = np.array(newest)
    if stream.held.first == 0:
        assert stream.held.labels.tolist() == newest
    for slot in np.flatnonzero((pool.state == ALIVE) & (pool.column < 0)).tolist():
        own = np.flatnonzero(labels == rows["label"][pool.slots["lineage"][slot]])
        assert int(pool.slots["size"][slot]) == len(own) > 0
        assert int(pool.slots["last"][slot]) == own[-1]
        if stream.held.first > 0:
            continue
        assert float(pool.slots["first_time"][slot]) == records[own[0]].time
        assert pool.weight[slot] * search.state.beam.counters.scale == pytest.approx(
            weight(engine, own), rel=1e-9
        )
        expected: Any = empty(family)
        if isinstance(family, VectorFamily):
            assert batch.vectors is not None
            for i in own.tolist():
                add(family, expected, batch.vectors[i])
            assert search.state.clusters.rows.block[slot] == pytest.approx(expected.row, rel=1e-8, abs=1e-8)
        else:
            index = search.words.inverted
            begin, types = int(index.own["start"][slot]), int(index.types[slot])
            words = index.word[begin : begin + types]
            counts = index.occurrences[index.lists["start"][words] + index.where[begin : begin + types]]
            for i in own.tolist():
                a, b = batch.offsets[i : i + 2]
                add(family, expected, (batch.words[a:b], batch.counts[a:b]))
            assert isinstance(family, WordFamily)
            assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == expected.counts


def check_classes(sizes: Sizes) -> None:
    """Every size class knows how many slots are in it."""
    held = np.bincount(sizes.of[sizes.of > 0], minlength=len(sizes.classes))
    assert sizes.classes["refs"][1:].tolist() == held[1:].tolist()


def weight(engine: Engine, own: np.ndarray) -> float:
    """Of a cluster of these records, now: by the prior's own rule."""
    search = stream_of(engine).search
    terms, now = search.model.prior, float(search.state.beam.counters.now)
    decay = getattr(terms, "decay", None)
    if decay is None:
        return len(own) - getattr(terms, "discount", len(own) - 1.0)
    from streamdp.settings.assemble import build_prior

    prior: Any = build_prior(engine.settings, sparse=True)
    return float(sum(prior.decay(max(now - i, 0.0)) for i in own.tolist()))


@pytest.mark.parametrize("name", [name for name in PRIORS if name != "seconds"])
def test_statistics_are_those_of_the_records(name: str) -> None:
    records = texts(2600, 3, 40)
    engine = refining(retain=4000, close_below=0.0, second_look=0, **PRIORS[name])
    told = feed(engine, records)
    assert adopted(engine) > 0
    check(engine, told.newest(), records)


def test_statistics_of_vectors_are_those_of_the_records() -> None:
    """Of a scale that is given, so that no look leaves a refinement little to do."""
    records, given = points(2600, 1), {"likelihood": "normal-inverse-gamma", "scale": 1.0}
    engine = refining(retain=4000, prior="crp", beam=1, forget=1.0, **given)
    told = feed(engine, records)
    assert adopted(engine) > 0
    check(engine, told.newest(), records)


def test_vectors_that_are_forgotten_move_as_if_each_had_come_where_it_is() -> None:
    """Of the clusters concerned all is forgotten anew, in the order of their records."""
    stream = of_vectors(4000)
    held, search = stream.held, stream.search
    names, counts = np.unique(held.labels, return_counts=True)
    one, other = names[np.argsort(-counts)[:2]].tolist()
    chosen = np.flatnonzero(held.labels == one)[5:40:2]
    was, into = np.full(len(chosen), one), np.full(len(chosen), other)
    moves = Moves(held.first + chosen, was, into, np.ones(len(chosen)), len(names) + 1000)
    for _ in apply(search, held, moves, with_events=True):
        pass
    assert (held.labels[chosen] == other).all()
    assert held.batch.vectors is not None
    rows = search.state.clusters.rows.block
    slots = dict(map(reversed, heads(stream)))  # type: ignore[arg-type]
    for label in (one, other):
        row: Any = empty(search.likelihood)
        for i in np.flatnonzero(held.labels == label).tolist():
            add(search.likelihood, row, held.batch.vectors[i])
        assert rows[slots[label]] == pytest.approx(row.row, rel=1e-8, abs=1e-8)


def test_passes_found_no_clusters_of_vectors_that_are_looked_at() -> None:
    engine = Engine(Settings(beam=1, retain=2000))
    rng = np.random.default_rng(3)
    rows = 6.0 * rng.normal(size=(4, 3))[rng.integers(0, 4, 800)] + rng.standard_t(2.0, size=(800, 3))
    told = feed(engine, [record(row, i + 1, float(i)) for i, row in enumerate(rows.tolist())])
    told.add(engine.finish())
    stream = stream_of(engine)
    proposal = passes.search_pass(passes.task_of_pass(stream, 1), 10)
    assert (proposal.labels < proposal.minted).all()
    free = passes.search_pass(passes.task_of_pass(stream._replace(looked_at=False), 1), 10)
    assert (free.labels >= free.minted).any()


def test_vectors_that_are_forgotten_leave_no_cluster_that_has_older_ones() -> None:
    stream = of_vectors(1024)
    held, sizes = stream.held, stream.search.state.pool.slots["size"]
    older = [label for slot, label in heads(stream) if sizes[slot] > (held.labels == label).sum()]
    assert older
    stays = set((held.first + np.flatnonzero(np.isin(held.labels, older))).tolist())
    assert set(prepared(stream).fixed.tolist()) == stays
    some = np.array(sorted(stays)[:40])
    was = held.labels[some - held.first]
    into = np.where(was == older[0], older[1], older[0])
    moves = Proposal(some, was, into, np.ones(len(some)), int(held.labels.max()) + 1)
    assert better(stream, moves) is None


def of_vectors(retain: int) -> Stream:
    """A stream of vectors that clusters forget, and that looks have united."""
    engine = refining(retain=retain, refine_every=0, beam=1)
    feed(engine, points(1500, 1))
    stream = stream_of(engine)
    assert stream.looked_at
    return stream


def heads(stream: Stream) -> list[tuple[int, int]]:
    """Slots and labels of the open clusters."""
    names, slots = head_by_label(stream.search)
    return list(zip(slots.tolist(), names.tolist(), strict=True))


@pytest.mark.parametrize("name", PRIORS)
def test_sizes_where_records_have_been_let_go(name: str) -> None:
    """With second looks beside it, closing and expiring clusters, and alternatives in the beam."""
    records = texts(4000, 5, 60)
    engine = refining(retain=2048, beam=16, **PRIORS[name])
    told = feed(engine, records)
    assert adopted(engine) > 0
    check(engine, told.newest(), records)
    story_holds(told)


def story_holds(told: Told) -> None:
    """What has ended is never heard of again, and what is new has split off from something."""
    ended = {event.cluster: event.seq for event in told.events if event.event in ("merged", "vanished")}
    born = {event.cluster for event in told.events if event.event in ("born", "split")}
    for line in told.assignments():
        assert line.cluster in born
    for label in told.newest():
        assert label not in ended
    assert {"merged", "split"} <= {event.event for event in told.events}


def outcome(engine: Engine, told: Told) -> tuple[Any, ...]:
    return told.encoded(), engine.dumps()


def test_nothing_depends_on_batches_threads_or_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    records = headlines(4000, 1)
    settings: dict[str, Any] = {"refine_every": 1100, "retain": 2000, "second_look": 0}  # looks leave nothing
    engine = refining(**settings)
    told = feed(engine, records)
    expected = outcome(engine, told)
    assert adopted(engine) > 1

    rng, quick = random.Random(2), passes.search_pass

    def slow(*arguments: Any) -> Proposal:
        time.sleep(rng.choice([0.0, 0.2]))
        return quick(*arguments)

    monkeypatch.setattr(passes, "search_pass", slow)
    engine, told = refining(**settings), nothing()
    cuts = sorted(rng.sample(range(1, 4000), 30))
    for start, stop in itertools.pairwise([0, *cuts, 4000]):
        told.add(engine.advance(records[start:stop]))
        if rng.random() < 0.5:
            engine = Engine.loads(engine.dumps(), engine.settings, with_events=True)
    assert outcome(engine, told) == expected


def test_a_snapshot_holds_a_pass_that_is_under_way() -> None:
    records = headlines(2300, 2)
    engine = refining(refine_every=1024, retain=2000)
    engine.advance(records[:1100])
    again = Engine.loads(engine.dumps(), engine.settings, with_events=True)
    assert again.dumps() == engine.dumps()
    assert adopted(again) == 0
    assert again.advance(records[1100:]).lines == engine.advance(records[1100:]).lines
    assert adopted(again) == adopted(engine) == 1


@pytest.mark.parametrize(
    ("name", "retain"),
    [
        ("uniform", 2000),  # the greedy answer is better than any draw where older records are frozen
        *itertools.product(("crp", "exponential", "window", "seconds"), (1024, 2000)),
    ],
)
def test_the_log_joint_is_as_much_higher_as_is_said(name: str, retain: int) -> None:
    engine = refining(
        refine_every=retain, retain=retain, second_look=0, beam=1, base_concentration=30.0, **PRIORS[name]
    )
    engine.advance(texts(1400, 5, 60))
    stream = stream_of(engine)
    task = passes.task_of_pass(stream, 1)
    proposals = (passes.search_pass(task, rounds) for rounds in (10, 20, 40, 5, 3, 2))
    moves = next(filter(None, (better(stream, each) for each in proposals)))
    before, joint = task.log_joint(task.before), engine.log_joint
    labels = dict(zip(moves.seqs.tolist(), moves.labels.tolist(), strict=True))
    after = np.array(
        [labels.get(s, b) for s, b in zip(task.seqs.tolist(), task.before.tolist(), strict=True)]
    )
    assert moves.nats == pytest.approx(task.log_joint(after) - before, abs=1e-6)
    revised = set()
    for out in apply(stream.search, stream.held, moves, with_events=True):
        rows = out.revisions[: int(out.counters.revisions)]
        revised |= set(rows["seq"].tolist())
        for row in rows:
            assert labels[int(row["seq"])] == row["label"]
            assert 0.0 < row["probability"] <= 1.0
    assert revised == set(labels)
    assert engine.log_joint == pytest.approx(joint + moves.nats, abs=1e-6)


def test_what_has_changed_since_is_left_alone() -> None:
    engine = refining(retain=2000, second_look=0)
    engine.advance(headlines(1400, 5))
    stream = stream_of(engine)
    proposal = passes.search_pass(passes.task_of_pass(stream, 1), 10)
    assert len(proposal.seqs)
    moved = proposal._replace(was=proposal.was + 1)
    assert better(stream, moved) is None
    closed = proposal._replace(labels=np.full(len(proposal.labels), -7))
    assert better(stream, closed) is None


def test_async_adopts_sooner_or_later() -> None:
    engine = refining(refine="async", retain=2000, second_look=0)
    told, records = nothing(), headlines(6000, 3)
    for start in range(0, len(records), 100):
        told.add(engine.advance(records[start : start + 100]))
        time.sleep(0.005)
    told.add(engine.finish())
    assert adopted(engine) > 0
    story_holds(told)


def test_the_end_of_a_stream_is_refined_too() -> None:
    engine = refining(retain=2000)
    told = feed(engine, headlines(500, 1))
    assert engine.refined()["refinements"] == 0
    told.add(engine.finish())
    assert engine.refined()["refinements"] == 1
    assert engine.refined()["refinement_moves"] >= 2000


def test_a_run_that_has_refined_vectors_warns_of_it(tmp_path: Path) -> None:
    lines = [json.dumps({"vector": item.value}) for item in points(600, 3)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    given = "--file", "in.jsonl", "--output", "out", "--refine-every"
    warning = b"compare with --refine-every 0"
    assert warning in call(tmp_path, "consume", *given, "512").stderr
    (tmp_path / "out").unlink()
    assert warning not in call(tmp_path, "consume", *given, "0").stderr


def test_only_final_answers_know_of_it() -> None:
    records = headlines(1500, 2)
    plain = refining(retain=2000)
    told = feed(plain, records)
    told.add(plain.finish())
    settled = Engine(plain.settings, final_only=True)
    once = feed(settled, records)
    once.add(settled.finish())
    assert [line.cluster for line in once.assignments()] == told.newest()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"refine_every": 500, "retain": 100},
            "refine_every: it is more than the records that --retain keeps",
        ),
        (
            {"refine_every": 500, "forget": 0.9, "likelihood": "gaussian", "variance": 1.0},
            "refine_every: it takes vectors",
        ),
    ],
)
def test_what_cannot_be_refined_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Engine(Settings(**settings))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_vectors_that_looks_leave_beyond_a_window_can_be_refined() -> None:
    """Their log p(z) was -inf before and after: the difference was not a number, and warned of."""
    window: dict[str, Any] = {"warmup": 10, "decay": "window", "decay_scale": 7.0}
    engine = Engine(Settings(**window, refine_every=100))
    engine.advance(vectors(300, 3))
    engine.finish()
    assert math.isfinite(engine.nats_gained)
