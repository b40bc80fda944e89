"""The questions: a struct for each, with the bounds that every door keeps, and the table of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from streamdp.questions.answers import (
    Answer,
    ChangeList,
    EventList,
    Health,
    MarkList,
    RecordList,
    StoryList,
    ThemeList,
    Where,
)
from streamdp.state.corrections import CorrectionEntry, CorrectionList, CorrectionRequest
from streamdp.story.orders import Sort
from streamdp.story.story import Story

Label = Annotated[int, Meta(ge=0, description="label of a story")]
Start = Annotated[int, Meta(ge=0, le=10**9, description="leave out so many: next of the answer before")]
Limit = Annotated[int, Meta(ge=1, le=1000, description="at most so many")]
Latest = Annotated[bool, Meta(description="the latest first")]
Time = Annotated[
    str, Meta(min_length=1, max_length=200, description="a time (ISO 8601), so long ago (6h, 2d), or a mark")
]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody asks."""


class ListStories(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List stories of the stream, in an order."""

    which: Annotated[Literal["live", "ended", "all"], Meta(description="live ones, ended ones, or both")] = (
        "live"
    )
    sort: Annotated[Sort, Meta(description="what comes first")] = "size"
    reverse: Annotated[bool, Meta(description="what comes last in that order first")] = False
    least: Annotated[int, Meta(ge=1, le=10**9, description="leave out stories of fewer records")] = 2
    search: Annotated[
        str, Meta(max_length=200, description="whose title, keywords or records hold all these words")
    ] = ""
    since: Annotated[Time | None, Meta(description="with records since then")] = None
    until: Annotated[Time | None, Meta(description="that began by then")] = None
    growing: Annotated[bool, Meta(description="with more records now than before")] = False
    start: Start = 0
    limit: Limit = 50


class ShowStory(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show one story: what the list says of it, some of its records, what it came from."""

    label: Label


class ListRecords(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the records of one story in order of arrival."""

    label: Label
    after: Annotated[int, Meta(ge=-1, le=10**12, description="next of the answer before")] = -1
    latest: Latest = False
    limit: Limit = 50


class ShowAnswer(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what is known of the record of an id now."""

    id: Annotated[str, Meta(max_length=10_000, description="that of the record")]


class ListChanges(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what has changed since a time or a mark: what is new first, then the most surprising."""

    since: Time
    all: Annotated[bool, Meta(description="also what chance explains")] = False
    start: Start = 0
    limit: Limit = 50


class ListMarks(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the moments that have a name, which a time may be."""


class ListEvents(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List what happened to stories, in order: born, titled, split, merged, closed and so on."""

    label: Annotated[Label | None, Meta(description="of one story; null: of all")] = None
    after: Annotated[int, Meta(ge=0, le=10**12, description="next of the answer before")] = 0
    latest: Latest = False
    limit: Limit = 50


class ListThemes(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List themes: the live stories in fewer, coarser groups."""

    themes: Annotated[
        Annotated[int, Meta(ge=1, le=500)] | None,
        Meta(description="how many; null: what the model says"),
    ] = 20


class ShowHealth(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what is doubtful about the result."""


class WhereWouldItGo(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say to which stories a text would belong, with probabilities; nothing is learned from it."""

    text: Annotated[str, Meta(max_length=10_000, description="a record, such as a headline")]


class ListCorrections(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the corrections by hand, in order."""

    after: Annotated[int, Meta(ge=0, le=10**12, description="next of the answer before")] = 0
    limit: Limit = 50


Asked: TypeAlias = Question | CorrectionRequest
"""What a source is asked."""


class Kind(NamedTuple):
    """A kind of question: its name as a tool, its path in a service, what it takes and what it answers.

    ``posted`` says whether it is the body of a POST, ``writes`` whether it changes the stream.
    """

    name: str
    path: str
    takes: type[Asked]
    answer: Any
    posted: bool = False
    writes: bool = False


KINDS = (
    Kind("list_stories", "/v1/stories", ListStories, StoryList),
    Kind("show_story", "/v1/stories/{label}", ShowStory, Story),
    Kind("list_records", "/v1/stories/{label}/records", ListRecords, RecordList),
    Kind("show_answer", "/v1/answers", ShowAnswer, Answer),
    Kind("list_changes", "/v1/changes", ListChanges, ChangeList),
    Kind("list_marks", "/v1/marks", ListMarks, MarkList),
    Kind("list_events", "/v1/events/list", ListEvents, EventList),
    Kind("list_themes", "/v1/themes", ListThemes, ThemeList),
    Kind("show_health", "/v1/health", ShowHealth, Health),
    Kind("where_would_it_go", "/v1/where", WhereWouldItGo, Where, posted=True),
    Kind("list_corrections", "/v1/corrections", ListCorrections, CorrectionList),
    Kind("correct", "/v1/corrections", CorrectionRequest, CorrectionEntry, posted=True, writes=True),
)
"""Every kind of question."""

KIND_OF = {kind.takes: kind for kind in KINDS}
