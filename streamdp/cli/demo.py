"""``streamdp demo``: a stream whose truth is known, clustered before your eyes."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.live import Live

from streamdp.cli.display import Display
from streamdp.cli.errors import say
from streamdp.cli.score import agreement_table
from streamdp.cli.show import cluster_table
from streamdp.demo.stream import demo_stream
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

BATCH = 100


def _collect(answers: Answers, first: list[int], newest: list[int]) -> None:
    for line in answers.lines:
        if isinstance(line, Assignment):
            if line.revision == 0:
                first.append(line.cluster)
                newest.append(line.cluster)
            else:
                newest[line.seq] = line.cluster


def demo(settings: Settings, records: int) -> None:
    """Generate, cluster, show and score."""
    engine = Engine(settings)
    stream = list(demo_stream(records, settings.seed))
    numbers: dict[str, int] = {}
    truth = [numbers.setdefault(item.topic, len(numbers)) for item in stream]
    first: list[int] = []
    newest: list[int] = []
    screen = Console(stderr=True)

    def records_from(at: int) -> list[Record]:
        return [
            Record(item.text, {"file": "demo", "line": at + i + 1}, item.time, item.id)
            for i, item in enumerate(stream[at : at + BATCH])
        ]

    with Display():
        _collect(engine.advance(records_from(0)), first, newest)
    started = time.process_time()
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        for at in range(BATCH, records, BATCH):
            _collect(engine.advance(records_from(at)), first, newest)
            if screen.is_terminal:
                title = f"{min(at + BATCH, records):,} of {records:,} records"
                lately = sorted(engine.clusters(), key=lambda c: -c.weight)[:15]
                live.update(cluster_table(title, lately), refresh=True)
    _collect(engine.finish(), first, newest)
    spent = time.process_time() - started
    console = Console(width=None if sys.stdout.isatty() else 110)
    largest = sorted(engine.clusters(), key=lambda c: -c.weight)[:10]
    console.print(cluster_table("the busiest clusters at the end", largest))
    rows = {"first announced": agreement(first, truth), "newest": agreement(newest, truth)}
    console.print(agreement_table(f"{records:,} records of {len(numbers)} stories against the truth", rows))
    if records > BATCH:
        say(f"{(records - BATCH) / spent:,.0f} records per CPU second, tables included")
