"""The table of faults names tests that there are, and all modules of faults."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS / "faults" / "README.md").read_text("utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(test_\w+)`", TABLE)


def test_every_test_that_is_named_is_there() -> None:
    assert len(NAMED) > 40
    for path, name in NAMED:
        assert f"\ndef {name}(" in (TESTS / path).read_text("utf-8"), (path, name)


def test_every_module_of_faults_is_in_the_table() -> None:
    modules = {f"faults/{path.name}" for path in (TESTS / "faults").glob("test_*.py")}
    assert modules <= {path for path, _ in NAMED}


def test_every_row_is_whole() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("|")]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells) or cells[0].startswith("**"), row
