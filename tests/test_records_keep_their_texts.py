"""Every record keeps its own text, id, time and kept fields, in whatever order records are answered."""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from commands import succeed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Served
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.store.sink import StoreSink

from streamdp.engine import Engine
from streamdp.page.view import View
from streamdp.records import Answers, Assignment, Record
from streamdp.records.columns import Columns
from streamdp.reports.store import StoreStories
from streamdp.run.reading import Reader
from streamdp.settings import Settings
from streamdp.settings.io_options import Input

BEGIN = 1_767_571_200.0
TOPICS = (
    "storm over the coast",
    "coach of the team resigns",
    "bank raises its rates",
    'prices “fall”: "5 %"',
)
FORMATS = ("jsonl", "jsonl", "csv", "log", "text", "vectors", "otlp")
SETTINGS = {
    "jsonl": {"format": "jsonl", "keep": ("level",)},
    "csv": {"format": "csv", "keep": ("level",)},
    "log": {"format": "log", "keep": ("level",)},
    "text": {"format": "text"},
    "vectors": {"format": "jsonl", "keep": ("level",), "warmup": 20},
    "otlp": {"format": "otlp", "keep": ("level",)},
}


class Sent(NamedTuple):
    """A record as it was sent; ``line`` is where it stands in its file."""

    number: int
    text: str
    time: float | None
    id: str | None
    level: str
    broken: bool


class Case(NamedTuple):
    """A stream, and how it is read and answered."""

    form: str
    sent: list[Sent]
    batches: list[int]
    max_lateness: float
    late: str
    final_only: bool
    journaled: bool
    stops: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    form = draw(st.sampled_from(FORMATS))
    rng = random.Random(draw(st.integers(0, 10**6)))
    n, step = draw(st.sampled_from([40, 120, 200])), draw(st.sampled_from([1.0, 60.0, 60.0]))
    leaps = set(draw(st.lists(st.integers(0, n - 1), max_size=4)))
    beyond = draw(st.sampled_from([[3700.0], [3700.0, 7200.0], [90_000.0]]))
    shuffled, broken = (draw(st.sampled_from([0.0, 0.0, 0.1])) for _ in range(2))
    untimed, unnamed = (draw(st.sampled_from([0.0, 0.0, 0.1, 1.0])) for _ in range(2))
    sent = []
    for number in range(n):
        time: float | None = BEGIN + step * number
        if form == "text" or (form != "log" and rng.random() < untimed):
            time = None
        elif number in leaps:
            time = BEGIN + step * number + rng.choice(beyond)
        elif rng.random() < shuffled:
            time = BEGIN + step * number - step * rng.randrange(1, 6)
        text = f"{rng.choice(TOPICS)} number{number}x"
        name = None if form in ("text", "log") or rng.random() < unnamed else f"r{number}"
        level = rng.choice(["INFO", "ERROR"]) if form == "log" else f"level{number}"
        sent.append(Sent(number, text, time, name, level, rng.random() < broken))
    return Case(
        form,
        sent,
        draw(st.lists(st.sampled_from([1000, 64, 20, 7, 1]), min_size=1, max_size=3)),
        draw(st.sampled_from([0.0, 0.0, 30.0, 400.0])),
        draw(st.sampled_from(["place", "refuse"])),
        draw(st.booleans()),
        form != "csv" and draw(st.booleans()),
        draw(st.integers(1, 200)),
    )


def said(sent: Sent, form: str) -> str:
    """What a store holds of a record."""
    return json.dumps([float(sent.number), 0.5], separators=(",", ":")) if form == "vectors" else sent.text


def written(case: Case) -> list[bytes]:
    """The lines of the input; of CSV the header first."""
    if case.form == "csv":
        rows = io.StringIO()
        writer = csv.writer(rows, lineterminator="\n")
        writer.writerow(["id", "time", "level", "text"])
        for each in case.sent:
            time = "yesterday" if each.broken else "" if each.time is None else each.time
            writer.writerow([each.id or "", time, each.level, each.text])
        return rows.getvalue().encode().splitlines()
    return [_line(each, case.form) for each in case.sent]


def _line(each: Sent, form: str) -> bytes:
    if form == "text":
        return each.text.encode()
    if form == "log":
        assert each.time is not None
        stamp = datetime.datetime.fromtimestamp(each.time, datetime.UTC).isoformat()
        return f"{stamp} {each.level} {each.text}".encode()
    if each.broken:
        return b'{"text": broken'
    if form == "otlp":
        attributes = [] if each.id is None else [{"key": "log.record.uid", "value": {"stringValue": each.id}}]
        inside = {"body": {"stringValue": each.text}, "severityText": each.level, "attributes": attributes}
        if each.time is not None:
            inside["timeUnixNano"] = str(int(each.time * 1e9))
        return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [inside]}]}]}).encode()
    value: Any = {"vector": [each.number, 0.5]} if form == "vectors" else {"text": each.text}
    fields = {**value, "time": each.time, "id": each.id, "level": each.level}
    return json.dumps({k: v for k, v in fields.items() if v is not None}).encode()


class Outcome(NamedTuple):
    """Everything that a run says of its records."""

    answers: list[Assignment]
    rejected: set[int]
    samples: list[tuple[int, int, str]]
    page: View


def run(case: Case, folder: Path) -> Outcome:
    """Read, answer and store, as ``consume`` and ``serve`` do; stop once, and go on from the snapshot."""
    made = Settings(max_lateness=case.max_lateness, late=case.late, **SETTINGS[case.form])
    lines = written(case)
    place, source = folder / "in", None
    if case.journaled:
        journal = Journal(place, lambda: BEGIN)
        for some in _cut(lines, case.batches):
            journal.append(some)
        journal.close()
        source = JournalSource(place)
    else:
        place.write_bytes(b"\n".join(lines) + b"\n")
    reader = Reader(made, Input(file=str(place)), source=source)
    store = StoreSink(str(folder / "n.db"), once=case.final_only)
    engine, view = Engine(made, final_only=case.final_only), View("stream")
    answers, rejected, batches, step = list[Assignment](), set[int](), case.batches, 0

    def answer(found: Answers) -> None:
        store.write(found)
        store.flush(sync=False)
        view.answered(found, engine.held_back)
        answers.extend(line for line in found.lines if isinstance(line, Assignment))
        rejected.update(reject.position["line"] for reject in found.rejects)

    while not reader.source.at_end:
        records = reader.batch(batches[step % len(batches)], 0.0)
        step += 1
        if not records:
            continue
        view.taken(Columns.of(records))
        store.taken(Columns.of(records))
        answer(engine.advance(records))
        if step == case.stops:
            store.flush(sync=False)
            left, state = msgspec.json.decode(msgspec.json.encode(store.state())), engine.dumps()
            store.close()
            store = StoreSink(str(folder / "n.db"), left, once=case.final_only)
            engine = Engine.loads(state, made, final_only=case.final_only)
    samples = [(seq, label, text) for seq, label, text, _ in engine.spoken()]
    answer(engine.finish())
    assert not store.waiting
    store.close()
    return Outcome(answers, rejected, samples, view)


def _cut(lines: list[bytes], batches: list[int]) -> Iterator[list[bytes]]:
    at, i = 0, 0
    while at < len(lines):
        yield lines[at : at + batches[i % len(batches)]]
        at, i = at + batches[i % len(batches)], i + 1


@given(case=cases())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_order_every_record_keeps_what_it_says(case: Case) -> None:
    first = 2 if case.form == "csv" else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = run(case, folder)
        with sqlite3.connect(folder / "n.db") as opened:
            rows = opened.execute("SELECT seq, position, text, id, time, fields FROM records").fetchall()
        stories = [
            record
            for story in StoreStories(folder / "n.db").stories()
            for record in (*story.surest, *story.unsure)
        ]
    of_line = {each.number + first: each for each in case.sent}
    of_seq: dict[int, Sent] = {}
    for seq, position, text, identity, time, fields in rows:
        each = of_seq[seq] = of_line[json.loads(position)["line"]]
        assert text == said(each, case.form)
        assert (identity, time) == (each.id, each.time)
        assert json.loads(fields or "{}") == ({} if case.form == "text" else {"level": each.level})
    answered = sorted(each.number + first for each in of_seq.values())
    assert sorted([*answered, *found.rejected]) == sorted(of_line)
    for line in found.answers:
        each = of_line[line.position["line"]]
        assert each == of_seq[line.seq]
        assert (line.id, line.time) == (each.id, each.time)
        assert case.form == "text" or line.keep == {"level": each.level}
    shown = [(seq, text) for seq, _, text in found.samples] + [(r.seq, r.text) for r in stories]
    for seq, text in shown + [(r.seq, r.text) for r in found.page.records.latest]:
        each = of_seq[seq]
        assert text in ("", each.level) or text.split() == said(each, case.form).split()
    for record in found.page.records.latest:
        each = of_seq[record.seq]
        assert (record.id or None, record.time) == (each.id, each.time)


def headlines(n: int, ahead: set[int]) -> list[dict[str, Any]]:
    """Records a minute apart, of which some are two hours ahead."""
    return [
        {"id": f"r{i}", "text": f"{TOPICS[i % 4]} number{i}", "time": BEGIN + 60 * i + 7200 * (i in ahead)}
        for i in range(n)
    ]


def assert_kept(store: Path, records: list[dict[str, Any]]) -> None:
    with sqlite3.connect(store) as opened:
        rows = opened.execute("SELECT id, text, time FROM records").fetchall()
    assert sorted(rows) == sorted((each["id"], each["text"], each["time"]) for each in records)


@pytest.mark.parametrize(("n", "ahead"), [(300, {5}), (3000, {*random.Random(1).sample(range(3000), 30)})])
def test_a_record_that_is_held_back_and_answered_in_one_batch(
    n: int, ahead: set[int], tmp_path: Path
) -> None:
    records = headlines(n, ahead)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    succeed(tmp_path, "consume", "in.jsonl", "--output", "out", "--state", "st", "--store", "n.db")
    assert_kept(tmp_path / "n.db", records)


def test_a_record_that_is_held_back_while_others_are_sent(tmp_path: Path) -> None:
    served, records = Served(tmp_path), headlines(250, {5})
    answers = [*served.send(*records[:100])[1], *served.send(*records[100:])[1]]
    assert served.stop() == 0
    assert [each.get("id") for each in answers] == [each["id"] for each in records]
    assert [each.get("time") for each in answers] == [each["time"] for each in records]
    assert_kept(tmp_path / "news.db", records)


def test_a_file_that_is_replaced_has_the_same_lines_again(tmp_path: Path) -> None:
    """Those of the old file may wait while those of the new one are read."""
    store, engine = StoreSink(str(tmp_path / "n.db")), Engine(Settings(max_lateness=60.0))
    for file in range(3):
        records = [
            Record(f"storm {file} {line}", {"file": "in", "line": line}, BEGIN + 10 * file + line)
            for line in range(4)
        ]
        store.taken(Columns.of(records))
        store.write(engine.advance(records))
        left = store.state()
        store.close()
        store = StoreSink(str(tmp_path / "n.db"), left)
    assert len(store.waiting) == 12
    store.write(engine.finish())
    store.close()
    with sqlite3.connect(tmp_path / "n.db") as opened:
        rows = opened.execute("SELECT text, time, position FROM records ORDER BY seq").fetchall()
    expected = [(f"storm {file} {line}", BEGIN + 10 * file + line) for file in range(3) for line in range(4)]
    assert [row[:2] for row in rows] == expected
