"""Titles, samples and texts of records are what records say, whatever fields are kept of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import call, parsed, succeed

from streamdp import Engine, Settings, stories
from streamdp.ledger.samples import text_of
from streamdp.page.live import RetainedStories
from streamdp.page.view import View
from streamdp.records import Record
from streamdp.records.columns import Columns
from streamdp.reports.source import source_of

TALES = ("storm hits coast flood wave", "election vote count ballot", "goal match striker cup")
PAPERS = ("Daily Mail", "Ubergizmo", "The Evening Post")
N = 300


def records() -> list[dict[str, Any]]:
    """Three stories side by side, of three papers, with a note that only some records have."""
    return [
        {
            "id": f"r{i}",
            "time": 1_767_225_600 + 60 * i,
            "headline": f"{TALES[i % 3]} report{i % 7}",
            "paper": PAPERS[i // 3 % 3],
            **({"pages": i} if i % 2 else {}),
        }
        for i in range(N)
    ]


HEADLINES = {record["headline"] for record in records()}


def as_lines() -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records())


def as_table() -> bytes:
    out = io.StringIO()
    table = csv.DictWriter(out, ["id", "time", "headline", "paper", "pages"], lineterminator="\n")
    table.writeheader()
    table.writerows(records())
    return out.getvalue().encode()


@pytest.fixture(scope="module", params=["jsonl", "csv"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state, a store, events and answers."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "in").write_bytes(as_lines() if request.param == "jsonl" else as_table())
    options = ("--text-field", "headline", "--keep", "paper,pages", "--output", "out.jsonl")
    to = ("--state", "st", "--store", "news.db", "--events", "events")
    succeed(folder, "consume", "in", "--format", request.param, *options, *to)
    return folder


@pytest.mark.parametrize("where", ["st", "news.db"])
def test_titles_samples_and_texts_are_headlines(run: Path, where: str) -> None:
    source, given = source_of(run / where), records()
    found = source.stories()
    assert {story.title for story in found if story.records > 1} <= HEADLINES
    assert all(set(story.samples) <= HEADLINES for story in found)
    assert all(found[0].samples) or where == "news.db"
    seen = [record for _, record in source.records([story.label for story in found])]
    assert len(seen) == N
    for record in seen:
        own = given[record.seq]
        assert record.text in (own["headline"], "") if where == "st" else record.text == own["headline"]
        assert record.keep["paper"] == own["paper"]
    assert source.search(["election"]) == {s.label for s in found if "election" in s.title}


def test_events_stories_and_the_report_tell_of_headlines(run: Path) -> None:
    events = parsed((run / "events").read_bytes())
    assert {e["title"] for e in events if e.get("title")} <= HEADLINES
    assert {s.title.split()[0] for s in stories(run / "st")} >= {"storm", "election", "goal"}
    shown = succeed(run, "stories", "st", "--samples").decode()
    assert "storm hits coast flood wave" in shown
    assert not any(paper in shown for paper in PAPERS)
    call(run, "stories", "st", "--report", "report.html")
    report = (run / "report.html").read_text()
    assert ">storm hits coast flood wave" in report
    assert all(paper in report for paper in PAPERS)  # as sources


def test_kept_fields_are_shown_beside_the_text(run: Path) -> None:
    label = next(s.label for s in stories(run / "st") if s.title.startswith("storm"))
    for where in ("st", "news.db"):
        shown = succeed(run, "stories", where, "--story", str(label)).decode()
        assert "paper=Ubergizmo" in shown
        rows = succeed(run, "stories", where, "--story", str(label), "--records", "--json")
        assert parsed(rows)[0]["keep"]["paper"] == "Daily Mail"
    (found,) = [story for story in source_of(run / "news.db").stories() if story.label == label]
    assert all(text in HEADLINES for text in found.samples)


def test_a_file_of_answers_takes_the_text_from_the_field_that_holds_it(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(as_lines())
    options = ("--text-field", "headline", "--output", "out.jsonl")
    succeed(tmp_path, "consume", "in.jsonl", *options, "--keep", "paper,headline,pages")
    source = source_of(tmp_path / "out.jsonl")
    found = source.stories()
    assert {story.title for story in found} <= HEADLINES
    assert {r.text for _, r in source.records([s.label for s in found])} == HEADLINES
    assert "report1" in " ".join(found[0].keywords) or "storm" in " ".join(s.title for s in found)


def test_a_file_of_answers_without_the_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(as_lines())
    succeed(tmp_path, "consume", "in.jsonl", "--text-field", "headline", "--keep", "paper", "--output", "out")
    done = call(tmp_path, "stories", "out")
    assert b"the answers keep no text" in done.stderr
    titles = {story.title for story in stories(tmp_path / "out")}
    assert not titles & set(PAPERS)
    assert titles == {f"cluster {s.label}" for s in stories(tmp_path / "out")}


def test_the_page_shows_headlines() -> None:
    engine, view = Engine(Settings(text_field="headline", keep=("paper",)), with_events=True), View("in")
    given = [
        Record(r["headline"], {"line": i}, r["time"], r["id"], r["time"], {"paper": r["paper"]}, b"")
        for i, r in enumerate(records())
    ]
    view.begin(engine)
    view.taken(Columns.of(given))
    view.answered(engine.advance(given), engine.held_back)
    view.look(engine, 1e9, {})
    found = RetainedStories(engine, engine.stories(records=False), view.texts)
    records_of = [record for story in found.stories() for record in found.of(story.label)]
    assert {record.text for record in records_of if record.text} <= HEADLINES
    assert {text for story in found.stories() for text in story.samples} <= HEADLINES
    latest = [found.of(story.label)[-1] for story in found.stories() if story.records > 1]
    assert all(record.text in HEADLINES for record in latest)  # which the page remembers


def test_texts_among_fields_are_the_text(tmp_path: Path) -> None:
    lines = [{"subject": TALES[i % 3], "product": "app", "kind": PAPERS[i % 3]} for i in range(60)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--fields", "product", "--texts", "subject", "--keep", "kind", "--output", "out")
    succeed(tmp_path, "consume", "in.jsonl", *options, "--state", "st")
    found = stories(tmp_path / "st")
    assert {text for story in found for text in story.samples} == set(TALES)


def test_records_without_a_text_are_shown_by_their_kept_fields() -> None:
    kept = {"paper": "Daily Mail", "pages": 3}
    assert text_of(Record([1.0, 2.0], {}, keep=kept)) == "Daily Mail, 3"
    assert text_of(Record("storm", {}, keep=kept)) == "storm"
    assert text_of(Record({"os": "mac"}, {}, keep=kept)) == "Daily Mail, 3"
    assert text_of(Record({"os": "mac", "subject": "storm"}, {}, keep=kept), ("subject",)) == "storm"
    assert text_of(Record({"os": "mac"}, {})) == "os=mac"
