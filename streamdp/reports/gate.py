"""Whether a log is as its baseline was: which templates are new, have surged or are gone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from streamdp.answers.listing import counted
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import Answers, Record, Reject
from streamdp.reports.diff import (
    Change,
    Halves,
    Kind,
    Told,
    change_of,
    halves_of,
    is_later,
    need_like,
    now_of,
    told_of,
)
from streamdp.story.answers import StoriesError
from streamdp.story.stretches import Departures, chances

RATE = 0.01
"""Of so many logs in which nothing has changed, one does not pass, unless told otherwise."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a log passes, and what has changed, the most surprising first.

    It does not pass where there are ``changes``. ``unseen`` are templates that the baseline never had, which
    chance may have brought.
    ``surprise`` of a change is how improbable it is in any of all templates, in nats. ``rate`` is how often a
    log does not pass in which nothing has changed: a third of it is for what is new, for what has surged, and
    for what is gone. The baseline is ``stretches`` of the log's length, or shorter ones where it is short.
    """

    passed: bool
    rate: float
    records: int
    baseline_records: int
    stretches: int
    changes: list[Change]
    unseen: list[Change]


def verdict(halves: Halves, rate: float = RATE) -> Verdict:
    """Judge what is after a moment by what is before it.

    Raises StoriesError for what is no log, and where there is so little that nothing could fail.
    """
    told, after, _, gone, born = halves
    _need_a_log(told)
    _need_records(told.past.counts[:, ~after], "baseline")
    _need_records(told.past.counts[:, after], "log")
    past, own = told.past, told.past.counts[:, after].sum(axis=1)
    before = past.counts[:, ~after].sum(axis=1)
    found, stretches = chances(past.counts[:, ~after], own)
    stories = {story.label: story for story in (*told.ended, *told.stories)} | dict(gone) | dict(born)
    least, changes, unseen = rate / len(Departures._fields), list[Change](), list[Change]()
    for row, label in enumerate(past.labels.tolist()):
        kinds: dict[Kind, float] = {"surged": found.surged[row], "gone": found.gone[row]}
        kinds |= {"new": found.new[row]} if label in born else {}
        kind = min(kinds, key=lambda each: kinds[each])
        fails = kinds[kind] <= least
        if label in stories and (fails or (label in born and own[row])):
            counts, surprise = (int(before[row]), int(own[row])), -math.log(kinds[kind])
            kind = kind if fails else "new"
            found_in = changes if fails else unseen
            found_in.append(change_of(stories[label], label, past, kind, counts, surprise))
    for each in (changes, unseen):
        each.sort(key=lambda change: (-change.surprise, -change.after, change.label))
    if not changes:
        _need_enough(past.counts[:, ~after], int(own.sum()), least)
    return Verdict(
        passed=not changes,
        rate=rate,
        records=int(own.sum()),
        baseline_records=int(before.sum()),
        stretches=stretches,
        changes=changes,
        unseen=unseen,
    )


def _need_records(counts: np.ndarray, what: str) -> None:
    if not counts.sum():
        raise StoriesError(f"the {what} holds no records", Exit.NO_INPUT)


def _need_enough(counts: np.ndarray, lines: int, least: float) -> None:
    """Raise StoriesError where so many lines pass by these of a baseline, whatever they are."""
    if _can_fail(counts, lines, least):
        return
    enough = lines
    while enough < counts.sum() and not _can_fail(counts, enough, least):
        enough *= 2
    more = f"some {enough:,} lines are needed" if enough < counts.sum() else "the baseline needs more lines"
    raise StoriesError(
        f"{counted(lines, 'line')} would pass by {counts.sum():,.0f} of the baseline, whatever they were: "
        f"{more} (or a larger --rate)",
        Exit.BAD_DATA,
    )


def _can_fail(counts: np.ndarray, lines: int, least: float) -> bool:
    """Whether lines fail that are all of a new template, or all of the rarest."""
    rows = np.vstack([counts, np.zeros(counts.shape[1])])
    seen = np.where(rows.sum(axis=1) > 0.0, rows.sum(axis=1), np.inf)
    alike = (np.arange(len(rows)) == row for row in (len(counts), seen.argmin()))
    return any(min(each.min() for each in chances(rows, own * float(lines))[0]) <= least for own in alike)


def of_records(engine: Engine, batches: Iterable[Iterable[Record | Reject]]) -> tuple[Halves, list[Reject]]:
    """An engine's past, and after it records that it has not seen; and what is refused of them.

    The engine takes them, all at the moment where it is. Raises StoriesError where either is empty.
    """
    old, refused, united = told_of(engine), list[Reject](), dict[int, int]()
    _need_a_log(old)
    _need_records(old.past.counts, "baseline")
    time = old.stories.clock.time if engine.dated else None
    engine.report_events()
    for answers in _taken(engine, batches, time):
        refused += answers.rejects
        united |= {each.cluster: each.other for each in answers.events if each.other is not None}
    told = told_of(engine)
    if told.stories.records == old.stories.records:
        raise StoriesError("no records that could be read", Exit.NO_INPUT)
    return _since(told, old, united), refused


def of_states(told: Told, old: Told) -> Halves:
    """What a stream is after another; after an earlier moment of itself, what has come since.

    Raises StoriesError for streams of different kinds, and where nothing has come.
    """
    _need_records(old.past.counts, "baseline")
    need_like(told, old)
    if not is_later(told, old):
        found = halves_of(told, old, whole=True)
        past = msgspec.structs.replace(found.told.past, bins=told.past.bins)  # which have the levels
        return found._replace(told=found.told._replace(past=past))
    if told.stories.records == old.stories.records:
        raise StoriesError("both hold the same records: nothing has come since", Exit.NO_INPUT)
    return _since(told, old, told.united)


def _since(told: Told, old: Told, united: Mapping[int, int]) -> Halves:
    """What has come of a stream since an earlier moment of it."""
    before, past = Counter[int](), old.past
    for story in old.stories:
        before[now_of(story.label, united)] += story.records
    own = {story.label: max(story.records - before[story.label], 0) for story in told.stories}
    then = [now_of(label, united) for label in past.labels.tolist()]
    labels = np.unique([*then, *before, *own])
    counts = np.zeros((len(labels), past.counts.shape[1] + 1))
    np.add.at(counts[:, :-1], np.searchsorted(labels, then), past.counts)
    counts[:, -1] = [own.get(label, 0) for label in labels.tolist()]
    joined = msgspec.structs.replace(told.past, labels=labels, counts=counts)
    undated = [msgspec.structs.replace(each, began=None, began_time=None) for each in told.stories]
    born = {story.label: story for story in undated if story.label not in before}
    after = np.arange(counts.shape[1]) == past.counts.shape[1]
    bounds = 0.0, float(old.stories.records), float(old.stories.records), float(told.stories.records)
    return Halves(told._replace(past=joined), after, bounds, {}, born)


def _need_a_log(told: Told) -> None:
    if told.stories.nouns != "templates":
        raise StoriesError("the gate is for logs, whose records are clustered by their templates", Exit.USAGE)


def _taken(
    engine: Engine, batches: Iterable[Iterable[Record | Reject]], time: float | None
) -> Iterator[Answers]:
    """What an engine says of records as if they had come at a time."""
    for batch in batches:
        yield engine.advance(
            [
                msgspec.structs.replace(each, time=time, arrival=None) if isinstance(each, Record) else each
                for each in batch
            ]
        )
    yield engine.flush()
