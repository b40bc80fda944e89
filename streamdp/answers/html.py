"""Tables as a notebook shows them. What comes from records is data: it is escaped, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def paragraph(text: str) -> str:
    """A line of text."""
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table; cells that are numbers stand to the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    number = text.replace(",", "").replace(".", "").isdecimal()
    return f'<td style="text-align: {"right" if number else "left"}">{escape(text)}</td>'
