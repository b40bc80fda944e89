"""Prior weights as time goes by: what a join adds, what fades, what closes and retires.

Priors whose weights depend on sizes alone forget nothing; what they retire is the stream's own limit. Under a
decay the weight of a cluster is the sum of its members', kept in the way that suits the decay:
counted under a window, one factor for all under an exponential decay, else summed anew for every record.

A pinned cluster never closes. Where it would, it weighs from then on what one record of now weighs; a limit
of the stream's begins to count anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.data.members import drop_member, push_member, set_expiry
from streamdp.beam.data.pool import ALIVE, holds_slot
from streamdp.beam.data.sizes import rescale
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step.closing import change_weight, close_slot
from streamdp.kernels.jit import generic, kernel
from streamdp.priors.base import join_weight
from streamdp.priors.decays import decay_weight
from streamdp.priors.distance_dependent import DistanceDependentTerms, MemorylessTerms, SharpTerms

TINY_SCALE = 1e-120
"""Stored weights are multiplied out before the common factor of an exponential decay underflows."""


# ---------------------------------------------------------------- what is declared serves priors by size


@generic
def begin_record(prior: Any, model: Model, state: State, out: Output, record: Incoming) -> None:
    """Bring all weights to the time of the record; close what has none left. Idempotent."""
    expiry = state.expiry
    if model.retire_after > 0:
        while expiry.counters.length > 0 and record.seq - expiry.key[expiry.heap[0]] > model.retire_after:
            _close_idle(state, out, expiry.heap[0], record.seq)
    if model.max_clusters > 0 and state.pool.counters.open > model.max_clusters:
        excess = open_in_head(state) - model.max_clusters
        reached = -1.0
        while expiry.counters.length > 0 and (excess > 0 or expiry.key[expiry.heap[0]] <= reached):
            slot, key = expiry.heap[0], expiry.key[expiry.heap[0]]
            if key >= record.seq:
                return  # all that are left are pinned
            if state.pool.pinned[slot] == 0:
                excess -= holds_slot(state.pool, state.beam.counters.head, slot)
                reached = key
            _close_idle(state, out, slot, record.seq)


@generic
def weigh_joined(prior: Any, model: Model, state: State, slot: int, here: float) -> None:
    """A slot's weight and expiry after a record of that position has joined it, alone or among others.

    Its size counts them already. The slot stands in no class's sums while this is called.
    """
    pool = state.pool
    pool.weight[slot] = join_weight(prior, np.float64(pool.slots[slot].size))
    if has_limits(model):
        set_expiry(state.expiry, slot, np.float64(pool.slots[slot].last))


@generic
def weigh_left(prior: Any, model: Model, state: State, slot: int, here: float) -> None:
    """A slot's weight and expiry after an earlier record has left it (its size does not count it any more).

    The slot stands in no class's sums while this is called, and is not empty.
    """
    state.pool.weight[slot] = join_weight(prior, np.float64(state.pool.slots[slot].size))


@generic
def scale_at(prior: Any, model: Model, state: State, record: Incoming) -> float:
    """The common factor of all stored weights at the time of a record that is only asked about."""
    scale: float = state.beam.counters.scale
    return scale


@kernel
def position_of(model: Model, record: Incoming) -> float:
    """Where a record lies, in the unit of distance."""
    return np.float64(record.seq) if model.by_records else record.time


@kernel
def has_limits(model: Model) -> bool:
    """Whether clusters close by limits of the stream's, and not by the prior."""
    return model.retire_after > 0 or model.max_clusters > 0


@kernel
def open_in_head(state: State) -> int:
    """How many open clusters the best hypothesis has."""
    pool = state.pool
    total = pool.counters.open
    row = pool.holds[pool.counters.half][state.beam.counters.head]
    for j in range(pool.counters.contested):
        if pool.state[pool.slot_of[j]] == ALIVE and row[j] == 0:
            total -= 1
    return total


@kernel
def _close_idle(state: State, out: Output, slot: int, seq: int) -> None:
    """Retire a cluster; a pinned one counts as if record ``seq`` had joined it."""
    if state.pool.pinned[slot] == 1:
        set_expiry(state.expiry, slot, np.float64(seq))
    else:
        close_slot(state, out, slot, True)


# ---------------------------------------------------------------- any decay


@weigh_joined.of(DistanceDependentTerms)
def _add_in_full(prior: DistanceDependentTerms, model: Model, state: State, slot: int, here: float) -> None:
    gap = state.beam.counters.now - here
    weight = decay_weight(prior.decay, gap) if gap > 0.0 else 1.0
    if weight > 0.0:
        push_member(state.members, slot, here)
        state.pool.weight[slot] += weight


@weigh_left.of(DistanceDependentTerms)
def _take_in_full(prior: DistanceDependentTerms, model: Model, state: State, slot: int, here: float) -> None:
    if drop_member(state.members, slot, here):
        weight = state.pool.weight[slot] - decay_weight(prior.decay, state.beam.counters.now - here)
        state.pool.weight[slot] = max(weight, 0.0)


@begin_record.of(DistanceDependentTerms)
def _sum_anew(
    prior: DistanceDependentTerms, model: Model, state: State, out: Output, record: Incoming
) -> None:
    pool, members, now = state.pool, state.members, position_of(model, record)
    state.beam.counters.now = now
    for slot in range(pool.counters.high):
        if pool.state[slot] != ALIVE:
            continue
        start = members.queues[slot].start
        total = 0.0
        for i in range(members.queues[slot].head, members.queues[slot].length):
            f = decay_weight(prior.decay, now - members.time[start + i])
            if f == 0.0:
                members.queues[slot].head = i + 1
            total += f
        if total < prior.close_below or total == 0.0:
            if pool.pinned[slot] == 1:
                _begin_anew(prior.decay, state, slot, now)
            else:
                close_slot(state, out, slot, False)
        else:
            change_weight(state, slot, total)


@kernel
def _begin_anew(decay: Any, state: State, slot: int, now: float) -> None:
    """Let a cluster weigh what one record of now does, in the place of all its members."""
    queue = state.members.queues[slot]
    queue.head = queue.length - 1
    state.members.time[queue.start + queue.head] = now
    change_weight(state, slot, decay_weight(decay, 0.0))


# ---------------------------------------------------------------- a decay that is 1 or 0


@weigh_joined.of(SharpTerms)
def _count_in(prior: SharpTerms, model: Model, state: State, slot: int, here: float) -> None:
    if decay_weight(prior.decay, state.beam.counters.now - here) == 0.0:
        return
    push_member(state.members, slot, here)
    state.pool.weight[slot] += 1.0
    queue = state.members.queues[slot]
    set_expiry(state.expiry, slot, state.members.time[queue.start + queue.head])


@weigh_left.of(SharpTerms)
def _count_out(prior: SharpTerms, model: Model, state: State, slot: int, here: float) -> None:
    if drop_member(state.members, slot, here):
        state.pool.weight[slot] -= 1.0
        queue = state.members.queues[slot]
        if queue.head < queue.length:
            set_expiry(state.expiry, slot, state.members.time[queue.start + queue.head])


@begin_record.of(SharpTerms)
def _expire(prior: SharpTerms, model: Model, state: State, out: Output, record: Incoming) -> None:
    expiry, members, decay, now = state.expiry, state.members, prior.decay, position_of(model, record)
    state.beam.counters.now = now
    while expiry.counters.length > 0:
        slot = expiry.heap[0]
        if decay_weight(decay, now - expiry.key[slot]) > 0.0:
            return
        start, head, n = members.queues[slot].start, members.queues[slot].head, members.queues[slot].length
        while head < n and decay_weight(decay, now - members.time[start + head]) == 0.0:
            head += 1
        members.queues[slot].head = head
        if head == n and state.pool.pinned[slot] == 1:
            _begin_anew(decay, state, slot, now)
            set_expiry(expiry, slot, now)
        elif head == n:
            close_slot(state, out, slot, False)
        else:
            change_weight(state, slot, np.float64(n - head))
            set_expiry(expiry, slot, members.time[start + head])


# ---------------------------------------------------------------- a decay by one factor


@weigh_joined.of(MemorylessTerms)
def _add_faded(prior: MemorylessTerms, model: Model, state: State, slot: int, here: float) -> None:
    counters = state.beam.counters
    state.pool.weight[slot] += decay_weight(prior.decay, counters.now - here) / counters.scale
    set_expiry(state.expiry, slot, state.pool.weight[slot])


@weigh_left.of(MemorylessTerms)
def _take_faded(prior: MemorylessTerms, model: Model, state: State, slot: int, here: float) -> None:
    counters = state.beam.counters
    weight = state.pool.weight[slot] - decay_weight(prior.decay, counters.now - here) / counters.scale
    state.pool.weight[slot] = max(weight, 0.0)
    set_expiry(state.expiry, slot, state.pool.weight[slot])


@begin_record.of(MemorylessTerms)
def _fade_all(prior: MemorylessTerms, model: Model, state: State, out: Output, record: Incoming) -> None:
    counters, expiry, pool = state.beam.counters, state.expiry, state.pool
    if record.seq > 0:
        counters.scale = scale_at(prior, model, state, record)
    counters.now = position_of(model, record)
    while expiry.counters.length > 0 and expiry.key[expiry.heap[0]] * counters.scale < prior.close_below:
        slot = expiry.heap[0]
        if pool.pinned[slot] == 1:
            change_weight(state, slot, decay_weight(prior.decay, 0.0) / counters.scale)
            set_expiry(expiry, slot, pool.weight[slot])
        else:
            close_slot(state, out, slot, False)
    if counters.scale < TINY_SCALE:
        factor = counters.scale
        for slot in range(pool.counters.high):
            pool.weight[slot] *= factor
            expiry.key[slot] *= factor
        rescale(state.sizes, factor)
        counters.scale = 1.0


@scale_at.of(MemorylessTerms)
def _faded_scale(prior: MemorylessTerms, model: Model, state: State, record: Incoming) -> float:
    counters = state.beam.counters
    elapsed = max(position_of(model, record) - counters.now, 0.0)
    return counters.scale * decay_weight(prior.decay, elapsed)
