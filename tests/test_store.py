"""The store: each record once whatever is killed, equal rows, bounds, readers, and what is refused."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import (
    call,
    fail,
    newest_lines,
    parsed,
    run_killed,
    start,
    succeed,
    wait_for_size,
    write_headlines,
)
from feeds import assigned
from streamdp_connectors.store.schema import check
from streamdp_connectors.store.sink import StoreSink
from streamdp_connectors.store.tables import Bounds

import streamdp
from streamdp.errors import StreamdpError
from streamdp.records import Answers, Assignment, Event, Record
from streamdp.records.columns import Columns
from streamdp.state.corrections import Correction, CorrectionsFile

TABLES = ("records", "answers", "stories", "events", "corrections")
RUN = ("consume", "in.jsonl", "--output", "out", "--state", "st", "--store", "news.db", "--store-answers")
EVERY = {"snapshot_every": "1500", "retain": "2000", "refine_every": "2000", "refine_moves": "2000"}


def rows(path: Path, query: str) -> list[Any]:
    """What a reader sees."""
    opened = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return opened.execute(query).fetchall()
    finally:
        opened.close()


def everything(folder: Path) -> dict[str, list[Any]]:
    """All rows of all tables, and what a search finds."""
    found = {name: rows(folder / "news.db", f"SELECT * FROM {name} ORDER BY 1, 2") for name in TABLES}
    query = "SELECT rowid FROM records_text WHERE records_text MATCH 'bridge' ORDER BY 1"
    return found | {"search": rows(folder / "news.db", query)}


def assert_same(ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> None:
    for name, expected in theirs.items():
        assert len(ours[name]) == len(expected), name
        assert ours[name] == expected, name


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, rubbish in it, and the result of one run over it."""
    folder = tmp_path_factory.mktemp("quiet")
    write_headlines(folder / "in.jsonl", 12_000)
    lines = (folder / "in.jsonl").read_bytes().splitlines()
    lines[60::977] = [b"{broken"] * len(lines[60::977])
    (folder / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    succeed(folder, *RUN, **EVERY)
    return folder


def test_a_store_holds_what_the_answers_say(quiet: Path) -> None:
    newest = newest_lines((quiet / "out").read_bytes())
    lines = (quiet / "in.jsonl").read_bytes().splitlines()
    given = {line["id"]: line for line in (json.loads(line) for line in lines if line != b"{broken")}
    held = rows(
        quiet / "news.db", "SELECT seq, id, label, probability, revision, text, time, position FROM records"
    )
    assert [row[0] for row in held] == list(range(len(newest)))
    for row, line in zip(held, newest, strict=True):
        assert row[1:5] == (line["id"], line["cluster"], line["probability"], line["revision"])
        assert row[5:7] == (given[line["id"]]["text"], line["time"])
        assert json.loads(row[7]) == line["position"]
    counted = rows(quiet / "news.db", "SELECT label, count(*), min(time), max(time) FROM records GROUP BY 1")
    told = "SELECT label, size, began, last FROM stories WHERE size > 0 ORDER BY label"
    for (label, size, began, last), story in zip(counted, rows(quiet / "news.db", told), strict=True):
        assert story[:2] == (label, size)
        assert story[2] <= began
        assert story[3] >= last
    answers = [line for line in parsed((quiet / "out").read_bytes()) if "seq" in line]
    assert len(rows(quiet / "news.db", "SELECT * FROM answers")) == len(answers)


def test_views_and_stories_of_a_store(quiet: Path) -> None:
    labels = {line["cluster"] for line in newest_lines((quiet / "out").read_bytes())}
    live = streamdp.stories(quiet / "news.db")
    state = streamdp.stories(quiet / "st")
    assert {story.label for story in live} == {story.label for story in state}
    assert {story.label for story in live} <= labels
    sizes = {story.label: story.records for story in state}
    assert {story.label: story.records for story in live} == sizes
    by_label = {story.label: story for story in state}
    for story in live:
        other = by_label[story.label]
        own = f"SELECT min(time), max(time), count(*) FROM records WHERE label = {story.label}"
        assert rows(quiet / "news.db", own) == [(story.began_time, story.last_time, story.records)]
        assert story.now == other.now
        assert story.records == 1 or story.title == other.title
    shown = rows(quiet / "news.db", "SELECT label, records, began, last_day FROM story_now")
    assert {row[:2] for row in shown} == {*sizes.items()}
    assert all(row[2].endswith("Z") for row in shown)
    hours = rows(quiet / "news.db", "SELECT sum(records), min(hour) FROM story_by_hour")
    assert hours == [(len(rows(quiet / "news.db", "SELECT seq FROM records")), "2026-01-05T01:00:00Z")]
    found = succeed(quiet, "stories", "news.db", "--search", "BRIDGE", "--records", "--json")
    assert any("bridge" in record["text"] for record in parsed(found))


def beside(quiet: Path, folder: Path) -> Path:
    (folder / "in.jsonl").symlink_to(quiet / "in.jsonl")
    return folder


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_rows_after_sigkill_are_those_of_a_quiet_run(quiet: Path, tmp_path: Path, kills: int) -> None:
    """At seeded moments, the last between the end of the input and the end of the run."""
    folder, chance = beside(quiet, tmp_path), random.Random(kills)
    whole = (quiet / "out").stat().st_size
    for size in sorted(chance.randrange(1000, whole - 1000) for _ in range(kills)):
        code = run_killed(folder, *RUN, size=size, later=chance.random() * 0.05, **EVERY)
        assert code == -signal.SIGKILL
    succeed(folder, *RUN, **EVERY)
    assert_same(everything(folder), everything(quiet))


def test_an_input_that_grows_after_its_end(quiet: Path, tmp_path: Path) -> None:
    """What the end of the first run changed is taken back: the answers stay open."""
    lines = (quiet / "in.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines[:5000]))
    succeed(tmp_path, *RUN, **EVERY)
    with (tmp_path / "in.jsonl").open("ab") as file:
        file.writelines(lines[5000:])
    succeed(tmp_path, *RUN, **EVERY)
    assert_same(everything(tmp_path), everything(quiet))


def test_records_that_wait_for_their_turn_keep_their_texts(quiet: Path, tmp_path: Path) -> None:
    """Under --max-lateness and --final-only answers come later than records, over a stop, too."""
    lines = (quiet / "in.jsonl").read_bytes().splitlines(keepends=True)[:2500]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines[:1200]))
    run = (*RUN, "--max-lateness", "600", "--final-only")
    succeed(tmp_path, *run, **EVERY)
    with (tmp_path / "in.jsonl").open("ab") as file:
        file.writelines(lines[1200:])
    succeed(tmp_path, *run, **EVERY)
    texts = rows(tmp_path / "news.db", "SELECT text FROM records")
    read = [json.loads(line) for line in lines if line != b"{broken\n"]
    assert sorted(text for (text,) in texts) == sorted(record["text"] for record in read)


def test_readers_read_while_it_is_written(quiet: Path, tmp_path: Path) -> None:
    process = start(tmp_path, "consume", "-", "--output", "out", "--store", "news.db", "--state", "st")
    assert process.stdin is not None
    data = (quiet / "in.jsonl").read_bytes().splitlines(keepends=True)
    process.stdin.write(b"".join(data[:2000]))
    process.stdin.flush()
    assert wait_for_size(process, tmp_path / "out", 100_000)
    assert rows(tmp_path / "news.db", "SELECT count(*) FROM records")[0][0] > 0
    assert "live stories" in succeed(tmp_path, "stories", "news.db").decode()
    assert fail(tmp_path, "consume", "-", "--output", "o2", "--store", "news.db", "--overwrite")[0] == 73
    process.stdin.close()
    assert process.wait(120) == 0


DECIDED = EVERY | {"max_undecided": "1000"}


@pytest.fixture(scope="module")
def unbounded(quiet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same stream, of which answers are final earlier."""
    folder = beside(quiet, tmp_path_factory.mktemp("unbounded"))
    succeed(folder, *RUN, **DECIDED)
    return folder


@pytest.mark.parametrize("bound", [("--store-rows", "3000"), ("--store-days", "2")])
def test_a_store_is_bounded(unbounded: Path, tmp_path: Path, bound: Sequence[str]) -> None:
    succeed(beside(unbounded, tmp_path), *RUN, *bound, **DECIDED)
    ((count, oldest, newest),) = rows(
        tmp_path / "news.db", "SELECT count(*), min(time), max(time) FROM records"
    )
    if bound[0] == "--store-rows":
        assert count == 3000
    else:
        assert 2000 <= count < 12_000
        assert newest - oldest <= 2 * 86_400 or count == 2000
    oldest = 11_987 - count
    before = rows(unbounded / "news.db", "SELECT * FROM stories ORDER BY label")
    told = rows(unbounded / "news.db", f"SELECT label, other FROM events WHERE seq >= {oldest}")
    named = {label for event in told for label in event}
    kept = [story for story in before if story[8] is None or story[7] >= oldest or story[0] in named]
    assert rows(tmp_path / "news.db", "SELECT * FROM stories ORDER BY label") == kept
    assert len(kept) < 0.9 * len(before)
    found = rows(tmp_path / "news.db", "SELECT rowid FROM records_text WHERE records_text MATCH 'the'")
    assert all(rowid >= oldest for (rowid,) in found)
    assert rows(tmp_path / "news.db", "SELECT min(seq) FROM events") >= [(oldest,)]
    assert rows(tmp_path / "news.db", "SELECT count(*) FROM marks") <= [(20,)]
    for closed in ((), ("--closed",)):
        assert b"stories that have not ended before" in call(tmp_path, "stories", "news.db", *closed).stderr


def test_rows_of_a_bounded_store_after_sigkill_are_those_of_a_quiet_run(quiet: Path, tmp_path: Path) -> None:
    """What goes, and when, hangs on no process: the one killed removes at other moments."""
    bounded = *RUN, "--store-rows", "3000"
    still, folder, chance = tmp_path / "still", tmp_path / "killed", random.Random(5)
    for each in (still, folder):
        each.mkdir()
        beside(quiet, each)
    succeed(still, *bounded, **DECIDED)
    for size in (400_000, 1_100_000, 1_800_000):
        code = run_killed(folder, *bounded, size=size + chance.randrange(100_000), **DECIDED)
        assert code == -signal.SIGKILL
    succeed(folder, *bounded, **DECIDED)
    assert_same(everything(folder), everything(still))


def test_stories_that_somebody_may_ask_for_stay(tmp_path: Path) -> None:
    """Of those that ended with their last record gone: what a correction or an event that is kept names."""
    sink = StoreSink(str(tmp_path / "a.db"), bounds=Bounds(rows=10))
    lines = [assigned(seq, position={"record": seq}, cluster=min(seq // 10, 9)) for seq in range(1000)]
    ends = [ended(100, label, "closed") for label in (7, 3, 2, 4)] + [ended(100, 5, "merged", 6)]
    sink.write(Answers(lines, [], [*ends, ended(995, 9, "split", 4)]))
    named = {"what": "rename", "stories": "[3]", "records": "[]", "title": "A title"}
    sink.put("corrections", {"number": 1, **named, "who": "ann", "made": "2026-01-01", "seq": 20})
    sink.flush(sync=False)
    assert sink.removed == {"records": 990, "answers": 0, "events": 5, "stories": 3}
    sink.close()
    left = rows(tmp_path / "a.db", "SELECT label, size FROM stories ORDER BY label")
    assert [label for label, _ in left] == [0, 1, 3, 4, 6, 8, 9]  # 2, 5 and 7 went
    assert dict(left) == {label: 910 if label == 9 else 10 for label, _ in left}


def ended(seq: int, label: int, kind: str, other: int | None = None) -> Event:
    """An event, made up but for what is given."""
    times = {"time": float(seq), "first_time": 0.0, "last_time": float(seq)}
    return Event(event=kind, seq=seq, cluster=label, other=other, size=10, moved=None, **times)


def test_log_lines_and_vectors_are_stored(tmp_path: Path) -> None:
    lines = "".join(f"user {i} logged in\n" if i % 3 else f"disk {i} is full\n" for i in range(300))
    run = (
        "consume",
        "-",
        "--format",
        "text",
        "--likelihood",
        "template",
        "--output",
        "o",
        "--store",
        "log.db",
    )
    succeed(tmp_path, *run, stdin=lines.encode())
    assert rows(tmp_path / "log.db", "SELECT count(DISTINCT template) FROM records") == [(2,)]
    assert "user <num> logged in" in succeed(tmp_path, "stories", "log.db").decode()
    data = b"".join(b'{"vector": [%d, 0.5], "id": %d}\n' % (9 * (i % 2), i) for i in range(300))
    succeed(tmp_path, "consume", "-", "--output", "p", "--store", "v.db", "--no-store-search", stdin=data)
    assert rows(tmp_path / "v.db", "SELECT text, id FROM records LIMIT 1") == [("[0.0,0.5]", "0")]
    none = succeed(tmp_path, "stories", "v.db", "--search", "nothing", "--csv")
    assert none.startswith(b"story,title,")
    assert none.count(b"\n") == 1


def test_what_is_refused(quiet: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("no store")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    for name in ("notes", "other.db"):
        before = (tmp_path / name).read_bytes()
        code, message = fail(tmp_path, "consume", "-", "--output", f"of-{name}", "--store", name)
        assert code == 65
        assert "no store of streamdp" in message
        assert (tmp_path / name).read_bytes() == before
    text = b'{"text": "storm over the coast"}\n'
    run = ("consume", "-", "--output", "o", "--store", "news.db")
    succeed(tmp_path, *run, stdin=text)
    assert fail(tmp_path, "consume", "-", "--output", "p", "--store", "news.db", stdin=text)[0] == 73
    succeed(tmp_path, *run, "--overwrite", stdin=text)
    assert fail(tmp_path, "consume", "-", "--store", "o", "--output", "o")[0] == 64
    assert fail(tmp_path, "consume", "-", "--output", "q", "--store-days", "3")[0] == 64
    for version, advice in ((1, "begin anew"), (99, "upgrade it")):
        other = sqlite3.connect(tmp_path / "news.db")
        other.execute(f"PRAGMA user_version = {version}")
        other.close()
        with pytest.raises(StreamdpError, match=f"has schema {version}; .* {advice}"):
            check(str(tmp_path / "news.db"))
        with pytest.raises(StreamdpError, match=f"has tables of version {version}, not 2"):
            streamdp.stories(tmp_path / "news.db")
    assert "upgrade it" in fail(tmp_path, *run, "--overwrite", stdin=text)[1]
    state = ("consume", "-", "--output", "s", "--state", "st", "--store", "st.db")
    succeed(tmp_path, *state, stdin=text)
    (tmp_path / "st.db").rename(tmp_path / "kept.db")
    assert fail(tmp_path, *state, stdin=text)[0] == 65
    assert "--frozen" in fail(tmp_path, *state, "--frozen", stdin=text)[1]


def test_a_reader_elsewhere_leaves_a_store_whole_that_is_read_and_written_here(tmp_path: Path) -> None:
    """SQLite's locks end with any descriptor of the file: the reader would remove the log."""
    path, seen = tmp_path / "news.db", list[str]()
    count = "SELECT count(*) FROM records"
    command = f"import sqlite3; print(*sqlite3.connect('{path}').execute('{count}').fetchone())"
    sink = StoreSink(str(path))
    try:
        for seq in range(3):
            sink.write(Answers([assignment(seq)], [], []))
            sink.flush(sync=False)
            assert sum(story.records for story in streamdp.stories(path)) == seq + 1
            done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
            seen.append(done.stdout)
    finally:
        sink.close()
    assert [int(each) for each in seen] == [1, 2, 3]


def test_stories_of_which_the_first_records_have_no_time(tmp_path: Path) -> None:
    sink = StoreSink(str(tmp_path / "a.db"))
    answers = [assignment(seq) for seq in range(1020)]
    timeless = [msgspec.structs.replace(answer, time=None) for answer in answers[:10]]
    sink.write(Answers([*timeless, *answers[10:]], [], []))
    sink.close()
    (story,) = streamdp.stories(tmp_path / "a.db", stretch=100.0)
    assert (story.records, story.began_time, story.now, story.before) == (1020, 10.0, 100, 100)


def test_a_store_behind_its_state_is_refused(tmp_path: Path) -> None:
    sink = StoreSink(str(tmp_path / "a.db"))
    left = sink.state() | {"lines": 5}
    sink.close()
    with pytest.raises(Exception, match="lacks what this state has written"):
        StoreSink(str(tmp_path / "a.db"), left)


def test_a_store_of_another_input_is_refused(tmp_path: Path) -> None:
    """An input that was replaced before the first snapshot has other records behind the same positions."""
    run = ("consume", "in.jsonl", "--output", "out", "--state", "st", "--store", "news.db")
    write_headlines(tmp_path / "in.jsonl", 12_000)
    assert run_killed(tmp_path, *run, size=1_000_000) == -signal.SIGKILL
    held = rows(tmp_path / "news.db", "SELECT * FROM records")
    assert held
    write_headlines(tmp_path / "in.jsonl", 12_000, seed=2)
    done = call(tmp_path, *run)
    assert done.returncode == 65
    assert b"news.db holds other records" in done.stderr.splitlines()[-1]
    assert rows(tmp_path / "news.db", "SELECT * FROM records") == held
    write_headlines(tmp_path / "in.jsonl", 12_000)
    succeed(tmp_path, *run)
    assert rows(tmp_path / "news.db", "SELECT count(*) FROM records") == [(12_000,)]


def assignment(seq: int) -> Assignment:
    return assigned(seq, position={"record": seq}, new=seq == 0)


def test_a_bound_leaves_what_may_be_revised(tmp_path: Path) -> None:
    sink = StoreSink(str(tmp_path / "a.db"), bounds=Bounds(rows=10, open_for=50))
    sink.taken(Columns.of([Record(f"text {seq}", {"record": seq}) for seq in range(200)]))
    sink.write(Answers([assignment(seq) for seq in range(200)], [], []))
    sink.close()
    assert rows(tmp_path / "a.db", "SELECT count(*) FROM records") == [(50,)]


def test_the_log_of_a_service_goes_over_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While others write: then the log is begun anew, and holds nothing for ever."""
    sizes, held = [], []
    for name, every in (("left", 600.0), ("carried", 0.005)):
        monkeypatch.setattr("streamdp_connectors.store.carrier.EVERY", every)
        sink = StoreSink(str(tmp_path / name))
        sink.suit_service()
        for seq in range(400):
            sink.write(Answers([assignment(seq)], [], []))
            sink.flush(sync=False)
            time.sleep(0.05 if seq % 40 == 39 else 0.0)
        sizes.append((tmp_path / f"{name}-wal").stat().st_size)
        sink.close()
        held.append(rows(tmp_path / name, "SELECT seq, label FROM records"))
    assert sizes[1] < 0.5 * sizes[0]
    assert held[0] == held[1] == [(seq, 0) for seq in range(400)]
    assert not [thread for thread in threading.enumerate() if thread.name == "streamdp-store"]


def test_what_was_corrected_is_in_the_store_once(quiet: Path, tmp_path: Path) -> None:
    """Whatever is killed: each with its position, one that was refused with why."""
    lines = (quiet / "in.jsonl").read_bytes().splitlines(keepends=True)
    half = b"".join(lines[:2000])
    (tmp_path / "in.jsonl").write_bytes(half)
    succeed(tmp_path, *RUN, **EVERY)
    first, second = (story["label"] for story in parsed(succeed(tmp_path, "stories", "st", "--json"))[:2])
    for what in (
        ("rename", str(first), "The bridge"),
        ("pin", str(second)),
        ("keep-apart", str(first), str(second)),
    ):
        succeed(tmp_path, "correct", "st", *what, "--who", "ann")
    contrary = Correction(what="merge", stories=(first, second))
    CorrectionsFile(tmp_path / "st", 0).append(contrary)  # which ``correct`` would not have taken
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines[:6000]))
    told = "SELECT number, what, stories, title, who, seq, refused FROM corrections ORDER BY number"
    wanted = [
        (1, "rename", f"[{first}]", "The bridge", "ann", 1998, None),
        (2, "pin", f"[{second}]", None, "ann", 1998, None),
        (3, "keep-apart", f"[{first},{second}]", None, "ann", 1998, None),
    ]
    size = (tmp_path / "out").stat().st_size + 50_000
    assert run_killed(tmp_path, *RUN, size=size, **EVERY) == -signal.SIGKILL
    succeed(tmp_path, *RUN, **EVERY)
    *taken, (number, what, _, _, _, seq, refused) = rows(tmp_path / "news.db", told)
    assert taken == wanted
    assert (number, what, seq) == (4, "merge", 1998)
    assert "correction 3" in refused
    made = rows(tmp_path / "news.db", "SELECT made FROM corrections")
    assert all(time.endswith("Z") for (time,) in made[:3])
