"""Prior weights as time goes by, and the end of clusters: closing, retiring, freeing."""

from __future__ import annotations

import math

import numpy as np

from streamdp.beam.due import drop_due, set_due
from streamdp.beam.index import release_words, top_words, unindex
from streamdp.beam.members import push_member, release_members
from streamdp.beam.model import (
    CLOSE_BELOW,
    CRP,
    DECAY,
    DECAY_SCALE,
    DISCOUNT,
    DISTANCE_DEPENDENT,
    EXPONENTIAL,
    LOGISTIC,
    MAX_CLUSTERS,
    PITMAN_YOR,
    PRIOR,
    RECORDS,
    RETIRE_AFTER,
    UNIT,
    WINDOW,
    Model,
)
from streamdp.beam.pool import (
    ALIVE,
    CLOSED,
    CLOSINGS,
    CONTESTED,
    HEAD,
    NOW,
    OPEN,
    PLANE,
    RETIRED,
    SCALE,
    SEQ,
    SLOT_HIGH,
    free_slot,
)
from streamdp.beam.sizes import leave_class, reweigh
from streamdp.beam.state import CLOSED_EVENT, EVENTS, RETIRED_EVENT, TOP_WORDS, Output, State
from streamdp.beam.trellis import drop_lineage
from streamdp.kernels.jit import kernel

TINY_SCALE = 1e-120
"""Stored weights are multiplied out before the common factor of an exponential decay underflows."""


@kernel
def decay(kind: int, scale: float, distance: float) -> float:
    """f(distance) of Blei & Frazier's three decays."""
    if kind == WINDOW:
        return 1.0 if distance < scale else 0.0
    if kind == EXPONENTIAL:
        return math.exp(-distance / scale)
    x = distance - scale
    if x > 0.0:
        e = math.exp(-x)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(x))


@kernel
def emit_event(state: State, out: Output, kind: int, slot: int, label: int, other: int, size: int) -> None:
    """Write an event about the cluster in ``slot`` (or about no slot, -1)."""
    e = out.meta[EVENTS]
    out.meta[EVENTS] = e + 1
    out.event_by[e] = state.beam.meta[SEQ]
    out.event_kind[e] = kind
    out.event_label[e] = label
    out.event_other[e] = other
    out.event_size[e] = size
    if slot >= 0:
        out.event_first[e] = state.pool.first_time[slot]
        out.event_last[e] = state.pool.last_time[slot]
        closed = state.pool.state[slot] == CLOSED
        clusters = state.pool.meta[OPEN]
        top_words(state.inverted, state.pool, slot, closed, clusters, out.event_words[e], out.event_counts[e])
        for d in range(state.dense.mean.shape[0]):
            out.event_centre[e, d] = state.dense.mean[d, slot]
    else:
        out.event_first[e] = np.nan
        out.event_last[e] = np.nan
        for j in range(TOP_WORDS):
            out.event_words[e, j] = -1
            out.event_counts[e, j] = 0
        for d in range(state.dense.mean.shape[0]):
            out.event_centre[e, d] = np.nan


@kernel
def discard_slot(state: State, slot: int) -> None:
    """Free a slot that no hypothesis holds, or that is closed for all of them."""
    pool = state.pool
    if pool.state[slot] == ALIVE:
        leave_class(state.sizes, slot, pool.weight, pool.founder)
        drop_due(state.due, slot)
        unindex(state.inverted, pool, slot)
    release_words(state.inverted, slot)
    release_members(state.members, slot)
    drop_lineage(state.lineages, pool.lineage[slot])
    free_slot(pool, slot)


@kernel
def announce_closed(model: Model, state: State, out: Output, slot: int) -> None:
    """All hypotheses agree on a closed cluster: tell its end and free it."""
    exchangeable = model.ints[PRIOR] != DISTANCE_DEPENDENT
    kind = RETIRED_EVENT if exchangeable else CLOSED_EVENT
    label = state.lineages.label[state.pool.lineage[slot]]
    emit_event(state, out, kind, slot, label, -1, state.pool.size[slot])
    state.beam.meta[CLOSINGS] += 1
    discard_slot(state, slot)


@kernel
def close_slot(model: Model, state: State, out: Output, slot: int) -> None:
    """The cluster can never grow again; a contested one waits, inert, until its hypotheses agree."""
    pool = state.pool
    leave_class(state.sizes, slot, pool.weight, pool.founder)
    drop_due(state.due, slot)
    unindex(state.inverted, pool, slot)
    pool.state[slot] = CLOSED
    pool.meta[OPEN] -= 1
    pool.weight[slot] = 0.0
    if model.ints[PRIOR] != DISTANCE_DEPENDENT:
        state.beam.meta[RETIRED] += 1
    if pool.column[slot] < 0:
        announce_closed(model, state, out, slot)


@kernel
def change_weight(state: State, slot: int, weight: float) -> None:
    """Set a slot's stored weight."""
    change = weight - state.pool.weight[slot]
    state.pool.weight[slot] = weight
    reweigh(state.sizes, slot, change, state.pool.weight, state.pool.founder)


@kernel
def weigh_joined(model: Model, state: State, slot: int, seq: int, time: float) -> None:
    """A slot's weight and due date after record ``seq`` has joined it (its size already counts it).

    The slot stands in no class's sums while this is called.
    """
    pool = state.pool
    prior = model.ints[PRIOR]
    if prior == DISTANCE_DEPENDENT:
        kind = model.ints[DECAY]
        if kind == EXPONENTIAL:
            pool.weight[slot] += 1.0 / state.beam.sums[SCALE]
            set_due(state.due, slot, pool.weight[slot])
            return
        here = np.float64(seq) if model.ints[UNIT] == RECORDS else time
        push_member(state.members, slot, here)
        pool.weight[slot] += 1.0
        if kind == WINDOW:
            members = state.members
            set_due(state.due, slot, members.time[members.start[slot] + members.head[slot]])
        return
    if prior == CRP:
        pool.weight[slot] = pool.size[slot]
    elif prior == PITMAN_YOR:
        pool.weight[slot] = pool.size[slot] - model.floats[DISCOUNT]
    else:
        pool.weight[slot] = 1.0
    if model.ints[RETIRE_AFTER] > 0 or model.ints[MAX_CLUSTERS] > 0:
        set_due(state.due, slot, np.float64(seq))


@kernel
def _expire_window(model: Model, state: State, out: Output, now: float) -> None:
    due, members = state.due, state.members
    scale = model.floats[DECAY_SCALE]
    while due.length[0] > 0:
        slot = due.heap[0]
        if now - due.key[slot] < scale:
            return
        start = members.start[slot]
        head, n = members.head[slot], members.length[slot]
        while head < n and now - members.time[start + head] >= scale:
            head += 1
        members.head[slot] = head
        if head == n:
            close_slot(model, state, out, slot)
        else:
            change_weight(state, slot, np.float64(n - head))
            set_due(due, slot, members.time[start + head])


@kernel
def _fade_exponential(model: Model, state: State, out: Output, now: float) -> None:
    sums, due, pool = state.beam.sums, state.due, state.pool
    if now > sums[NOW]:
        sums[SCALE] *= math.exp(-(now - sums[NOW]) / model.floats[DECAY_SCALE])
    limit = model.floats[CLOSE_BELOW]
    while due.length[0] > 0 and due.key[due.heap[0]] * sums[SCALE] < limit:
        close_slot(model, state, out, due.heap[0])
    if sums[SCALE] < TINY_SCALE:
        factor = sums[SCALE]
        for slot in range(pool.meta[SLOT_HIGH]):
            pool.weight[slot] *= factor
            due.key[slot] *= factor
        for c in range(state.sizes.weight.shape[0]):
            state.sizes.weight[c] *= factor
            state.sizes.top[c] *= factor
        sums[SCALE] = 1.0


@kernel
def _fade_logistic(model: Model, state: State, out: Output, now: float) -> None:
    pool, members = state.pool, state.members
    scale = model.floats[DECAY_SCALE]
    for slot in range(pool.meta[SLOT_HIGH]):
        if pool.state[slot] != ALIVE:
            continue
        start = members.start[slot]
        total = 0.0
        for i in range(members.head[slot], members.length[slot]):
            f = decay(LOGISTIC, scale, now - members.time[start + i])
            if f == 0.0:
                members.head[slot] = i + 1
            total += f
        if total < model.floats[CLOSE_BELOW]:
            close_slot(model, state, out, slot)
        else:
            change_weight(state, slot, total)


@kernel
def _held_by_head(state: State, slot: int) -> bool:
    column = state.pool.column[slot]
    return column < 0 or state.pool.holds[state.pool.meta[PLANE]][state.beam.meta[HEAD], column] == 1


@kernel
def open_in_head(state: State) -> int:
    """How many open clusters the best hypothesis has."""
    pool = state.pool
    total = pool.meta[OPEN]
    row = pool.holds[pool.meta[PLANE]][state.beam.meta[HEAD]]
    for j in range(pool.meta[CONTESTED]):
        if pool.state[pool.slot_of[j]] == ALIVE and row[j] == 0:
            total -= 1
    return total


@kernel
def _retire(model: Model, state: State, out: Output, seq: int) -> None:
    due = state.due
    after = model.ints[RETIRE_AFTER]
    if after > 0:
        while due.length[0] > 0 and seq - due.key[due.heap[0]] > after:
            close_slot(model, state, out, due.heap[0])
    limit = model.ints[MAX_CLUSTERS]
    if limit > 0 and state.pool.meta[OPEN] > limit:
        excess = open_in_head(state) - limit
        reached = -1.0
        while due.length[0] > 0 and (excess > 0 or due.key[due.heap[0]] <= reached):
            slot = due.heap[0]
            if _held_by_head(state, slot):
                excess -= 1
            reached = due.key[slot]
            close_slot(model, state, out, slot)


@kernel
def begin_record(model: Model, state: State, out: Output, seq: int, time: float) -> None:
    """Bring all weights to the time of record ``seq``; close what has none left. Idempotent."""
    if model.ints[PRIOR] != DISTANCE_DEPENDENT:
        _retire(model, state, out, seq)
        return
    now = np.float64(seq) if model.ints[UNIT] == RECORDS else time
    if seq == 0:
        state.beam.sums[NOW] = now
    kind = model.ints[DECAY]
    if kind == WINDOW:
        _expire_window(model, state, out, now)
    elif kind == EXPONENTIAL:
        _fade_exponential(model, state, out, now)
    else:
        _fade_logistic(model, state, out, now)
    state.beam.sums[NOW] = now
