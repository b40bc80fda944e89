"""How benchmarks show what they have seen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; the first column is a name, all others are figures."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def show_named(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """The same of rows that name their columns, all of them alike."""
    show(title, list(rows[0]), [list(row.values()) for row in rows])
