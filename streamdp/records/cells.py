"""Cells of tables that people open: no text of a record is a formula there."""

from __future__ import annotations

from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that spreadsheets take for a formula."""


def harmless(cell: Any) -> Any:
    """A cell of a table; a text that would be a formula has an apostrophe before it.

    So has one that begins so behind apostrophes. Line ends become blanks, so that a row is a line.
    """
    if not isinstance(cell, str):
        return cell
    line = " ".join(cell.splitlines()) if "\n" in cell or "\r" in cell else cell
    return f"'{line}" if line.lstrip("'").startswith(FORMULA) else line


def as_it_was(cell: str) -> str:
    """What a cell says, without the apostrophe of ``harmless``.

    Examples
    --------
    >>> as_it_was(harmless("=1+1")), as_it_was("'tis the season")
    ('=1+1', "'tis the season")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell
