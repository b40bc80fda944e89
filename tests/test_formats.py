"""docs/formats.md and docs/input.md say what the program does: their tables are read and compared."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from commands import assignments, call
from streamdp_connectors.files.sink import reject_line

from streamdp.errors import Exit
from streamdp.records import Assignment, ClusterSummary, Reject
from streamdp.run.reading import format_of
from streamdp.run.recognise import recognised
from streamdp.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("formats.md", "input.md"))


def section(title: str) -> str:
    return re.split(r"^## ", PAGE, flags=re.M)[
        [s.split("\n")[0] for s in re.split(r"^## ", PAGE, flags=re.M)].index(title)
    ]


def table(title: str) -> list[list[str]]:
    """The rows of a section's first table, without the two of its head."""
    lines = section(title).splitlines()
    begun = itertools.dropwhile(lambda line: not line.startswith("|"), lines)
    rows = list(itertools.takewhile(lambda line: line.startswith("|"), begun))
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def names(title: str) -> list[str]:
    return [row[0].strip("`") for row in table(title)]


@pytest.mark.parametrize(
    ("title", "struct"), [("Assignments", Assignment), ("Live clusters", ClusterSummary)]
)
def test_every_field_is_documented(title: str, struct: type) -> None:
    assert set(names(title)) == set(struct.__struct_fields__)  # type: ignore[attr-defined]


def test_rejects() -> None:
    text = reject_line(Reject({}, "empty", "", b"text"))
    other = reject_line(Reject({}, "empty", "", b"\xff"))
    found = set(re.findall(rb'"(\w+)":', text) + re.findall(rb'"(\w+)":', other))
    assert {name.decode() for name in found} == set(names("Rejects"))


def test_exit_codes() -> None:
    told = {row[1].strip("`"): int(row[0]) for row in table("Exit status") if row[1]}
    assert told == {code.name: code.value for code in Exit}


@pytest.mark.parametrize("row", table("Formats"), ids=lambda row: row[0])
def test_formats_are_chosen_by_name(row: list[str], tmp_path: Path) -> None:
    wanted = row[0].strip("`")
    for ending in re.findall(r"`(\.\w+)`", row[1]) or [".jsonl", ".json", ""]:
        for packed in ("", ".gz", ".zst"):
            file = tmp_path / f"file{ending}{packed}"
            file.touch()
            assert format_of(recognised(Settings(), str(file)), str(file)) == wanted


HEADLINES = [
    ("Storm; coast flooded", "2026-03-01T10:00:00Z"),
    ("Rover lands, at last", "2026-03-01T11:30:00+00:00"),
    ('The "grand" final', "2026-03-02"),
]


def table_of(delimiter: str, *more: str) -> str:
    """A table of headlines, with the first cell of more columns."""
    head = delimiter.join(["headline", *[f"column{i}" for i, _ in enumerate(more)], "published"])
    rows = [
        delimiter.join(['"' + text.replace('"', '""') + '"', *more, moment]) for text, moment in HEADLINES
    ]
    return "\n".join([head, *rows]) + "\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom"])
def test_tables_of_other_programs_are_read(tmp_path: Path, delimiter: str, encoding: str) -> None:
    text = table_of(delimiter)
    data = ("\ufeff" + text).encode("utf-16-be") if encoding == "utf-16-be-bom" else text.encode(encoding)
    (tmp_path / "in.csv").write_bytes(data)
    done = call(
        tmp_path, "consume", "in.csv", "--text-field", "headline", "--keep", "headline", "--output", "out"
    )
    assert done.returncode == 0
    told = done.stderr.decode()
    assert "reads times from 'published' (--time-field names another)" in told
    assert ("cells between" in told) == (delimiter != ",")
    found = assignments((tmp_path / "out").read_bytes())
    assert [each["keep"]["headline"] for each in found] == [text for text, _ in HEADLINES]
    assert found[0]["time"] == 1772359200.0


def test_a_table_in_utf_16_that_ends_in_a_sign_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(table_of(",").encode("utf-16") + b"a")
    done = call(tmp_path, "consume", "in.csv", "--text-field", "headline", "--output", "out")
    assert done.returncode == Exit.BAD_DATA
    assert "in.csv is not valid UTF-16: it ends in the middle of a sign" in done.stderr.decode()


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"published": "2026-03-01T10:00:00Z"}, "published"),
        ({"n": 1772359200, "updated": "2026-03-01 10:00"}, "updated"),
        ({"created_timestamp": 1772359200123}, "created_timestamp"),
        ({"date": 1772359200}, "date"),
        ({"number": 1772359200}, "time"),
        ({"date": 20260301}, "date"),
        ({"number": 20260301}, "time"),
        ({"date": 20260399}, "time"),
        ({"day": "Sunday"}, "time"),
        ({"id": "2026-03-01"}, "time"),
        ({"when": "2026-03-01", "time": None}, "time"),
        ({"when": ""}, "time"),
        ({}, "time"),
    ],
)
def test_times_are_found_by_their_values(tmp_path: Path, fields: dict[str, object], wanted: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps({"text": "Rover lands", **fields}) + "\n")
    assert recognised(Settings(), str(file)).time_field == wanted
    assert recognised(Settings(time_field="other"), str(file)).time_field == "other"
