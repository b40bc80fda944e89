"""The stories of a stream."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Literal

from streamdp.answers.describe import described, of_closed
from streamdp.ledger.samples import text_of_kept
from streamdp.records import Assignment, ClusterSummary, Kind
from streamdp.settings import Settings
from streamdp.story.beam import statistics_of
from streamdp.story.clock import Clock
from streamdp.story.doubts import doubts
from streamdp.story.gather import Known, figures_of, stories_of, with_records
from streamdp.story.statistics import Statistics
from streamdp.story.story import Stories, StoryRecord
from streamdp.streams.stream import Stream


def stories(stream: Stream, *, dated: bool, closed: bool, stretch: float | None, records: bool) -> Stories:
    """The live clusters, or those that ended last, largest first (the latest first of those that ended).

    ``dated`` says whether records have times; ``stretch`` is how long *now* is, None for a length by the
    latest records; with ``records`` stories have records by how sure their labels are.
    """
    announcer = stream.announcer
    clusters: list[ClusterSummary]
    if closed:
        clusters = [of_closed(event, announcer.ledger.samples) for event in reversed(stream.memory.ended)]
    else:
        clusters = described(stream.summaries(), stream.retained, announcer.ledger.samples, dated=dated)
    corrections = stream.corrections
    clusters = [cluster for cluster in clusters if cluster.cluster not in corrections.muted]
    labels, times = stream.retained.newest()
    if not dated:
        times = None
    clock = Clock.of(times, stream.seq, stretch)
    titles = stream.memory.titles
    known = Known(
        {c.cluster: title for c in clusters if (title := titles.of(c.cluster)) is not None}
        | corrections.names,
        {} if closed else stream.keywords(),
        figures_of(clock, labels, times, stream.seq - len(labels)),
        stream.memory.kin,
    )
    remembered: Literal["latest", "none"] = "latest" if stream.remember_ended else "none"
    made = stories_of(clusters, known, clock, closed=closed)
    if records:
        own = _records(stream)
        made = [with_records(story, own.get(story.label, ())) for story in made]
    warnings = [] if closed else doubts_of(stream)
    return Stories(
        made,
        clock,
        stream.seq,
        kind=stream.kind,
        remembered=remembered,
        warnings=warnings,
        statistics=None if closed else partial(_statistics, stream),
        numbers=stream.memory.themes,
    )


def _statistics(stream: Stream) -> Statistics | None:
    """What themes of the live stories are made of; templates have none."""
    search = stream.search
    return None if search is None else statistics_of(search)


def doubts_of(stream: Stream) -> list[str]:
    """What is doubtful about the stories of texts, a sentence each."""
    held = stream.retained.collect() if stream.kind == "texts" else None
    if held is None:
        return []
    return list(doubts(held.labels, stream.announcer.revised / max(stream.seq, 1), held.batch.words))


def _records(stream: Stream) -> dict[int, list[StoryRecord]]:
    """The records whose answers are open, and the samples, by label."""
    announcer = stream.announcer
    texts = {seq: text for seq, _, text in announcer.ledger.samples.all()}
    found: defaultdict[int, list[StoryRecord]] = defaultdict(list)
    for answer in announcer.undecided.values():
        found[answer.cluster].append(
            record_of(answer, texts.get(answer.seq, ""), stream.kind, stream.settings)
        )
    return found


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
