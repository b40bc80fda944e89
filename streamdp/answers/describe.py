"""Clusters in words that a reader understands: top words or means, sizes, lives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.beam.pool import OPEN, SCALE
from streamdp.beam.search import BeamSearch
from streamdp.beam.state import EVENTS, Output
from streamdp.records import ClusterSummary, Event, Record

KINDS = ("born", "closed", "retired", "merged", "split")
TOP = 10


def _time(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def events_of(
    out: Output, first: int, records: Sequence[Record], words: Sequence[str | None] | None
) -> list[Event]:
    """The beam's events, which records from number ``first`` on have caused."""
    causes = out.event_by[: int(out.meta[EVENTS])].tolist()
    return [event_of(out, e, records[seq - first].time, words) for e, seq in enumerate(causes)]


def event_of(out: Output, e: int, time: float | None, words: Sequence[str | None] | None) -> Event:
    """Row ``e`` of the beam's events."""
    label, other = int(out.event_label[e]), int(out.event_other[e])
    first, last = _time(out.event_first[e]), _time(out.event_last[e])
    top = mean = None
    if first is not None:
        if words is None:
            mean = out.event_centre[e].tolist()
        else:
            pairs = zip(out.event_words[e].tolist(), out.event_counts[e].tolist(), strict=True)
            top = [(words[w] or "", count) for w, count in pairs if w >= 0]
    return Event(
        event=KINDS[int(out.event_kind[e])],
        seq=int(out.event_by[e]),
        time=time,
        cluster=label,
        other=other if other >= 0 else None,
        size=int(out.event_size[e]),
        first_time=first if time is not None else None,
        last_time=last if time is not None else None,
        words=top,
        mean=mean,
    )


def _top_words(search: BeamSearch, slot: int, words: Sequence[str | None]) -> list[tuple[str, int]]:
    """The most telling words of a slot: frequent in it, rare among the live clusters (tf-idf)."""
    index, pool = search.state.inverted, search.state.pool
    begin, n = int(index.own_start[slot]), int(pool.types[slot])
    own = index.word[begin : begin + n]
    counts = index.occurrences[index.start[own] + index.where[begin : begin + n]]
    telling = counts * np.log((1.0 + pool.meta[OPEN]) / index.length[own])
    best = np.lexsort((np.arange(n), -telling))[:TOP]
    return [(words[own[i]] or "", int(counts[i])) for i in best]


def summarise(search: BeamSearch, words: Sequence[str | None] | None) -> list[ClusterSummary]:
    """The live clusters of the best hypothesis, largest first, the older first among equals."""
    pool, beam = search.state.pool, search.state.beam
    scale = float(beam.sums[SCALE])
    found = []
    for slot in search.head_slots().tolist():
        found.append(
            ClusterSummary(
                cluster=int(search.state.lineages.label[pool.lineage[slot]]),
                size=int(pool.size[slot]),
                first_time=_time(pool.first_time[slot]),
                last_time=_time(pool.last_time[slot]),
                last_seq=int(pool.last[slot]),
                weight=float(pool.weight[slot]) * scale,
                words=None if words is None else _top_words(search, slot, words),
                mean=None if words is not None else search.state.dense.mean[:, slot].tolist(),
            )
        )
    found.sort(key=lambda c: (-c.size, c.cluster))
    return found
