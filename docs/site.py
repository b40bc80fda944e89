"""The site: ``python docs/site.py`` builds it in ``build/site``, ``python docs/site.py serve`` shows it.

Zensical reads ``mkdocs.yml`` and a folder of pages, which is written first: the pages of ``docs/``, those
that stand elsewhere in the repository, and the table of settings, with links that lead from one to the other.
"""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from pathlib import Path

from streamdp.settings.options import grouped
from streamdp.settings.schema import setting_fields

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build"
ELSEWHERE = {
    "README.md": "index.md",
    "README.md#settings": "settings.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
    "tests/faults/README.md": "faults.md",
}
"""Pages of the repository, and what they are on the site, where ``docs/index.md`` is the first page."""

PLACES = {
    "docs_dir: docs\n": "docs_dir: pages\n",
    "site_dir: build/site\n": "site_dir: site\n",
    "paths: [., connectors]": f"paths: [{ROOT}, {ROOT}/connectors]",
    "- docs/docstrings.py": f"- {ROOT}/docs/docstrings.py",
}
"""Folders that are others where the pages are written to."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def write_pages(folder: Path) -> Path:
    """Write all that the site is made of into a folder; returns its ``mkdocs.yml``."""
    pages, config = folder / "pages", folder / "mkdocs.yml"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in pages.rglob("*.md"):
        source = Path("docs", path.relative_to(pages))
        path.write_text(_linked(path.read_text("utf-8"), source.parent), "utf-8")
    for name, page in ELSEWHERE.items():
        if not (pages / page).exists() and "#" not in name:
            text = (ROOT / name).read_text("utf-8")
            (pages / page).write_text(_linked(text, Path(name).parent), "utf-8")
    (pages / "settings.md").write_text(settings_page(), "utf-8")
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    for here, there in PLACES.items():
        assert here in text, here
        text = text.replace(here, there)
    config.write_text(text, "utf-8")
    return config


def _linked(text: str, folder: Path) -> str:
    """A page of a folder of the repository with its links as they are on the site."""
    return _LINK.sub(lambda link: _resolved(link, folder), text)


def _resolved(link: re.Match[str], folder: Path) -> str:
    """A link of a page in a folder of the repository, as the site has it where that is another page."""
    target = (ROOT / folder / link[1]).resolve().relative_to(ROOT).as_posix()
    anchor = link[2] or ""
    up = "../" * (len(folder.parts) - 1) if folder.parts[:1] == ("docs",) else ""
    if target + anchor in ELSEWHERE:
        return up + ELSEWHERE[target + anchor]
    if target in ELSEWHERE:
        return up + ELSEWHERE[target] + anchor
    return link[0] if folder.parts[:1] == ("docs",) else target.removeprefix("docs/") + anchor


def settings_page() -> str:
    """Every setting, by groups, from the schema that the program reads."""
    lines = [
        "# Settings",
        "",
        "They come from flags (`--max-words`), the environment (`STREAMDP_MAX_WORDS`), `streamdp.toml`",
        "(`max_words`), or their defaults, in that order. *auto* follows from the records, or from the",
        "likelihood and the prior: [the model](model.md) says how. `streamdp check` prints those in force.",
        "What is true or false is a pair of flags without a value: `--normalise` and `--no-normalise`.",
    ]
    for title, fields in grouped(setting_fields()):
        lines += ["", f"## {title}", "", "| setting | default | | allowed |", "| --- | --- | --- | --- |"]
        for field in fields:
            default = _default(field.default)
            lines.append(f"| `{field.name}` | {default} | {field.description} | {field.allowed} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    match value:
        case None:
            return "*auto*"
        case ():
            return "none"
        case bool():
            return str(value).lower()
        case _:
            return f"{value:,}" if isinstance(value, int | float) else f"`{value}`"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    command = sys.argv[1:] or ["build", "--clean", "--strict"]
    sys.argv = ["zensical", *command, "-f", str(write_pages(FOLDER))]
    runpy.run_module("zensical", run_name="__main__")
