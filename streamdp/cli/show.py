"""``streamdp show`` and ``score``: tables of clusters, and of how well they agree with a truth."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamdp.answers.listing import is_date, when
from streamdp.cli.errors import printable, warn
from streamdp.cli.status import adapted_line, counted, refined_line
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import ClusterSummary
from streamdp.scoring.agreement import Agreement
from streamdp.scoring.score import score
from streamdp.settings import Settings
from streamdp.settings.load import stored_settings
from streamdp.settings.schema import Classes
from streamdp.state.snapshot import Header, SnapshotError, newest, newest_taken, read, snapshots

Sort = Literal["size", "new", "growing"]
TITLES: dict[Sort, str] = {
    "size": "largest live clusters",
    "new": "newest live clusters",
    "growing": "fastest growing live clusters",
}

SECONDS = 2.0
"""Seconds between two looks for a newer snapshot."""


def open_snapshot(state: str) -> tuple[Header, bytes]:
    """A snapshot file, or the newest snapshot in a folder. Raises SnapshotError."""
    path = Path(state)
    found = newest(path, warn) if path.is_dir() else read(path)
    if found is None:
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    return found


def written_at(state: str) -> int:
    """The time of the newest snapshot's file, 0 for none."""
    newest_file = next(iter(snapshots(Path(state))), Path(state))
    return newest_file.stat().st_mtime_ns if newest_file.exists() else 0


def open_state(state: str, classes: Classes) -> tuple[Header, Engine]:
    """The engine of a snapshot file, or of the newest sound snapshot in a folder. Raises SnapshotError.

    ``classes`` are those that it may import. Raises ConfigError for others.
    """

    def load(header: Header, body: bytes) -> tuple[Header, Engine]:
        return header, Engine.loads(body, settings_of(header, classes))

    path = Path(state)
    found = newest_taken(path, warn, load) if path.is_dir() else load(*read(path))
    if found is None:
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    return found


def settings_of(header: Header, classes: Classes) -> Settings:
    """The settings under which a state was made. Raises SnapshotError (65), and ConfigError for imports."""
    try:
        return stored_settings(header.settings, classes)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"it was made under settings that cannot be: {error}", Exit.BAD_DATA) from None


def life(cluster: ClusterSummary) -> str:
    """How long a cluster has lived: days, the units of times that are no dates, or records."""
    if cluster.first_time is None or cluster.last_time is None:
        return counted(cluster.last_seq - cluster.first_seq + 1, "record")
    span = cluster.last_time - cluster.first_time
    return f"{span / 86400:.1f} d" if is_date(cluster.last_time) else f"{span:g}"


def trend(cluster: ClusterSummary) -> str:
    """How many of the last 1,000 records a cluster has, with an arrow if it grows or shrinks."""
    arrow = "" if cluster.recent == cluster.before else " ↑" if cluster.recent > cluster.before else " ↓"
    return f"{cluster.recent:,}{arrow}"


def cluster_table(
    title: str, clusters: Sequence[ClusterSummary], *, stories: bool = False, words: str = "top words"
) -> Table:
    """A table of clusters; ``stories`` adds some of their records.

    ``words`` is the head of that column where clusters have words.
    """
    dated = any(c.first_time is not None for c in clusters)
    table = Table(title=title, title_justify="left")
    for name in ("cluster", "size", "lately"):
        table.add_column(name, justify="right")
    table.add_column("first" if dated else "first record")
    table.add_column("last" if dated else "last record")
    table.add_column("life", justify="right")
    table.add_column(_about(clusters, words), ratio=1)
    for c in clusters:
        if isinstance(c.template, str):
            about = c.template
        elif c.words is not None:
            about = " ".join(word for word, _ in c.words)
        else:
            about = " ".join(f"{value:.3g}" for value in (c.mean or [])[:8])
        about = printable(about)
        if stories:
            about = "\n".join([about, *(f"· {printable(sample)}" for sample in c.samples)])
        first, last = (
            (when(c.first_time), when(c.last_time)) if dated else (f"{c.first_seq:,}", f"{c.last_seq:,}")
        )
        table.add_row(str(c.cluster), f"{c.size:,}", trend(c), first, last, life(c), Text(about))
    return table


def _about(clusters: Sequence[ClusterSummary], words: str) -> str:
    """The head of the last column."""
    if clusters and isinstance(clusters[0].template, str):
        return "template"
    return words if clusters and clusters[0].words is not None else "mean"


def _stories(title: str, clusters: Sequence[ClusterSummary], engine: Engine) -> Table:
    words = "telling values" if engine.kind == "categories" else "top words"
    return cluster_table(title, clusters, stories=True, words=words)


def show(
    state: str, classes: Classes, *, as_json: bool, top: int, sort: Sort, watch: bool, closed: bool
) -> None:
    """Print the live clusters of a snapshot, or those closed last; with ``watch``, again and again."""
    seen = written_at(state) if watch else 0
    header, engine = _as_it_ended(state, classes)
    if as_json:
        for cluster in engine.closed() if closed else _sorted(engine.clusters(), sort):
            sys.stdout.write(msgspec.json.encode(cluster).decode() + "\n")
        return
    console = Console(width=None if sys.stdout.isatty() else 140)
    if closed:
        found = engine.closed()[:top]
        text = "" if header.modes.get("events") else " (they are remembered where --events is given)"
        title = f"clusters closed last{text}"
        console.print(_stories(title, found, engine) if found else f"no {title}", highlight=False)
        return
    if not watch:
        console.print(story(header, engine, top, sort), highlight=False)
        return
    with Live(story(header, engine, top, sort), console=console, auto_refresh=False) as live:
        while True:
            live.update(story(header, engine, top, sort), refresh=True)
            time.sleep(SECONDS)
            if seen != (seen := written_at(state)):
                header, engine = _as_it_ended(state, classes)


def _as_it_ended(state: str, classes: Classes) -> tuple[Header, Engine]:
    """A snapshot; of a run that has ended, with the clusters that its last look left, as the run reported."""
    header, engine = open_state(state, classes)
    if header.ended:
        engine.finish()
    return header, engine


def story(header: Header, engine: Engine, top: int, sort: Sort) -> Group:
    """What a snapshot holds, for people."""
    clusters = _sorted(engine.clusters(), sort)
    several = [cluster for cluster in clusters if cluster.size > 1]
    alone = len(clusters) - len(several)
    announced = counted(engine.counters().get("clusters_created", 0), "cluster")
    text = (
        f"{counted(header.seq, 'record')}; {announced} announced since the stream began, "
        f"{counted(len(clusters), 'live cluster')}; log evidence {engine.log_evidence:,.1f} nats; "
        f"written {ago(header.written)}"
    )
    rest = len(several) - top
    below = []
    if rest > 0:
        below.append(f"{counted(rest, 'more cluster')} (--top {len(several)} shows all)")
    if alone:
        below.append(f"{counted(alone, 'cluster')} of one record")
    shown = _stories(TITLES[sort], several[:top], engine) if several else ""
    counts = engine.counters()
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
    for line in filter(None, (refined_line(engine), adapted_line(engine))):
        text += f"\n{line}"
    return Group(Text(text), shown, Text("; ".join(below)))


def ago(written: float) -> str:
    """How long ago a time was."""
    seconds = max(time.time() - written, 0.0)
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return counted(int(seconds / size), unit) + " ago"
    return counted(int(seconds), "second") + " ago"


def _sorted(clusters: Sequence[ClusterSummary], sort: Sort) -> list[ClusterSummary]:
    """Sort by size, by age (new) or by growth (growing)."""
    if sort == "new":
        return sorted(clusters, key=lambda c: -c.cluster)
    if sort == "growing":
        return sorted(clusters, key=lambda c: (c.before - c.recent, -c.size, c.cluster))
    return list(clusters)


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
