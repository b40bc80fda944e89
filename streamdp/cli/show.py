"""``streamdp show``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from streamdp.cli.errors import say
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import ClusterSummary
from streamdp.settings import Settings
from streamdp.state.snapshot import Header, SnapshotError, newest, read

CALENDAR = 1e8
"""Seconds since the epoch (1973) from which a time is shown as a date; below, as a plain number."""

YEAR_9999 = 253_000_000_000.0
"""No calendar goes further."""


def open_snapshot(state: str) -> tuple[Header, bytes]:
    """A snapshot file, or the newest snapshot in a folder. Raises SnapshotError."""
    path = Path(state)
    found = newest(path, say) if path.is_dir() else read(path)
    if found is None:
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    return found


def open_state(state: str) -> tuple[Header, Engine]:
    """The engine of a snapshot file, or of the newest snapshot in a folder. Raises SnapshotError."""
    header, body = open_snapshot(state)
    settings = msgspec.convert(header.settings, Settings)
    return header, Engine.loads(body, settings)


def when(time: float | None) -> str:
    """A time for people."""
    if time is None:
        return ""
    if CALENDAR <= time < YEAR_9999:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{time:g}"


def life(cluster: ClusterSummary) -> str:
    """How long a cluster has lived, in days, or in the source's own units where times are no dates."""
    if cluster.first_time is None or cluster.last_time is None:
        return ""
    span = cluster.last_time - cluster.first_time
    return f"{span / 86400:.1f} d" if CALENDAR <= cluster.last_time < YEAR_9999 else f"{span:g}"


def cluster_table(title: str, clusters: Sequence[ClusterSummary]) -> Table:
    """Clusters, one to a row."""
    table = Table(title=title, title_justify="left")
    table.add_column("cluster", justify="right")
    table.add_column("size", justify="right")
    table.add_column("first")
    table.add_column("last")
    table.add_column("life", justify="right")
    table.add_column("top words" if clusters and clusters[0].words is not None else "mean", ratio=1)
    for c in clusters:
        if c.words is not None:
            about = " ".join(word for word, _ in c.words)
        else:
            about = " ".join(f"{value:.3g}" for value in (c.mean or [])[:8])
        table.add_row(str(c.cluster), f"{c.size:,}", when(c.first_time), when(c.last_time), life(c), about)
    return table


def show(state: str, *, as_json: bool, top: int) -> None:
    """Print the live clusters of a snapshot."""
    header, engine = open_state(state)
    clusters = engine.clusters()
    if as_json:
        for cluster in clusters:
            sys.stdout.write(msgspec.json.encode(cluster).decode() + "\n")
        return
    console = Console(width=None if sys.stdout.isatty() else 140)
    counters = engine.counters()
    console.print(
        f"{header.seq:,} records, {counters.get('clusters_created', 0):,} clusters ever, "
        f"{len(clusters):,} live; "
        f"log evidence {engine.log_evidence:,.1f} nats",
        highlight=False,
    )
    console.print(cluster_table("largest live clusters", clusters[:top]))
    young = sorted(clusters, key=lambda c: -c.cluster)
    console.print(cluster_table("newest clusters", young[:top]))
