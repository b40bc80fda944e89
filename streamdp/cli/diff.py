"""``streamdp diff``: what has changed since a moment, moments that have a name, and answers and a truth."""

from __future__ import annotations

import math
import sys
import time as clocks
from collections.abc import Iterable

import msgspec
from rich.table import Table
from rich.text import Text

from streamdp.answers.listing import printable
from streamdp.cli.options import DiffOptions
from streamdp.cli.stories import console, table_of
from streamdp.reports import diff as diffs
from streamdp.reports.diff import Change, Diff
from streamdp.reports.marks import Mark, add_mark, moment_of, since_of
from streamdp.run.messages import say
from streamdp.scoring.agreement import Agreement
from streamdp.scoring.score import score
from streamdp.story.clock import HOUR
from streamdp.story.story import iso

IN_TABLE = 30
"""Changes of a table."""

LIVE = HOUR
"""Seconds that the newest record of a stream is old at most that is taken to be running."""


def compare(path: str, options: DiffOptions) -> None:
    """Print what has changed, or agreement with a truth; or write a mark. Raises StreamdpError."""
    if options.mark is not None:
        mark(path, options.mark, options.time)
    elif options.truth is not None:
        show_scores(path, options)
    else:
        _diff(path, options)


def _diff(state: str, options: DiffOptions) -> None:
    if options.since_state is not None:
        found = diffs.since_state(state, options.since_state)
    else:
        told = diffs.told_at(state)
        found = diffs.since_in(told, since_of(state, options.since or "", lambda: told.stories.clock))
    if options.json:
        for change in found.changes:
            row = msgspec.structs.asdict(change) | {"surprising": change.surprising}
            sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
        return
    chosen = found.changes if options.every else found.listed
    if chosen:
        console().print(_table(found, chosen[:IN_TABLE]), highlight=False)
    else:
        print(f"{_title(found)}: nothing is new, and chance explains the rest")
    if len(chosen) > IN_TABLE:
        say(f"{len(chosen) - IN_TABLE:,} changes not shown (--json has all)")
    once = sum(change.kind == "new" for change in found.changes if not change.listed)
    if once and not options.every:
        say(f"{once:,} more {found.nouns} of one record are new (--all shows them)")


def mark(state: str, name: str, time: str | None) -> None:
    """Write a mark beside a state. Raises StreamdpError."""
    clock = diffs.source_at(state).stories().clock
    now = clocks.time()
    if time is not None:
        moment, why = moment_of("--time", time, clock) or 0.0, "as was asked for"
    elif clock.dated and abs(now - clock.time) <= LIVE:
        moment, why = now, "which is now"
    else:
        moment, why = max(math.nextafter(clock.time, math.inf), 0.0), "the newest record in the state"
    add_mark(state, Mark(name, moment))
    say(f"{name} is {_when(moment, dated=clock.dated)}, {why}")


def _when(moment: float, *, dated: bool) -> str:
    return iso(moment) if dated else f"record {moment:,.0f}"


def _title(found: Diff) -> str:
    times = [_when(t, dated=found.dated) for t in (found.begin, found.until, found.since, found.end)]
    return f"{found.nouns} from {times[2]} to {times[3]}, compared with {times[0]} to {times[1]}"


def _table(found: Diff, changes: Iterable[Change]) -> Table:
    columns = "change", "label", "what", "before", "after", "surprise"
    table = table_of(_title(found), *columns, wide="what", left=("change",))
    for change in changes:
        table.add_row(
            change.kind,
            str(change.label),
            Text("\n".join(map(printable, _said(change, found)))),
            f"{change.before:,}",
            f"{change.after:,}",
            f"{change.surprise:,.0f}",
        )
    return table


def _said(change: Change, found: Diff) -> Iterable[str]:
    """What there is to say of a change, line by line."""
    yield change.title
    if change.hole is not None:
        for value, before, after in change.values:
            yield f"  {change.hole}: {value}: {before:.1%} before, {after:.1%} after"
    if change.levels and change.hole is None:
        yield "  " + ", ".join(f"{name} {count:,}" for name, count in change.levels.items())
    if change.kind == "new":
        when = f" {change.began}" if found.dated else ""
        if found.nouns != "templates":
            yield f"  born since{',' if when else ''}{when}"
        elif when:
            yield f"  first{when}"
        for sign, line in ((" ", change.line_before), (">", change.line), (" ", change.line_after)):
            if line:
                yield f"  {sign} {line}"


def agreement_table(title: str, rows: dict[str, Agreement]) -> Table:
    """Agreements side by side, but for the V-measure, which is the NMI."""
    measures = "NMI", "ARI", "homogeneity", "completeness"
    columns = "labels", *measures, "K found", "K > 3", "K true", "records"
    table = table_of(title, *columns, left=("labels",))
    for name, a in rows.items():
        values, counts = (a.nmi, a.ari, a.homogeneity, a.completeness), (a.found, a.larger, a.true, a.n)
        table.add_row(name, *(f"{v:.4f}" for v in values), *(f"{n:,}" for n in counts))
    return table


def show_scores(assignments: str, options: DiffOptions) -> None:
    """Score a file of assignments and print the result."""
    truth, field = options.truth or "", options.field
    report = score(assignments, truth, field, options.id_field)
    if options.json:
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
