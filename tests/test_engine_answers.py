"""What the engine says over time agrees with what it holds: labels, revisions, finality, clusters."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from engine_cases import CASES, case
from feeds import Told, feed, nothing, record, texts, vectors
from oracle.enumeration import founders_of
from streams import history

from streamdp.engine import Engine
from streamdp.records import Assignment, Final, Record
from streamdp.settings import Settings


def check_lines(told: Told) -> int:
    """Probabilities, counting revisions, links back, finality never taken back; how many were revised."""
    revisions: dict[int, int] = {}
    once: dict[int, tuple[float, float, float]] = {}
    final = last = -1
    for line in told.lines:
        if isinstance(line, Final):
            assert final < line.final_through <= last
            final = line.final_through
            continue
        assert 0.0 <= line.probability <= 1.0
        assert 0.0 <= line.new_probability <= 1.0
        assert line.log_predictive == line.log_predictive
        unrevised = line.new_probability, line.log_predictive, line.novelty
        assert line.link is None or (line.link < line.seq and not line.new)
        if line.revision == 0:
            assert line.seq == last + 1
            last = line.seq
            once[line.seq] = unrevised
            if line.new:
                assert line.probability == line.new_probability
            else:
                assert line.probability + line.new_probability <= 1.0 + 1.1e-6  # six decimals each
        else:
            assert line.seq > final
            assert line.revision == revisions[line.seq] + 1
            assert unrevised == once[line.seq]
        revisions[line.seq] = line.revision
    return sum(1 for count in revisions.values() if count)


@pytest.mark.parametrize("name", CASES)
def test_labels_as_revised_are_the_best_clustering(name: str) -> None:
    """After every record the newest labels describe the head; the retained labels are the newest."""
    keep = 0 if name == "nothing retained" else 25
    settings, maker = case(name, retain=keep)
    engine = Engine(settings)
    told = nothing()
    for item in maker(150, 7):
        told.add(engine.advance([item]))
        search = engine.search
        if search is None:
            continue
        newest = told.newest()
        founders = history(search, search.head)
        assert sorted(founders) == list(range(search.decided + 1, engine.seq))
        undecided = [newest[seq] for seq in sorted(founders)]
        assert founders_of(undecided) == founders_of([founders[seq] for seq in sorted(founders)])
        assert all(newest[seq] == newest[founder] for seq, founder in founders.items())
        kept = engine.retained()
        assert (kept is None) == (keep == 0)
        if kept is None:
            continue
        assert (kept.first, len(kept.labels)) == (max(engine.seq - 25, 0), min(engine.seq, 25))
        assert kept.labels.tolist() == newest[-25:]
        assert kept.batch.size == len(kept.labels)
    told.add(engine.finish())
    check_lines(told)
    last = told.lines[-1]
    assert isinstance(last, Final)
    assert last.final_through == 149


def test_revisions_happen() -> None:
    """Or the tests above would prove little."""
    settings = Settings(prior="crp", likelihood="dirichlet-multinomial", beta=0.3, slack=50.0, beam=16)
    assert sum(check_lines(feed(Engine(settings), texts(400, seed))) for seed in range(3)) > 20


@pytest.mark.parametrize("name", ["crp", "vectors"])
def test_a_record_that_is_only_scored_is_answered_like_the_next(name: str) -> None:
    settings, maker = case(name)
    engine, between = Engine(settings), 0
    records = maker(90, 4)
    engine.advance(records[:30])
    for item in records[30:]:
        (asked,) = engine.score([item]).lines
        (line,) = (x for x in engine.advance([item]).lines if isinstance(x, Assignment) and not x.revision)
        assert isinstance(asked, Assignment)
        for field in ("probability", "new_probability", "log_predictive", "novelty"):
            assert getattr(asked, field) == pytest.approx(getattr(line, field), abs=2e-6)
        between += 0.001 < line.new_probability < 0.999
    assert between


def test_novelty_is_surprise_by_token_or_dimension() -> None:
    said = ["rain", "rain rain rain wind", "rain wind", "a rain b storm"]
    records = [record(text, i + 1) for i, text in enumerate(said)]
    lines = feed(Engine(case("crp")[0]), records).first()
    lines += feed(Engine(case("vectors")[0]), vectors(30, 1)).first()
    sizes = [1, 4, 2, 2] + [3] * 30
    assert [line.novelty for line in lines] == pytest.approx(
        [-line.log_predictive / size for line, size in zip(lines, sizes, strict=True)], abs=1e-6
    )


@pytest.mark.parametrize("name", CASES)
def test_final_only_is_the_newest_of_each_record(name: str) -> None:
    settings, maker = case(name)
    records = maker(150, 9)
    full, short = Engine(settings), Engine(settings, final_only=True)
    everything, final = feed(full, records), feed(short, records)
    assert short.dumps()  # undecided answers are part of the state
    everything.add(full.finish())
    final.add(short.finish())
    newest = {line.seq: line for line in everything.assignments()}
    assert final.lines == [newest[seq] for seq in range(150)]


@pytest.mark.parametrize("name", ["crp", "window", "vectors", "gaussian"])
def test_clusters_at_the_end_agree_with_the_labels(name: str) -> None:
    settings, maker = case(name)
    engine = Engine(settings)
    newest = feed(engine, maker(150, 3)).newest()
    clusters = engine.clusters()
    assert clusters
    sizes = [c.size for c in clusters]
    assert sizes == sorted(sizes, reverse=True)
    for cluster in clusters:
        assert cluster.size == newest.count(cluster.cluster)
        assert cluster.last_seq == max(seq for seq, label in enumerate(newest) if label == cluster.cluster)


@pytest.mark.parametrize("final_only", [False, True])
@pytest.mark.parametrize("name", ["window", "embedded", "vectors"])
def test_answers_say_the_same_whenever_they_are_read(name: str, final_only: bool) -> None:
    """At once, later and backwards, in another thread, from a copy, while others are read by nobody."""
    settings, maker = case(name, retain=25)
    items = maker(200, 3)
    engine = Engine(settings, final_only=final_only)
    said = [engine.advance([item]).lines.encode() for item in items]
    rest, state = engine.finish().lines.encode(), engine.dumps()
    assert sum(map(len, said)) + len(rest) > 0

    later = Engine(settings, final_only=final_only)
    answers = [later.advance([item]) for item in items]
    assert [each.lines.encode() for each in reversed(answers)] == said[::-1]
    assert (later.finish().lines.encode(), later.dumps()) == (rest, state)

    copied = Engine(settings, final_only=final_only)
    found = [pickle.loads(pickle.dumps(copied.advance([item]).lines)).encode() for item in items]
    assert found == said

    busy, kept = Engine(settings, final_only=final_only), {}
    with ThreadPoolExecutor(2) as pool:
        for i, item in enumerate(items):
            lines = busy.advance([item]).lines
            if i % 3:
                kept[i] = pool.submit(lines.encode)
    assert {i: each.result() for i, each in kept.items()} == {i: said[i] for i in kept}
    assert (busy.finish().lines.encode(), busy.dumps()) == (rest, state)


def test_large_texts_do_not_wait_to_be_written_down() -> None:
    """Many would hold much memory: they are let go of, though nobody reads their answers."""
    engine = Engine(Settings(prior="crp"))
    engine.advance(["storm over the coast"])
    text = "coast storm" + " " * 300_000
    before = sys.getrefcount(text)
    engine.advance([Record(text)])
    assert sys.getrefcount(text) == before


@pytest.mark.parametrize("name", ["crp", "vectors", "categories", "nothing retained"])
def test_newest_is_what_the_lines_came_to(name: str) -> None:
    settings, maker = case(name)
    engine = Engine(settings)
    told = feed(engine, maker(120, 5))
    newest = {line.seq: line.cluster for line in told.lines if isinstance(line, Assignment)}
    found = engine.newest()
    assert list(found) == list(range(engine.seq - len(found), engine.seq))
    assert len(found) >= min(engine.seq, settings.retain)
    assert found.items() <= newest.items()


def test_newest_has_the_latest_records_alone() -> None:
    engine = Engine(retain=512)
    assert engine.newest() == {}
    engine.advance(["storm over the coast", "", *(f"storm {n} hits the coast" for n in range(1_000))])
    assert 512 <= len(engine.newest()) < 1_001
    assert max(engine.newest()) == engine.seq - 1 == 1_000
