"""What moving a record or a cluster takes, and what is told of it."""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import Scores
from streamdp.beam.data.pool import Pool, add_joint
from streamdp.beam.data.sizes import agree, leave_class
from streamdp.beam.data.state import COMPLETE, FLUSH, MERGED, Incoming, Model, Output, State
from streamdp.beam.looks.recent import Recent
from streamdp.beam.step.aging import position_of, weigh_joined, weigh_left
from streamdp.beam.step.announce import add_move
from streamdp.beam.step.capacity import need, need_nothing
from streamdp.beam.step.closing import emit_event
from streamdp.beam.step.clusters import enter_class, join_slot, leave_slot, room_for_bag, room_for_classes
from streamdp.kernels.jit import kernel


@kernel
def put_back(state: State, slot: int) -> None:
    """Put an agreed slot back where open clusters are found by size."""
    enter_class(state.clusters.bag, state.sizes, slot)
    agree(state.sizes, state.pool, slot)


@kernel
def revise(state: State, recent: Recent, out: Output, m: int, probability: float) -> None:
    """Tell of a record that is in another cluster now."""
    slot, r = recent.slot[m], out.counters.revisions
    out.counters.revisions = r + 1
    row = out.revisions[r]
    row.by = state.beam.counters.seq - 1
    row.seq = recent.first + m
    row.label = state.lineages.rows[state.pool.slots[slot].lineage].label
    before = recent.before[m]
    row.link = recent.first + before if before >= 0 else -1
    if before < 0 and state.pool.founder[slot] < row.seq:
        row.link = state.pool.founder[slot]
    row.founded = 0
    row.probability = probability


@kernel
def report_on(state: State, out: Output, kind: int, slot: int) -> bool:
    """Tell what became of a cluster, now; whether it is told, and other clusters are to be named."""
    before = out.counters.events
    emit_event(state, out, kind, slot, state.lineages.rows[state.pool.slots[slot].lineage].label)
    if out.counters.events == before:
        return False
    out.events[before].by = state.beam.counters.seq - 1
    return True


@kernel
def report_merger(state: State, out: Output, slot: int, into: int) -> None:
    """Tell that a cluster, which still stands, becomes part of another."""
    slots = state.pool.slots
    if report_on(state, out, MERGED, slot):
        add_move(out, state.lineages.rows[slots[into].lineage].label, slots[slot].size)


@kernel
def widen(pool: Pool, slot: int, first: float, last: float, seq: int) -> None:
    """A slot holds records of these times now, the last of them of that number."""
    row = pool.slots[slot]
    row.first_time = min(row.first_time, first)
    row.last_time = max(row.last_time, last)
    row.last = max(row.last, seq)


@kernel
def count_merger(state: State) -> None:
    """There is one cluster less, in every hypothesis."""
    beam = state.beam
    beam.counters.mergers += 1
    for h in range(beam.counters.width):
        beam.founded[h] -= 1


@kernel
def count_gain(state: State, nats: float, records: int) -> None:
    """The log joint of every hypothesis is so much higher, by moving so many records."""
    beam = state.beam
    add_joint(beam, nats)
    beam.counters.gained += nats
    beam.counters.moved += records


@kernel
def room_to_look(state: State, out: Output, revisions: int) -> bool:
    """Whether the buffers take another change, and the fixed tables a class."""
    need_nothing(out)
    room_for_classes(state.clusters.bag, state, out, 2)
    full = out.counters.revisions + revisions > out.revisions.shape[0]
    if full or max(out.counters.events, out.counters.moves) + 1 > out.events.shape[0]:
        out.counters.status = FLUSH
    return out.counters.status == COMPLETE


@kernel
def room_to_join(state: State, out: Output, slot: int, into: int, words: np.ndarray) -> None:
    """Note the room that words, and times, of one slot may want in another."""
    queues = state.members.queues
    times = state.members.header[0] + 4 * (queues[slot].length + queues[into].length + 4)
    out.needs.times = need(out, times, state.members.time.shape[0])
    room_for_bag(state.clusters.bag, out, into, words)


@kernel
def leave(model: Model, state: State, slot: int, record: Incoming) -> None:
    """Take a record out of a slot, which does not stand then."""
    leave_class(state.sizes, state.pool, slot)
    leave_slot(state.clusters, model, slot, record, state.pool.slots[slot].size == 1)
    state.pool.slots[slot].size -= 1
    if state.pool.slots[slot].size > 0:
        enter_class(state.clusters.bag, state.sizes, slot)  # to be scored, but to count as nobody's


@kernel
def take_away(model: Model, state: State, recent: Recent, slot: int, record: Incoming, m: int) -> None:
    """Take a record out of a slot that lives on, which stands again."""
    leave(model, state, slot, record)
    leave_class(state.sizes, state.pool, slot)
    weigh_left(model.prior, model, state, slot, position_of(model, record))
    put_back(state, slot)
    forget_last(state, recent, slot, m)


@kernel
def take_in(model: Model, state: State, scores: Scores, slot: int, record: Incoming) -> None:
    """Let a record join a slot, which does not stand yet."""
    leave_class(state.sizes, state.pool, slot)
    join_slot(state.clusters, model, scores, slot, record)
    state.pool.slots[slot].size += 1


@kernel
def place_record(model: Model, state: State, scores: Scores, slot: int, record: Incoming) -> None:
    """Let a record join another slot, late."""
    take_in(model, state, scores, slot, record)
    widen(state.pool, slot, record.time, record.time, record.seq)
    weigh_joined(model.prior, model, state, slot, position_of(model, record))
    put_back(state, slot)


@kernel
def forget_last(state: State, recent: Recent, slot: int, m: int) -> None:
    """A record has left a slot that lives on: which is its last one now."""
    row, p = state.pool.slots[slot], recent.tail[slot]
    if row.last != recent.first + m:
        return
    row.last = recent.first + p if p >= 0 else state.pool.founder[slot]
    row.last_time = recent.time[p] if p >= 0 else row.first_time
