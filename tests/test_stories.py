"""``streamdp stories``: of a state and of files of answers, in every form."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import call, fail, parsed, succeed
from hypothesis import given, settings
from hypothesis import strategies as st

import streamdp
from streamdp.decode.answered import answers_in
from streamdp.records.cells import as_it_was, harmless
from streamdp.reports.source import StoriesError
from streamdp.story.answers import Spoken

START = 1_767_225_600  # 2026-01-01

TALES = ("storm hits coast flood wave", "election vote count ballot", "goal match striker cup")


def headlines(n: int = 600) -> bytes:
    """Three stories, one after the other, a record a minute; the first has a formula for a headline."""
    lines = []
    for i in range(n):
        text = f"{TALES[3 * i // n]} report{i % 7}"
        lines.append({"id": f"r{i}", "time": START + 60 * i, "text": f"={text}" if i == 5 else text})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state, answers with their texts in two forms, and answers without."""
    folder = tmp_path_factory.mktemp("told")
    (folder / "in.jsonl").write_bytes(headlines())
    run = ("consume", "in.jsonl", "--decay", "window", "--decay-scale", "150")
    succeed(folder, *run, "--state", "st", "--events", "events", "--output", "bare.jsonl")
    succeed(folder, *run, "--keep", "text", "--output", "out.jsonl")
    succeed(folder, *run, "--keep", "text", "--output", "out.csv")
    return folder


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


@pytest.mark.parametrize("path", ["st", "out.jsonl", "out.csv"])
def test_a_table_of_stories(told: Path, path: str) -> None:
    shown = succeed(told, "stories", path, "--now", "1h").decode()
    assert "now: the last 1 hour, to 2026-01-01T09:59:00Z" in shown
    assert re.search(
        r"goal match striker cup.* 200 .* 60 .*2026-01-01T06:40:00Z .*2026-01-01T09:59:00Z", shown
    )


@pytest.mark.parametrize("path", ["out.jsonl", "out.csv"])
def test_a_file_of_answers_knows_all_stories_and_records(told: Path, path: str) -> None:
    found = rows(succeed(told, "stories", path, "--csv", "--now", "2h"))
    assert [row["records"] for row in found] == ["200", "200", "200"]
    assert [row["began"] for row in found] == [
        f"2026-01-01T{hour}:00Z" for hour in ("00:00", "03:20", "06:40")
    ]
    assert found[0]["last"] == "2026-01-01T03:19:00Z"
    assert (found[2]["now"], found[2]["before"], found[0]["trend"]) == ("120", "80", "silent")
    assert set(found[1]["keywords"].split()) >= {"election", "vote", "ballot"}
    records = rows(succeed(told, "stories", path, "--records", "--csv", "--search", "election"))
    assert [row["id"] for row in records] == [f"r{i}" for i in range(200, 400)]
    assert records[0]["time"] == "2026-01-01T03:20:00Z"
    assert records[0]["text"] == "election vote count ballot report4"


def test_what_python_reads_is_what_the_command_prints(told: Path) -> None:
    found = streamdp.stories(told / "out.jsonl", stretch=3600.0)
    assert found.rows() == streamdp.stories(told / "out.csv", stretch=3600.0).rows()
    printed = parsed(succeed(told, "stories", "out.jsonl", "--json", "--now", "1h"))
    assert [story["title"] for story in printed] == [story.title for story in found]
    live = streamdp.stories(told / "st")
    assert {story.label for story in live} < {story.label for story in found}
    with pytest.raises(StoriesError, match="cannot be read"):
        streamdp.stories(told / "none")


def test_which_stories(told: Path) -> None:
    def titles(*options: str) -> list[str]:
        return [
            row["title"].split()[0] for row in rows(succeed(told, "stories", "out.jsonl", "--csv", *options))
        ]

    assert titles("--growing", "--now", "4h") == ["goal"]
    assert titles("--since", "3h") == ["goal"]
    assert titles("--since", "2026-01-01T05:00:00Z") == ["election", "goal"]
    assert titles("--until", "2026-01-01T01:00Z") == ["storm"]
    assert titles("--sort", "new", "--limit", "2") == ["goal", "election"]
    assert titles("--search", "BALLOT vote") == ["election"]
    assert titles("--search", "ballot storm") == []


def test_nothing_is_cut_without_a_word(told: Path) -> None:
    done = call(told, "stories", "out.jsonl", "--limit", "1")
    assert b"2 stories not shown (--limit 3 shows all)" in done.stderr
    assert b"--limit" not in call(told, "stories", "out.jsonl", "--csv").stderr
    assert (
        b"3 stories of fewer than 300 records left out"
        in call(told, "stories", "out.csv", "--least", "300").stderr
    )
    assert b"no story was found" in call(told, "stories", "out.jsonl", "--search", "xyzzy").stderr
    assert b"a state has some texts: " in call(told, "stories", "st", "--records").stderr
    assert b"the answers keep no text" in call(told, "stories", "bare.jsonl").stderr
    closed = call(told, "stories", "st", "--closed")
    assert b"storm hits coast" in closed.stdout
    assert b"the last 100 that ended" in closed.stderr
    assert b"--events or --store" in call(told, "stories", "out.jsonl", "--closed").stderr


def test_one_story_whole(told: Path) -> None:
    (story,) = parsed(succeed(told, "stories", "out.jsonl", "--search", "election", "--json"))
    shown = succeed(told, "stories", "out.jsonl", "--story", str(story["label"])).decode()
    assert (
        "200 records; began {0}3:20:00Z, peak {0}3:59:00Z, last {0}6:39:00Z\n".format("2026-01-01T0") in shown
    )
    assert shown.count(" report") >= 200
    some = call(told, "stories", "out.jsonl", "--story", str(story["label"]), "--limit", "3")
    assert some.stdout.count(b" report") < 10
    assert b"the latest 3 of 200 records" in some.stderr
    code, message = fail(told, "stories", "out.jsonl", "--story", "99999")
    assert code == 66
    assert "no story 99999" in message
    (ended,) = parsed(succeed(told, "stories", "st", "--closed", "--search", "storm", "--json"))
    shown = succeed(told, "stories", "st", "--story", str(ended["label"])).decode()
    assert shown.startswith(f"story {ended['label']}, which has ended: {ended['title']}\n")


def test_pages_and_tables_are_harmless_where_they_are_opened(told: Path, tmp_path: Path) -> None:
    nasty = ["=HYPERLINK(A9)", "<script>alert(1)</script>", "\x1b]0;owned\x07 title"]
    lines = [{"text": text, "time": START + i} for i, text in enumerate(nasty * 4)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    succeed(tmp_path, "consume", "in.jsonl", "--state", "st", "--keep", "text", "--output", "out.jsonl")
    for path in ("st", "out.jsonl"):
        for options in ((), ("--records",)):
            succeed(tmp_path, "stories", path, "--report", "r.html", "--overwrite")
            page = (tmp_path / "r.html").read_text()
            assert "<script" not in page
            assert "&lt;script&gt;" in page
            table = succeed(tmp_path, "stories", path, "--csv", *options).decode()
            assert "'=HYPERLINK" in table
            assert not re.search(r"(^|,)[=+@-]", table)
            assert "\x1b" not in succeed(tmp_path, "stories", path, *options).decode()


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        (("stories",), 69, "does not answer"),
        (("stories", "--records"), 64, "is a service: for --records name its --state or --store"),
        (("stories", "--report", "r.html"), 64, "is a service: for --report name its --state or --store"),
        (("diff", "--since", "1h"), 64, "is an address"),
    ],
)
def test_an_address_is_that_of_a_service(tmp_path: Path, said: tuple[str, ...], code: int, why: str) -> None:
    found, message = fail(tmp_path, said[0], "http://127.0.0.1:9", *said[1:])
    assert (found, message.count("\n")) == (code, 1)
    assert why in message


def test_harmless_cells() -> None:
    cells: list[Any] = ["=1+1", "+1", "-x", "@a", "\tx", "a\nb", "plain", -3, None, 0.5]
    assert [harmless(cell) for cell in cells] == [
        *("'=1+1", "'+1", "'-x", "'@a", "'\tx", "a b", "plain", -3, None, 0.5)
    ]


@given(st.text("'=+-@ a1\t"))
def test_what_a_harmless_cell_said_is_found_again(text: str) -> None:
    assert not harmless(text).startswith(("=", "+", "-", "@", "\t"))
    assert as_it_was(harmless(text)) == text


def test_no_table_holds_formulas_and_its_records_are_found(tmp_path: Path) -> None:
    """Answers, the tables of a state, stories: read again by what the records say."""
    lines = [{"id": f"=cmd{i}", "text": "=HYPERLINK(1) storm coast", "k": "+1"} for i in range(5)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (tmp_path / "in.jsonl").write_bytes(data)
    succeed(tmp_path, "consume", "in.jsonl", "--output", "o.csv", "--state", "st", "--keep", "k")
    succeed(tmp_path, "state", "export", "st", "--into", "tables", "--format", "csv")
    tables = [tmp_path / "o.csv", *(tmp_path / "tables").iterdir()]
    cells = [cell for path in tables for row in csv.reader(path.open()) for cell in row]
    assert "'=cmd0" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    assert b"'=HYPERLINK(1) storm coast" in b"".join(path.read_bytes() for path in tables)
    assert [answer.id for _, answer in answers_in(tmp_path / "o.csv", StoriesError)] == [
        f"=cmd{i}" for i in range(5)
    ]
    succeed(tmp_path, "erase", "st", "o.csv", "--id", "=cmd3")
    assert b"cmd3" not in (tmp_path / "o.csv").read_bytes()


def test_wrong_options_are_refused(told: Path) -> None:
    assert fail(told, "stories", "st", "--csv", "--json")[0] == 64
    assert "neither ISO 8601" in fail(told, "stories", "st", "--since", "soon")[1]
    assert "no length of time" in fail(told, "stories", "st", "--now", "-1h")[1]
    assert fail(told, "stories", "in.jsonl")[0] == 65
    assert fail(told, "stories", "nowhere")[0] == 66


def test_records_without_times_are_numbered(tmp_path: Path) -> None:
    texts = "".join(f"{TALES[i % 3]} {i % 5}\n" for i in range(90))
    succeed(
        tmp_path, "consume", "-", "--format", "text", "--state", "st", "--output", "o", stdin=texts.encode()
    )
    assert "record 0" in succeed(tmp_path, "stories", "st").decode()
    assert "need records with times" in fail(tmp_path, "stories", "st", "--since", "6h")[1]


@pytest.fixture(scope="module")
def stored(told: Path) -> Path:
    """The same stream in a store, too."""
    run = (
        "consume",
        "in.jsonl",
        "--decay",
        "window",
        "--decay-scale",
        "150",
        "--store",
        "all.db",
        "--state",
        "s2",
    )
    succeed(told, *run, "--output", "again.jsonl")
    return told


@pytest.mark.parametrize("path", ["st", "all.db"])
def test_a_search_finds_stories_that_ended(stored: Path, path: str) -> None:
    ended = rows(succeed(stored, "stories", path, "--search", "coast storm", "--csv"))
    assert [row["ended"] for row in ended] == ["True"]
    assert "ended" in succeed(stored, "stories", path, "--search", "coast storm").decode()
    live = rows(succeed(stored, "stories", path, "--search", "striker", "--csv"))
    assert [row["ended"] for row in live] == ["False"]


@pytest.mark.parametrize("path", ["st", "all.db"])
def test_all_stories_are_shown_latest_activity_first(stored: Path, path: str) -> None:
    found = rows(succeed(stored, "stories", path, "--all", "--csv"))
    assert [row["last"] for row in found] == sorted((row["last"] for row in found), reverse=True)
    assert {row["ended"] for row in found} == {"True", "False"}
    alone = [rows(succeed(stored, "stories", path, "--csv", *more)) for more in ((), ("--closed",))]
    assert sorted(row["story"] for row in found) == sorted(row["story"] for each in alone for row in each)
    assert "live and ended stories" in succeed(stored, "stories", path, "--all").decode()


@pytest.mark.parametrize("path", ["st", "all.db", "out.jsonl"])
@pytest.mark.parametrize("now", ["1s", "7m", "90m", "1h", "3d"])
def test_a_peak_is_between_the_first_record_and_the_last(stored: Path, path: str, now: str) -> None:
    for more in ((), ("--closed",)):
        for row in rows(succeed(stored, "stories", path, "--least", "1", "--csv", "--now", now, *more)):
            assert row["began"] <= (row["peak"] or row["began"]) <= row["last"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TALES), st.integers(0, 90_000)), min_size=3, max_size=40),
    st.floats(0.5, 40_000),
)
def test_began_peak_and_last_are_in_order(records: list[tuple[str, int]], stretch: float) -> None:
    engine = streamdp.Engine(streamdp.Settings(max_lateness=10.0))
    given = [streamdp.Record(text, {"line": i}, float(time)) for i, (text, time) in enumerate(records)]
    engine.advance(given)
    engine.finish()
    for story in engine.stories(stretch=stretch):
        assert story.began_time is not None
        assert story.peak_time is not None
        assert story.last_time is not None
        assert story.began_time <= story.peak_time <= story.last_time


def test_keywords_of_a_file_are_no_words_of_grammar() -> None:
    said = [
        (1, "Der Streik der Bahn und der Zug"),
        (1, "Wie der Streik die Züge der Bahn trifft"),
        (2, "女排的冠军和女排"),
        (2, "冠军是女排的"),
        (2, "..."),
    ]
    found = Spoken.of((seq, label, text) for seq, (label, text) in enumerate(said))
    assert found.keywords()[1] == ["streik", "bahn"]
    assert {"女排", "冠军"} <= set(found.keywords()[2])
    assert not any(set("的是和") & set(word) for word in found.keywords()[2])
    assert not found.records[4]
