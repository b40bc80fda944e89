"""``streamdp demo``: cluster a stream whose truth is known, and show it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live

from streamdp.cli.config import automatic
from streamdp.cli.errors import say
from streamdp.cli.show import agreement_table
from streamdp.cli.status import Display
from streamdp.cli.stories import story_table
from streamdp.cli.watch import LivePage
from streamdp.demo.stream import DemoRecord, demo_stream
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record, Reject
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.places import Serving

BATCH = 100

WARM = 1_200
"""Records after which a stream has looked back, and needs no other kernel."""

CLOCK = 80.0
"""Records a second, with a page."""


def _collect(answers: Answers, first: list[int], newest: list[int]) -> None:
    for line in answers.lines:
        if isinstance(line, Assignment):
            if line.revision == 0:
                first.append(line.cluster)
                newest.append(line.cluster)
            else:
                newest[line.seq] = line.cluster


def demo(settings: Settings, records: int, serving: Serving) -> None:
    """Generate, cluster, show and score a stream; with a page at a pace for people."""
    if serving.page is not None:
        with contextlib.closing(LivePage(serving, "the demo", automatic(settings))) as live:
            _paced(settings, records, live)
        return
    engine = Engine(settings)
    stream = list(demo_stream(records, settings.seed))
    numbers: dict[str, int] = {}
    truth = [numbers.setdefault(item.topic, len(numbers)) for item in stream]
    first: list[int] = []
    newest: list[int] = []
    screen = Console(stderr=True)

    def records_from(at: int) -> list[Record | Reject]:
        return _records(stream[at : at + BATCH], at)

    with Display():  # what compiles is compiled before the clock runs, and the table moves
        _warm(settings, [each for at in range(0, min(records, WARM), BATCH) for each in records_from(at)])
    started = time.process_time()
    with Live(console=screen, auto_refresh=False, transient=True) as shown:
        for at in range(0, records, BATCH):
            _collect(engine.advance(records_from(at)), first, newest)
            if screen.is_terminal:
                title = f"{min(at + BATCH, records):,} of {records:,} records"
                lately = engine.stories(records=False).by("growing")[:10]
                shown.update(story_table(title, lately), refresh=True)
    _collect(engine.finish(), first, newest)
    spent = time.process_time() - started
    console = Console(width=None if sys.stdout.isatty() else 110)
    stories = engine.stories(records=False)
    busiest = stories.like(sorted(stories, key=lambda story: (-story.now, story.label))[:10])
    console.print(story_table("the busiest stories at the end", busiest))
    rows = {"first announced": agreement(first, truth), "newest": agreement(newest, truth)}
    console.print(agreement_table(f"{records:,} records of {len(numbers)} stories against the truth", rows))
    say(f"{records / max(spent, 1e-9):,.0f} records per CPU second, tables included")


def _warm(settings: Settings, records: Sequence[Record | Reject]) -> None:
    """Have all compiled that the stream will need."""
    engine = Engine(settings)
    engine.advance(records)
    engine.finish()


def _records(stream: Sequence[DemoRecord], first: int) -> list[Record | Reject]:
    return [
        Record(item.text, {"file": "demo", "line": first + i + 1}, item.time, item.id)
        for i, item in enumerate(stream)
    ]


def _paced(settings: Settings, records: int, live: LivePage) -> None:
    """Show the stream on a page: a quarter of it at first, then at CLOCK."""
    engine, stream = Engine(settings), list(demo_stream(records, settings.seed))
    at, began = 0, time.monotonic()
    while at < records:
        live.beat(engine, None, at)
        stop = min(records, records // 4 + int((time.monotonic() - began) * CLOCK), at + BATCH)
        batch = _records(stream[at:stop], at)
        if batch:
            live.taken(batch)
            live.answered(engine.advance(batch), 0)
        else:
            time.sleep(0.02)
        at = stop
    live.answered(engine.finish(), 0)
    live.ended(engine, lambda: False)
