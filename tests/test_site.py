"""The documentation builds as a site without a warning, and the site asks nothing of other hosts."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from commands import loaded

from streamdp import __version__
from streamdp.settings.schema import setting_fields

ROOT = Path(__file__).resolve().parents[1]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b[^>]*?\bhref=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|(?:url\(|@import )["']?(?:https?:)?//[^\s"')]+"""
)
"""What a browser would fetch from another host without being asked to."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as the command builds it."""
    folder = tmp_path_factory.mktemp("site")
    config = loaded(ROOT / "docs" / "site.py").write_pages(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(config)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "Warning" not in told
    return folder / "site"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = [path for ending in ("html", "css") for path in site.rglob(f"*.{ending}")]
    assert len(pages) > 20
    assert {path.name: found for path in pages if (found := LOADED.findall(path.read_text("utf-8")))} == {}


def test_what_would_be_loaded_is_seen() -> None:
    for code in ('<script src="https://a.b/c.js">', "<link rel=x href=//a.b>", "url('https://a.b/c')"):
        assert LOADED.search(code)


def test_every_page_is_there(site: Path) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    generated = {
        Path(f"{name}.html")
        for name in ("settings", "changelog", "benchmarks", "contributing", "security", "examples", "faults")
    }
    assert {path for path in written | generated if not (site / path).is_file()} == set()


def test_settings_and_docstrings_are_shown(site: Path) -> None:
    settings = (site / "settings.html").read_text("utf-8")
    assert [field.name for field in setting_fields() if f"<code>{field.name}</code>" not in settings] == []
    engine = (site / "api" / "engine.html").read_text("utf-8")
    for name in ("Engine.advance", "Engine.loads", "Record", "Assignment"):
        assert f'id="streamdp.{"engine" if "." in name else "records"}.{name}"' in engine


def test_nothing_of_the_tools_is_shown(site: Path) -> None:
    assert not list(site.rglob("*.py"))


def test_the_extra_is_part_of_the_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras["docs"]) <= set(extras["test"])


def test_the_version_to_cite_is_this_one() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
