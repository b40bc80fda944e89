"""Thirty blobs in a stream: found as they come, told as it happens, the same however it is run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call, newest_lines, parsed, succeed, survives_sigkill
from feeds import feed, nothing, record, reloaded
from test_erase import left_of
from test_passes import check

from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Final, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import newest

BLOBS = 30
LASTING: dict[str, Any] = {"forget": 1.0, "retain": 4000}
"""Nothing is final and nothing is forgotten, so that statistics are those of all records."""


def blobs(n: int, seed: int, count: int = BLOBS) -> tuple[np.ndarray, np.ndarray]:
    """Points in two dimensions, and the blob of each; centres are about eight times their spread apart."""
    rng = np.random.default_rng(seed)
    places = np.array([(i % 6, i // 6) for i in range(count)])
    centres = 4.0 * places + rng.uniform(-1.0, 1.0, (count, 2))
    truth = rng.integers(0, count, n)
    return centres[truth] + 0.5 * rng.normal(size=(n, 2)), truth


def records_of(points: np.ndarray) -> list[Record]:
    return [record(row, i + 1, float(i)) for i, row in enumerate(points.tolist())]


def ari(labels: Sequence[int] | np.ndarray, truth: np.ndarray) -> float:
    return agreement(np.array(labels), truth).ari


def fewest(before: Sequence[int], after: Sequence[int]) -> int:
    """How many records have other labels at least, if each new cluster takes the best old name in turn.

    At most twice the fewest that there can be.
    """
    both = Counter(zip(before, after, strict=True))
    kept, used = 0, set()
    for (old, new), count in both.most_common():
        if ("old", old) not in used and ("new", new) not in used:
            used |= {("old", old), ("new", new)}
            kept += count
    return len(before) - kept


class Step:
    """One call of an engine: labels before and after it, and what it said."""

    def __init__(self, before: dict[int, int], answers: Answers) -> None:
        self.before, self.events = before, answers.events
        self.lines = [line for line in answers.lines if isinstance(line, Assignment)]
        self.final = max((x.final_through for x in answers.lines if isinstance(x, Final)), default=-1)
        self.revised = [line for line in self.lines if line.revision > 0]
        self.after, self.moved = dict(before), Counter[tuple[int, int]]()
        """``moved``: how many records went from one cluster to another."""
        for line in self.lines:
            if line.revision:
                self.moved[self.after[line.seq], line.cluster] += 1
            self.after[line.seq] = line.cluster


def steps_of(engine: Engine, records: list[Record], size: int) -> Iterator[Step]:
    """Each batch, and the end."""
    known: dict[int, int] = {}
    for at in range(0, len(records) + size, size):
        answers = engine.advance(records[at : at + size]) if at < len(records) else engine.finish()
        step = Step(known, answers)
        known = step.after
        yield step


@pytest.mark.parametrize("prior", ["distance-dependent", "crp"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_thirty_blobs_are_found(seed: int, prior: str) -> None:
    points, truth = blobs(2000, seed)
    engine = Engine(Settings(prior=prior))
    told = feed(engine, records_of(points))
    while_it_ran = told.newest()
    assert 25 <= len(set(while_it_ran)) <= 35
    assert ari(while_it_ran, truth) > 0.8
    told.add(engine.finish())
    assert 28 <= len(set(told.newest())) <= 32
    assert ari(told.newest(), truth) > 0.95


@pytest.mark.parametrize("likelihood", ["normal-inverse-wishart", "normal-inverse-gamma"])
def test_what_is_told_is_what_happened(likelihood: str) -> None:
    """Events name where records came from; revisions are told once; sizes and means are those of labels.

    One hypothesis alone revises nothing between looks.
    """
    points, _ = blobs(2000, 4)
    records = records_of(points)
    engine = Engine(Settings(likelihood=likelihood, prior="crp", beam=1, **LASTING), with_events=True)
    told, splits, looks = nothing(), 0, 0
    for step in steps_of(engine, records, 128):
        seqs = [line.seq for line in step.revised]
        assert len(seqs) == len(set(seqs))
        assert all(old != new for old, new in step.moved)
        for event in step.events:
            if event.event == "split":
                came = {old: count for (old, new), count in step.moved.items() if new == event.cluster}
                assert dict(event.moved or ()) == came
                assert event.size == sum(came.values())
                splits += 1
            if event.event in {"merged", "vanished"}:
                assert event.cluster not in step.after.values()
        born = {event.cluster for event in step.events if event.event in {"born", "split"}}
        assert set(step.after.values()) <= set(step.before.values()) | born
        looks += bool(seqs)
        told.lines.extend(step.lines)
        labels = told.newest()
        held = engine.retained()
        assert (held.labels.tolist() if held else []) == labels
        assert {c.cluster: c.size for c in engine.clusters()} == dict(Counter(labels))
    assert looks >= 3
    assert splits >= 5
    check(engine, labels, records)
    for cluster in engine.clusters():
        own = points[np.array(labels) == cluster.cluster]
        assert cluster.mean == pytest.approx(own.mean(axis=0).tolist(), abs=1e-8)


def test_labels_change_only_where_clusters_do() -> None:
    """Clusters that come out of a look as they went in keep their names, and so do the larger parts."""
    points, _ = blobs(2600, 0)
    engine, told = Engine(Settings(retain=4000), with_events=True), 0
    for step in steps_of(engine, records_of(points), 128):
        before = [*step.before.values()]
        after = [step.after[seq] for seq in step.before]
        moved = sum(a != b for a, b in zip(before, after, strict=True))
        assert moved <= 2 * fewest(before, after)
        told += moved
    assert told > 30


SMALL: dict[str, Any] = {"second_look": 300, "retain": 900}


def test_answers_and_state_do_not_depend_on_batches_or_a_restart() -> None:
    records, settings = records_of(blobs(2100, 1)[0]), Settings(**SMALL)
    whole = Engine(settings, with_events=True)
    expected = feed(whole, records)
    state = whole.dumps()
    expected.add(whole.finish())
    assert sum(event.event == "split" for event in expected.events) > 5
    rng = np.random.default_rng(5)
    for cuts in ([1, 511, 512, 513, 1024, 1025, 1500], sorted(rng.integers(1, 2100, 25).tolist())):
        engine, found = reloaded(settings, records, cuts, with_events=True)
        assert engine.dumps() == state
        found.add(engine.finish())
        assert found.encoded() == expected.encoded()
        assert engine.dumps() == whole.dumps()


@pytest.mark.parametrize("retain", [300, 900])
def test_no_record_that_is_final_is_revised(retain: int) -> None:
    """Half of the blobs begin late, so that there is something to part when early records are final."""
    points, truth = blobs(5000, 2)
    chosen = np.flatnonzero((truth < 15) | (np.arange(5000) > 1500))[:2600]
    points, truth = points[chosen], truth[chosen]
    engine = Engine(Settings(second_look=200, retain=retain), with_events=True)
    final, splits, known = -1, 0, {}
    for step in steps_of(engine, records_of(points), 100):
        assert all(line.seq > final for line in step.revised)
        splits += final >= 0 and any(event.event == "split" for event in step.events)
        final, known = max(final, step.final), step.after
    assert final > 2600 - retain - 200
    if retain == 900:  # with fewer, most clusters have records that may not change before they are large
        assert splits
        assert ari([known[seq] for seq in range(2600)], truth) > 0.8


# ---------------------------------------------------------------- corrections, erasure, killed


def correct(engine: Engine, what: Any, *stories: int, **more: Any) -> Answers:
    return engine.correct(Correction(what=what, stories=stories, **more))


def test_what_was_put_together_or_apart_by_hand_stays_so() -> None:
    """Two blobs are one against all evidence, and one is two; the others are parted and united as ever."""
    points, _ = blobs(2000, 3)
    records, settings = records_of(points), Settings(prior="crp", **LASTING)
    engine = Engine(settings, with_events=True)
    told = feed(engine, records[:1100])
    labels = np.array(told.newest())
    a, b, c = (each.cluster for each in engine.clusters()[:3])
    together = np.flatnonzero(np.isin(labels, [a, b])).tolist()
    own = np.flatnonzero(labels == c)
    told.add(correct(engine, "merge", a, b))
    told.add(correct(engine, "split", c, seqs=tuple(own[::2].tolist())))
    engine = Engine.loads(engine.dumps(), settings, with_events=True)
    told.add(engine.advance(records[1100:]))
    told.add(engine.finish())
    now = np.array(told.newest())
    assert len(set(now[together].tolist())) == 1
    assert len(set(now[own[::2]].tolist())) == len(set(now[own[1::2]].tolist())) == 1
    assert now[own[0]] != now[own[1]]
    assert len(engine.clusters()) > 20
    check(engine, now.tolist(), records)


def test_a_pinned_cluster_is_left_alone() -> None:
    points, _ = blobs(2000, 3)
    records = records_of(points)
    engine = Engine(Settings(**LASTING), with_events=True)
    told = feed(engine, records[:400])
    labels = np.array(told.newest())
    pinned = engine.clusters()[0].cluster
    told.add(correct(engine, "pin", pinned))
    told.add(engine.advance(records[400:]))
    told.add(engine.finish())
    own = labels == pinned
    assert set(np.array(told.newest())[:400][own].tolist()) == {pinned}


LASTING_RUN = {"forget": "1.0", "retain": "4000"}
RUN = ("consume", "in.jsonl", "--state", "st", "--output", "out", "--events", "events")


def write(folder: Path, points: np.ndarray, known: dict[int, str] | None = None) -> None:
    lines = [
        json.dumps({"id": (known or {}).get(i, f"r{i}"), "time": i, "vector": row}) + "\n"
        for i, row in enumerate(points.tolist())
    ]
    (folder / "in.jsonl").write_text("".join(lines))


def test_sigkill_at_any_moment_changes_no_byte(tmp_path: Path) -> None:
    points, _ = blobs(2100, 6)
    survives_sigkill(tmp_path, lambda folder: write(folder, points), *RUN)
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    assert (killed / "events").read_bytes() == (quiet / "events").read_bytes()
    assert any(event["event"] == "split" for event in parsed((quiet / "events").read_bytes()))


def test_records_of_parted_clusters_can_be_erased(tmp_path: Path) -> None:
    """Nothing is left of them, statistics are those of all records, and the run goes on."""
    points, truth = blobs(2400, 7)
    gone = {20: "secretidearly", 1100: "secretidlate"}
    write(tmp_path, points[:1400], gone)
    succeed(tmp_path, *RUN, "--store", "news.db", **LASTING_RUN)
    events = parsed((tmp_path / "events").read_bytes())
    assert any(event["event"] == "split" for event in events)
    sought = [b"secretid", *(str(points[i, 0]).encode() for i in gone), *(points[i].tobytes() for i in gone)]
    assert left_of(tmp_path, sought)
    for name in gone.values():
        succeed(tmp_path, "erase", "st", "out", "events", "news.db", "--id", name)
    assert left_of(tmp_path, sought) == {}
    assert b"sound" in call(tmp_path, "state", "verify", "st").stdout
    write(tmp_path, points, gone)
    succeed(tmp_path, *RUN, "--store", "news.db", **LASTING_RUN)
    labels = np.array([line["cluster"] for line in newest_lines((tmp_path / "out").read_bytes())])
    assert ari(labels, truth) > 0.9
    found = newest(tmp_path / "st", pytest.fail)
    assert found is not None
    for cluster in Engine.loads(found[1]).clusters():
        own = points[labels == cluster.cluster]
        assert cluster.size == len(own)
        assert cluster.mean == pytest.approx(own.mean(axis=0).tolist(), abs=1e-6)
