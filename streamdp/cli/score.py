"""``streamdp diff ANSWERS --truth FILE``: how well answers agree with a truth."""

from __future__ import annotations

import sys

import msgspec
from rich.table import Table

from streamdp.cli.stories import console
from streamdp.scoring.agreement import Agreement
from streamdp.scoring.score import score


def agreement_table(title: str, rows: dict[str, Agreement]) -> Table:
    """Agreements side by side, but for the V-measure, which is the NMI."""
    table = Table(title=title, title_justify="left")
    measures = ("NMI", "ARI", "homogeneity", "completeness")
    for name in ("labels", *measures, "K found", "K > 3", "K true", "records"):
        table.add_column(name, justify="left" if name == "labels" else "right")
    for name, a in rows.items():
        values, counts = (a.nmi, a.ari, a.homogeneity, a.completeness), (a.found, a.larger, a.true, a.n)
        table.add_row(name, *(f"{v:.4f}" for v in values), *(f"{n:,}" for n in counts))
    return table


def show_scores(assignments: str, truth: str, field: str, *, as_json: bool) -> None:
    """Score a file of assignments and print the result."""
    report = score(assignments, truth, field)
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        return
    rows = {"first announced": report.first, "newest": report.newest}
    wide = console(110)
    wide.print(agreement_table(f"{assignments} against {field} of {truth}", rows))
    wide.print(
        f"{report.revised:,} revised, {report.unlabelled:,} without a true {field}, "
        f"{report.unassigned:,} without an assignment, {report.unknown:,} assigned but not in {truth}",
        highlight=False,
    )
