"""What is imported is declared in pyproject.toml, under the extra that it is needed for."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def imported(source: str) -> Iterator[str]:
    """The packages that a module imports, but for those beside it that it names by dots."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0]


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub("[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("streamdp", ("embed", "mcp", "metrics", "otlp", "page", "plot", "river", "sklearn", "spark")),
        ("connectors", ("kafka", "parquet", "zst")),
        ("tests", ("test",)),
    ],
)
def test_what_is_imported_is_declared(folder: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    required = itertools.chain.from_iterable(groups)
    declared = {normalised(re.split("[^A-Za-z0-9._-]", requirement)[0]) for requirement in required}
    paths = sorted((ROOT / folder).rglob("*.py"))
    ours = {
        "streamdp",
        "streamdp_connectors",
        "benchmarks",  # beside the tests
        *(path.stem for path in paths),
        *(p.parent.name for p in paths),
        *(path.stem for path in (ROOT / "examples").glob("*.py")),
    }
    tops = {top for path in paths for top in imported(path.read_text("utf-8"))}
    distributions = packages_distributions()
    missing = {
        top
        for top in tops - ours - sys.stdlib_module_names
        if declared.isdisjoint(map(normalised, distributions.get(top, [])))
    }
    assert missing == set()


def test_refinements_are_imported_where_there_are_any() -> None:
    """They are a seventh of what an engine would import."""
    code = "import sys, streamdp.engine; print([m for m in sys.modules if m.startswith('streamdp.offline')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_nothing_installs_this_package_from_an_index() -> None:
    """No index has it: whoever takes a package of its name there takes another one."""
    where = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    where += [
        path for folder in ("streamdp", "connectors", "examples") for path in (ROOT / folder).rglob("*.py")
    ]
    assert [str(path) for path in where if re.search(r"streamdp\[\w+\]['\"`]", path.read_text("utf-8"))] == []
