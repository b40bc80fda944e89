"""A story: a cluster, or a template, as people are told of it. A list of them shows itself as a table."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

import msgspec

from streamdp.answers.listing import is_date, printable, table, text_table
from streamdp.lines.holes import Hole
from streamdp.records import RENAMED, TITLED
from streamdp.records.arrow import table_of
from streamdp.story.clock import Clock
from streamdp.story.orders import ORDERS, Sort

if TYPE_CHECKING:
    from streamdp.story.statistics import Statistics

Trend = Literal["new", "growing", "steady", "fading", "silent"]


class StoryRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A record of a story, with the ``probability`` of its label; ``text`` is "" where it is not known.

    ``when`` is its event time in ISO 8601, ``time`` the same in seconds; ``keep`` are its kept fields.
    """

    seq: int
    id: str | int | None = None
    when: str | None = None
    time: float | None = None
    text: str = ""
    probability: float | None = None
    revision: int = 0
    keep: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.when is None and self.time is not None:
            msgspec.structs.force_setattr(self, "when", iso(self.time))


class Story(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A cluster, or a template, for people.

    Times are in ISO 8601, those that end in ``_time`` in seconds; None where records have none. ``now`` and
    ``before`` count records in the latest stretch of the stream's time and in the one before, ``peak`` is the
    beginning of the busiest. ``surest`` and ``unsure`` are a few records by the probability of their label,
    ``samples`` the first, the most typical and the latest. ``confused_with`` are labels that its records had
    at first, with how many; ``holes`` what stands in those of a template.

    Examples
    --------
    >>> from streamdp import Engine
    >>> engine = Engine()
    >>> answers = engine.advance(["storm over the coast", "coast storm"])
    >>> story = engine.stories()[0]
    >>> story.title, story.records, "coast" in story.keywords
    ('storm over the coast', 2, True)
    """

    label: int
    title: str
    keywords: list[str]
    records: int
    began: str | None
    peak: str | None
    last: str | None
    began_time: float | None
    peak_time: float | None
    last_time: float | None
    first_seq: int
    last_seq: int
    now: int
    before: int
    trend: Trend
    ended: bool = False
    template: bool = False
    split_from: int | None = None
    merged_with: list[int] = []
    merged_into: int | None = None
    confused_with: list[tuple[int, int]] = []
    samples: list[str] = []
    surest: list[StoryRecord] = []
    unsure: list[StoryRecord] = []
    holes: list[Hole] = []
    theme: int | None = None

    @property
    def growth(self) -> int:
        """How many more records it has now than before."""
        return self.now - self.before


class StoryEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What happened to a story: ``event`` is as in the file of events, ``records`` how many it had then.

    ``other`` is the story that it became part of, or was split from. Both are called as they are now; that it
    was titled or renamed, has the title of then. ``when`` is in ISO 8601, ``time`` the same in seconds.
    """

    number: int
    event: str
    label: int
    title: str
    records: int
    seq: int
    when: str | None = None
    time: float | None = None
    other: int | None = None
    other_title: str | None = None

    def __post_init__(self) -> None:
        if self.when is None and self.time is not None:
            msgspec.structs.force_setattr(self, "when", iso(self.time))

    def called(self, titles: Mapping[int, str]) -> StoryEvent:
        """The same with the titles that stories have now."""
        title = self.title if self.event in (TITLED, RENAMED) else titles.get(self.label, self.title)
        other = self.other_title if self.other is None else titles.get(self.other, self.other_title)
        return msgspec.structs.replace(self, title=title, other_title=other)


class Theme(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Stories that belong together, called by the label and the title of the largest of them.

    ``stories`` are their labels, largest first; ``records`` are those of all of them, and ``now``, ``before``
    and ``trend`` are as of a story. ``titles`` are those of the five largest.

    Examples
    --------
    >>> from streamdp import Engine, Settings
    >>> engine = Engine(Settings(beam=4))
    >>> answers = engine.advance(["storm over the coast", "coast storm", "late goal wins the match"])
    >>> [(theme.theme, theme.stories, theme.title) for theme in engine.stories().themed(1).themes]
    [(0, [0, 1], 'storm over the coast')]
    """

    theme: int
    title: str
    keywords: list[str]
    stories: list[int]
    titles: list[str]
    records: int
    now: int
    before: int
    trend: Trend


NOUNS = {"lines": ("template", "templates"), None: ("story", "stories"), "texts": ("story", "stories")}


def noun_of(kind: str | None, number: int) -> str:
    """What clusters of records of a kind are called, where there are so many."""
    return NOUNS.get(kind, ("cluster", "clusters"))[number != 1]


def trend_of(now: int, before: int, *, began_now: bool) -> Trend:
    """What two counts say: growing or fading where they differ by more than their standard deviation."""
    if now == 0:
        return "silent"
    if before == 0 and began_now:
        return "new"
    least = math.sqrt(now + before)
    return "growing" if now - before > least else "fading" if before - now > least else "steady"


def iso(time: float | None) -> str:
    """An event time in ISO 8601, in UTC and to the second; one that is no date as a number."""
    if time is None:
        return ""
    if not is_date(time):
        return f"{time:g}"
    from datetime import UTC, datetime

    return datetime.fromtimestamp(math.floor(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def times_of(began: float | None, peak: float | None, last: float | None) -> dict[str, Any]:
    """The times of a story, for people and for programs."""
    times = {"began": began, "peak": peak, "last": last}
    return {name: iso(time) or None for name, time in times.items()} | {
        f"{name}_time": time for name, time in times.items()
    }


COLUMNS = ("story", "title", "records", "began", "last", "now", "trend", "keywords")

KEYWORDS = 6
"""Of a theme."""

LARGEST = 5
"""Stories of a theme whose titles are listed with it."""

SHOWN = 20
"""Stories of a list that are shown; it says how many more there are."""


class Stories:
    """A list of stories, with what is true of all of them; pyarrow, polars and DuckDB take it as a table.

    Parameters
    ----------
    stories
        In any order; a list has the largest first.
    clock
        What ``now`` is.
    records
        Records of the stream.
    kind
        What records are: "lines" have templates.
    remembered
        Where closed stories come from: "all", "latest" (the last that closed) or "none".
    warnings
        What is doubtful about them all.
    stated
        Gives what themes are made of; None where that is not known.
    themes
        Themes that were found.
    numbers
        Of the theme of each story by label, as of the stream's last look at themes.

    Examples
    --------
    >>> from streamdp import Engine
    >>> engine = Engine()
    >>> answers = engine.advance(["storm over the coast", "late goal wins", "coast storm"])
    >>> [(story.label, story.records) for story in engine.stories()]
    [(0, 2), (1, 1)]
    """

    def __init__(
        self,
        stories: Iterable[Story] = (),
        clock: Clock | None = None,
        records: int = 0,
        *,
        kind: str | None = None,
        remembered: Literal["all", "latest", "none"] = "all",
        warnings: Sequence[str] = (),
        statistics: Callable[[], Statistics | None] | None = None,
        themes: Sequence[Theme] = (),
        numbers: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._stories = list(stories)
        self.clock = clock or Clock(0.0, 1.0, dated=False)
        self.records, self.kind, self.remembered = records, kind, remembered
        self.warnings = list(warnings)
        """What is doubtful about them all."""
        self.themes = list(themes)
        """Their themes, largest first, where :meth:`themed` has looked for them."""
        self._statistics, self._numbers = statistics, numbers

    def like(
        self, stories: Iterable[Story], statistics: Callable[[], Statistics | None] | None = None
    ) -> Stories:
        """Some of the same; ``statistics`` gives what themes are made of, where something else is to."""
        some = copy(self)
        some._stories = list(stories)  # noqa: SLF001
        some._statistics = statistics or self._statistics  # noqa: SLF001
        return some

    @property
    def theme_numbers(self) -> dict[int, int]:
        """The number of the theme of each story that has one, by label."""
        return {label: theme.theme for theme in self.themes for label in theme.stories}

    def settled(self) -> Stories:
        """The same stories, whose themes may be asked for when the next records have come."""
        statistics = None if self._statistics is None else self._statistics()
        return self.like(self, lambda: statistics)

    def themed(self, themes: int | None = None, before: Mapping[int, int] | None = None) -> Stories:
        """The same stories with their themes: a level above them, of fewer groups.

        Parameters
        ----------
        themes
            How many are wanted, >= 1. None: stories are united for as long as the model gains by it.
        before
            Numbers of the themes that were found the last time, by label (``theme_numbers``): their
            stories stay together, what is new joins one of them or makes another, and each keeps its number.
            None: those that the stream keeps up to date (the setting ``themes``), {}: all are found anew.

        Of an engine, ask before the next records come. Templates, and what says nothing about words, have no
        themes.
        """
        from streamdp.story.themes import themes_of

        statistics = None if self._statistics is None else self._statistics()
        if statistics is None:
            return self
        known = self._numbers if before is None else before
        parts, numbers = defaultdict[int, list[Story]](list), themes_of(statistics, themes, known)
        for story in self:
            if story.label in numbers:
                parts[numbers[story.label]].append(story)
        made = (_theme(own, number) for number, own in parts.items())
        found = sorted(made, key=lambda theme: (-theme.records, theme.theme))
        number = {label: theme.theme for theme in found for label in theme.stories}
        replaced = (msgspec.structs.replace(story, theme=number.get(story.label)) for story in self)
        themed = self.like(replaced)
        themed.themes = found
        return themed

    def by(self, sort: Sort) -> Stories:
        """The same in another order."""
        return self.like(sorted(self, key=ORDERS[sort]))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Story: ...

    @overload
    def __getitem__(self, index: slice) -> Stories: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Story | Stories:
        found = self._stories[index]
        return self.like(found) if isinstance(found, list) else found

    def __len__(self) -> int:
        return len(self._stories)

    def __iter__(self) -> Iterator[Story]:
        return iter(self._stories)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stories | list) and self._stories == list(other)

    __hash__ = None  # type: ignore[assignment]

    def story(self, label: int) -> Story | None:
        """The story of a label; None where there is none."""
        return next((story for story in self if story.label == label), None)

    @property
    def noun(self) -> str:
        """What one of them is called."""
        return noun_of(self.kind, 1)

    @property
    def nouns(self) -> str:
        """What several of them are called."""
        return noun_of(self.kind, 2)

    def counted(self, number: int) -> str:
        """So many of them: ``1 story``, ``2,000 templates``."""
        return f"{number:,} {noun_of(self.kind, number)}"

    def rows(self) -> list[dict[str, Any]]:
        """A mapping for each, times as ISO 8601: what a data frame, or a table in a file, is made of."""
        return [row_of(story) for story in self]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows over as a table of Arrow. ImportError without pyarrow."""
        return table_of(self.rows(), TYPES).__arrow_c_stream__(requested_schema)

    @property
    def caption(self) -> str:
        """How many there are, and what is now."""
        text = f"{self.counted(len(self))} of {self.records:,} records, now the last {self.clock.words}"
        return text if len(self) <= SHOWN else f"{text}; the first {SHOWN} of them"

    def cells(self) -> Iterator[tuple[str, ...]]:
        """The cells of a table for people."""
        for story in self:
            yield (
                str(story.label),
                printable(story.title),
                f"{story.records:,}",
                story.began or f"record {story.first_seq:,}",
                story.last or f"record {story.last_seq:,}",
                f"{story.now:,}",
                story.trend,
                printable(" ".join(story.keywords)),
            )

    def __repr__(self) -> str:
        return text_table(self.caption, COLUMNS, list(self[:SHOWN].cells()))

    def _repr_html_(self) -> str:
        return table(COLUMNS, self[:SHOWN].cells(), self.caption)


def _theme(stories: list[Story], number: int) -> Theme:
    """The theme of some stories."""
    own = sorted(stories, key=ORDERS["size"])
    words = Counter[str]()
    for story in own:
        words.update(dict.fromkeys(story.keywords, story.records))
    now, before = sum(story.now for story in own), sum(story.before for story in own)
    return Theme(
        theme=number,
        title=own[0].title,
        keywords=[word for word, _ in words.most_common(KEYWORDS)],
        stories=[story.label for story in own],
        titles=[story.title for story in own[:LARGEST]],
        records=sum(story.records for story in own),
        now=now,
        before=before,
        trend=trend_of(now, before, began_now=all(story.trend == "new" for story in own if story.now)),
    )


TYPES = {
    "story": "int64",
    "title": "string",
    "records": "int64",
    "began": "string",
    "peak": "string",
    "last": "string",
    "now": "int64",
    "before": "int64",
    "trend": "string",
    "ended": "bool",
    "keywords": "string",
    "split_from": "int64",
    "merged_with": "string",
    "merged_into": "int64",
    "theme": "int64",
}
"""The columns of a story in a table, and their types."""


def row_of(story: Story) -> dict[str, Any]:
    """The columns of a story in a file."""
    columns = {"story": story.label} | {name: getattr(story, name) for name in TYPES if name != "story"}
    return {name: " ".join(map(str, v)) if isinstance(v, list) else v for name, v in columns.items()}
