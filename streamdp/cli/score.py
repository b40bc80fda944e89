"""``streamdp score``."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.table import Table

from streamdp.scoring.agreement import Agreement
from streamdp.scoring.score import score


def agreement_table(title: str, rows: dict[str, Agreement]) -> Table:
    """Agreements side by side."""
    table = Table(title=title, title_justify="left")
    for name in ("labels", "NMI", "ARI", "homogeneity", "completeness", "V", "K found", "K true", "records"):
        table.add_column(name, justify="left" if name == "labels" else "right")
    for name, a in rows.items():
        values = (a.nmi, a.ari, a.homogeneity, a.completeness, a.v)
        table.add_row(name, *(f"{v:.4f}" for v in values), f"{a.found:,}", f"{a.true:,}", f"{a.n:,}")
    return table


def show_scores(assignments: str, truth: str, field: str, *, as_json: bool) -> None:
    """Score a file of assignments and print the result."""
    report = score(assignments, truth, field)
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        return
    rows = {"first announced": report.first, "newest": report.newest}
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(agreement_table(f"{assignments} against {field} of {truth}", rows))
    console.print(
        f"{report.revised:,} revised, {report.unlabelled:,} without a true {field}, "
        f"{report.unassigned:,} without an assignment, {report.unknown:,} assigned but not in {truth}",
        highlight=False,
    )
