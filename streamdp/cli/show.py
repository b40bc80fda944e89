"""``streamdp show`` and ``score``: the stories of a snapshot, and how well answers agree with a truth."""

from __future__ import annotations

import sys
import time

import msgspec
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamdp.cli.errors import say, warn
from streamdp.cli.status import counted, refined_line
from streamdp.cli.stories import console, story_table
from streamdp.engine import Engine
from streamdp.records import SMALL
from streamdp.reports import source
from streamdp.scoring.agreement import Agreement
from streamdp.scoring.score import score
from streamdp.settings.schema import Classes
from streamdp.state.snapshot import Header, written_at
from streamdp.story.orders import Sort
from streamdp.story.story import Stories, noun_of

TITLES: dict[Sort, str] = {
    "size": "largest live",
    "new": "newest live",
    "growing": "fastest growing live",
    "last": "latest live",
}

SECONDS = 2.0
"""Seconds between two looks for a newer snapshot."""


def open_snapshot(state: str) -> tuple[Header, bytes]:
    """A snapshot file, or the newest snapshot in a folder. Raises SnapshotError."""
    return source.open_snapshot(state, warn)


def open_state(state: str, classes: Classes) -> tuple[Header, Engine]:
    """The engine of a snapshot file, or of the newest sound snapshot in a folder. Raises SnapshotError."""
    return source.open_state(state, classes, warn)


def show(
    state: str, classes: Classes, *, as_json: bool, top: int, sort: Sort, watch: bool, closed: bool
) -> None:
    """Print the live stories of a snapshot, or those closed last; with ``watch``, again and again."""
    seen = written_at(state) if watch else 0
    header, engine = as_it_ended(state, classes)
    if as_json:
        order = [story.label for story in engine.stories(records=False).by(sort)]
        clusters = engine.closed() if closed else engine.clusters()
        if not closed:
            clusters.sort(key=lambda cluster: order.index(cluster.cluster))
        for cluster in clusters:
            sys.stdout.write(msgspec.json.encode(cluster).decode() + "\n")
    elif closed:
        _print_closed(engine.stories(closed=True, records=False), top)
    elif not watch:
        console().print(view(header, engine, top, sort), highlight=False)
    if closed:
        say("a state remembers the last 100 clusters that closed, where consume is given --events or --store")
    if not watch or as_json or closed:
        return
    with Live(view(header, engine, top, sort), console=console(), auto_refresh=False) as live:
        while True:
            live.update(view(header, engine, top, sort), refresh=True)
            time.sleep(SECONDS)
            if seen != (seen := written_at(state)):
                header, engine = as_it_ended(state, classes)


def _print_closed(found: Stories, top: int) -> None:
    title = f"{found.nouns} that closed last"
    if not found:
        console().print(f"no {title}", highlight=False)
        return
    console().print(story_table(title, found[:top], samples=True), highlight=False)
    if len(found) > top:
        say(f"{found.counted(len(found) - top)} not shown (--top {len(found)} shows all)")


def as_it_ended(state: str, classes: Classes) -> tuple[Header, Engine]:
    """A state for those who only look; of a run that has ended, with the clusters that its last look left."""
    header, engine, _ = source.opened(state, classes, warn)
    return header, engine


def view(header: Header, engine: Engine, top: int, sort: Sort) -> Group:
    """What a snapshot holds, for people."""
    stories = engine.stories(records=False)
    if wanted := engine.settings.themes:
        stories = stories.themed(wanted)
    stories = stories.by(sort)
    several = stories.like(story for story in stories if story.records > 1)
    alone, counts = len(stories) - len(several), engine.counters()
    begun = counts.get("clusters_created", 0)
    taken = counted(engine.seq, "record")
    taken += f", {engine.held_back:,} more held back" if engine.held_back else ""
    text = (
        f"{taken}; {len(stories):,} live {noun_of(engine.kind, len(stories))}, "
        f"{begun:,} since the stream began; now: the last {stories.clock.words}; "
        f"written {ago(header.written)}"
    )
    rest = len(several) - top
    below = []
    if rest > 0:
        below.append(f"{stories.counted(rest)} not shown (--top {len(several)} shows all)")
    if alone:
        larger = sum(story.records > SMALL for story in stories)
        below.append(f"{stories.counted(alone)} of one record, {larger:,} of more than three")
    title = f"{TITLES[sort]} {stories.nouns}"
    shown = story_table(title, several[:top], samples=True) if several else ""
    if "lines_distinct" in counts:
        text += (
            f"\n{counted(counts['lines_distinct'], 'distinct line')} but for their numbers"
            + (f", {counts['lines_forgotten']:,} more forgotten" if counts["lines_forgotten"] else "")
            + f"; {counted(counts['clusters_merged'], 'template')} became part of older ones"
        )
    if counts.get("second_looks"):
        moved, merged = counts["records_moved"], counts["clusters_merged"]
        text += (
            f"\n{counted(counts['second_looks'], 'second look')}: {counted(moved, 'record')} moved, "
            f"{counted(merged, 'cluster')} merged, {engine.nats_gained:,.1f} nats won"
        )
    if line := refined_line(engine):
        text += f"\n{line}"
    text += f"\nlog evidence {engine.log_evidence:,.1f} nats"
    return Group(Text(text), shown, Text("; ".join(below)))


def ago(written: float) -> str:
    """How long ago a time was."""
    seconds = max(time.time() - written, 0.0)
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return counted(int(seconds / size), unit) + " ago"
    return counted(int(seconds), "second") + " ago"


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
