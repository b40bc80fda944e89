"""What the documentation says of families and priors is what the registry holds, and its examples run."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from commands import environment, newest_lines, succeed
from own_family import waits

from streamdp.answers.describe import KINDS
from streamdp.priors.retiring import LIMITS
from streamdp.records import Event
from streamdp.registry import DECAYS, LIKELIHOODS, PRIORS, find

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


def examples() -> Iterator[tuple[str, str]]:
    """Every block of Python that a page shows."""
    for path in ("README.md", "docs/embeddings.md", "docs/offline.md"):
        for code in re.findall(r"```python\n(.*?)```", (ROOT / path).read_text("utf-8"), re.DOTALL):
            yield path, code


@pytest.mark.parametrize(("path", "code"), list(examples()))
def test_examples_print_what_they_say(path: str, code: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, path, "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.*)", code)
    assert promised
    assert said.getvalue().splitlines() == promised


def test_a_family_and_a_prior_as_the_map_shows_them(tmp_path: Path) -> None:
    family, prior = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "waits.py").write_text(family)
    (tmp_path / "saturating.py").write_text(prior)
    (tmp_path / "waits.jsonl").write_text("".join(json.dumps({"vector": x}) + "\n" for x in waits(300)))
    model = ("--likelihood", "waits:Waits", "--prior", "saturating:Saturating", "--warmup", "50")
    output = succeed(tmp_path, "consume", "--file", "waits.jsonl", *model)
    assert len({line["cluster"] for line in newest_lines(output)[-30:]}) == 3


JSON_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "None": "null",
    "list[float]": "list of number",
    "list[tuple[int, int]]": "list of [integer, integer]",
    "list[tuple[str, int]]": "list of [string, integer]",
}


def test_the_page_tells_every_field_and_kind_of_events() -> None:
    told = {name: row.split("|")[2].strip() for name, row in table("field | type", EVENTS).items()}
    kinds = {name: kind.split(" | ") for name, kind in Event.__annotations__.items()}
    assert list(told.items()) == [(k, " or ".join(JSON_TYPES[t] for t in kinds[k])) for k in kinds]
    assert sorted(table("`event` | `cluster`", EVENTS)) == sorted(KINDS)


def test_the_events_that_the_page_shows_are_printed(tmp_path: Path) -> None:
    ((script, printed),) = re.findall(r"```sh\n(.*?)```\n\n```json\n(.*?)```", EVENTS, re.DOTALL)
    shell = f'streamdp() {{ "{sys.executable}" -m streamdp "$@"; }}\n{script}'
    done = subprocess.run(
        ["sh", "-ec", shell], cwd=tmp_path, env=environment(), capture_output=True, timeout=180
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == printed
