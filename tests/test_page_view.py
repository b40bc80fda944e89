"""What a page shows of a run: counts against plain ones, and bounds that hold whatever the stream does."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import assigned, headlines
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from streamdp.answers.describe import census_of_all
from streamdp.engine import Engine
from streamdp.page import graph, shown, table
from streamdp.page.api import Api, in_detail
from streamdp.page.graph import BINS, SLOTS, Colours, Timeline
from streamdp.page.guard import Allowance
from streamdp.page.hub import BusyError, Hub, Questions
from streamdp.page.view import View
from streamdp.questions.asking import where_to
from streamdp.questions.questions import ListEvents
from streamdp.records import Answers, Assignment, ClusterSummary, Event, Record, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.state.corrections import Correction

BATCHES = st.lists(
    st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(-1, 9)), min_size=1, max_size=30), max_size=12
)


@given(BATCHES)
@example([[(0.0, 0), (5e-324, 0)]])
@settings(max_examples=60, deadline=None)
def test_a_timeline_counts_every_record(batches: list[list[tuple[float, int]]]) -> None:
    line, expected = Timeline(), Counter[int]()
    for batch in batches:
        line.add(np.array([at for at, _ in batch]), np.array([label for _, label in batch]))
        expected.update(label for _, label in batch)
    total = sum(expected.values())
    assert len(line) <= BINS
    step, rows = line.counts(range(10), 0, len(line), 50)
    assert [sum(row) for row in rows[:-1]] == [expected[label] for label in range(10)]
    assert sum(map(sum, rows)) == total
    assert all(len(row) <= 50 for row in rows)
    if batches:
        last = max(at for batch in batches for at, _ in batch)
        assert line.start + len(line) * line.width > last or line.width == 0.0
        assert step >= 1


def test_places_in_a_timeline() -> None:
    line = Timeline()
    line.add(np.arange(1000.0), np.arange(1000) // 500)
    assert line.width == 4.0  # seconds: doubled until 480 bins suffice
    first, last = line.range_of(500.0, 600.0)
    assert (line.start + first * line.width, line.start + last * line.width) == (500.0, 600.0)
    assert line.sums(first, last) == {1: 100}
    assert line.range_of(-5.0, 1e9) == (0, len(line))
    assert line.range_of(2e9, None) == (len(line) - 1, len(line))


def answer(
    seq: int, cluster: int, revision: int = 0, position: dict[str, object] | None = None
) -> Assignment:
    return assigned(seq, cluster=cluster, revision=revision, position=position or {})


def test_memory_is_bounded_whatever_the_stream_does() -> None:
    rng, view = random.Random(1), View("a stream")
    seq = 0
    for _ in range(300):
        records: list[Record | Reject] = [Record("x" * 5000, {"line": seq + i}) for i in range(190)]
        lines = [answer(seq + i, rng.randrange(10**6), position=r.position) for i, r in enumerate(records)]
        events = [
            Event(
                event="born",
                seq=seq,
                time=None,
                cluster=rng.randrange(10**6),
                other=None,
                size=1,
                moved=None,
                first_time=None,
                last_time=None,
                words=[("y" * 5000, 1)],
            )
            for _ in range(100)
        ]
        view.taken(Columns.of(records))
        view.answered(Answers([*lines], [Reject({}, "late", "", b"")], events), held_back=5)
        seq += len(records)
    assert len(view.records) <= shown.CLUSTERS * shown.OF_CLUSTER
    assert len(view.records._clusters) == shown.CLUSTERS
    assert len(view.records.latest) == shown.LATEST
    assert max(len(record.text) for record in view.records.latest) <= 300
    assert len(view.lives._lives) == shown.LIVES
    assert max(len(e.title) for e in view.lives.latest) <= 120
    assert len(view._labels) <= 100_000
    view._sum_up()
    assert max(map(len, view.graph.timeline._bins)) <= 4 * graph.KEPT + 190
    assert len(view._waiting) <= 20_000
    assert (len(view._fresh), len(view._happened), view.refused["late"]) == (25, 25, 300)


def test_what_ended_is_forgotten_before_what_lives() -> None:
    held = table.Table()

    def summary(label: int) -> ClusterSummary:
        seen = {"first_time": None, "last_time": None, "first_seq": label, "last_seq": label}
        return ClusterSummary(cluster=label, size=1, weight=1.0, **seen)

    live = [summary(label) for label in (3, 70_000)]
    for label in range(10_000):
        held.entitle(label, f"title {label}")
        held.call(label, "called")
    held.describe(summary(label) for label in range(10_000))
    held.take(census_of_all(live))
    past = range(10_000 - table.PAST, 10_000)
    for kept in held._titles, held._called, held.about:
        assert list(kept) == [3, *past]
    assert (held.name(3), held.name(4)) == ("title 3", "cluster 4")
    held.take(census_of_all(live))
    assert len(held._titles) == table.PAST + 1


def test_records_their_revisions_and_texts_that_wait() -> None:
    view = View("a stream")
    records: list[Record | Reject] = [Record(f"text {i}", {"line": i}) for i in range(4)]
    told = [answer(i, i % 2, position=r.position) for i, r in enumerate(records)]
    view.taken(Columns.of(records[:2]))
    view.answered(Answers([], [], []), held_back=2)
    view.taken(Columns.of(records[2:]))
    view.answered(Answers([*told], [], []), held_back=0)
    assert [r["text"] for r in view.first_tick()["records"]] == ["text 3", "text 2", "text 1", "text 0"]
    view.answered(Answers([answer(1, 7, revision=1), answer(99, 7, revision=1)], [], []), held_back=0)
    (moved,) = (row for row in view.first_tick()["records"] if row["label"] == 7)
    assert (moved["text"], [was["label"] for was in moved["was"]]) == ("text 1", [1])
    assert (view.texts(7), view.texts(1)) == ({1: "text 1"}, {3: "text 3"})
    assert not view._waiting


def test_a_cluster_keeps_its_colour_and_bands_share_none() -> None:
    rng, given = random.Random(2), Colours()
    known: dict[int, int] = {}
    for turn in range(200):
        drawn = sorted(rng.sample(range(turn, turn + 30), 12))
        slots = given.give(drawn)
        for cluster, slot in zip(drawn, slots, strict=True):
            assert known.setdefault(cluster, slot) == slot
        fresh = [slot for cluster, slot in zip(drawn, slots, strict=True) if cluster >= turn + 29]
        assert all(slots.count(slot) == 1 for slot in fresh)
        assert set(slots) <= set(range(SLOTS))
    for cluster in range(10_000):
        given.give([10_000 + cluster])
    assert len(given._slots) == graph.REMEMBERED


@pytest.fixture(scope="module")
def run() -> tuple[Engine, View]:
    engine, view = Engine(Settings(beam=4)), View("headlines")
    engine.report_events()
    view.begin(engine)
    records = headlines(1500, 3)
    for at in range(0, 1500, 300):
        view.taken(Columns.of(list(records[at : at + 300])))
        view.answered(engine.advance(records[at : at + 300]), engine.held_back)
        view.look(engine, float(at), {"state": "running"})
    view.look(engine, 1501.0, {"state": "running"})
    return engine, view


def test_a_line_of_a_log_says_its_message_and_not_what_is_kept_beside_it() -> None:
    engine, view = Engine(Settings(format="log", keep=("level",))), View("log")
    lines = [Record(f"took {i} ms", {"line": i}, None, None, 0.0, {"level": "INFO"}, b"") for i in range(9)]
    view.taken(Columns.of(lines))
    view.answered(engine.advance(lines), engine.held_back)
    assert [record.text for record in view.records.latest] == [line.value for line in lines]


def test_the_page_says_what_the_engine_says(run: tuple[Engine, View]) -> None:
    engine, view = run
    stories = engine.stories(records=False)
    assert view.status["live"] == len(stories)
    assert view.status["larger"] == sum(story.records > 3 for story in stories) < len(stories)
    assert view.status["stretch"] == stories.clock.words
    assert view.status["time"] == max(story.last_time or 0.0 for story in stories)
    growth = {story.label: story.growth for story in stories}
    bands = view.drawing(None, None, 100)["bands"]
    assert {band["label"]: band["growth"] for band in bands}.items() <= growth.items()
    view.entitle(stories)
    titles = {story.label: story.title for story in stories}
    tick = view.first_tick()
    for row in (*tick["graph"]["bands"], *tick["records"]):
        assert row["title"] == titles[row["label"]]
    shown = view.shown([*titles, 10**9])
    assert {label: own["slot"] for label, own in shown.items() if own["slot"] is not None} == {
        label: slot for label, slot in tick["slots"].items() if label in titles
    }
    assert shown[10**9] == {"slot": None, "level": None, "pinned": False}


def test_one_cluster_its_words_and_its_neighbours(run: tuple[Engine, View]) -> None:
    engine, view = run
    largest = engine.clusters()[0]
    found = view.cluster(largest.cluster)
    assert found is not None
    assert sum(found["over_time"]["counts"]) > 0
    assert found["near"] == sorted(found["near"], key=lambda other: -other["likeness"])
    assert largest.cluster not in [other["label"] for other in found["near"]]
    assert view.cluster(10**9) is None
    detail = in_detail(engine, largest.cluster, [word for word, _ in found["words"]])
    assert detail["tokens"] == engine.tokens_of(largest.cluster)
    assert [w["word"] for w in detail["against_base"]] == [word for word, _ in largest.words or ()]
    assert in_detail(engine, 10**9, []) == {}
    assert where_to(engine, "").error == "no words are left of its text"
    assert len(where_to(engine, str(headlines(3, 3)[2].value)).candidates) == 5


def test_what_the_graph_draws(run: tuple[Engine, View]) -> None:
    _, view = run
    drawing = view.drawing(None, None, 100)
    counts = [
        sum(column)
        for column in zip(*[b["counts"] for b in drawing["bands"]], drawing["others"], strict=True)
    ]
    assert sum(counts) == 1500
    assert min(drawing["others"]) >= 0
    assert len({band["slot"] for band in drawing["bands"]}) == len(drawing["bands"]) <= 12
    low, high = drawing["whole"]
    half = view.drawing((low + high) / 2, None, 480)
    assert half["start"] == pytest.approx((low + high) / 2, abs=half["width"])


def test_what_grows_at_the_end_is_drawn(run: tuple[Engine, View]) -> None:
    before, _ = run
    engine, view = Engine.loads(before.dumps(), before.settings), View("a stream")
    view.begin(engine)
    view.look(engine, 0.0, {"state": "running"})
    time = engine.stories(records=False).clock.time
    late = [
        Record(f"zebra quagga okapi born {i}", {"line": i}, None, None, time + i, {}, b"") for i in range(300)
    ]
    view.taken(Columns.of(late))
    view.answered(engine.advance(late), engine.held_back)
    label = max(engine.stories(records=False), key=lambda story: story.last_seq).label
    for state, drawn in (("running", False), ("ended", True)):
        tick = view.look(engine, 1.0, {"state": state})
        assert (label in [band["label"] for band in tick["graph"]["bands"]]) == drawn


def test_a_page_of_a_state_shows_what_the_state_remembers(run: tuple[Engine, View]) -> None:
    before, _ = run
    engine, view = Engine.loads(before.dumps(), before.settings), View("a state")
    view.begin(engine)
    tick = view.look(engine, 0.0, {"state": "snapshot"})
    assert tick["status"]["records"] == 1500
    assert sum(map(sum, [band["counts"] for band in tick["graph"]["bands"]])) > 1000
    first = view.first_tick()
    assert len(first["records"]) == 40
    assert all(record["text"] for record in first["records"])
    titles = {s.label: s.title for s in before.stories(records=False) if s.records > 1}
    drawn = {band["label"]: band["title"] for band in tick["graph"]["bands"]}
    assert {*drawn} & {*titles}
    assert all(titles.get(label, title) == title for label, title in drawn.items())


def test_guesses_that_did_not_last_are_no_news() -> None:
    view = View("a stream")
    event = Event(
        event="merged",
        seq=5,
        time=None,
        cluster=1,
        other=0,
        size=1,
        moved=None,
        first_time=None,
        last_time=None,
        words=None,
    )
    view.answered(Answers([], [], [event, msgspec.structs.replace(event, cluster=2, size=2)]), held_back=0)
    assert [each.label for each in view._happened] == [2]
    assert [each.label for each in view.events(ListEvents(latest=True))] == [2, 1]
    assert [each.number for each in view.events(ListEvents(after=1))] == [2]
    assert [each.number for each in view.events(ListEvents(label=1))] == [1]
    assert len(view.events(ListEvents(label=0, limit=1))) == 2  # the next says that there are more


def test_pages_leave_no_trace_in_the_state() -> None:
    records = headlines(1300, 4)
    plain, watched = Engine(Settings(beam=4)), Engine(Settings(beam=4))
    view = View("watched")
    watched.report_events()
    lines = []
    for at in range(0, 1300, 130):
        view.taken(Columns.of(list(records[at : at + 130])))
        answers = watched.advance(records[at : at + 130])
        view.answered(answers, watched.held_back)
        view.look(watched, float(at), {})
        where_to(watched, "a storm over Bergen")
        lines += answers.lines
    assert plain.advance(records).lines == lines
    assert plain.dumps() == watched.dumps()


def test_questions_wait_for_the_run_and_not_for_ever() -> None:
    engine, questions = Engine(Settings()), Questions()
    first, second = questions.ask(lambda e: e.seq), questions.ask(lambda e: 1 // e.seq)
    questions.answer(engine, seconds=10.0)
    assert first.result(0) == 0
    with pytest.raises(ZeroDivisionError):
        second.result(0)
    waiting = [questions.ask(lambda e: e.seq) for _ in range(32)]
    with pytest.raises(BusyError):
        questions.ask(lambda e: e.seq)
    waiting[0].cancel()
    questions.answer(engine, seconds=0.0)
    assert not waiting[1].done()  # one turn, one question; the cancelled one was passed over
    questions.answer(engine, seconds=10.0)
    assert all(each.done() for each in waiting)


API = (Path(__file__).parents[1] / "docs" / "page.md").read_text("utf-8")


def documented(title: str) -> set[str]:
    """The names in the first column of a section's table."""
    section = API.split(f"\n### {title}\n")[1].split("\n### ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_api_page_says_what_the_program_answers(run: tuple[Engine, View]) -> None:
    engine, view = run
    later = {"lag", "read", "written"}
    assert set(view.status) == documented("Status") - later
    assert set(view.first_tick()) == {"status", "graph", "records", "revised", "events", "slots"}
    drawing = view.drawing(None, None, 100)
    assert set(drawing) | set(drawing["bands"][0]) >= documented("Graph")
    label = drawing["bands"][0]["label"]
    one = view.cluster(label)
    assert one is not None
    assert set(one) | set(in_detail(engine, label, [])) == documented("What the page alone knows of a story")
    assert set(view.shown([label])[label]) <= set(one)
    assert set(view.first_tick()["records"][0]) == documented("Records of a tick")
    paths = {re.sub(r":\w+", "", path) for path in api_paths()}
    told = re.findall(r"^\| `GET (/api/[^`]+)`", API, flags=re.M)
    assert set(told) == paths


def test_pages_hear_of_another_name_of_what_they_show() -> None:
    engine, view = Engine(Settings(beam=1), with_events=True), View("a stream")

    def tick(*texts: str) -> dict[str, Any]:
        records = [Record(text, {"line": engine.seq + i}) for i, text in enumerate(texts)]
        view.taken(Columns.of(records))
        view.answered(engine.advance(records), 0)
        return view.look(engine, 0.0, {})

    tick(*["storm over the coast"] * 3, *["late goal wins the match"] * 3)
    before = tick()["titles"]
    view.answered(engine.correct(Correction(what="rename", stories=(0,), title="The storm")), 0)
    told = [tick("storm over the coast"), tick()]
    assert before == {}
    assert [each["titles"].get(0) for each in told] == ["The storm", None]
    assert {row["title"] for row in told[0]["records"]} == {"The storm"}


def api_paths() -> set[str]:
    view = View("nothing")
    app = Api(view, Hub("x", view.first_tick), Questions(), print, Allowance(1, 1), Allowance(1, 1)).app()
    return {route.path for route in app.routes if isinstance(route, Route) and "/api/" in route.path}
