"""What has changed in a stream since a time, or since another state of it: what is new first, by size."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.lines.holes import Bins, Past
from streamdp.lines.values import LEVEL
from streamdp.records.stored import store_version
from streamdp.reports.source import EngineStories, StorySource, is_state, source_of
from streamdp.reports.store import StoreStories
from streamdp.story.answers import StoriesError
from streamdp.story.changes import SURPRISING, of_kinds, of_values
from streamdp.story.story import Stories, Story

Kind = Literal["new", "surged", "fewer", "silent", "gone", "changed"]

LINES = 20
"""Lines that a hole must have before and after, to be compared."""

UNITS = 200
"""Stretches that retained records are counted by."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is other than it was: so many records ``before`` and ``after``.

    ``surprise`` is how improbable it is that nothing has changed, in nats, with all that was compared taken
    into account. ``kind`` is "new" for what was never seen before, "gone" for what is not remembered any
    more. ``line`` is the first of a template, with the ones around it. Of what has changed in a hole,
    ``hole`` is how the template shows it, and ``values`` are values with their shares before and after.
    """

    kind: Kind
    label: int
    title: str
    before: int
    after: int
    surprise: float
    began: str | None = None
    began_time: float | None = None
    line: str = ""
    line_before: str = ""
    line_after: str = ""
    levels: dict[str, int] = {}
    hole: str | None = None
    values: list[tuple[str, float, float]] = []

    @property
    def surprising(self) -> bool:
        """Whether it is far from what chance does."""
        return self.surprise >= SURPRISING

    @property
    def listed(self) -> bool:
        """Whether people are told: it is far from what chance does, or new and came more than once."""
        return self.surprising or self.news > 0

    @property
    def news(self) -> int:
        """Records of what is new and came more than once, else 0."""
        return self.after if self.kind == "new" and self.after > 1 else 0


class Diff(NamedTuple):
    """Changes: what is new and came more than once, by size, then the others, the most surprising first.

    What is before them goes from ``begin`` to ``until``, what is after from ``since`` to ``end``: in seconds,
    or in records where these have no times (not ``dated``).
    """

    changes: list[Change]
    begin: float
    until: float
    since: float
    end: float
    dated: bool
    nouns: str

    @property
    def listed(self) -> list[Change]:
        """Those that people are told of."""
        return [change for change in self.changes if change.listed]


class Told(NamedTuple):
    """A stream: its stories, counts of their records, the stories that ended, and templates by label."""

    stories: Stories
    past: Past
    ended: Stories
    templates: Mapping[int, str]

    @property
    def united(self) -> dict[int, int]:
        """The labels of stories that have become part of others, with theirs."""
        return {other: story.label for story in self.stories for other in story.merged_with}


class Halves(NamedTuple):
    """What is compared: a stream, and which units of its past are after a moment, bool[units].

    ``bounds`` are where what is before begins and ends, and what is after. ``gone`` are stories that are only
    before it, ``born`` those that began after it, by label.
    """

    told: Told
    after: np.ndarray
    bounds: tuple[float, float, float, float]
    gone: Mapping[int, Story]
    born: Mapping[int, Story]


def source_at(path: str | Path) -> StorySource:
    """A state or a store. Raises StreamdpError for anything else."""
    if not (store_version(path) or is_state(path)):
        what = "is no state and no store, and answers do not say what has changed: ask a state or a store"
        raise StoriesError(f"{path}: {what}", Exit.BAD_DATA)
    return source_of(path)


def told_at(path: str | Path) -> Told:
    """What a state or a store knows of its past. Raises StreamdpError."""
    return told_in(source_at(path))


def told_in(source: StorySource) -> Told:
    """The same of a source of stories. Raises StoriesError where it holds no records, or does not know."""
    if isinstance(source, EngineStories):
        return told_of(source.engine)
    if not isinstance(source, StoreStories):
        raise StoriesError("a file of answers does not say what has changed", Exit.BAD_DATA)
    found = source.stories()
    return Told(found, _of_records(*source.placed(), found), source.stories(closed=True), source.templates())


def told_of(engine: Engine) -> Told:
    """What an engine knows of its past. Raises StoriesError where it has seen no records."""
    found = engine.stories(records=False)
    past = engine.past() or _of_records(*engine.lately(), found)
    templates = {each.cluster: each.template for each in engine.clusters() if isinstance(each.template, str)}
    return Told(found, past, engine.stories(closed=True, records=False), templates)


def _of_records(labels: np.ndarray, times: np.ndarray | None, stories: Stories) -> Past:
    """Counts of the latest records, as far as they are known: of their labels and times."""
    dated = stories.clock.dated and times is not None
    places = times if dated and times is not None else stories.records - len(labels) + np.arange(len(labels))
    if not len(labels):
        raise StoriesError("no records are known", Exit.NO_INPUT)
    length = max(float(places.max() - places.min()) / UNITS, 1e-9 if dated else 1.0)
    units = np.floor(places / length).astype(np.int64)
    names, which = np.unique(labels, return_inverse=True)
    first = int(units.min())
    counts = np.zeros((len(names), int(units.max()) - first + 1))
    np.add.at(counts, (which, units - first), 1.0)
    return Past(
        dated=dated, first=first, length=length, labels=names, counts=counts, holes={}, bins={}, around={}
    )


def since_in(told: Told, time: float) -> Diff:
    """What has changed since a time, in seconds, or a number of records. Raises StoriesError.

    Stories that began since then are new, however little is remembered from before.
    """
    return _compared(halves_since(told, time))


def halves_since(told: Told, time: float) -> Halves:
    """A stream before and after a time, in seconds, or a number of records. Raises StoriesError."""
    past, dated = told.past, told.past.dated
    began = {s.label: (s, s.began_time if dated else s.first_seq) for s in (*told.ended, *told.stories)}
    born = {label: story for label, (story, at) in began.items() if at is not None and at >= time}
    units = past.counts.shape[1]
    starts = (past.first + np.arange(units)) * past.length
    after = starts >= time
    if not after.any():
        after = starts + past.length > time
    before = starts + past.length <= time
    if not after.any():
        raise StoriesError("nothing has come since", Exit.NO_INPUT)
    if not before.any() and len(born) == len(began):
        raise StoriesError("nothing is remembered from before that", Exit.NO_INPUT)
    used = before | after
    bins = {
        label: [Bins(each.names, each.counts[:, used]) for each in own] for label, own in past.bins.items()
    }
    half = msgspec.structs.replace(past, counts=past.counts[:, used], bins=bins)
    until = starts[before][-1] + past.length if before.any() else time
    bounds = min(starts[0], until), until, starts[after][0], starts[-1] + past.length
    return Halves(told._replace(past=half), after[used], bounds, {}, born)


def since_state(state: str | Path, other: str | Path) -> Diff:
    """What is other than in another state: an earlier one of the stream, or of a stream like it.

    Clusters are found again by their labels and first records, else by their titles; templates by how they
    read. Where the other state ends inside the history of this one, what came before is left out here. Raises
    StreamdpError.
    """
    return _compared(halves_of(told_at(state), told_at(other)))


def halves_of(told: Told, old: Told, *, whole: bool = False) -> Halves:
    """Another stream, or an earlier moment of this one, before what this one is; ``whole``: all of this one.

    Raises StoriesError.
    """
    need_like(told, old)
    longest = max(told.past.length, old.past.length)
    past, was = _by(told.past, longest), _by(old.past, longest)
    starts = (past.first + np.arange(past.counts.shape[1])) * past.length
    end = (was.first + was.counts.shape[1]) * was.length
    later = starts >= end - was.length
    if whole or not later.any() or past.dated != was.dated:
        later = np.ones(len(starts), bool)
    names = {_name_of(story, told): story.label for story in reversed(list(told.stories))}
    same = {_first_of(story): story.label for story in told.stories if not story.template}
    joined_to = dict[int, int]()
    if is_later(told, old):
        live, united = {story.label for story in told.stories}, told.united
        labels_now = {story.label: now_of(story.label, united) for story in old.stories}
        same = {_first_of(s): labels_now[s.label] for s in old.stories if labels_now[s.label] in live}
    elif told.templates:
        names, joined_to = _as_general(told, old)
    numbers, gone = dict[int, int](), dict[int, Story]()
    for story in old.stories:
        number = same.get(_first_of(story), names.get(_name_of(story, old), -1 - len(gone)))
        numbers[story.label] = number
        if number < 0:
            gone[number] = story
    known = {*numbers.values(), *joined_to}
    born = {s.label: s for s in told.stories if s.label not in known}
    before = was.counts.shape[1]
    rows = zip(was.labels.tolist(), was.counts, strict=True)
    counted = [(numbers[label], row) for label, row in rows if label in numbers]
    own = [joined_to.get(label, label) for label in past.labels.tolist()]
    labels = np.unique([number for number, _ in counted] + own).astype(np.int64)
    counts = np.zeros((len(labels), before + np.count_nonzero(later)))
    for number, row in counted:
        counts[np.searchsorted(labels, number), :before] += row
    np.add.at(counts[:, before:], np.searchsorted(labels, own), past.counts[:, later])
    after = np.arange(counts.shape[1]) >= before
    around = past.around | {n: was.around[s.label] for n, s in gone.items() if s.label in was.around}
    joined = msgspec.structs.replace(past, labels=labels, counts=counts, bins={}, around=around)
    bounds = was.first * was.length, end, starts[later][0], starts[-1] + past.length
    return Halves(told._replace(past=joined), after, bounds, gone, born)


def _as_general(told: Told, old: Told) -> tuple[dict[str, int], dict[int, int]]:
    """Labels of templates by how they, or less general ones, read in another stream.

    Where a template there has a hole, logs here may have had one word only, and the other way round. The
    second are templates here that are one there: their labels, with that of the one that stands for them.
    """
    names, joined = dict[str, int](), dict[int, int]()
    theirs = defaultdict[int, list[str]](list)
    for story in old.stories:
        name = _name_of(story, old)
        theirs[len(name.split())].append(name)
    exact = {_name_of(story, old) for story in old.stories}
    for story in sorted(told.stories, key=lambda each: _name_of(each, told) not in exact):  # these first
        name = _name_of(story, told)
        near = [name] if name in exact else theirs[len(name.split())]
        if covering := [other for other in near if covers(other, name)]:
            label = names.setdefault(min(covering, key=lambda other: other.count("<")), story.label)
            if label != story.label:
                joined[story.label] = label
        else:
            for other in near:
                if covers(name, other):
                    names.setdefault(other, story.label)
    return names, joined


def covers(general: str, template: str) -> bool:
    """Whether lines of a template are lines of one that is as general or more.

    >>> covers("user=<word> logged in", "user=ann logged in")
    True
    """
    words, others = general.split(), template.split()
    return len(words) == len(others) and all(map(_covers_word, words, others))


def _covers_word(word: str, other: str) -> bool:
    begin, end = word.find("<"), word.rfind(">") + 1
    if word == other or not 0 <= begin < end:
        return word == other
    fixed = begin + len(word) - end
    return len(other) > fixed and other.startswith(word[:begin]) and other.endswith(word[end:])


def need_like(told: Told, old: Told) -> None:
    """Raise StoriesError for streams of different kinds."""
    kinds = told.stories.kind, old.stories.kind
    if kinds[0] != kinds[1] and ("lines" in kinds or None not in kinds):
        raise StoriesError(
            f"{told.stories.nouns} cannot be compared with {old.stories.nouns}: their records differ in kind",
            Exit.USAGE,
        )


def is_later(told: Told, old: Told) -> bool:
    """Whether the one stream is the other, of which it is a later moment, or the same."""
    if told.stories.records < old.stories.records or told.past.dated != old.past.dated:
        return False
    now = {story.label: story for story in told.stories}
    both = [(story, now[story.label]) for story in old.stories if story.label in now]
    if told.past.dated:
        return 2 * sum(_first_of(was) == _first_of(own) for was, own in both) > len(old.stories)
    # numbers of first records are alike in other logs too
    return 2 * len(both) > len(old.stories) and all(
        was.first_seq == own.first_seq and was.records <= own.records and was.samples[:1] == own.samples[:1]
        for was, own in both
    )


def now_of(label: int, united: Mapping[int, int]) -> int:
    """The label that a story has, of those that have become one."""
    seen = set[int]()
    while label in united and label not in seen:
        seen.add(label)
        label = united[label]
    return label


def _name_of(story: Story, told: Told) -> str:
    """What a story is called in every stream like it: a template as it reads now."""
    return told.templates.get(story.label, story.title)


def _first_of(story: Story) -> tuple[int, int, float | None]:
    """What tells a story from those of other streams."""
    return story.label, story.first_seq, story.began_time


def _by(past: Past, length: float) -> Past:
    """Counts by longer units."""
    ratio = round(length / past.length)
    units = (past.first + np.arange(past.counts.shape[1])) // ratio
    counts = np.zeros((len(past.counts), int(units[-1] - units[0]) + 1))
    np.add.at(counts.T, units - units[0], past.counts.T)
    return msgspec.structs.replace(past, first=int(units[0]), length=length, counts=counts)


def _compared(halves: Halves) -> Diff:
    told, after, bounds, gone, born = halves
    past, unseen = told.past, dict(born)
    stories = {story.label: story for story in told.stories} | dict(gone)
    tails, more = of_kinds(past.counts, after)
    holes = list(_holes(past, after))
    # kinds and values have half of the false alarms each
    kinds, values = 2 * max(len(tails), 1), 2 * max(sum(len(each) for *_, each in holes), 1)
    changes = []
    for row, label in enumerate(past.labels.tolist()):
        if label in stories:
            k0, k1 = (int(past.counts[row, which].sum()) for which in (~after, after))
            kind: Kind = "surged" if more[row] else "fewer"
            if unseen.pop(label, None) is not None:
                kind, k0, k1 = "new", 0, stories[label].records
            elif k1 == 0:
                kind = "gone" if label in gone else "silent"
            surprise = -float(tails[row]) - math.log(kinds)
            changes.append(change_of(stories[label], label, past, kind, (k0, k1), surprise))
    for label, at, logs in holes:
        if label in stories:
            surprise = -float(logs.min()) - math.log(values)
            changes.append(_of_hole(stories[label], past, at, logs, after, surprise))
    changes += [
        change_of(story, story.label, past, "new", (0, story.records), 0.0) for story in unseen.values()
    ]
    changes.sort(key=lambda each: (-each.news, -each.surprise, each.label, each.hole or ""))
    return Diff(changes, *bounds, past.dated, told.stories.nouns)


def _holes(past: Past, after: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Label, which of its holes, and the log tails of the bins of each hole that may be compared."""
    for label, own in past.bins.items():
        for at, each in enumerate(own):
            total = each.counts.sum(axis=0)
            if len(each.counts) > 1 and min(total[after].sum(), total[~after].sum()) >= LINES:
                yield label, at, of_values(each.counts, after)


def change_of(
    story: Story, key: int, past: Past, kind: Kind, counts: tuple[int, int], surprise: float
) -> Change:
    """A change of how often a story came, before and after; ``key`` is its label in the past."""
    before, after = counts
    around = past.around.get(key)
    return Change(
        kind=kind,
        label=story.label,
        title=story.title,
        before=before,
        after=after,
        surprise=round(max(surprise, 0.0), 2),
        began=story.began,
        began_time=story.began_time,
        line=around.line if around else (story.samples[0] if story.samples else ""),
        line_before=around.before if around else "",
        line_after=around.after if around else "",
        levels={name: lines for name, lines in past.levels(key).items() if name},
    )


def _of_hole(
    story: Story, past: Past, at: int, logs: np.ndarray, after: np.ndarray, surprise: float
) -> Change:
    bins, hole = past.bins[story.label][at], past.holes[story.label][at]
    k0, k1 = (bins.counts[:, which].sum(axis=1) for which in (~after, after))
    shares = [
        (bins.names[i] or "others", round(float(k0[i] / k0.sum()), 4), round(float(k1[i] / k1.sum()), 4))
        for i in np.argsort(logs, kind="stable")[:3].tolist()
    ]
    nth = sum(other.place <= hole.place for other in past.holes[story.label])
    called = "level" if hole.place == LEVEL else f"{hole.kind} (hole {nth})"
    change = change_of(story, story.label, past, "changed", (int(k0.sum()), int(k1.sum())), surprise)
    none = {"line": "", "line_before": "", "line_after": ""}
    return msgspec.structs.replace(change, **none, hole=called, values=shares)
