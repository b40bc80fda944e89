"""Putting records where a refinement has found that they belong.

It is found for the clustering of the best hypothesis, which decides everything before records move; the
nats that are won have been worked out by whoever found it. The kernels stop where a buffer is full (FLUSH)
or an array too small (GROW).
"""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import Choice, Scores
from streamdp.beam.data.members import drop_expiry, release_members
from streamdp.beam.data.pool import add_joint
from streamdp.beam.data.state import COMPLETE, Incoming, Model, Output, State
from streamdp.beam.looks.moving import (
    leave,
    place_record,
    report_on,
    revise,
    room_to_join,
    room_to_look,
    take_away,
)
from streamdp.beam.looks.recent import Recent, link, unlink
from streamdp.beam.step.advance import Records, record_at
from streamdp.beam.step.announce import add_move, mint
from streamdp.beam.step.capacity import need
from streamdp.beam.step.closing import discard_slot, drop_all_but_head, found_slot
from streamdp.beam.step.commit import settle
from streamdp.kernels.jit import entry, kernel


@entry
def keep_head(model: Model, state: State, out: Output, choice: Choice) -> None:
    """Leave the hypothesis that is announced, and no other."""
    beam = state.beam
    if not room_to_look(state, out, 0):
        return
    events = out.counters.events + state.pool.counters.used
    out.needs.events = need(out, events, out.events.shape[0])
    if out.counters.status != COMPLETE:
        return
    drop_all_but_head(state, choice)
    add_joint(beam, beam.joint[0])
    beam.joint[0] = 0.0
    beam.counters.seq -= 1  # what is told is caused by the last record, at which all hypotheses end
    settle(model, state, out, choice, 1)
    beam.counters.seq += 1
    out.counters.done = 1


@entry
def found_clusters(
    model: Model, state: State, out: Output, founders: np.ndarray, times: np.ndarray, slots: np.ndarray
) -> None:
    """Make empty clusters with new labels; ``slots`` says where they are."""
    beam, i = state.beam, out.counters.done
    while i < founders.shape[0]:
        if not room_to_look(state, out, 0):
            return
        out.needs.slots = need(out, state.pool.counters.used + 2, state.pool.slots.shape[0])
        out.needs.lineages = need(out, state.lineages.counters.used + 2, state.lineages.rows.shape[0])
        if out.counters.status != COMPLETE:
            return
        slots[i] = found_slot(model, state, founders[i], times[i])
        mint(state, state.pool.slots[slots[i]].lineage)
        for h in range(beam.counters.width):
            beam.founded[h] += 1
        i += 1
        out.counters.done = i


@kernel
def _take_out(model: Model, state: State, recent: Recent, slot: int, record: Incoming, m: int) -> None:
    unlink(recent, m)
    if state.pool.slots[slot].size > 1:
        take_away(model, state, recent, slot, record, m)
        return
    leave(model, state, slot, record)
    row = state.pool.slots[slot]
    row.last, row.first_time, row.last_time = -1, np.inf, -np.inf  # others may join yet
    state.pool.weight[slot] = 0.0
    drop_expiry(state.expiry, slot)
    release_members(state.members, slot)


@entry
def move_records(
    model: Model,
    state: State,
    scores: Scores,
    recent: Recent,
    out: Output,
    records: Records,
    seqs: np.ndarray,
    slots: np.ndarray,
    probabilities: np.ndarray,
) -> None:
    """Move records, in order, to other slots; none is emptied for good while it stands.

    Goes on with record ``out.counters.done``. What their revisions say stands in ``probabilities``.
    """
    i = out.counters.done
    while i < seqs.shape[0]:
        record, into = record_at(records, i, seqs[i]), slots[i]
        m = record.seq - recent.first
        slot = recent.slot[m]
        if not room_to_look(state, out, 1):
            return
        room_to_join(state, out, slot, into, record.words)
        if out.counters.status != COMPLETE:
            return
        _take_out(model, state, recent, slot, record, m)
        place_record(model, state, scores, into, record)
        link(recent, into, m)
        revise(state, recent, out, m, probabilities[i])
        i += 1
        out.counters.done = i


@entry
def report_change(
    state: State, out: Output, kind: int, slot: int, labels: np.ndarray, records: np.ndarray
) -> None:
    """Tell that a cluster has come from others, or goes into them, with so many records each."""
    if report_on(state, out, kind, slot):
        for j in range(labels.shape[0]):
            add_move(out, labels[j], records[j])


@entry
def tidy(state: State, recent: Recent, slots: np.ndarray, nats: float) -> None:
    """After records have moved: free slots that are empty, correct the first time of the others.

    The log joint of every hypothesis is so many ``nats`` higher.
    """
    beam = state.beam
    for i in range(slots.shape[0]):
        row = state.pool.slots[slots[i]]
        if row.size == 0:
            discard_slot(state, slots[i])
            for h in range(beam.counters.width):
                beam.founded[h] -= 1
        elif recent.held[slots[i]] == row.size:
            row.first_time = recent.time[recent.head[slots[i]]]
    add_joint(beam, nats)
