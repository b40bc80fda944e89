"""Which records and clusters get a second look, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from streamdp.beam.clusters.places import Places
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import GROW, REVIEW_EVERY, Incoming, Output
from streamdp.beam.looks.rearrange import keep_head
from streamdp.beam.looks.recent import Recent, gather
from streamdp.beam.looks.second_look import Look, look_again
from streamdp.beam.search import NONE, BeamSearch
from streamdp.encode.batch import Batch
from streamdp.kernels.rows import made

AGES = (1, 2, 4)
"""At which multiples of the age of a second look records are looked at, and clusters whole."""

MOST_WORDS = 512
"""Distinct words of a cluster that is looked at whole; with more, a look costs much and changes little."""

MOST_RECORDS = 50
"""Records of such a cluster: hardly any larger one becomes part of another, and each costs the most."""


class Due(NamedTuple):
    """What may be looked at.

    ``seqs`` are the numbers of records, in order. Records before ``since`` are final: they stay, and so do
    clusters that hold any. Clusters of up to ``most_records`` are looked at as they come of ``age``, all of
    them when the stream has ended (``last``). Of what was corrected by hand, records of the numbers ``fixed``
    stay, and clusters of the labels ``whole`` become part of no other.
    """

    seqs: np.ndarray  # int64[n]
    age: int
    since: int = 0
    most_records: int = MOST_RECORDS
    last: bool = False
    fixed: np.ndarray = NONE
    whole: np.ndarray = NONE


def coming_of_age(seq: int, age: int, *, last: bool) -> list[tuple[int, int]]:
    """From which record on, up to which, records come of each age at a review after ``seq`` records."""
    stops = [max(seq - multiple * age, 0) for multiple in AGES]
    starts = [max(stop - REVIEW_EVERY, 0) for stop in stops]
    return list(zip(starts, [seq, *stops[1:]] if last else stops, strict=True))


def decide(search: BeamSearch, *, with_events: bool) -> Iterator[Output]:
    """Let the best hypothesis decide everything, so that nothing is contested. Yields events."""

    def look(out: Output) -> None:
        keep_head(search.model, search.state, out, search.choice)

    yield from run_looks(search, look, 1, 0, 1, with_events)


def review(
    search: BeamSearch, first: int, batch: Batch, labels: np.ndarray, due: Due, *, with_events: bool
) -> Iterator[Output]:
    """Look again at records, then at clusters. What hypotheses contest is not looked at.

    Parameters
    ----------
    search
        The running beam.
    first, batch, labels
        The latest records, the number of the first of them, and the newest labels.
    due
        Which of them may be looked at.
    with_events
        Whether cluster events are wanted.

    Yields
    ------
    Revisions and events; the buffers are used again when the iterator goes on.
    """
    seqs = due.seqs[~np.isin(due.seqs, due.fixed)] if len(due.fixed) else due.seqs
    recent = gather_recent(search, first, batch, labels)
    places = made(Places, {})
    start, stop = (int(seqs[0]) - first, int(seqs[-1]) + 1 - first) if len(seqs) else (0, 0)
    chosen = batch.slice(start, stop)
    slots = _of_age(search, recent, due)
    slots = slots[~np.isin(slots, recent.slot[: max(due.since - first, 0)])]
    slots = slots[~np.isin(search.labels_of(slots), due.whole)]
    inverted, words = search.words.inverted, len(search.words.learned.counts)
    # a cluster may have taken in others, and records, by the time that it is looked at
    lengths = np.diff(chosen.offsets)
    types = min(int(inverted.types[slots].sum() + lengths.sum()), words)
    longest = max(int(lengths.max(initial=1)), types)
    bag = Incoming(-1, 0.0, np.zeros(types, np.int32), np.zeros(types, np.int32), np.zeros(0), -1)

    def look(out: Output) -> None:
        records = search.prepare(chosen)
        with_these = Look(search.model, search.state, search.scores, places, recent, out)
        look_again(with_these, records, first + start, seqs, slots, bag)

    yield from run_looks(search, look, len(seqs) + len(slots), batch.size, longest, with_events)


def gather_recent(search: BeamSearch, first: int, batch: Batch, labels: np.ndarray) -> Recent:
    """The records in lists by the slot of their cluster."""
    state, pool = search.state, search.state.pool
    slot = slots_of(search, labels)
    time = np.zeros(batch.size) if batch.times is None else np.array(batch.times, np.float64)
    position = np.arange(first, first + batch.size, dtype=np.float64)
    recent = made(
        Recent,
        {"records": batch.size, "slots": len(pool.state)},
        first=first,
        slot=slot,
        position=position if search.model.by_records else time,
        time=time,
    )
    gather(search.model.prior, state, recent)
    return recent


def slots_of(search: BeamSearch, labels: np.ndarray) -> np.ndarray:
    """The slots of open clusters that all hypotheses hold, by label; -1 for a label that none of them has."""
    pool = search.state.pool
    names, slots = by_label(search, np.flatnonzero((pool.state == ALIVE) & (pool.column < 0)))
    place = np.full(max(int(labels.max(initial=-1)) + 1, 1), -1)
    known = names < len(place)
    place[names[known]] = slots[known]
    return np.asarray(place[labels])


def by_label(search: BeamSearch, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels of clusters, in order, and the slots of each."""
    labels = search.labels_of(slots)
    order = np.argsort(labels)
    return labels[order], slots[order]


def _of_age(search: BeamSearch, recent: Recent, due: Due) -> np.ndarray:
    """The clusters to be looked at, the oldest first; a record alone that comes of age is no cluster."""
    pool, seq = search.state.pool, search.seq
    slots = np.flatnonzero((recent.held > 0) & (recent.held <= due.most_records))
    slots = slots[recent.held[slots] == pool.slots["size"][slots]]
    slots = slots[search.words.inverted.types[slots] <= MOST_WORDS]
    youngest, _ = coming_of_age(seq, due.age, last=due.last)[0]
    slots = slots[(pool.founder[slots] < youngest) | (recent.held[slots] > 1)]
    founder = pool.founder[slots]
    if not due.last:
        ages, old = seq - founder, np.zeros(len(slots), bool)
        for multiple in AGES:
            old |= (ages >= multiple * due.age) & (ages - REVIEW_EVERY < multiple * due.age)
        slots, founder = slots[old], founder[old]
    return np.asarray(slots[np.argsort(founder)])


def doubled(before: np.ndarray, now: np.ndarray, least: int) -> np.ndarray:
    """Which clusters have reached another doubling of a size, shape (K,), by their sizes."""
    before, now = (np.floor(np.log2(np.maximum(sizes, 1) / least)) for sizes in (before, now))
    return np.asarray(before < now)


def run_looks(
    search: BeamSearch,
    look: Callable[[Output], None],
    n: int,
    revisions: int,
    longest: int,
    with_events: bool,
) -> Iterator[Output]:
    """Call a kernel until it is through with ``n`` looks, making room as it asks for it."""
    done = 0
    while done < n:
        out = search.output_for(revisions, longest)
        out.counters.clear()
        out.needs.clear()
        out.counters.with_events, out.counters.done = with_events, done
        look(out)
        done = int(out.counters.done)
        if out.counters.revisions or out.counters.events:
            yield out
        if int(out.counters.status) == GROW:
            search.make_room()
