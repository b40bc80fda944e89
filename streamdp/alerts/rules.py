"""What of a stream is told to whom: events by their kind and story, and answers that have changed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
import numpy as np

from streamdp.alerts.changes import Changes, Texts
from streamdp.alerts.outbox import Notification
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.records import KEPT, Answers, Event, Lines
from streamdp.records.answer_rows import answer_rows
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert
from streamdp.story.titles import short

LONGEST = 300
"""Characters of a title that are told."""

WORDS = 6
"""Telling words that stand for a title where there is none."""

REVISED = "revised"
"""What changed answers are, to an alert."""

LEVELS = 10_000
"""Stories whose level is remembered."""


class AlertRules:
    """What a run tells, and to which alerts."""

    def __init__(
        self, alerts: Sequence[Alert], settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        for alert in alerts:
            if alert.level and "level" not in settings.kept:
                raise ConfigError(
                    f'alert {alert.name}: level is of lines whose level is kept: say keep = ["level"]'
                )
        self._alerts, self._clock = alerts, clock
        self._patterns = {
            alert.name: re.compile(alert.template) for alert in alerts if alert.template is not None
        }
        self._kinds = {kind for alert in alerts for kind in alert.on}
        self._with_level = any(alert.level for alert in alerts)
        self._levels: dict[int, str] = {}
        self._before = Lines()
        self._changes = Changes()

    def begin(self, engine: Engine) -> None:
        """Go on from where an engine is: what there is already is not told."""
        self._changes.begin(engine)

    def of_answers(
        self, answers: Answers, muted: Collection[int] = (), texts: Texts = lambda _: {}
    ) -> list[Notification]:
        """What events are told, in their order, and what answers that have changed, but for muted stories."""
        found = self._of_events(answers)
        if REVISED not in self._kinds:
            return found
        for told in self._changes.of(answers, muted, texts):
            found += self._to_all(msgspec.structs.replace(told, at=self._clock()), [told.other_title])
        return sorted(found, key=lambda told: told.seq or 0)

    def _of_events(self, answers: Answers) -> list[Notification]:
        wanted = [event for event in answers.events if event.event in self._kinds]
        before, self._before = self._before, answers.lines if answers.lines else self._before
        if not wanted:
            return []
        causes = [event.seq for event in wanted]
        stories = [event.cluster for event in wanted] if self._with_level else []
        records = dict[int, str | int | None]()
        for lines, labels in (
            (before, []),
            (answers.lines, stories),
        ):  # one may be the last of the batch before
            self._learn(lines, causes, labels, records)
        return [told for event in wanted for told in self._of_event(event, records.get(event.seq))]

    def _learn(
        self, lines: Lines, seqs: Sequence[int], stories: Sequence[int], records: dict[int, str | int | None]
    ) -> None:
        """The ids of records of these numbers, and levels of their stories and of these."""
        found = answer_rows(lines)
        found = found[np.isin(found.rows["seq"], seqs) | np.isin(found.rows["label"], stories)]
        records.update(zip(found.rows["seq"].tolist(), found.ids(), strict=True))
        for label, kept in zip(found.rows["label"].tolist(), found.written(KEPT), strict=True):
            level = msgspec.json.decode(kept).get("level") if kept else None
            if isinstance(level, str):
                self._levels[label] = short(level, LONGEST)
        while len(self._levels) > LEVELS:
            del self._levels[next(iter(self._levels))]

    def _of_event(self, event: Event, record: str | int | None) -> Iterator[Notification]:
        template = event.template if isinstance(event.template, str) else None
        title = event.title if isinstance(event.title, str) else None
        words = [word for word, _ in event.words or ()]
        told = Notification(
            alert="",
            key=f"{event.event}:{event.cluster}@{event.seq}",
            event=event.event,
            at=self._clock(),
            story=event.cluster,
            title=short(title or template or " ".join(words[:WORDS]), LONGEST),
            template=template is not None,
            other=event.other,
            size=event.size,
            time=event.time,
            seq=event.seq,
            record=record,
            lines=event.lines if isinstance(event.lines, int) else None,
            usual=event.usual if isinstance(event.usual, float) else None,
            level=self._levels.get(event.cluster),
        )
        return self._to_all(told, words)

    def _to_all(self, told: Notification, words: Sequence[str]) -> Iterator[Notification]:
        for alert in self._alerts:
            if told.event in alert.on and self._means(alert, told, words):
                yield msgspec.structs.replace(told, alert=alert.name)

    def _means(self, alert: Alert, told: Notification, words: Sequence[str]) -> bool:
        """Whether an alert is about this story. What is not known of a story leaves none out."""
        if told.event == REVISED and (told.size or 0) < alert.least:
            return False
        if alert.stories and told.story not in alert.stories and told.other not in alert.stories:
            return False
        text = " ".join([told.title, *words]).casefold()
        if alert.words and not any(word.casefold() in text for word in alert.words):
            return False
        pattern = self._patterns.get(alert.name)
        if pattern is not None and not (told.template and pattern.search(told.title)):
            return False
        return not alert.level or told.level is None or told.level in alert.level
