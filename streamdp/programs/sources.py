"""Answers to programs from a state, a store or a file of answers, in the form that a service gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from streamdp.errors import Exit, StreamdpError
from streamdp.page.api import where_to
from streamdp.page.changed import ChangeList
from streamdp.reports.diff import since_in, told_of
from streamdp.reports.marks import since_of
from streamdp.reports.source import (
    StateStories,
    StorySource,
    append_correction,
    is_state,
    open_state,
    source_of,
)
from streamdp.serve.schemas import RecordList, StoryList, Where
from streamdp.state.corrections import CorrectionEntry, CorrectionList, CorrectionRequest, CorrectionsFile
from streamdp.state.snapshot import written_at
from streamdp.story.orders import Sort
from streamdp.story.story import Story

WHERE, CHANGES, CORRECTIONS = "where", "changes", "corrections"
"""What not everything can be asked."""


class AskedError(StreamdpError):
    """What was asked has no answer."""

    def __init__(self, message: str, exit_code: Exit = Exit.USAGE) -> None:
        super().__init__(message, exit_code)


Made = TypeVar("Made")


class LocalSource:
    """A state folder, a snapshot, a store or a file of answers, looked at again where it was written.

    ``can`` says which of WHERE, CHANGES and CORRECTIONS it can be asked. Raises StreamdpError where the path
    is none, and where a question has no answer.
    """

    def __init__(self, path: str) -> None:
        self.name, self._path = path, path
        self._source: tuple[int, StorySource] | None = None
        self._of_state = is_state(path)
        can = [WHERE, CHANGES, *([CORRECTIONS] if Path(path).is_dir() else [])]
        self.can = frozenset(can if self._of_state else ())
        self._now()

    def _now(self) -> StorySource:
        """What is there now: opened again where it was written meanwhile."""
        seen = written_at(self._path) if self._of_state else Path(self._path).stat().st_mtime_ns
        if self._source is None or self._source[0] != seen or not self._of_state:
            self._source = seen, source_of(self._path)
        return self._source[1]

    def _state(self) -> StateStories:
        found = self._now()
        if not isinstance(found, StateStories):
            raise AskedError(f"{self._path} is no state: it cannot be asked this")
        return found

    def stories(self, sort: Sort, least: int, start: int, most: int) -> StoryList:
        """Live stories, in an order."""
        return StoryList.of(self._now().stories(), sort, least, start, most, closed=False)

    def story(self, label: int) -> Story:
        """One story."""
        source = self._now()
        for closed in (False, True):
            found = source.stories(closed=closed).story(label)
            if found is not None:
                return found
        raise AskedError(f"there is no story {label}: it may have become part of another")

    def records(self, label: int, after: int, most: int) -> RecordList:
        """The records of a story, in order, as far as they are known."""
        left = (record for _, record in self._now().records([label]) if record.seq > after)
        return RecordList.of([record for record, _ in zip(left, range(most), strict=False)], most)

    def changes(self, since: str, start: int, most: int, *, every: bool) -> ChangeList:
        """What has changed since a time or a mark."""
        told = told_of(self._state().engine)
        time = since_of(self._path, since, lambda: told.stories.clock, "since")
        return ChangeList.of(since_in(told, time), start, most, every=every)

    def where(self, text: str) -> Where:
        """Where a text would go."""
        return Where.of(where_to(self._state().engine, text))

    def corrections(self, after: int, most: int) -> CorrectionList:
        """Corrections by hand."""
        file = CorrectionsFile(self._path)
        file.read()
        return file.noted(after, most)

    def correct(self, wanted: CorrectionRequest) -> CorrectionEntry:
        """Take one more."""
        correction = _sound(wanted.correction)
        return CorrectionEntry.of(append_correction(self._path, open_state(self._path)[1], correction))


def _sound(make: Callable[[], Made]) -> Made:
    """What is made. Raises AskedError where that makes no sense."""
    try:
        return make()
    except ValueError as error:
        raise AskedError(str(error)) from None
