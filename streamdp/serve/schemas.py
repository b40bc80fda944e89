"""What the service answers, as programs read it; the document of OpenAPI is made from these."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from streamdp.records import POSITION, Answers, Reject
from streamdp.records.answer_rows import answer_rows
from streamdp.story.orders import Sort
from streamdp.story.story import Stories, Story, StoryRecord


class Answer(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What became of one record.

    ``answered``: it belongs to the story ``label``, with that ``probability``; ``new`` says that it began it.
    ``pending``: it is safe in the journal, and will be answered. ``refused``: ``reason`` and ``detail`` say
    why; nothing was learned from it. ``code`` is 409 where a record of its id that says something else was
    taken before. ``id`` is that of the record, as text; ``line`` its number in the
    journal, ``seq`` that in processing order, ``time`` seconds since 1970, ``novelty`` nats by token or
    dimension; ``revision`` counts later changes.
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


class StoryList(msgspec.Struct, frozen=True):
    """Some stories; ``total`` counts those that match, ``records`` all records of the stream."""

    stories: list[Story]
    total: int
    records: int
    warnings: list[str]

    @classmethod
    def of(cls, found: Stories, sort: Sort, least: int, start: int, most: int, *, closed: bool) -> StoryList:
        """Those of at least so many records, from one on."""
        chosen = found.like(story for story in found if story.size >= least)
        ordered = chosen if closed and sort == "size" else chosen.by(sort)
        return cls(list(ordered[start : start + most]), len(chosen), found.records, found.warnings)


class RecordList(msgspec.Struct, frozen=True):
    """Records of a story, in order; ``next`` is what ``after`` is for the rest, null where there is none."""

    records: list[StoryRecord]
    next: int | None

    @classmethod
    def of(cls, found: list[StoryRecord], most: int) -> RecordList:
        """So many at most."""
        return cls(found, found[-1].seq if len(found) == most else None)


class Text(msgspec.Struct, frozen=True):
    """A text that is asked about."""

    text: str


class Candidate(msgspec.Struct, frozen=True):
    """A story that a text may belong to; -1 is a new one. ``words`` speak for it, each with its nats."""

    label: int
    probability: float
    words: list[tuple[str, float]]


class Where(msgspec.Struct, frozen=True):
    """Where a text would go, the likeliest first; ``error`` says why it cannot be clustered."""

    candidates: list[Candidate]
    error: str | None = None

    @classmethod
    def of(cls, found: dict[str, Any]) -> Where:
        """As the page has it."""
        candidates = [Candidate(c["cluster"], c["probability"], c["words"]) for c in found["candidates"]]
        return cls(candidates, found.get("error"))


class _Place(msgspec.Struct, frozen=True, gc=False):
    line: int


_place = msgspec.json.Decoder(_Place).decode


def _refusal(reject: Reject) -> Answer:
    return Answer(status="refused", line=reject.position["line"], reason=reject.reason, detail=reject.detail)


def answers_of(answers: Answers) -> list[tuple[int, Answer]]:
    """The answers to records, revisions of earlier ones too, by their lines in the journal."""
    rows = answer_rows(answers.lines)
    names = ("seq", "label", "founded", "probability", "novelty", "revision")
    own = rows.written(POSITION), rows.ids(), rows.times(), rows.templates(), *rows.numbers(*names)
    found = [
        Answer(
            status="answered",
            line=_place(position).line,
            id=None if name is None else str(name),
            seq=seq,
            time=time,
            label=label,
            new=bool(new),
            probability=probability,
            novelty=novelty,
            revision=revision,
            template=template,
        )
        for position, name, time, template, seq, label, new, probability, novelty, revision in zip(
            *own, strict=True
        )
    ]
    found += map(_refusal, answers.rejects)
    return [(answer.line, answer) for answer in found if answer.line is not None]
