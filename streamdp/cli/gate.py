"""``streamdp gate``: whether a log, or a state, is as its baseline was. The exit code says it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from streamdp.answers.listing import counted, printable
from streamdp.errors import ConfigError, Exit
from streamdp.records import Record, Reject
from streamdp.records.stored import store_version
from streamdp.reports.diff import Change, Halves, halves_since, told_at
from streamdp.reports.gate import Verdict, of_records, of_states, verdict
from streamdp.reports.marks import since_of
from streamdp.reports.source import is_state, open_state
from streamdp.run.messages import say
from streamdp.run.reading import Reader
from streamdp.run.recognise import recognised
from streamdp.settings import Settings
from streamdp.settings.io_options import Input

BATCH = 10_000

SHOWN = 20
"""Templates that are new, but not enough to fail, that people are shown."""

FEW = 20
"""Stretches of a baseline below which little is known of what is usual."""


def gate(path: str, baseline: str, rate: float, *, as_json: bool) -> int:
    """Print what is new, has surged or is gone. Returns 1 if anything is, else 0. Raises StreamdpError."""
    found = verdict(_compared(path, baseline), rate)
    if as_json:
        sys.stdout.write(msgspec.json.encode(_row(found)).decode() + "\n")
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
        raise ConfigError(f"--baseline: {_no_state(baseline)}", Exit.NO_INPUT)
    _, engine = open_state(baseline)
    found, refused = of_records(engine, _read(engine.settings, path))
    if refused:
        first = refused[0]
        say(f"{counted(len(refused), 'record')} refused, the first: {first.reason}: {first.detail}")
    return found


def _no_state(baseline: str) -> str:
    """What somebody is to do whose baseline is no state."""
    if store_version(baseline) is not None:
        return f"{baseline} is a store; a log is judged by a state: give the --state of the same run"
    log, state = (baseline, Path(baseline).name.split(".")[0]) if Path(baseline).exists() else ("", baseline)
    if log and (state == log or not state or Path(state).exists()):
        state = "baseline"
    return (
        f"{baseline} is no state; make one of a log: streamdp consume {log or f'{state}.log'} --state {state}"
    )


def _read(settings: Settings, path: str) -> Iterator[list[Record | Reject]]:
    """The records of a log, read as those of its baseline were."""
    reader = Reader(recognised(settings, path), Input(file=path))
    with contextlib.closing(reader.source):
        while not reader.source.at_end:
            yield reader.read(BATCH, 1.0)


def _row(found: Verdict) -> dict[str, Any]:
    """What scripts read: one list of changes, in which those are surprising that fail."""
    row = msgspec.structs.asdict(found)
    fails, more = found.changes, row.pop("unseen")
    row["changes"] = [
        msgspec.structs.asdict(each) | {"surprising": own is fails} for own in (fails, more) for each in own
    ]
    return row


def _lines(path: str, baseline: str, found: Verdict) -> Iterator[str]:
    """What people read."""
    what = f"{found.records:,} lines of {path}, {found.baseline_records:,} of {baseline}"
    if found.passed:
        yield f"passed: {what}: nothing is new, has surged or is gone beyond what chance explains"
    else:
        yield f"not passed: {what}: chance explains as much once in {1 / found.rate:,.0f} logs"
    for change in found.changes:
        yield from _said(change, found)
    if found.unseen:
        shown = f"; the first {SHOWN} of them" if len(found.unseen) > SHOWN else ""
        what = "is a template" if len(found.unseen) == 1 else f"are {len(found.unseen):,} templates"
        yield f"there {what} that {baseline} never had, not enough to fail by a baseline this long{shown}:"
    for change in found.unseen[:SHOWN]:
        yield from _said(change, found)


def _said(change: Change, found: Verdict) -> Iterator[str]:
    before, now = _share(change.before, found.baseline_records), _share(change.after, found.records)
    yield f"{change.kind}: {before} before, {now} now: {printable(change.title)}"
    if change.line and change.line != change.title:
        yield f"  > {printable(change.line)}"


def _share(count: int, of: int) -> str:
    return f"{count:,} ({count / of:.2%})" if count else "0"
