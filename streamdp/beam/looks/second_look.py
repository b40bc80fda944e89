"""Second looks: records and clusters are weighed again against what is known now.

A record of a certain age is taken out of its cluster and put where the log joint is highest, its own
cluster among the places; a cluster of a certain age, whole, into a larger one where that is better than
standing alone. Only clusters that all hypotheses hold are concerned, with records that are decided, so that
every hypothesis changes by the same nats. The kernels stop where a buffer is full (FLUSH) or an array too
small (GROW), as ``advance`` does; what was under way is as it was.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.clusters.index import relink, unindex
from streamdp.beam.clusters.places import Places, best_place, find_places
from streamdp.beam.data.choice import Scores
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.sizes import leave_class
from streamdp.beam.data.state import COMPLETE, Incoming, Model, Output, State
from streamdp.beam.looks.moving import (
    count_gain,
    count_merger,
    leave,
    place_record,
    put_back,
    report_merger,
    revise,
    room_to_join,
    room_to_look,
    take_away,
    take_in,
    widen,
)
from streamdp.beam.looks.recent import (
    Recent,
    link,
    may_leave,
    ratio_of_joining,
    ratio_of_union,
    unlink,
    weigh_list,
)
from streamdp.beam.step.advance import Records, record_at
from streamdp.beam.step.aging import weigh_joined
from streamdp.beam.step.closing import discard_slot
from streamdp.beam.step.clusters import bag_of_slot, join_slot, score_record, value_of
from streamdp.kernels.jit import entry, kernel

LEAST_GAIN = 1e-6
"""Nats; what is less may be floating-point noise."""


class Look(NamedTuple):
    """What a look works with."""

    model: Model
    state: State
    scores: Scores
    places: Places
    recent: Recent
    out: Output


@kernel
def _best_place(look: Look, own: float, slot: int, m: int) -> tuple[int, float, float]:
    """The slot of the best place of those found, if it is better than to stay (else -1); nats, and its share.

    That is of record m of a slot, or (-1) of the whole slot.
    """
    model, state, places, recent = look.model, look.state, look.places, look.recent
    if places.counters.found == 0:
        return -1, 0.0, 0.0
    for p in range(places.counters.found):
        if m < 0:
            ratio = ratio_of_union(model.prior, state, recent, slot, places.slot[p])
        else:
            ratio = ratio_of_joining(model.prior, state, recent, m, places.slot[p])
        places.score[p] = math.log(places.value[p]) + ratio
    best, share = best_place(places, own)
    gain = places.score[best] - own
    return (places.slot[best] if LEAST_GAIN < gain < np.inf else -1), gain, share


@kernel
def _look_at_record(look: Look, record: Incoming) -> bool:
    """Weigh a record again; False where room must be made first."""
    model, state, scores = look.model, look.state, look.scores
    places, recent, out = look.places, look.recent, look.out
    pool, beam = state.pool, state.beam
    m = record.seq - recent.first
    slot = recent.slot[m]
    if slot < 0 or record.seq > beam.counters.decided or pool.pinned[slot] == 1:
        return True
    alone = pool.slots[slot].size == 1
    if not alone and not may_leave(recent, m):
        return True
    leave(model, state, slot, record)
    score_record(state.clusters, model, state, scores, record)
    own = math.log(scores.counters.new_value) if scores.counters.new_value > 0.0 else -np.inf
    if not alone:
        value = value_of(state.clusters.bag, state, scores, slot)
        stays = ratio_of_joining(model.prior, state, recent, m, slot) if value > 0.0 else 0.0
        own = math.log(value) + stays if value > 0.0 else -np.inf
    find_places(state, scores, places, slot, 1)
    into, gain, share = _best_place(look, own, slot, m)
    take_in(model, state, scores, slot, record)
    put_back(state, slot)
    beam.counters.looks += 1
    if into < 0:
        return True
    room_to_join(state, out, slot, into, record.words)
    if out.counters.status != COMPLETE:
        beam.counters.looks -= 1
        return False
    unlink(recent, m)
    if alone:
        report_merger(state, out, slot, into)
        discard_slot(state, slot)
        count_merger(state)
    else:
        take_away(model, state, recent, slot, record, m)
        weigh_list(model.prior, state, recent, slot)
    place_record(model, state, scores, into, record)
    link(recent, into, m)
    weigh_list(model.prior, state, recent, into)
    count_gain(state, gain, 1)
    revise(state, recent, out, m, share)
    return True


@kernel
def _unite(look: Look, slot: int, into: int, bag: Incoming, share: float) -> None:
    """Make a slot, all records of which are in its list, part of another."""
    model, state, pool, recent = look.model, look.state, look.state.pool, look.recent
    row, m = pool.slots[slot], recent.head[slot]
    leave_class(state.sizes, pool, into)
    join_slot(state.clusters, model, look.scores, into, bag)
    pool.slots[into].size += row.size
    widen(pool, into, row.first_time, row.last_time, row.last)
    while m >= 0:
        after = recent.next[m]
        unlink(recent, m)
        link(recent, into, m)
        weigh_joined(model.prior, model, state, into, recent.position[m])
        revise(state, recent, look.out, m, share)
        m = after
    weigh_list(model.prior, state, recent, into)
    put_back(state, into)
    discard_slot(state, slot)
    count_merger(state)


@kernel
def _look_at_cluster(look: Look, bag: Any, slot: int) -> bool:
    """Weigh a cluster again, whole; False where room must be made first."""
    model, state, scores = look.model, look.state, look.scores
    places, recent, out = look.places, look.recent, look.out
    pool, beam = state.pool, state.beam
    row = pool.slots[slot]
    if pool.state[slot] != ALIVE or pool.column[slot] >= 0 or recent.held[slot] != row.size:
        return True
    if row.last > beam.counters.decided:
        return True
    whole = bag_of_slot(state.clusters, bag, slot)
    room_to_join(state, out, slot, slot, whole.words)
    if out.counters.status != COMPLETE:
        return False
    leave_class(state.sizes, pool, slot)
    unindex(state.clusters.bag.inverted, slot)
    score_record(state.clusters, model, state, scores, whole)
    find_places(state, scores, places, slot, row.size)
    relink(state.clusters.bag.inverted, slot)
    put_back(state, slot)
    beam.counters.looks += 1
    if scores.counters.new_value <= 0.0:
        return True
    into, gain, share = _best_place(look, math.log(scores.counters.new_value), slot, -1)
    if into < 0:
        return True
    room_to_join(state, out, slot, into, whole.words)
    if out.counters.status != COMPLETE:
        beam.counters.looks -= 1
        return False
    report_merger(state, out, slot, into)
    count_gain(state, gain, row.size)
    _unite(look, slot, into, whole, share)
    return True


@entry
def look_again(
    look: Look, records: Records, first: int, seqs: np.ndarray, slots: np.ndarray, bag: Incoming
) -> None:
    """Look again at some of these records, the first of which is number ``first``, then at clusters.

    ``bag`` has room for a cluster. Goes on with look ``out.counters.done``. (One entry for both: what they
    share is compiled once.)
    """
    state, recent, out = look.state, look.recent, look.out
    i, n = out.counters.done, seqs.shape[0]
    while i < n + slots.shape[0]:
        revisions = 1 if i < n else recent.held[slots[i - n]]
        if not room_to_look(state, out, revisions):
            return
        if i < n:
            done = _look_at_record(look, record_at(records, seqs[i] - first, seqs[i]))
        else:
            done = _look_at_cluster(look, bag, slots[i - n])
        if not done:
            return
        i += 1
        out.counters.done = i
