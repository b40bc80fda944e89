"""What of a stream is told to whom: events by their kind and story, and what looking at all stories shows."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from streamdp.alerts.outbox import Notification
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.records import Answers, Assignment, ClusterSummary, Event, Lines
from streamdp.records.answer_rows import answer_rows
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert

LONGEST = 300
"""Characters of a title that are told."""

WORDS = 6
"""Telling words that stand for a title where there is none."""

LEVELS = 10_000
"""Stories whose level is remembered."""

GROWN = 10
"""Records from which growing tenfold is told, and a new theme."""


class AlertRules:
    """What a run tells, and to which alerts.

    What is noticed by looking (stories that have grown tenfold, new themes, doubts) is compared with the look
    before; the first look of a process only says what there is.
    """

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
        self._sizes: dict[int, int] | None = None
        self._themes: dict[int, int] = {}
        self._of_age: set[int] | None = None
        self._doubts: set[str] | None = None
        self._behind = dict.fromkeys((alert.name for alert in alerts if "lag" in alert.on), False)

    # ---------------------------------------------------------------- events

    def of_answers(self, answers: Answers) -> list[Notification]:
        """What events are told, in their order."""
        wanted = [event for event in answers.events if event.event in self._kinds]
        before, self._before = self._before, answers.lines if answers.lines else self._before
        if not wanted:
            return []
        causes = {event.seq for event in wanted}
        stories = {event.cluster for event in wanted} if self._with_level else set[int]()
        records = dict[int, Assignment]()
        found = [*_answers_to(answers.lines, causes, stories)]
        if causes - {answer.seq for answer in found}:  # the last of the batch before, when the stream ends
            found += _answers_to(before, causes, ())
        for answer in found:
            records.setdefault(answer.seq, answer)
            if isinstance(answer.keep, dict) and isinstance(level := answer.keep.get("level"), str):
                self._levels[answer.cluster] = _short(level)
        while len(self._levels) > LEVELS:
            del self._levels[next(iter(self._levels))]
        return [told for event in wanted for told in self._of_event(event, records.get(event.seq))]

    def _of_event(self, event: Event, record: Assignment | None) -> Iterator[Notification]:
        template = event.template if isinstance(event.template, str) else None
        told = Notification(
            alert="",
            key=f"{event.event}:{event.cluster}@{event.seq}",
            event=event.event,
            at=self._clock(),
            story=event.cluster,
            title=_title(event.title if isinstance(event.title, str) else None, template, event.words),
            template=template is not None,
            other=event.other,
            size=event.size,
            time=event.time,
            seq=event.seq,
            record=None if record is None else record.id,
            lines=event.lines if isinstance(event.lines, int) else None,
            usual=event.usual if isinstance(event.usual, float) else None,
            level=self._levels.get(event.cluster),
        )
        yield from self._to_all(told, [word for word, _ in event.words or ()])

    def _to_all(self, told: Notification, words: Sequence[str]) -> Iterator[Notification]:
        for alert in self._alerts:
            if told.event in alert.on and self._means(alert, told, words):
                yield msgspec.structs.replace(told, alert=alert.name)

    def _means(self, alert: Alert, told: Notification, words: Sequence[str]) -> bool:
        """Whether an alert is about this story. What is not known of a story leaves none out."""
        if told.story is None:
            return True
        text = " ".join([told.title, *words]).casefold()
        if alert.words and not any(word.casefold() in text for word in alert.words):
            return False
        pattern = self._patterns.get(alert.name)
        if pattern is not None and not (told.template and pattern.search(told.title)):
            return False
        if alert.level and told.level is not None and told.level not in alert.level:
            return False
        theme = None if alert.theme is None else self._themes.get(alert.theme)
        return alert.theme is None or told.story == alert.theme or self._themes.get(told.story, -1) == theme

    # ---------------------------------------------------------------- looks

    def look(self, engine: Engine) -> list[Notification]:
        """What is to be told of all stories, compared with the look before."""
        found = list[Notification]()
        if "grew" in self._kinds:
            found += self._grown(engine)
        if "theme" in self._kinds or any(alert.theme is not None for alert in self._alerts):
            found += self._new_themes(engine)
        if "doubtful" in self._kinds:
            found += self._doubtful(engine)
        return found

    def _grown(self, engine: Engine) -> Iterator[Notification]:
        census = engine.census()
        large = census.size >= GROWN
        sizes = dict(zip(census.label[large].tolist(), census.size[large].tolist(), strict=True))
        before, self._sizes = self._sizes, sizes
        if before is None:
            return
        grown = [label for label, size in sizes.items() if _power(size) > _power(before.get(label, 1))]
        for cluster in _clusters(engine, sorted(grown)):
            reached = 10 ** _power(cluster.size)
            yield from self._of_cluster("grew", cluster, f"{cluster.cluster}^{reached}")

    def _new_themes(self, engine: Engine) -> Iterator[Notification]:
        themes = engine.stories(records=False).themed().themes
        self._themes = {label: theme.theme for theme in themes for label in theme.stories}
        of_age = [theme for theme in themes if theme.records >= GROWN]
        known, self._of_age = self._of_age, {label for theme in of_age for label in theme.stories}
        if known is None or "theme" not in self._kinds:
            return
        new = sorted(theme.theme for theme in of_age if not known & {*theme.stories})
        for cluster in _clusters(engine, new):
            yield from self._of_cluster("theme", cluster, str(cluster.cluster))

    def _doubtful(self, engine: Engine) -> Iterator[Notification]:
        now = {re.sub(r"[\d.]+", "#", doubt): doubt for doubt in engine.doubts()}
        before, self._doubts = self._doubts, {*now}
        for kind, doubt in now.items():
            if before is not None and kind not in before:
                number = list(now).index(kind)
                told = Notification(
                    alert="",
                    key=f"doubtful:{number}@{engine.seq}",
                    event="doubtful",
                    at=self._clock(),
                    seq=engine.seq,
                    text=doubt,
                )
                yield from self._to_all(told, ())

    def _of_cluster(self, kind: str, cluster: ClusterSummary, key: str) -> Iterator[Notification]:
        template = cluster.template if isinstance(cluster.template, str) else None
        told = Notification(
            alert="",
            key=f"{kind}:{key}",
            event=kind,
            at=self._clock(),
            story=cluster.cluster,
            title=_title(None, template, cluster.words),
            template=template is not None,
            size=cluster.size,
            time=cluster.last_time,
            seq=cluster.last_seq,
            level=self._levels.get(cluster.cluster),
        )
        yield from self._to_all(told, [word for word, _ in cluster.words or ()])

    # ---------------------------------------------------------------- lag

    def behind(self, seconds: Iterable[float]) -> Iterator[Notification]:
        """What is told of how far reading is behind: once, until it is less than half of that."""
        most = max(seconds, default=0.0)
        for alert in self._alerts:
            if alert.name not in self._behind:
                continue
            was = self._behind[alert.name]
            self._behind[alert.name] = most > (alert.lag / 2 if was else alert.lag)
            if self._behind[alert.name] and not was:
                now = self._clock()
                text = f"reading is {most:,.0f} s behind"
                yield Notification(alert=alert.name, key=f"lag:{now:.3f}", event="lag", at=now, text=text)


def _power(size: int) -> int:
    return int(math.log10(max(size, 1)) + 1e-9)


def _clusters(engine: Engine, labels: Collection[int]) -> list[ClusterSummary]:
    """Some live clusters, by label; muted ones are not told of."""
    audible = [label for label in labels if label not in engine.muted]
    return sorted(engine.clusters(audible), key=lambda each: each.cluster) if audible else []


def _title(title: str | None, template: str | None, words: Sequence[tuple[str, int]] | None) -> str:
    """What people read: the title, else the template, else a few words."""
    text = title or template or " ".join(word for word, _ in (words or ())[:WORDS])
    return _short(text)


def _short(text: str) -> str:
    """A text that fits into a message, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _answers_to(lines: Lines, seqs: Collection[int], stories: Collection[int]) -> Iterable[Assignment]:
    """The answers to records of these numbers, or of these stories."""
    found = answer_rows(lines)
    wanted = np.isin(found.rows["seq"], [*seqs]) | np.isin(found.rows["label"], [*stories])
    return _answers(b"[" + b",".join(found[wanted].lines().splitlines()) + b"]") if wanted.any() else ()


_answers = msgspec.json.Decoder(list[Assignment]).decode
