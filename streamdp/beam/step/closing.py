"""The beginning and the end: of clusters (founding, events, closing, freeing), and of a step.

That is from the chosen children to the hypotheses of the next record, and what they have decided.
"""

from __future__ import annotations

from streamdp.beam.data.choice import Choice
from streamdp.beam.data.members import drop_expiry, release_members
from streamdp.beam.data.pool import ALIVE, CLOSED, add_joint, free_slot, take_slot
from streamdp.beam.data.sizes import leave_class, reweigh
from streamdp.beam.data.state import CLOSED_EVENT, RETIRED_EVENT, Model, Output, State
from streamdp.beam.data.trellis import (
    add_node,
    advance_root,
    branch_of,
    drop_lineage,
    mark_leaves,
    new_lineage,
    prune,
)
from streamdp.beam.step.clusters import clear_slot, describe_slot, hide_slot, release_slot
from streamdp.kernels.jit import kernel


@kernel
def continue_beam(model: Model, state: State, choice: Choice, seq: int) -> None:
    """Make the chosen children the hypotheses of the next record."""
    beam, trellis, lineages, pool = state.beam, state.trellis, state.lineages, state.pool
    children, width = choice.counters.children, beam.counters.width
    old_leaf, old_founded = choice.old_leaf, choice.old_founded
    for h in range(width):
        old_leaf[h] = beam.leaf[h]
        old_founded[h] = beam.founded[h]
    top_joint = choice.children[choice.counters.best_child].joint
    for c in range(1, children):
        top_joint = max(top_joint, choice.children[c].joint)
    for c in range(children):
        slot, parent = choice.children[c].slot, choice.children[c].parent
        beam.leaf[c] = add_node(
            trellis, lineages, old_leaf[parent], pool.slots[slot].lineage, seq, choice.children[c].founder
        )
        beam.founded[c] = old_founded[parent] + (1 if pool.founder[slot] == seq else 0)
        beam.joint[c] = choice.children[c].joint - top_joint
    for h in range(width):
        if trellis.nodes[old_leaf[h]].child < 0:
            prune(trellis, lineages, old_leaf[h])
    beam.counters.width = children
    add_joint(beam, top_joint)


@kernel
def _drop(state: State, choice: Choice) -> None:
    """Drop the hypotheses that are marked; the head is none of them."""
    beam, trellis, lineages, pool = state.beam, state.trellis, state.lineages, state.pool
    width, head, greedy, to = beam.counters.width, beam.counters.head, beam.counters.greedy, 0
    for h in range(width):
        if choice.dropped[h]:
            prune(trellis, lineages, beam.leaf[h])
            beam.counters.dropped += 1
            continue
        if h == head:
            beam.counters.head = to
        if h == greedy:
            beam.counters.greedy = to
        if to != h:
            beam.joint[to] = beam.joint[h]
            beam.founded[to] = beam.founded[h]
            beam.leaf[to] = beam.leaf[h]
            holds = pool.holds[pool.counters.half]
            for j in range(pool.counters.contested):
                holds[to, j] = holds[h, j]
        to += 1
    if choice.dropped[greedy]:
        beam.counters.greedy = beam.counters.head
        beam.counters.lead = 0.0
    beam.counters.width = to


@kernel
def drop_dissenters(model: Model, state: State, choice: Choice, seq: int) -> int:
    """Let the best hypothesis decide what has been open for more than ``max_undecided`` records."""
    beam, trellis, lineages = state.beam, state.trellis, state.lineages
    decided = advance_root(trellis, lineages)
    while seq - decided > model.max_undecided:
        width = beam.counters.width
        keep = trellis.lineage[branch_of(trellis, beam.leaf[beam.counters.head])]
        for h in range(width):
            choice.dropped[h] = 0
        branch = trellis.nodes[trellis.counters.root].child
        while branch >= 0:
            if trellis.lineage[branch] != keep:
                mark_leaves(trellis, branch, beam.leaf, width, choice.dropped)
            branch = trellis.nodes[branch].right
        _drop(state, choice)
        decided = advance_root(trellis, lineages)
    return decided


@kernel
def drop_all_but_head(state: State, choice: Choice) -> None:
    """Drop the hypotheses that are not announced."""
    beam = state.beam
    for h in range(beam.counters.width):
        choice.dropped[h] = h != beam.counters.head
    _drop(state, choice)
    beam.counters.leads = 0
    beam.counters.lead = 0.0
    beam.counters.decided = advance_root(state.trellis, state.lineages)


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
    leave_class(state.sizes, state.pool, slot)
    drop_expiry(state.expiry, slot)
    hide_slot(state.clusters.bag, slot)


@kernel
def discard_slot(state: State, slot: int) -> None:
    """Free a slot that no hypothesis holds, or that is closed for all of them."""
    pool = state.pool
    if pool.state[slot] == ALIVE:
        _detach(state, slot)
    release_slot(state.clusters.bag, slot)
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
    reweigh(state.sizes, state.pool, slot, change)


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
