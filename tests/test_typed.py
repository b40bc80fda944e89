"""mypy passes over the examples and the blocks of Python in the pages, as over a reader's program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pages import PAGES, blocks

ROOT = Path(__file__).resolve().parents[1]


def complaints(*arguments: str) -> list[str]:
    """What mypy says of programs that are no part of the package."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_examples_are_typed() -> None:
    assert complaints("--strict", "examples") == []


def test_blocks_of_pages_are_typed(tmp_path: Path) -> None:
    """A reader's program need not annotate its own functions."""
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and block.runs:
                name = f"{Path(page).stem}_{block.line}".replace("-", "_").lower()
                (tmp_path / f"{name}.py").write_text(block.text)
    assert len([*tmp_path.iterdir()]) > 20
    loose = ("--allow-untyped-defs", "--allow-untyped-calls", "--allow-incomplete-defs")
    assert complaints(*loose, *map(str, tmp_path.iterdir())) == []
