"""What is written for other programs to open: no cell that a spreadsheet would run."""

from __future__ import annotations

from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that spreadsheets take for a formula."""


def harmless(cell: Any) -> Any:
    """A cell of a table; a text that would be a formula has an apostrophe before it.

    Line ends become blanks, so that a row is a line.
    """
    if not isinstance(cell, str):
        return cell
    line = " ".join(cell.splitlines()) if "\n" in cell or "\r" in cell else cell
    return f"'{line}" if line.startswith(FORMULA) else line
