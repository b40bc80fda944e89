"""States of every release since the first that lasts are read, and go on as if this one had made them."""

from __future__ import annotations

import functools
import gzip
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from broker.process import Broker
from broker.topics import delete_topic
from commands import parsed
from feeds import Told, feed
from golden.cases import AFTER, GOLDEN, LEARNED, MAKERS
from golden.schema import changes
from golden.states import (
    FOLDER,
    MODEL,
    MODELS,
    OF_A_TOPIC,
    RUNS,
    SHARDED,
    TOPIC,
    Kept,
    committed,
    engine_of,
    kept,
    made,
    merger_of,
    model_of,
    read_records,
    releases,
    run,
    run_topic,
    schema_of,
    schema_of_run,
    state_of,
    state_of_a_topic,
    values,
    with_parts,
    write_input,
    write_topic,
)

from streamdp import StreamDP
from streamdp.answers.announcer import Announcer
from streamdp.engine import Engine
from streamdp.records import Assignment, Final
from streamdp.settings.load import differences, model_settings
from streamdp.sharding import Merger
from streamdp.state.migrate import PARTS
from streamdp.state.snapshot import pack, unpack

KEPT = list(kept())
RELEASES = [folder.name for folder in releases()]


def labels(lines: Sequence[Assignment | Final]) -> list[tuple[int, ...]]:
    """What lines say of clusters and finality; no figures, whose last digits depend on the machine."""
    return [
        (line.seq, line.revision, line.cluster) if isinstance(line, Assignment) else (line.final_through,)
        for line in lines
    ]


def said(told: Told) -> tuple[Any, ...]:
    """Labels, rejects and events, without other numbers."""
    events = [(event.event, event.seq, event.cluster, event.other, event.size) for event in told.events]
    return labels(told.lines), [(reject.position, reject.reason) for reject in told.rejects], events


def labels_retained(engine: Engine) -> list[int]:
    """The newest labels of the records that are retained."""
    held = engine.retained()
    return [] if held is None else held.labels.tolist()


@pytest.mark.parametrize("state", KEPT, ids=lambda state: f"{state.release} {state.name}")
def test_a_state_goes_on_like_an_engine_of_the_same_records(state: Kept) -> None:
    records, learned = state.records(), state.golden.learned
    engine = Engine.loads(state.body, state.settings, **state.modes)
    assert engine.seq == state.header.seq
    fresh = engine_of(state.golden, records, state.settings)
    if state.model != MODEL:
        assert len(feed(engine, records[learned:]).lines) > 0
        return
    assert labels(engine.open_answers()) == labels(fresh.open_answers())
    assert [(c.cluster, c.size) for c in engine.clusters()] == [(c.cluster, c.size) for c in fresh.clusters()]
    assert labels_retained(engine) == labels_retained(fresh)
    more = records[learned : learned + AFTER]
    found, expected = feed(engine, more, [len(more) // 2]), feed(fresh, more)
    found.add(engine.finish())
    expected.add(fresh.finish())
    assert said(found) == said(expected)
    assert len(found.lines) > 100
    assert engine.seq == fresh.seq


@pytest.mark.parametrize("state", KEPT, ids=lambda state: f"{state.release} {state.name}")
def test_every_setting_of_a_state_is_still_known(state: Kept) -> None:
    assert differences(state.header.settings, model_settings(state.settings)) == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("form", RUNS)
def test_a_run_goes_on(release: str, form: str, tmp_path: Path) -> None:
    """From file to file; the input has grown, and lies in another folder."""
    old, fresh = tmp_path / "old", tmp_path / "fresh"
    with tarfile.open(fileobj=_opened(FOLDER / release / f"{form}.run.tar.gz")) as tar:
        tar.extractall(old, filter="data")
    write_input(old, form, LEARNED, LEARNED + AFTER)
    run(old, form)
    fresh.mkdir()
    write_input(fresh, form, 0, LEARNED + AFTER)
    run(fresh, form)
    found = labels_in(old / "out.jsonl")
    assert found == labels_in(fresh / "out.jsonl")
    for name in ("event", "cluster", "seq"):
        ours, theirs = (
            [event[name] for event in parsed((folder / "events.jsonl").read_bytes())]
            for folder in (old, fresh)
        )
        assert ours == theirs


@pytest.mark.parametrize("release", RELEASES)
def test_a_run_over_a_topic_goes_on(release: str, own_broker: Broker, tmp_path: Path) -> None:
    """The same records lie in another cluster's topic: its ids are put in the place of those stored."""
    old, fresh, bootstrap = tmp_path / "old", tmp_path / "fresh", own_broker.bootstrap
    packed = gzip.decompress((FOLDER / release / f"{OF_A_TOPIC}.gz").read_bytes())
    try:
        made = state_of_a_topic(bootstrap)
        for folder, data in ((old, packed), (fresh, made)):
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                tar.extractall(folder, filter="data")
        (ours,), (theirs,) = ((folder / "st").glob("*.sdp") for folder in (fresh, old))
        now, (then, body) = unpack(ours.read_bytes(), "")[0].positions, unpack(theirs.read_bytes(), "")
        assert then.positions["partitions"] == now["partitions"] == {"0": LEARNED // 2, "1": LEARNED // 2}
        ids = {name: now[name] for name in ("topic_id", "cluster_id")}
        theirs.write_bytes(pack(msgspec.structs.replace(then, positions=then.positions | ids), body))
        write_topic(bootstrap, LEARNED, LEARNED + AFTER)
        for folder in (old, fresh):
            run_topic(folder, bootstrap)
    finally:
        delete_topic(bootstrap, TOPIC)
    assert labels_in(old / "out.jsonl") == labels_in(fresh / "out.jsonl")
    assert len(labels_in(old / "out.jsonl")) >= LEARNED + AFTER
    before, after = schema_of_run(packed), schema_of_run(made)
    assert {part: found for part in before if (found := changes(before[part], after.get(part, {})))} == {}


def labels_in(path: Path) -> list[tuple[int, int, int]]:
    """Assignments of a file without their numbers."""
    lines = parsed(path.read_bytes())
    return [(line["seq"], line["revision"], line["cluster"]) for line in lines if "seq" in line]


def _opened(path: Path) -> io.BytesIO:
    return io.BytesIO(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_goes_on(release: str, name: str, tmp_path: Path) -> None:
    folder = FOLDER / release
    (tmp_path / "model").write_bytes(_opened(folder / f"{name}.model.gz").read())
    records = read_records(folder / f"{name}.jsonl.gz")
    model, fresh = StreamDP.load(tmp_path / "model"), model_of(records, MODELS[name])
    for value in values(records)[MODELS[name] : MODELS[name] + 100]:
        label, expected = model.learn_predict_one(value), fresh.learn_predict_one(value)
        assert label == expected or name == "features"  # named by the first answers, which come sooner now
    ours, theirs = (
        sorted((c.size, c.mean or c.words, c.first_seq) for c in each.clusters) for each in (model, fresh)
    )
    assert ours == theirs


@pytest.mark.parametrize("release", RELEASES)
def test_shards_go_on(release: str) -> None:
    folder = FOLDER / release
    records = with_parts(read_records(folder / "texts.jsonl.gz"))
    merger = Merger.loads(_opened(folder / "merger.gz").read(), SHARDED, with_events=True)
    merger.load_parts(_opened(folder / "merger.parts.gz").read())
    fresh = merger_of(records)
    more = records[LEARNED : LEARNED + AFTER]
    assert said(feed(merger, more)) == said(feed(fresh, more))


# ---------------------------------------------------------------- what is stored


@functools.cache
def known() -> dict[str, dict[str, set[str]]]:
    """What the releases stored, by part and version."""
    return schema_of(*map(committed, releases()))


@pytest.mark.parametrize("part", PARTS)
def test_what_is_stored_changes_only_with_its_version(part: str) -> None:
    name = f"{part} {PARTS[part]}"
    assert name in known(), f"{name} has no golden state: run python -m tests.golden make"
    changed = changes(known()[name], schema_of(made())[name])
    advice = f"raise the version of {part} in streamdp/state/migrate, and run python -m tests.golden make"
    assert changed == [], f"what is stored of {part} is not what {name} was: {advice}"


def test_a_change_is_noticed() -> None:
    before = {"state/seq": {"int"}, "state/words": {"array of whole numbers in 1 dimensions"}}
    assert changes(before, {**before}) == []
    assert changes(before, {**before, "state/more": {"int"}}) == ["state/more: was not there, is int"]
    assert changes(before, {"state/seq": {"int", "float"}}) == [
        "state/seq: was int, is float, int",
        "state/words: was array of whole numbers in 1 dimensions, is not there",
    ]


def test_a_field_without_a_new_version_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    golden = GOLDEN["crp"]
    records = MAKERS[golden.records]()
    before = schema_of({"a.sdp": state_of(golden, records)})
    usual = Announcer.dump
    monkeypatch.setattr(Announcer, "dump", lambda self: usual(self) | {"more": 1})
    after = schema_of({"a.sdp": state_of(golden, records)})
    assert before.keys() == after.keys()
    assert {part: found for part in before if (found := changes(before[part], after[part]))} == {
        "announced 1": ["announced/more: was not there, is int"]
    }


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 2_000_000
