"""The parts of the tests: each test is in one, each job runs one, and servers are started in theirs alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from parts import PARTS, SERVERS, STATISTICS, group_of, part_of, summary

TESTS = Path(__file__).resolve().parent
MODULES = sorted(TESTS.rglob("test_*.py"))
SERVED = {"alertmanager", "broker", "browser", "pyspark", "redis", "scraper"}
"""Modules that start servers; fixtures of two bear their names, or that of Chromium."""


def collected(*arguments: str) -> set[str]:
    """The modules whose tests a run would take."""
    run = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(run, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout
    return {line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("tests/")}


def test_the_lists_name_what_there_is_once() -> None:
    groups = {group_of(path) for path in MODULES}
    assert not {*SERVERS, *STATISTICS} - groups
    assert not {*SERVERS} & {*STATISTICS}
    assert {part_of(path) for path in MODULES} == {*PARTS}


def test_a_part_leaves_the_others_out_and_together_they_are_all() -> None:
    folder = "tests/faults"
    whole = collected(folder)
    assert len(whole) == len([path for path in MODULES if path.parent.name == "faults"])
    assert [collected(folder, "--part", part) for part in PARTS] == [set(), set(), whole]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_starts_a_server_is_in_their_part(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            names |= {each.arg for each in node.args.args} & {"broker", "own_broker", "chromium"}
    if names & {*SERVED, "own_broker", "chromium"}:
        assert part_of(path) == "servers"


def test_each_job_runs_a_part() -> None:
    workflow = (TESTS.parent / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    job = yaml.safe_load(workflow)["jobs"]["part"]
    assert job["strategy"]["matrix"] == {"part": [*PARTS]}
    assert job["steps"][-1]["run"] == '.ci/run --part "$PART"'
    assert job["steps"][-1]["env"] == {"PART": "${{ matrix.part }}"}


def test_the_last_lines_add_up() -> None:
    bessel, masks = TESTS / "test_bessel.py", TESTS / "test_masks.py"
    assert summary([(bessel, 2.0), (masks, 1.0), (bessel, 0.6)]) == [
        "       3 s  statistics",
        "       1 s  streams",
        "       3 s  test_bessel",
        "       1 s  test_masks",
    ]
