"""Stories of what an engine, or a file, knows: figures, titles, records, and how clusters are related."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from streamdp.answers.listing import about
from streamdp.ledger.samples import text_of_kept
from streamdp.records import Assignment, ClusterSummary, Event, Kind
from streamdp.settings import Settings
from streamdp.story.clock import NOTHING, Clock, Figures
from streamdp.story.story import Story, StoryRecord, times_of, trend_of
from streamdp.story.titles import short, unique
from streamdp.story.words import MOST, phrases

RECORDS = 3
"""Of the surest records of a story, and of the least sure."""

RELATED = 1_000
"""Splits and mergers that are remembered: the latest."""


class Kin(NamedTuple):
    """That a cluster split from another, or became part of it."""

    event: str
    label: int
    other: int


class Known(NamedTuple):
    """What is known of stories beside their figures, all by label; ``names`` were given by hand."""

    titles: Mapping[int, str]
    keywords: Mapping[int, Sequence[str]]
    figures: Mapping[int, Figures]
    kin: Sequence[Kin] = ()
    confused: Mapping[int, Sequence[tuple[int, int]]] = {}
    names: Mapping[int, str] = {}


class _Relations(NamedTuple):
    split_from: dict[int, int]
    merged_with: dict[int, list[int]]
    merged_into: dict[int, int]

    @classmethod
    def of(cls, kin: Iterable[Kin]) -> _Relations:
        """By label; what comes later holds."""
        found = cls({}, defaultdict(list), {})
        for event, label, other in kin:
            if event == "split":
                found.split_from[label] = other
            else:
                found.merged_into[label] = other
                if label not in found.merged_with[other]:
                    found.merged_with[other].append(label)
        return found


def stories_of(
    clusters: Sequence[ClusterSummary], known: Known, clock: Clock, *, closed: bool
) -> list[Story]:
    """A story for each cluster, in their order; each title once."""
    related = _Relations.of(known.kin)
    titles = {**known.titles, **known.names}
    words = {
        c.cluster: phrases(
            known.keywords.get(c.cluster) or [word for word, _ in (c.words or ())[:MOST]],
            [titles.get(c.cluster, ""), *c.samples],
        )
        for c in clusters
    }
    titles = unique({c.cluster: titles.get(c.cluster) or called(c) for c in clusters}, words)
    known = known._replace(keywords=words)
    return [_story(c, titles[c.cluster], known, related, clock, closed) for c in clusters]


def called(cluster: ClusterSummary | Event) -> str:
    """What a cluster without a title is called: its template, its first record, what it is about."""
    if isinstance(cluster.template, str):
        return short(cluster.template, 300)
    if isinstance(cluster, ClusterSummary) and cluster.samples:
        return short(cluster.samples[0])
    return short(about(cluster)) or f"cluster {cluster.cluster}"


def _story(
    cluster: ClusterSummary, title: str, known: Known, related: _Relations, clock: Clock, closed: bool
) -> Story:
    label = cluster.cluster
    figures = known.figures.get(label, NOTHING)
    began = cluster.first_seq if cluster.first_time is None else cluster.first_time
    peak = figures.peak  # the beginning of a stretch, of which the story may have a part
    if peak is not None and cluster.first_time is not None and cluster.last_time is not None:
        peak = min(max(peak, cluster.first_time), cluster.last_time)
    return Story(
        label=label,
        title=title,
        keywords=list(known.keywords[label]),
        records=cluster.size,
        **times_of(cluster.first_time, peak, cluster.last_time),
        first_seq=cluster.first_seq,
        last_seq=cluster.last_seq,
        now=figures.now,
        before=figures.before,
        trend=trend_of(figures.now, figures.before, began_now=began > clock.time - clock.stretch),
        ended=closed,
        template=isinstance(cluster.template, str),
        split_from=related.split_from.get(label),
        merged_with=related.merged_with.get(label, []),
        merged_into=related.merged_into.get(label),
        confused_with=list(known.confused.get(label, ())),
        samples=_samples(cluster, known.titles.get(label)),
    )


def record_of(answer: Assignment, text: str, kind: Kind | None, settings: Settings) -> StoryRecord:
    """The record of an answer; of no ``text``, with what kept fields say of that."""
    kept = answer.keep if isinstance(answer.keep, dict) else {}
    if not text and kind in ("texts", "lines"):
        text = str(kept.get(settings.text_field, ""))
    elif not text:
        text = text_of_kept({name: kept[name] for name in settings.texts if name in kept} or kept)
    return StoryRecord(
        seq=answer.seq,
        id=answer.id,
        time=answer.time,
        text=text,
        probability=answer.probability,
        revision=answer.revision,
        keep=kept,
    )


def _samples(cluster: ClusterSummary, title: str | None) -> list[str]:
    """The first, the most typical and the latest record of a cluster: the one in the middle is its title."""
    typical = None if isinstance(cluster.template, str) else title
    own = [*cluster.samples[:1], *([typical] if typical else []), *cluster.samples[-1:]]
    return list(dict.fromkeys(own)) if cluster.samples else []


def with_records(story: Story, records: Iterable[StoryRecord]) -> Story:
    """A story with the surest and the least sure of its records."""
    known = [record for record in records if record.probability is not None]
    ranked = sorted(known, key=lambda record: (-(record.probability or 0.0), record.seq))
    unsure = [record for record in ranked[::-1] if (record.probability or 0.0) < 1.0]
    return msgspec.structs.replace(story, surest=ranked[:RECORDS], unsure=unsure[:RECORDS])


def figures_of(clock: Clock, labels: np.ndarray, times: np.ndarray | None, first: int) -> dict[int, Figures]:
    """Figures by label, of records from number ``first`` on, with times where the clock is of times."""
    if clock.dated and times is not None:
        return clock.figures(labels, times)
    return clock.figures(labels, first + np.arange(len(labels), dtype=float))
