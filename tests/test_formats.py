"""docs/formats.md says what the program does: its tables are read and compared."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from streamdp_connectors.files.sink import reject_line

from streamdp.cli.reading import format_of
from streamdp.cli.recognise import recognised
from streamdp.errors import Exit
from streamdp.records import Assignment, ClusterSummary, Reject
from streamdp.settings import Settings

PAGE = (Path(__file__).parents[1] / "docs" / "formats.md").read_text("utf-8")


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


@pytest.mark.parametrize("row", table("Input"), ids=lambda row: row[0])
def test_formats_are_chosen_by_name(row: list[str], tmp_path: Path) -> None:
    wanted = row[0].strip("`")
    for ending in re.findall(r"`(\.\w+)`", row[1]) or [".jsonl", ".json", ""]:
        for packed in ("", ".gz", ".zst"):
            file = tmp_path / f"file{ending}{packed}"
            file.touch()
            assert format_of(recognised(Settings(), str(file)), str(file)) == wanted
