"""Clusters one below the other, as a terminal or a notebook shows them; times and HTML tables for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import SupportsIndex, overload

from streamdp.records import ClusterSummary, Event


def paragraph(text: str) -> str:
    """A line of text, as HTML."""
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table as HTML; cells that are numbers are set to the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    number = text.replace(",", "").replace(".", "").isdecimal()
    return f'<td style="text-align: {"right" if number else "left"}">{escape(text)}</td>'


CALENDAR = 1e8
"""Seconds since the epoch (1973) from which a time is shown as a date; below, as a plain number."""

YEAR_9999 = 253_000_000_000.0
"""No calendar goes further."""


def is_date(time: float) -> bool:
    """Whether a time is shown as a date."""
    return CALENDAR <= time < YEAR_9999


def when(time: float | None) -> str:
    """A time for people."""
    if time is None:
        return ""
    if is_date(time):
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{time:g}"


SHOWN = 20
"""Clusters of a list that are shown; it says how many more there are."""

COLUMNS = ("cluster", "size", "first", "last", "about")


def about(cluster: ClusterSummary | Event, most: int = 6) -> str:
    """What a cluster is about, or that of an event: its template, its top words, or where it lies."""
    if isinstance(cluster.template, str):
        return cluster.template
    if cluster.words is not None:
        return " ".join(word for word, _ in cluster.words[:most])
    if names := getattr(cluster, "names", None):
        named = zip(names[:most], cluster.mean or [], strict=False)
        return " ".join(f"{name}={value:.3g}" for name, value in named)
    return numbers(cluster.mean or [], most)


def numbers(values: Sequence[float], most: int) -> str:
    """The first numbers of a vector."""
    return " ".join(f"{value:.3g}" for value in values[:most])


def rows(clusters: Sequence[ClusterSummary]) -> list[tuple[str, ...]]:
    """A row for each cluster; first and last are numbers of records where there are no times."""
    return [
        (
            str(c.cluster),
            f"{c.size:,}",
            f"{c.first_seq:,}" if c.first_time is None else when(c.first_time),
            f"{c.last_seq:,}" if c.last_time is None else when(c.last_time),
            about(c),
        )
        for c in clusters
    ]


def counted(number: int, what: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def span(seconds: float) -> str:
    """``1:05:00``, ``2:07`` or ``0:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def ago(written: float) -> str:
    """How long ago a time was."""
    seconds = max(time.time() - written, 0.0)
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return counted(int(seconds / size), unit) + " ago"
    return counted(int(seconds), "second") + " ago"


def printable(text: str) -> str:
    """Without what would move a terminal's cursor: titles, and names of features, are data of records."""
    return "".join(c if c.isprintable() else " " for c in text)


def text_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as lines of text under its caption; the caption alone where there is no row."""
    if not rows:
        return caption
    cells = [tuple(map(printable, row)) for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    return "\n".join([caption, *lines])


class ClusterList(list[ClusterSummary]):
    """A list of clusters that shows itself as a table."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> ClusterSummary: ...

    @overload
    def __getitem__(self, index: slice) -> ClusterList: ...

    def __getitem__(self, index: SupportsIndex | slice) -> ClusterSummary | ClusterList:
        if isinstance(index, slice):
            return ClusterList(super().__getitem__(index))
        return super().__getitem__(index)

    @property
    def _caption(self) -> str:
        count = f"{len(self):,} cluster{'' if len(self) == 1 else 's'}"
        return count if len(self) <= SHOWN else f"{count}, the first {SHOWN} of them"

    def __repr__(self) -> str:
        return text_table(self._caption, COLUMNS, rows(self[:SHOWN]))

    def _repr_html_(self) -> str:
        return table(COLUMNS, rows(self[:SHOWN]), self._caption)
