"""``streamdp gate``: whether a log, or a state, is as its baseline was. The exit code says it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from streamdp.answers.listing import counted, printable
from streamdp.errors import ConfigError, Exit
from streamdp.records import Record, Reject
from streamdp.records.stored import store_version
from streamdp.reports.diff import Halves, halves_since, told_at
from streamdp.reports.gate import Verdict, of_records, of_states, verdict
from streamdp.reports.marks import since_of
from streamdp.reports.source import is_state, open_state
from streamdp.run.messages import say
from streamdp.run.reading import Reader
from streamdp.run.recognise import recognised
from streamdp.settings import Settings
from streamdp.settings.io_options import Input

BATCH = 10_000

FEW = 20
"""Stretches of a baseline below which little is known of what is usual."""


def gate(path: str, baseline: str, rate: float, *, as_json: bool) -> int:
    """Print what is new, has surged or is gone. Returns 1 if anything is, else 0. Raises StreamdpError."""
    found = verdict(_compared(path, baseline), rate)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        print("\n".join(_lines(path, baseline, found)))
    if found.stretches < FEW:
        say(
            f"{baseline} is short, {found.stretches} times what is judged at most: only what has changed a "
            "lot is found (a baseline of more logs knows better what is usual)"
        )
    return 0 if found.passed else 1


def _compared(path: str, baseline: str) -> Halves:
    """What is before and what after. Raises StreamdpError."""
    if path != "-" and (store_version(path) or is_state(path)):
        told = told_at(path)
        if Path(baseline).exists():
            return of_states(told, told_at(baseline))
        return halves_since(told, since_of(path, baseline, lambda: told.stories.clock, "--baseline"))
    if not Path(baseline).exists() or not is_state(baseline):
        raise ConfigError(
            f"--baseline: {baseline} is no state; make one of a log: "
            f"streamdp consume {baseline}.log --state {baseline}",
            Exit.NO_INPUT,
        )
    _, engine = open_state(baseline)
    found, refused = of_records(engine, _read(engine.settings, path))
    if refused:
        first = refused[0]
        say(f"{counted(len(refused), 'record')} refused, the first: {first.reason}: {first.detail}")
    return found


def _read(settings: Settings, path: str) -> Iterator[list[Record | Reject]]:
    """The records of a log, read as those of its baseline were."""
    reader = Reader(recognised(settings, path), Input(file=path))
    with contextlib.closing(reader.source):
        while not reader.source.at_end:
            yield reader.read(BATCH, 1.0)


def _lines(path: str, baseline: str, found: Verdict) -> Iterator[str]:
    """What people read."""
    what = f"{found.records:,} lines of {path}, {found.baseline_records:,} of {baseline}"
    if found.passed:
        yield f"passed: {what}: no template is new, has surged or is gone beyond what chance explains"
        return
    yield f"not passed: {what}: chance explains as much once in {1 / found.rate:,.0f} logs"
    for change in found.changes:
        yield f"{change.kind}: {change.before:,} before, {change.after:,} now: {printable(change.title)}"
        if change.line and change.line != change.title:
            yield f"  > {printable(change.line)}"
