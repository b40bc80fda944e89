"""Input of which nothing can be used ends with 65 and with what to do; ``check`` says it beforehand."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from commands import call, fail, newest_lines, succeed

from streamdp.decode.decoder import Decoder
from streamdp.records import Raw, Reject
from streamdp.run import recognise
from streamdp.run.hints import hint
from streamdp.settings import Settings


def refused(data: bytes, settings: Settings, header: list[str] | None = None) -> list[Reject]:
    decoder = Decoder("csv" if header else "jsonl", text_field=settings.text_field, header=header)
    found = decoder.decode(Raw(data, {"line": 1}, 0.0))
    assert isinstance(found, Reject)
    return [found]


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"a line of a log", "--format text"),
        (b'{"headline": "storm over coast", "ts": 5}', "try --text-field headline"),
        (b'{"txt": "storm", "a_long_title": "storm over the coast"}', "try --text-field txt"),
        (b'{"embedding": [1, 2], "n": 5}', "try --vector-field embedding"),
        (b'{"n": 5}', "its fields are 'n'"),
        (gzip.compress(b"text", mtime=0), "looks like gzip"),
        (b"PK\x03\x04more", "zip archive"),
        (b"\xff\xfe\x00", "no text"),
    ],
)
def test_hints(data: bytes, part: str) -> None:
    settings = Settings()
    assert part in hint(refused(data, settings), settings, "jsonl", ())


def test_what_is_inside_other_objects_is_brought_up(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"data": {"body": "a storm"}, "n": 1}\n')
    said = call(tmp_path, "check", "in.jsonl").stdout.decode()
    assert "hint: its fields are 'data', 'n': jq -c '.data + .' brings up what 'data' holds\n" in said


def test_a_time_that_is_not_known_is_none(tmp_path: Path) -> None:
    times = ["2026-03-01", "NA", "2026-03-02", "NULL", "n/a", "", "-", "2026-03-03"]
    (tmp_path / "in.csv").write_text("When,Headline\n" + "".join(f"{t},storm on the coast\n" for t in times))
    done = call(tmp_path, "consume", "in.csv")
    assert b"times from 'When'" in done.stderr
    assert b"refused" not in done.stderr
    assert done.stdout.count(b'"revision":0') == len(times)


def test_objects_of_opentelemetry_have_a_format_of_their_own() -> None:
    settings, data = Settings(), b'{"resourceLogs": []}'
    assert "--format otlp" in hint(refused(data, settings), settings, "jsonl", ())
    long = Reject({}, "too_large", "it holds more than 100,000 log records", data)
    assert hint([long], settings, "otlp", ()) == ""


def test_hints_on_columns() -> None:
    settings, header = Settings(), ["time", "headline", "n"]
    rejects = refused(b"1,storm over coast,5", settings, header)
    assert "try --text-field headline" in hint(rejects, settings, "csv", header)
    assert hint([], settings, "csv", header) == ""
    told = hint(rejects, Settings(text_field="titel"), "csv", ["time", "the headline", "n"])
    assert told.startswith("there is no column 'titel'; its columns are 'time', 'the headline', 'n'")
    assert told.endswith("try --text-field 'the headline'")
    for first in (["2026-01-05 09:00", "storm"], ["17", "storm"]):
        assert "looks like a record" in hint(refused(b"1,storm", settings, first), settings, "csv", first)


def test_a_wrong_name_of_the_column_of_texts_leaves_nothing_behind(tmp_path: Path) -> None:
    """So the corrected command needs no other options, and a table of numbers needs no such column."""
    (tmp_path / "in.csv").write_text("headline,n\nstorm over coast,5\nlate goal,6\n")
    run = ("consume", "in.csv", "--output", "o", "--events", "e", "--state", "st", "--store", "s.db")
    code, message = fail(tmp_path, *run, "--text-field", "titel")
    assert code == 65
    assert "there is no column 'titel'; its columns are 'headline', 'n': try --text-field headline" in message
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    succeed(tmp_path, *run, "--text-field", "headline")
    assert len((tmp_path / "o").read_bytes().splitlines()) >= 2
    (tmp_path / "in.csv").write_text("x,y\n1,5\nfew,6\n3,7\n")
    succeed(tmp_path, "consume", "in.csv", "--output", "p")
    assert b"few,6" in (tmp_path / "p.rejects.jsonl").read_bytes()


def test_a_column_to_keep_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("time,text\n5,storm over coast\n")
    line = "--keep: there is no column 'author'; its columns are 'time', 'text'"
    for command in ("check", "consume", "fit"):
        assert fail(tmp_path, command, "in.csv", "--keep", "text,author") == (65, f"streamdp: {line}\n")
    assert "--keep" not in call(tmp_path, "consume", "in.csv", "--keep", "text").stderr.decode()


@pytest.mark.parametrize("flag", ["--text-field", "--time-field", "--id-field", "--keep", "--truth-field"])
def test_an_option_names_a_column_that_a_table_has(tmp_path: Path, flag: str) -> None:
    data = "x,y,Headlines\n1,2,a\n3,4,b\n"
    (tmp_path / "in.csv").write_text(data)
    line = f"streamdp: {flag}: there is no column 'headline'; its columns are 'x', 'y', 'Headlines'"
    wanted = (65, f"{line}: try {flag} Headlines\n")
    assert fail(tmp_path, "consume", "in.csv", flag, "headline", "--state", "st") == wanted
    assert not (tmp_path / "st").exists()
    piped = ("consume", "-", "--format", "csv", flag, "headline")
    assert fail(tmp_path, *piped, stdin=data.encode()) == wanted


def test_a_field_that_no_line_of_a_log_has_is_told(tmp_path: Path) -> None:
    lines = [f"2026-11-20 08:00:{n:02} INFO [main] db: pool has {n} of 16 busy" for n in range(40)]
    (tmp_path / "app.log").write_text("\n".join(lines) + "\n")
    done = call(tmp_path, "consume", "app.log", "--keep", "levl,level", "--output", "out")
    assert b"--keep: no record so far has a field 'levl'; they have 'level'\n" in done.stderr
    assert done.stderr.count(b"no record so far") == 1


def test_a_log_that_settings_make_none_is_told(tmp_path: Path) -> None:
    lines = [f"2026-11-20 08:00:{n:02} INFO [main] db: pool has {n} of 16 busy" for n in range(40)]
    (tmp_path / "app.log").write_text("\n".join(lines) + "\n")
    done = call(tmp_path, "consume", "app.log", "--beam", "4", "--output", "out")
    assert b"app.log looks like a log, and is not read as one: beam has no meaning" in done.stderr


def test_a_field_that_no_object_has_is_told_after_the_first(tmp_path: Path) -> None:
    data = b'{"vector": [1, 2], "n": 1}\n{"vector": [2, 1]}\n'
    done = call(tmp_path, "consume", "-", "--text-field", "headline", "--keep", "n,m", stdin=data)
    said = done.stderr.decode()
    assert done.returncode == 0
    assert "--text-field: no record so far has a field 'headline'; they have 'vector', 'n'" in said
    assert "--keep: no record so far has a field 'm'; they have" in said
    assert "'n';" not in said


@pytest.mark.parametrize(
    ("name", "data", "part", "more"),
    [
        ("in.jsonl", b"one line\nanother line\n", "--format text", ()),
        ("in.csv", b"time,place\n1,Rome\n", "--text-field place", ()),
        (
            "in.jsonl",
            b'{"text": "storm over coast"}\n',
            "--likelihood gaussian",
            ("--likelihood", "gaussian"),
        ),
        ("in.jsonl", bytes(range(256)) * 9, "no text", ()),
    ],
)
def test_a_run_without_any_answer_ends_with_65(
    tmp_path: Path, name: str, data: bytes, part: str, more: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(data)
    done = call(tmp_path, "consume", name, *more)
    assert done.returncode == 65
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("streamdp: ") for line in lines)
    assert part in lines[-1]
    told = call(tmp_path, "check", name, *more)
    assert told.returncode == 65
    assert part in (told.stdout + told.stderr).decode()
    failed = call(tmp_path, "fit", name, *more)
    assert failed.returncode == 65
    assert part in failed.stderr.decode()


def test_what_was_detected(tmp_path: Path) -> None:
    rows = [f"{1_700_000_000_000 + 1000 * i - 1500 * (i % 3)}\tstorm {i} over the coast" for i in range(50)]
    (tmp_path / "in.tsv").write_text("when\theadline\n" + "\n".join([*rows, "soon\tbad"]) + "\n")
    options = ("--text-field", "headline", "--time-field", "when")
    told = succeed(tmp_path, "check", "in.tsv", *options).decode()
    for part in (
        "in.tsv: tsv, all 51 records looked at",
        "columns: 'when', 'headline'",
        "clustered by: texts, from 'headline'",
        "times: from 'when', 2023-11-14",
        "--max-lateness 1 would have put",
        "storm | 0 | over | the | coast",
        "refused: 1 bad_time",
        "line 52: ",
    ):
        assert part in told, part
    answers = succeed(tmp_path, "consume", "in.tsv", *options)
    assert answers.count(b'"revision":0') == 50


def test_the_settings_in_force_are_a_settings_file(tmp_path: Path) -> None:
    chosen = ("--beam", "4", "--keep", 'a,b"c', "--decay-scale", "100", "--seed", "7")
    printed = succeed(tmp_path, "check", *chosen)
    (tmp_path / "streamdp.toml").write_bytes(printed)
    assert succeed(tmp_path, "check") == printed
    text = printed.decode()
    assert "\nbeam = 4\n" in text
    assert '\n# stem = "auto"\n' in text
    assert "HierarchicalPitmanYor(" in text
    assert "Exponential(scale=100.0)" in text


def test_a_settings_file_for_lines_of_logs(tmp_path: Path) -> None:
    printed = succeed(tmp_path, "check", "--format", "log").decode()
    assert "# lines: templates, concentration 1, discount 0.3" in printed


@pytest.mark.parametrize("said", [(), ("--format", "csv")])
def test_the_columns_of_a_table_in_a_pipe_are_recognised(tmp_path: Path, said: tuple[str, ...]) -> None:
    rows = [f"g{i},2026-03-01T10:{i:02}:00Z,storm hits the coast {i}" for i in range(9)]
    data = "\n".join(["guid,published,title", *rows, ""]).encode()
    done = call(tmp_path, "consume", "-", *said, "--keep", "title", stdin=data)
    assert b"reads texts from 'title', times from 'published', ids from 'guid'" in done.stderr
    first = newest_lines(done.stdout)[0]
    assert (first["id"], first["keep"]) == ("g0", {"title": "storm hits the coast 0"})


TRADES = "".join(
    f"{n},{('DE', 'FR')[n % 2]},{('fuel', 'food', 'fuel')[n % 3]},{n % 7 + 0.5}\n" for n in range(30)
)


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
def test_words_that_repeat_are_offered_as_categories(tmp_path: Path, name: str) -> None:
    """A number that only rises is that of the record."""
    rows = [line.split(",") for line in TRADES.splitlines()]
    objects = [{"row": int(a), "country": b, "goods": c, "amount": float(d)} for a, b, c, d in rows]
    lines = "\n".join(map(json.dumps, objects))
    (tmp_path / name).write_text(f"row,country,goods,amount\n{TRADES}" if name == "in.csv" else lines)
    code, message = fail(tmp_path, "consume", name)
    assert code == 65
    assert "try --fields country,goods --numbers amount" in message
    succeed(tmp_path, "check", name, "--fields", "country,goods", "--numbers", "amount")


def test_a_folder_is_recognised_by_its_first_file(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    for day in (3, 4):
        line = (
            f'{{"published": "2026-03-0{day}", "title": "storm hits the coast", "source": "a longer one"}}\n'
        )
        (tmp_path / "days" / f"{day}.jsonl").write_text(line * 2)
    done = call(tmp_path, "check", "days")
    assert b"days: reads texts from 'title', times from 'published'" in done.stderr
    code, message = fail(tmp_path, "consume", "days/*.jsonl")
    assert (code, message) == (
        66,
        "streamdp: cannot open days/*.jsonl: name one file, or their folder, days\n",
    )


@pytest.mark.parametrize(
    ("data", "written"),
    [
        ("Storm, they say, hits\nthe coast, late\nno comma\n", "text"),
        ("storm\nstorm\n", "text"),
        ("when;what\n2026-03-01;storm hits; not\n2026-03-02;goal\n2026-03-03;vote\n", "text"),
        ("when|what\n2026-03-01|storm hits\n2026-03-02|goal\n", "psv"),
        ('when;what\n2026-03-01;"storm\nhits"\n2026-03-02;goal\n2026-03-03;vote\n', "ssv"),
        ('{"text": "storm"}\n', "jsonl"),
        ("# Notes\n- storm hits\n- late goal\n", "text"),
    ],
)
@pytest.mark.parametrize("name", ["notes", "-"])
def test_what_has_no_ending_is_known_by_its_lines(tmp_path: Path, data: str, written: str, name: str) -> None:
    (tmp_path / "notes").write_text(data)
    done = call(tmp_path, "check", name, stdin=data.encode())
    assert done.stdout.decode().startswith(f"{name}: {written}, all"), done.stderr


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        ("From ann@example.org Mon Dec  1 08:00:00 2025\nTo: bob\n", "a mailbox"),
        ("From: ann@example.org\nSubject: a\n storm\nDate: Mon, 1 Dec 2025\n\nhello\n", "a mail"),
        ('<?xml version="1.0"?>\n<rss></rss>\n', "XML"),
        ("<!DOCTYPE html>\n<html></html>\n", "a page of HTML"),
    ],
)
def test_files_of_other_programs_are_refused_before_anything_is_written(
    tmp_path: Path, begin: str, what: str
) -> None:
    (tmp_path / "in").write_text(begin)
    code, message = fail(tmp_path, "consume", "in", "--output", "o")
    assert code == 65
    assert message.startswith(f"streamdp: in is {what}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,text,,,text.1,text\na storm,b,,,c,d\na storm,b,,,c,d\n")
    said = call(tmp_path, "check", "in.csv").stdout.decode()
    assert "columns: 'text', 'text.2', '', '', 'text.1', 'text.3'\n" in said
    assert "clustered by: texts, from 'text'\n" in said


def test_what_is_copied_is_read_all_the_same(tmp_path: Path) -> None:
    """A class that is known is not."""
    rows = [
        {
            "title": f"storm {n} on the coast",
            "kind": "a b c d e f",
            "published": 1e9 + n,
            "summary": "it blew",
        }
        for n in range(9)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = ("consume", "in.jsonl", "--keep", "title,published", "--truth-field", "kind")
    done = call(tmp_path, *run)
    assert b"reads texts from 'title' (not 'summary'), times from 'published'" in done.stderr
    assert newest_lines(done.stdout)[0]["keep"]["title"] == "storm 0 on the coast"
    for row in rows:
        del row["title"], row["summary"]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert b"texts" not in call(tmp_path, *run).stderr


def test_of_nothing_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    assert (
        "there are no records: nothing would be clustered"
        in call(tmp_path, "check", "in.jsonl").stdout.decode()
    )


@pytest.mark.parametrize("lacking", [(os, "memfd_create"), (tempfile, "NamedTemporaryFile")])
def test_what_comes_is_copied_to_memory_or_to_a_file(
    monkeypatch: pytest.MonkeyPatch, lacking: tuple[Any, str]
) -> None:
    """Folders may all be closed to writing, and not every system has files in memory."""
    if not hasattr(os, "memfd_create") and lacking[0] is tempfile:
        pytest.skip("this system has no files in memory")
    monkeypatch.delattr(*lacking, raising=False)
    monkeypatch.setattr(recognise, "_awaited", lambda: [b'{"title": "storm on the coast"}'] * 3)
    assert recognise.recognised(Settings(), "-").text_field == "title"
