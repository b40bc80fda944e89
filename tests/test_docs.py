"""What the documentation says of families and priors is what the registry holds, and its examples run."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from commands import loaded, newest_lines, succeed
from own_family import waits
from pages import PAGES, blocks, failures, prepare

from streamdp.answers.describe import KINDS
from streamdp.priors.base import LIMITS
from streamdp.settings.registry import DECAYS, LIKELIHOODS, PRIORS, find

ROOT = Path(__file__).resolve().parents[1]
MODEL = (ROOT / "docs" / "model.md").read_text("utf-8")
EVENTS = (ROOT / "docs" / "formats.md").read_text("utf-8").split("\n## Events\n")[1].split("\n## ")[0]


def table(head: str, page: str = MODEL) -> dict[str, str]:
    """Rows of the table whose head begins so: the name in the first cell, and the row."""
    lines = page[page.index(f"\n| {head}") :].strip().splitlines()
    rows = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        (name,) = re.findall(r"`([^`]+)`", line.split("|")[1])
        rows[name] = line
    return rows


@pytest.mark.parametrize(
    ("head", "registered", "elsewhere"),
    [("likelihood | records", LIKELIHOODS, set()), ("prior | settings", PRIORS, set(LIMITS))],
)
def test_tables_hold_all_that_is_registered_and_their_settings(
    head: str, registered: Mapping[str, str], elsewhere: set[str]
) -> None:
    rows = table(head)
    assert sorted(rows) == sorted(registered)
    for name, row in rows.items():
        told = set(re.findall(r"`([a-z_]+)`", row)) - {name}
        assert told == set(find(registered, name).settings) - elsewhere, name


def test_the_table_of_decays_holds_all_that_are_registered() -> None:
    assert sorted(table("decay |")) == sorted(DECAYS)


RARE = ("docs/categories.md", "docs/embeddings.md", "docs/offline.md", "docs/pictures.md", "docs/sensors.md")
"""Pages whose kernels are compiled for nothing else."""

ALONE = ("docs/spark.md",)
"""Pages that make all files that they read."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page in RARE else ())
        for page in PAGES
        if any(block.runs for block in blocks(page))
    ],
)
def test_pages_print_what_they_say(page: str, learned: Path, tmp_path: Path) -> None:
    if page not in ALONE:
        prepare(tmp_path, learned / "in.jsonl")
    if page == "docs/offline.md":
        shutil.copytree(learned / "state", tmp_path / "st")
    assert list(failures(page, tmp_path)) == []


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_says_why(page: str) -> None:
    for block in blocks(page):
        where, remark = f"{page}:{block.line}", block.remark
        if remark.startswith("run by "):
            (name,) = re.findall(r"run by (test_\w+)", remark)
            tests = (ROOT / "tests").glob("test_*.py")
            assert any(f"\ndef {name}(" in path.read_text("utf-8") for path in tests), where
        elif remark:
            assert re.fullmatch(r"not run: \w.*", remark), where
        else:
            assert block.runs or block.language in ("json", "text"), f"{where}: say of what language it is"
            assert block.runs or not re.search(r"^(\$|streamdp|python|pip) ", block.text, re.MULTILINE), where


def test_a_page_that_promises_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 2\nprint(x)  # 2\n```\n\n```console\n$ echo a b\na ...\n$ echo c\nd\n```\n"
    )
    (told,) = failures(str(page), tmp_path)
    assert told.endswith("echo c\n\nprinted\nc\n\ninstead of\nd\n")
    for command in ("streamdp stories nothing", "streamdp stories nothing > shown"):
        page.write_text(f"```sh\n{command}\n```\n")
        with pytest.raises(AssertionError, match="streamdp: nothing: "):
            list(failures(str(page), tmp_path))


def test_a_family_and_a_prior_as_the_page_shows_them(tmp_path: Path) -> None:
    family, prior = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "waits.py").write_text(family)
    (tmp_path / "saturating.py").write_text(prior)
    (tmp_path / "waits.jsonl").write_text("".join(json.dumps({"vector": x}) + "\n" for x in waits(300)))
    model = ("--likelihood", "waits:Waits", "--prior", "saturating:Saturating", "--warmup", "50")
    output = succeed(tmp_path, "consume", "--file", "waits.jsonl", *model, process=True)
    assert len({line["cluster"] for line in newest_lines(output)[-30:]}) == 3


def test_the_tables_of_formats_are_those_of_the_types() -> None:
    program = loaded(ROOT / "docs" / "formats.py")
    page = program.PAGE.read_text("utf-8")
    assert program.made(page) == page
    assert re.findall(r"<!-- (\w+) -->\n", page).count("end") == len(program.TABLES)


def test_the_page_tells_every_kind_of_events() -> None:
    kinds = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", EVENTS[EVENTS.index("| `event` | `cluster`") :], re.M)
    assert sorted(re.findall(r"\w+", " ".join(kinds))) == sorted(["event", *KINDS])


AMERICAN = r"\w*(?:behavior|favor|neighbor|color|normaliz|recogniz|organiz|summariz|analyz|labeled)\w*|center"
"""Names of other programs aside, English is spelt as in Britain."""


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_spelt_alike(page: str) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`|\([^)\s]*\)", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(rf"\b(?:{AMERICAN})\b", prose, re.IGNORECASE) == []


def test_the_recording_is_of_the_first_commands_and_fetches_nothing() -> None:
    program = loaded(ROOT / "docs" / "recording.py")
    picture = html.unescape(program.PICTURE.read_text("utf-8")).replace("\xa0", " ")
    said = program.commands()
    assert said[0] == "streamdp demo"
    assert said[-1].endswith("--report report.html")
    assert [command for command in said if f">{command}<" not in picture] == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", picture) == []


def test_pages_that_files_name_are_there() -> None:
    rooms = ("streamdp", "connectors", "tests", "benchmarks", "deploy", "examples", "docs")
    files = [*ROOT.glob("*.md"), *(file for room in rooms for file in (ROOT / room).rglob("*.*"))]
    named = [
        page
        for file in files
        if file.suffix in (".py", ".md", ".toml", ".yml", ".yaml")
        for page in re.findall(r"(?<![\w/.-])docs/[\w/]+\.md\b", file.read_text("utf-8"))
    ]
    assert len(named) > 50
    assert [page for page in named if not (ROOT / page).is_file()] == []
