"""The chance that a record is of the class of its cluster, against plain Python over the answers."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import parsed, succeed
from feeds import feed, headlines, reloaded, texts
from test_lasting import STREAMS

from benchmarks.drifting import demo_stream
from streamdp.engine import Engine
from streamdp.kernels.packed import as_type, encoded
from streamdp.ledger import confidence
from streamdp.ledger.confidence import FADE, LEAST, USUAL, WEIGHT, Confidence
from streamdp.records import Assignment, Record
from streamdp.settings import Settings
from streamdp.state.corrections import Correction


def classed(records: list[Record], every: int = 3) -> list[Record]:
    """Some of the records with a class, by how they begin; some with one that is none."""
    made = []
    for i, record in enumerate(records):
        value = record.value
        begins = value[:5] if isinstance(value, str) else value[0] > 0.0  # type: ignore[index]
        kept = {"class": begins if i % every == 0 else None if i % every == 1 else ""}
        made.append(msgspec.structs.replace(record, keep=kept if i % 7 else {}))
    return made


CASES = {
    name: (msgspec.structs.replace(settings, truth_field="class"), classed(records))
    for name, (settings, records) in STREAMS.items()
    if settings.retain
}


def expected(
    answers: list[Assignment], records: list[Record], *, whole: bool
) -> list[tuple[float, int] | None]:
    """What is to be said of each answer and revision, in order; all counts are made anew each time.

    ``whole``: clusters are united as wholes, before the first revision is told.
    """
    cluster: dict[int, int] = {}
    name: dict[int, str] = {}
    cells, found = np.zeros((2, *USUAL.shape)), list[tuple[float, int] | None]()
    for answer in answers:
        if answer.revision and whole:
            before = cluster[answer.seq]
            cluster |= {seq: answer.cluster for seq in cluster if cluster[seq] == before}
        elif answer.revision:
            cluster[answer.seq] = answer.cluster
        labels = Counter(name[seq] for seq in name if cluster[seq] == answer.cluster)
        total, ranked = labels.total(), sorted(labels, key=lambda each: (-labels[each], each))
        most = labels[ranked[0]] if ranked else 0
        row = 0 if total == 1 else 1 if most < 0.6 * total else 2 if most < 0.9 * total else 3 + (total >= 5)
        cell = row, bisect_right(LEAST.tolist(), answer.probability)
        count, right = cells[:, *cell]
        share = (right + WEIGHT * USUAL[cell]) / (count + WEIGHT)
        found.append((share, len(name)) if total else None)
        value = (records[answer.seq].keep or {}).get("class")
        if answer.revision == 0:
            cluster[answer.seq] = answer.cluster
            if value not in (None, ""):
                given = value if isinstance(value, str) else json.dumps(value)
                if total:
                    cells *= FADE
                    cells[:, *cell] += 1, given == ranked[0]
                name[answer.seq] = given
    return found


def said(answers: list[Assignment]) -> list[tuple[Any, Any] | None]:
    unset = msgspec.UNSET
    return [None if a.confidence is unset else (a.confidence, a.confidence_labels) for a in answers]


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_plain_python_finds(name: str) -> None:
    settings, records = CASES[name]
    engine = Engine(settings)
    told = feed(engine, records, range(0, len(records), 700))
    told.add(engine.finish())
    found, wanted = said(told.assignments()), expected(told.assignments(), records, whole=name == "log")
    assert [each and each[1] for each in found] == [each and each[1] for each in wanted]
    assert sum(each is not None for each in found) > len(records) / 4
    shares = [(each[0], other[0]) for each, other in zip(found, wanted, strict=True) if each and other]
    assert [share for share, _ in shares] == pytest.approx([share for _, share in shares], abs=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_classes_change_no_clustering_and_batches_and_restarts_nothing(name: str) -> None:
    settings, records = CASES[name]
    whole = feed(Engine(settings), records[:1100])
    _, parts = reloaded(settings, records[:1100], (1, 300, 601))
    assert said(parts.assignments()) == said(whole.assignments())
    plain = feed(Engine(msgspec.structs.replace(settings, truth_field=None)), records[:1100])
    assert set(said(plain.assignments())) == {None}
    unset: dict[str, Any] = {"confidence": msgspec.UNSET, "confidence_labels": msgspec.UNSET}
    without = [msgspec.structs.replace(answer, **unset) for answer in whole.assignments()]
    assert without == plain.assignments()


@pytest.mark.parametrize("name", ["stories", "log", "vectors"])
def test_lines_and_objects_say_the_same(name: str, tmp_path: Path) -> None:
    """Lines of a file are read side by side, and records made in Python are objects."""
    settings, records = CASES[name]
    path, field = tmp_path / "in.jsonl", "vector" if name == "vectors" else "text"
    with open(path, "w") as file:
        for record in records:
            more = {"id": record.id, "time": record.time, **(record.keep or {})}
            file.write(json.dumps({field: record.value, **more}) + "\n")
    options = "--truth-field", "class", "--likelihood", settings.likelihood
    read = parsed(succeed(tmp_path, "consume", "--file", str(path), *options))
    engine = Engine(settings)
    told = feed(engine, records)
    told.add(engine.finish())
    lines = [line | {"position": None} for line in read if "seq" in line]
    assert lines == [msgspec.to_builtins(a) | {"position": None} for a in told.assignments()]
    assert sum("confidence" in line for line in lines) > 500


def test_a_table_has_columns_for_it_where_classes_are_known(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    items = [{"text": item.text, "kind": item.topic} for item in demo_stream(300, 5)]
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    succeed(tmp_path, "consume", "--file", str(path), "--output", str(out), "--truth-field", "kind")
    header, *rows = [line.split(",") for line in out.read_text().splitlines()]
    assert header[-3:] == ["kind", "confidence", "confidence_labels"]
    assert rows[0][-2:] == ["", ""]
    assert float(rows[-1][-2]) > 0.5
    assert int(rows[-1][-1]) > 250


def test_corrections_tell_classes_until_they_are_undone() -> None:
    engine = Engine(Settings())
    feed(engine, headlines(400, 3))
    stories = [story.label for story in engine.stories()[:2]]
    engine.correct(Correction(what="pin", stories=(stories[0],)))
    told = feed(engine, headlines(500, 3)[400:])
    known = [a for a in told.first() if a.confidence is not msgspec.UNSET]
    assert known
    assert {a.cluster for a in known} == {stories[0]}
    engine.correct(Correction(what="undo", undone=1))
    told = feed(engine, headlines(600, 3)[500:])
    assert set(said(told.first())) == {None}


def test_what_undone_corrections_have_shown_outlasts_a_restart() -> None:
    engine, records = Engine(Settings(concentration=1.0)), texts(200, 2)
    engine.advance(records[:100])
    story = engine.clusters()[0].cluster
    engine.correct(Correction(what="pin", stories=(story,)))
    engine.correct(Correction(what="undo", undone=1))
    again, told = Engine.loads(engine.dumps(), engine.settings), []
    for each in (engine, again):
        each.correct(Correction(what="pin", stories=(story,)))
        told.append(each.advance(records[100:]).lines)
    assert b'"confidence":' in told[0].encode()
    assert told[0].encode() == told[1].encode()
    assert engine.dumps() == again.dumps()


def test_a_moved_record_is_judged_by_where_it_was() -> None:
    held = Confidence()
    for seq in range(3):
        held.learn(seq, 7, 1.0, "a")
    held.learn(3, 7, 1.0, held.class_of(9), by=1)
    count, right = held.cells.sum(axis=1)
    assert (round(count, 1), round(right, 1)) == (3, 2)
    assert held.class_of(7) == "a"
    held.lift(1)
    assert held.labels == 3
    held.forget([0, 1, 2])
    assert np.isnan(held.told(7, 1.0)).all()


def test_old_labels_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "LABELS", 2)
    held = Confidence()
    for seq, name in enumerate("aab"):
        held.learn(seq, 1, 1.0, name)
    assert held.labels == 2
    assert held.class_of(1) == "a"
    held.learn(3, 1, 1.0, "b")
    assert held.class_of(1) == "b"


def test_classes_of_records_are_forgotten_with_them() -> None:
    settings = Settings(truth_field="class")
    engine = Engine(settings)
    feed(engine, classed(texts(60, 2), every=1))
    before = engine.dumps()
    engine.forget(set(range(60)), ())
    assert len(engine.dumps()) < len(before)
    told = feed(engine, classed(texts(90, 2), every=1)[60:61])
    assert said(told.first()) == [None]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("known", {0: [1, 3, 0]}),
        ("known", {0: [-1, "a", 0]}),
        ("known", {"x": [1, "a", 0]}),
        ("cells", np.array([np.zeros(USUAL.size), np.ones(USUAL.size)])),
        ("cells", np.zeros(3)),
    ],
)
def test_what_is_no_state_is_refused(name: str, wrong: Any) -> None:
    held = Confidence()
    held.learn(0, 1, 1.0, "a")
    held.learn(1, 1, 1.0, "b")
    stored = msgspec.msgpack.decode(encoded(held))
    assert as_type(stored, Confidence).class_of(1) == "a"
    stored[name] = msgspec.msgpack.decode(encoded(wrong))
    with pytest.raises(msgspec.ValidationError):
        as_type(stored, Confidence)
