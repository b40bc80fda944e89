"""``streamdp diff`` and ``mark``: what has changed since a moment, and moments that have a name."""

from __future__ import annotations

import math
import sys
import time as clocks
from collections.abc import Iterable

import msgspec
from rich.table import Table
from rich.text import Text

from streamdp.answers.listing import printable
from streamdp.cli.errors import say
from streamdp.cli.stories import console
from streamdp.errors import ConfigError, Exit
from streamdp.reports import diff as diffs
from streamdp.reports.diff import Change, Diff
from streamdp.reports.marks import Mark, add_mark, moment_of, since_of
from streamdp.story.clock import HOUR
from streamdp.story.story import iso

IN_TABLE = 30
"""Changes of a table."""

LIVE = HOUR
"""Seconds that the newest record of a stream is old at most that is taken to be running."""


def diff(state: str, since: str | None, since_state: str | None, *, every: bool, as_json: bool) -> None:
    """Print what has changed. Raises StreamdpError."""
    if (since is None) == (since_state is None):
        raise ConfigError("say one of --since and --since-state", Exit.USAGE)
    if since_state is not None:
        found = diffs.since_state(state, since_state)
    else:
        told = diffs.told_at(state)
        found = diffs.since_in(told, since_of(state, since or "", lambda: told.stories.clock))
    if as_json:
        for change in found.changes:
            row = msgspec.structs.asdict(change) | {"surprising": change.surprising}
            sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
        return
    chosen = found.changes if every else found.listed
    if chosen:
        console().print(_table(found, chosen[:IN_TABLE]), highlight=False)
    else:
        print(f"{_title(found)}: nothing is new, and chance explains the rest")
    if len(chosen) > IN_TABLE:
        say(f"{len(chosen) - IN_TABLE:,} changes not shown (--json has all)")
    once = sum(change.kind == "new" for change in found.changes if not change.listed)
    if once and not every:
        say(f"{once:,} more {found.nouns} of one record are new (--all shows them)")


def mark(state: str, name: str, time: str | None) -> None:
    """Write a mark beside a state. Raises StreamdpError."""
    clock = diffs.clock_at(state)
    now = clocks.time()
    if time is not None:
        moment, why = moment_of("--time", time, clock) or 0.0, "as was asked for"
    elif clock.dated and abs(now - clock.time) <= LIVE:
        moment, why = now, "which is now"
    else:
        moment, why = math.nextafter(clock.time, math.inf), "the newest record in the state"
    add_mark(state, Mark(name, moment))
    say(f"{name} is {_when(moment, dated=clock.dated)}, {why}")


def _when(moment: float, *, dated: bool) -> str:
    return iso(moment) if dated else f"record {moment:,.0f}"


def _title(found: Diff) -> str:
    times = [_when(t, dated=found.dated) for t in (found.begin, found.until, found.since, found.end)]
    return f"{found.nouns} from {times[2]} to {times[3]}, compared with {times[0]} to {times[1]}"


def _table(found: Diff, changes: Iterable[Change]) -> Table:
    table = Table(title=_title(found), title_justify="left")
    table.add_column("change")
    table.add_column("label", justify="right")
    table.add_column("what", ratio=1)
    for name in ("before", "after", "surprise"):
        table.add_column(name, justify="right")
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
