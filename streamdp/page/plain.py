"""The page without scripts: a plain table of the largest clusters."""

from __future__ import annotations

from streamdp.answers import html
from streamdp.answers.times import when
from streamdp.page.view import View

SHOWN = 50
PLACE = "<!-- the table -->"
COLUMNS = ("cluster", "size", "lately", "last", "about", "for example")


def with_table(page: str, view: View) -> str:
    """The page with the table in its place."""
    found = view.clusters("", "size", True, 0, SHOWN)
    rows = [
        (
            str(row["cluster"]),
            f"{row['size']:,}",
            f"{row['recent']:,}",
            f"{row['last_seq']:,}" if row["last_time"] is None else when(row["last_time"]),
            row["template"] or " ".join(word for word, _ in row["words"][:6]) or row["name"],
            row["samples"][-1] if row["samples"] else "",
        )
        for row in found["clusters"]
    ]
    told = f"{found['live']:,} live clusters, the largest first"
    return page.replace(PLACE, html.table(COLUMNS, rows, told))
