"""What a source of stories answers: a state, a store or a file of answers, of one moment."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from streamdp.answers import describe
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.questions.answers import (
    Answer,
    Candidate,
    ChangeList,
    EventList,
    Health,
    MarkList,
    RecordList,
    StoryList,
    ThemeList,
    Where,
    next_start,
)
from streamdp.questions.questions import (
    KIND_OF,
    Asked,
    ListChanges,
    ListEvents,
    ListMarks,
    ListRecords,
    ListStories,
    ListThemes,
    ShowAnswer,
    ShowHealth,
    ShowStory,
    WhereWouldItGo,
)
from streamdp.records import Reject
from streamdp.reports.diff import Told, since_in, told_in
from streamdp.reports.marks import marks, since_of
from streamdp.reports.source import EngineStories, StorySource
from streamdp.reports.store import StoreStories
from streamdp.story.answers import holds
from streamdp.story.story import Stories, Story, StoryEvent
from streamdp.story.titles import short

CANDIDATES = 5
"""Stories that a text may belong to, at most."""


class QuestionError(StreamdpError):
    """What was asked says nothing (``status`` 400), or has no answer here (404)."""

    def __init__(self, message: str, exit_code: Exit = Exit.USAGE, status: int = 400) -> None:
        super().__init__(message, exit_code)
        self.status = 404 if exit_code == Exit.NO_INPUT else status


def stories_asked(question: ListStories, source: StorySource, stretch: float | None = None) -> Stories:
    """The stories that a question is about, before it chooses among them."""
    found = source.stories(closed=question.which == "ended", stretch=stretch)
    if question.which != "all":
        return found
    ended, live = source.stories(closed=True, stretch=stretch), {story.label for story in found}
    both = found.like([*found, *(story for story in ended if story.label not in live)])
    both.remembered = ended.remembered
    return both


def chosen_of(
    question: ListStories, found: Stories, source: StorySource, state: str | Path | None
) -> tuple[Stories, int]:
    """The stories that are asked for, in order, and how many were left out for their few records alone.

    ``state`` is what marks lie beside. Raises QuestionError for times that are none.
    """
    times = {
        name: None if text is None else _moment(name, text, found, state)
        for name, text in (("since", question.since), ("until", question.until))
    }
    if any(time is not None for time in times.values()) and not found.clock.dated and found:
        raise QuestionError("since and until need records with times, and these have none")
    since, until = times.values()
    words = question.search.split()
    held = source.search(words) if words else set()
    wanted = found.like(
        story
        for story in found
        if (since is None or (story.last_time or 0.0) >= since)
        and (until is None or (story.began_time or 0.0) <= until)
        and (not question.growing or story.growth > 0)
        and (not words or story.label in held or _says(story, words))
    )
    large = wanted.like(story for story in wanted if story.records >= question.least)
    ordered = large.by(question.sort)
    return ordered[::-1] if question.reverse else ordered, len(wanted) - len(large)


def story_of(source: StorySource, label: int, stretch: float | None = None) -> Story:
    """A story that lives, or has ended, muted or not. Raises QuestionError where there is none."""
    for muted, closed in ((False, False), (False, True), (True, False), (True, True)):
        found = source.stories(closed=closed, stretch=stretch, muted=muted).story(label)
        if found is not None:
            return found
    named = str(label) if len(str(label)) <= 20 else f"{str(label)[:20]}..."
    raise QuestionError(f"there is no story {named}: it may have become part of another", Exit.NO_INPUT)


def _moment(name: str, text: str, found: Stories, state: str | Path | None) -> float:
    try:
        return since_of(state, text, lambda: found.clock, name)
    except ConfigError as error:
        raise QuestionError(error.message, status=404) from None


def _says(story: Story, words: list[str]) -> bool:
    """Whether label, title, keywords and samples of a story hold all words of a search."""
    return holds(" ".join([str(story.label), story.title, *story.keywords, *story.samples]), words)


class Answers:
    """The answers of a source of stories, by the names of ``KINDS``; ``state`` is what marks lie beside."""

    def __init__(self, source: StorySource, state: str | Path | None = None) -> None:
        self._source, self._state = source, state

    def to(self, question: Asked) -> Any:
        """The answer to a question. Raises StreamdpError."""
        return getattr(self, KIND_OF[type(question)].name)(question)

    def list_stories(self, question: ListStories) -> StoryList:
        """Stories, in an order."""
        found = stories_asked(question, self._source)
        chosen, small = chosen_of(question, found, self._source, self._state)
        some = chosen[question.start : question.start + question.limit]
        return StoryList(
            stories=list(some),
            total=len(chosen),
            small=small,
            next=next_start(question.start, some, len(chosen)),
            records=found.records,
            warnings=found.warnings,
            lacking=self._source.lacking,
        )

    def show_story(self, question: ShowStory) -> Story:
        """One story, which lives or has ended."""
        return self._source.in_full(story_of(self._source, question.label))

    def list_records(self, question: ListRecords) -> RecordList:
        """Records of a story, as far as they are known."""
        story_of(self._source, question.label)
        latest, after = question.latest, question.after
        own = (record for _, record in self._source.records([question.label], latest=latest))
        left = (each for each in own if after < 0 or (each.seq < after if latest else each.seq > after))
        found = [record for record, _ in zip(left, range(question.limit + 1), strict=False)]
        some = found[: question.limit]
        rest = some[-1].seq if len(found) > len(some) else None
        return RecordList(records=some, next=rest, lacking=self._source.lacking)

    def show_answer(self, question: ShowAnswer) -> Answer:
        """What is known of the record of an id."""
        found = self._source.named(question.id)
        if found is None:
            raise QuestionError("no record of this id is known here", Exit.NO_INPUT)
        label, record = found
        return Answer(
            status="answered",
            id=question.id,
            seq=record.seq,
            time=record.time,
            label=label,
            probability=record.probability,
            revision=record.revision,
        )

    def list_changes(self, question: ListChanges) -> ChangeList:
        """What has changed since a time or a mark."""
        return changes_in(told_in(self._source), question, self._state)

    def list_marks(self, _: ListMarks) -> MarkList:
        """The moments that have a name."""
        return marks_now(self._state)

    def list_events(self, question: ListEvents) -> EventList:
        """What happened to stories."""
        if not isinstance(self._source, StoreStories):
            raise QuestionError("only a store, or a running stream, says what happened to stories")
        called = {story.label: story.title for story in self._source.stories()}
        after, most = question.after, question.limit
        found = self._source.events(question.label, after, most + 1, latest=question.latest)
        return events_of(found, called, most)

    def list_themes(self, question: ListThemes) -> ThemeList:
        """Themes of the live stories."""
        found = self._source.stories().themed(question.themes)
        return ThemeList(themes=found.themes, live=len(found))

    def show_health(self, _: ShowHealth) -> Health:
        """What is doubtful."""
        found = self._source.stories()
        lacking = self._source.lacking
        return Health(records=found.records, live=len(found), warnings=found.warnings, lacking=lacking)

    def where_would_it_go(self, question: WhereWouldItGo) -> Where:
        """Where a text would go. In a stream of vectors or features it is JSON."""
        if not isinstance(self._source, EngineStories):
            raise QuestionError("only a state, or a running stream, says where a text would go")
        return titled(where_to(self._source.engine, question.text), self._source.stories())


def changes_in(told: Told, question: ListChanges, state: str | Path | None) -> ChangeList:
    """What has changed in a stream at hand; ``state`` is what marks lie beside. Raises StreamdpError."""
    since = _moment("since", question.since, told.stories, state)
    return ChangeList.of(since_in(told, since), question.start, question.limit, every=question.all)


def marks_now(state: str | Path | None) -> MarkList:
    """The marks that lie beside a state."""
    return MarkList([*{mark.name: mark for mark in marks(state)}.values()])


def events_of(found: Sequence[StoryEvent], called: Mapping[int, str], most: int) -> EventList:
    """At most so many events, of stories that are ``called`` so now."""
    some = [each.called(called) for each in found[:most]]
    return EventList(events=some, next=some[-1].number if len(found) > len(some) else None)


def titled(found: Where, stories: Stories) -> Where:
    """The same candidates with the titles of the stories."""
    called: dict[int | None, str] = {story.label: story.title for story in stories}
    own = [msgspec.structs.replace(c, title=called.get(c.label)) for c in found.candidates]
    return Where(own, found.error)


def where_to(engine: Engine, text: str) -> Where:
    """The likeliest clusters of a text, without learning it; ``error`` where it cannot be clustered.

    They have no titles yet.
    """
    value: Any = text
    if engine.kind == "vectors":
        with contextlib.suppress(msgspec.DecodeError):  # and the engine says what it expects
            value = msgspec.json.decode(text, type=list[float] | dict[str, float])
    found = engine.whereto(value, CANDIDATES)
    if isinstance(found, Reject):
        return Where([], found.detail or found.reason)
    return Where([_candidate(each) for each in found])


def _candidate(found: describe.Candidate) -> Candidate:
    label = None if found.cluster < 0 else found.cluster
    return Candidate(label, None, found.probability, [(short(word, 40), nats) for word, nats in found.words])
