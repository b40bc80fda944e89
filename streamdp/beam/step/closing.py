"""The beginning and the end of clusters: founding, events, closing, freeing."""

from __future__ import annotations

from streamdp.beam.data.expiry import drop_expiry
from streamdp.beam.data.members import release_members
from streamdp.beam.data.model import Model
from streamdp.beam.data.pool import ALIVE, CLOSED, free_slot, take_slot
from streamdp.beam.data.state import CLOSED_EVENT, RETIRED_EVENT, Output, State
from streamdp.beam.data.trellis import drop_lineage, new_lineage
from streamdp.beam.step.clusters import (
    clear_slot,
    close_slot_words,
    describe_slot,
    leave_class,
    release_slot,
    reweigh,
)
from streamdp.kernels.jit import kernel


@kernel
def emit_event(state: State, out: Output, kind: int, slot: int, label: int) -> None:
    """Write an event about the cluster in ``slot``, if events are wanted; it has no moves yet."""
    if out.counters.with_events == 0:
        return
    e = out.counters.events
    out.counters.events = e + 1
    out.events[e].by = state.beam.counters.seq
    out.events[e].kind = kind
    out.events[e].label = label
    out.events[e].size = state.pool.slots[slot].size
    out.events[e].moves = 0
    out.events[e].first = state.pool.slots[slot].first_time
    out.events[e].last = state.pool.slots[slot].last_time
    describe_slot(state.clusters, state.pool, slot, out, e)


@kernel
def _detach(state: State, slot: int) -> None:
    """Take an open slot out of all that finds open clusters."""
    leave_class(state.clusters, state.pool, slot)
    drop_expiry(state.expiry, slot)
    close_slot_words(state.clusters, slot)


@kernel
def discard_slot(state: State, slot: int) -> None:
    """Free a slot that no hypothesis holds, or that is closed for all of them."""
    pool = state.pool
    if pool.state[slot] == ALIVE:
        _detach(state, slot)
    release_slot(state.clusters, slot)
    release_members(state.members, slot)
    drop_lineage(state.lineages, pool.slots[slot].lineage)
    free_slot(pool, slot)


@kernel
def announce_closed(state: State, out: Output, slot: int, retired: bool) -> None:
    """All hypotheses agree on a closed cluster: report its end and free it."""
    label = state.lineages.rows[state.pool.slots[slot].lineage].label
    kind = RETIRED_EVENT if retired else CLOSED_EVENT
    emit_event(state, out, kind, slot, label)
    state.beam.counters.closings += 1
    discard_slot(state, slot)


@kernel
def close_slot(state: State, out: Output, slot: int, retired: bool) -> None:
    """The cluster can never grow again; a contested one waits, inert, until its hypotheses agree."""
    pool = state.pool
    _detach(state, slot)
    pool.state[slot] = CLOSED
    pool.counters.open -= 1
    pool.weight[slot] = 0.0
    if retired:
        state.beam.counters.retired += 1
    if pool.column[slot] < 0:
        announce_closed(state, out, slot, retired)


@kernel
def change_weight(state: State, slot: int, weight: float) -> None:
    """Set a slot's stored weight."""
    change = weight - state.pool.weight[slot]
    state.pool.weight[slot] = weight
    reweigh(state.clusters, state.pool, slot, change)


@kernel
def found_slot(model: Model, state: State, founder: int, time: float) -> int:
    """An empty slot for the cluster of a founder, which came at that time."""
    pool = state.pool
    lineage = new_lineage(state.lineages, founder)
    slot = take_slot(pool)
    pool.slots[slot].lineage = lineage
    state.lineages.rows[lineage].refs += 1
    pool.founder[slot] = founder
    pool.slots[slot].size = 0
    pool.weight[slot] = 0.0
    pool.slots[slot].last = -1
    pool.slots[slot].first_time = pool.slots[slot].last_time = time
    clear_slot(state.clusters, model, slot)
    return slot
