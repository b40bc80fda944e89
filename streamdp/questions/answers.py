"""What is answered to questions, as programs read it; the document of OpenAPI is made from these."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Literal

import msgspec

from streamdp.reports.diff import Change, Diff
from streamdp.reports.marks import Mark
from streamdp.story.story import Story, StoryEvent, StoryRecord, Theme, iso


class Answer(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What became of one record.

    ``answered``: it belongs to the story ``label``; ``new`` says that it began it. ``pending``: it is safe in
    the journal, and will be answered. ``refused``: ``reason`` and ``detail`` say why; ``code`` is 409 where a
    record of its id that says something else was taken before. ``line`` is its number in the journal, ``seq``
    that in processing order, ``novelty`` nats by token or dimension; ``revision`` counts later changes.
    """

    status: Literal["answered", "pending", "refused"]
    line: int | None = None
    id: str | None = None
    seq: int | None = None
    time: float | None = None
    label: int | None = None
    new: bool | None = None
    probability: float | None = None
    novelty: float | None = None
    revision: int = 0
    template: str | None = None
    reason: str | None = None
    detail: str | None = None
    code: int | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """Why something was not answered."""

    error: str


class StoryList(msgspec.Struct, frozen=True, kw_only=True):
    """Some stories.

    ``total`` counts those that match, ``small`` those that were left out for their few records, ``records``
    all records of the stream. ``next`` is what ``start`` is for the rest, null where there is none.
    ``warnings`` say what is doubtful about them all, ``lacking`` what the source does not know any more.
    """

    stories: list[Story]
    total: int
    small: int
    next: int | None
    records: int
    warnings: list[str]
    lacking: str = ""


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a story, in the order asked for; ``next`` is what ``after`` is for the rest, or null."""

    records: list[StoryRecord]
    next: int | None
    lacking: str = ""


class ThemeList(msgspec.Struct, frozen=True, kw_only=True):
    """Live stories in fewer, coarser groups; ``live`` counts them, also those without a theme."""

    themes: list[Theme]
    live: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How far the result can be trusted: ``warnings`` say what is doubtful about it.

    ``records`` are all of the stream, ``live`` its live stories; ``lacking`` says what the source does not
    know.
    """

    records: int
    live: int
    warnings: list[str]
    lacking: str = ""


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, in the order asked for; ``next`` is what ``after`` is for the rest, or null."""

    events: list[StoryEvent]
    next: int | None


class MarkList(msgspec.Struct, frozen=True):
    """The moments that have a name, in order; of one name the latest."""

    marks: list[Mark]


class Candidate(msgspec.Struct, frozen=True):
    """A story that a text may belong to; null is a new one. ``words`` speak for it, each with its nats."""

    label: int | None
    title: str | None
    probability: float
    words: list[tuple[str, float]]


class Where(msgspec.Struct, frozen=True):
    """Where a text would go, the likeliest first; ``error`` says why it cannot be clustered."""

    candidates: list[Candidate]
    error: str | None = None


class ChangeList(msgspec.Struct, frozen=True, kw_only=True):
    """Some changes, what is new first, then the most surprising; ``total`` counts those that match.

    What is before them begins at ``begin`` and ends at ``until``; what is after begins at ``since`` and ends
    at ``end``: in ISO 8601, and in seconds as ``begin_time`` and so on; in records where these have no times
    (not ``dated``), and then the texts are null.
    """

    changes: list[Change]
    total: int
    next: int | None
    begin: str | None
    until: str | None
    since: str | None
    end: str | None
    begin_time: float
    until_time: float
    since_time: float
    end_time: float
    dated: bool

    @classmethod
    def of(cls, found: Diff, start: int, most: int, *, every: bool) -> ChangeList:
        """Those that are new or far from what chance does, or all of them, from one on."""
        chosen = found.changes if every else found.listed
        at = {name: float(getattr(found, name)) for name in ("begin", "until", "since", "end")}
        times: dict[str, Any] = {f"{name}_time": time for name, time in at.items()}
        times |= {name: iso(time) if found.dated else None for name, time in at.items()}
        some, total = chosen[start : start + most], len(chosen)
        return cls(changes=some, total=total, next=next_start(start, some, total), dated=found.dated, **times)


def next_start(start: int, some: Sized, total: int) -> int | None:
    """Where the rest of a list begins; None where there is none."""
    end = start + len(some)
    return end if len(some) and end < total else None
