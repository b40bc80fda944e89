"""``streamdp demo``: cluster a stream whose truth is known, and show it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from itertools import islice

from streamdp.cli.board import Board
from streamdp.cli.diff import agreement_table
from streamdp.cli.display import Display, two_processes
from streamdp.cli.stories import console, story_table
from streamdp.demo.stream import DemoRecord, demo_stream
from streamdp.engine import Engine
from streamdp.kernels.compilation import working_cpu
from streamdp.records import Answers, Record
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.run.messages import say
from streamdp.run.observers import LivePage, say_where
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import Serving

BATCH = 100

LOOK = 0.2
"""Seconds between two looks at the stories, at least."""

NEXT = """to go on, with a table of texts or a log of your own as FILE:
  streamdp check FILE                                                        how it would be read
  streamdp consume FILE --output answers.jsonl --state st --store stories.db
  streamdp stories stories.db --growing                                      what grows now
  streamdp stories stories.db --report report.html                           a page to send to others
  streamdp demo --page                                                       this stream, in a browser"""
"""What may be tried after the demo."""

CLOCK = 80.0
"""Records a second, with a page."""


def _collect(answers: Answers, first: list[int], newest: list[int]) -> None:
    found = answer_rows(answers.lines)
    fresh = found.first().rows["label"].tolist()
    first += fresh
    newest += fresh
    for seq, label in zip(*found.revised().numbers("seq", "label"), strict=True):
        newest[seq] = label


def demo(settings: Settings, records: int, serving: Serving) -> None:
    """Generate, cluster, show and score a stream; with a page at a pace for people."""
    if serving.page is not None:
        with Display(), contextlib.closing(LivePage(serving, "the demo", automatic(settings))) as live:
            say_where(live.page, serving)
            _paced(settings, records, live)
        return
    engine, board = Engine(settings), Board(LOOK)
    board.update(engine)
    numbers: dict[str, int] = {}
    truth: list[int] = []
    first: list[int] = []
    newest: list[int] = []
    spent = 0.0
    # nothing is asked of the engine there: while it compiles, who asks it waits
    line = Display(lambda: f"{len(first):,} of {records:,} records", board.shown)
    with line, two_processes(settings):
        stream = demo_stream(records, settings.seed)
        while batch := list(islice(stream, BATCH)):
            truth += [numbers.setdefault(item.topic, len(numbers)) for item in batch]
            began = working_cpu()
            _collect(engine.advance(_records(batch, len(truth) - len(batch))), first, newest)
            spent += working_cpu() - began
            board.update(engine)
        began = working_cpu()
        _collect(engine.finish(), first, newest)
        spent += working_cpu() - began
    wide = console(110)
    stories = engine.stories(records=False)
    busiest = stories.like(sorted(stories, key=lambda story: (-story.now, story.label))[:10])
    wide.print(story_table("the busiest stories at the end", busiest))
    rows = {"first announced": agreement(first, truth), "newest": agreement(newest, truth)}
    wide.print(agreement_table(f"{records:,} records of {len(numbers)} stories against the truth", rows))
    say(f"{records / max(spent, 1e-9):,.0f} records per CPU second")
    print(NEXT)


def _records(stream: Sequence[DemoRecord], first: int) -> Columns:
    return Columns.of(
        Record(item.text, {"file": "demo", "line": first + i + 1}, item.time, item.id)
        for i, item in enumerate(stream)
    )


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
