"""What the site shows that does not stand in ``docs/``: other pages, and the table of settings."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from streamdp.settings.options import grouped
from streamdp.settings.schema import setting_fields

ROOT = Path(__file__).resolve().parents[1]
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
"""Pages of the repository, and what they are on the site."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands elsewhere, but for the README: ``docs/index.md`` is the first page."""
    for path, page in ELSEWHERE.items():
        if files.get_file_from_path(page) is None and page != "settings.md":
            files.append(File.generated(config, page, content=_moved(path)))
    files.append(File.generated(config, "settings.md", content=settings_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that lead out of ``docs/`` go to the pages of the site."""
    folder = Path("docs", page.file.src_uri).parent
    return markdown if page.file.generated_by else _LINK.sub(lambda link: _resolved(link, folder), markdown)


def _moved(path: str) -> str:
    """A page of the repository with its links as they are on the site."""
    folder = Path(path).parent
    return _LINK.sub(lambda link: _resolved(link, folder), (ROOT / path).read_text("utf-8"))


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
