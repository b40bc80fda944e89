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
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step.closing import change_weight, close_slot
from streamdp.beam.step.clusters import rescale
from streamdp.kernels.jit import generic, kernel
from streamdp.priors.base import join_weight
from streamdp.priors.decays import ExponentialTerms, WindowTerms, decay_weight
from streamdp.priors.distance_dependent import DistanceDependentTerms

TINY_SCALE = 1e-120
"""Stored weights are multiplied out before the common factor of an exponential decay underflows."""


@generic
def retires(prior: Any) -> bool:
    """Whether a cluster that closes does so by a limit of the stream's, not by the prior."""
    raise NotImplementedError


@generic
def begin_record(prior: Any, model: Model, state: State, out: Output, record: Incoming) -> None:
    """Bring all weights to the time of the record; close what has none left. Idempotent."""


@generic
def weigh_joined(prior: Any, model: Model, state: State, slot: int, record: Incoming) -> None:
    """A slot's weight and expiry after a record has joined it, alone or among others (its size counts them).

    The slot stands in no class's sums while this is called.
    """


@generic
def weigh_left(prior: Any, model: Model, state: State, slot: int, record: Incoming) -> None:
    """A slot's weight and expiry after an earlier record has left it (its size does not count it any more).

    The slot stands in no class's sums while this is called, and is not empty.
    """


@generic
def scale_at(prior: Any, state: State, record: Incoming) -> float:
    """The common factor of all stored weights at the time of a record that is only asked about."""
    raise NotImplementedError


@generic
def _add_member(decay: Any, state: State, slot: int, here: float) -> None:
    """Let a record at a position weigh in a slot that it has joined."""


@generic
def _take_member(decay: Any, state: State, slot: int, here: float) -> None:
    """Take the weight of a record at a position out of a slot that it has left."""


@generic
def _age(decay: Any, close_below: float, state: State, out: Output, now: float) -> None:
    """Bring all weights to a position; close clusters that fall below ``close_below``."""


@kernel
def _position(prior: DistanceDependentTerms, record: Incoming) -> float:
    return np.float64(record.seq) if prior.by_records else record.time


@retires.of(DistanceDependentTerms)
def _by_itself(prior: DistanceDependentTerms) -> bool:
    return False


@retires.otherwise
def _by_limit(prior: Any) -> bool:
    return True


# ---------------------------------------------------------------- priors by size


@weigh_joined.otherwise
def _weigh_by_size(prior: Any, model: Model, state: State, slot: int, record: Incoming) -> None:
    pool = state.pool
    pool.weight[slot] = join_weight(prior, np.float64(pool.slots[slot].size))
    if model.retire_after > 0 or model.max_clusters > 0:
        set_expiry(state.expiry, slot, np.float64(pool.slots[slot].last))


@weigh_left.otherwise
def _weigh_the_rest(prior: Any, model: Model, state: State, slot: int, record: Incoming) -> None:
    state.pool.weight[slot] = join_weight(prior, np.float64(state.pool.slots[slot].size))


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


@begin_record.otherwise
def _retire(prior: Any, model: Model, state: State, out: Output, record: Incoming) -> None:
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


@scale_at.otherwise
def _as_it_is(prior: Any, state: State, record: Incoming) -> float:
    scale: float = state.beam.counters.scale
    return scale


# ---------------------------------------------------------------- decays


@weigh_joined.of(DistanceDependentTerms)
def _weigh_by_distance(
    prior: DistanceDependentTerms, model: Model, state: State, slot: int, record: Incoming
) -> None:
    _add_member(prior.decay, state, slot, _position(prior, record))


@weigh_left.of(DistanceDependentTerms)
def _weigh_without(
    prior: DistanceDependentTerms, model: Model, state: State, slot: int, record: Incoming
) -> None:
    _take_member(prior.decay, state, slot, _position(prior, record))


@begin_record.of(DistanceDependentTerms)
def _fade(prior: DistanceDependentTerms, model: Model, state: State, out: Output, record: Incoming) -> None:
    now = _position(prior, record)
    if record.seq == 0:
        state.beam.counters.now = now
    _age(prior.decay, prior.close_below, state, out, now)
    state.beam.counters.now = now


@scale_at.of(DistanceDependentTerms)
def _faded_scale(prior: DistanceDependentTerms, state: State, record: Incoming) -> float:
    return _scale_after(prior.decay, state, _position(prior, record))


@generic
def _scale_after(decay: Any, state: State, now: float) -> float:
    """The common factor at a position to come."""
    raise NotImplementedError


@_scale_after.otherwise
def _same_scale(decay: Any, state: State, now: float) -> float:
    scale: float = state.beam.counters.scale
    return scale


@kernel
def _begin_anew(decay: Any, state: State, slot: int, now: float) -> None:
    """Let a cluster weigh what one record of now does, in the place of all its members."""
    queue = state.members.queues[slot]
    queue.head = queue.length - 1
    state.members.time[queue.start + queue.head] = now
    change_weight(state, slot, decay_weight(decay, 0.0))


@_add_member.of(WindowTerms)
def _add_to_window(decay: WindowTerms, state: State, slot: int, here: float) -> None:
    if decay_weight(decay, state.beam.counters.now - here) == 0.0:
        return
    push_member(state.members, slot, here)
    state.pool.weight[slot] += 1.0
    queue = state.members.queues[slot]
    set_expiry(state.expiry, slot, state.members.time[queue.start + queue.head])


@_take_member.of(WindowTerms)
def _take_from_window(decay: WindowTerms, state: State, slot: int, here: float) -> None:
    if drop_member(state.members, slot, here):
        state.pool.weight[slot] -= 1.0
        queue = state.members.queues[slot]
        if queue.head < queue.length:
            set_expiry(state.expiry, slot, state.members.time[queue.start + queue.head])


@_age.of(WindowTerms)
def _expire(decay: WindowTerms, close_below: float, state: State, out: Output, now: float) -> None:
    expiry, members = state.expiry, state.members
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


@_add_member.of(ExponentialTerms)
def _add_faded(decay: ExponentialTerms, state: State, slot: int, here: float) -> None:
    counters = state.beam.counters
    state.pool.weight[slot] += decay_weight(decay, counters.now - here) / counters.scale
    set_expiry(state.expiry, slot, state.pool.weight[slot])


@_take_member.of(ExponentialTerms)
def _take_faded(decay: ExponentialTerms, state: State, slot: int, here: float) -> None:
    counters = state.beam.counters
    weight = state.pool.weight[slot] - decay_weight(decay, counters.now - here) / counters.scale
    state.pool.weight[slot] = max(weight, 0.0)
    set_expiry(state.expiry, slot, state.pool.weight[slot])


@_age.of(ExponentialTerms)
def _fade_all(decay: ExponentialTerms, close_below: float, state: State, out: Output, now: float) -> None:
    counters, expiry, pool = state.beam.counters, state.expiry, state.pool
    if now > counters.now:
        counters.scale *= decay_weight(decay, now - counters.now)
    while expiry.counters.length > 0 and expiry.key[expiry.heap[0]] * counters.scale < close_below:
        slot = expiry.heap[0]
        if pool.pinned[slot] == 1:
            change_weight(state, slot, decay_weight(decay, 0.0) / counters.scale)
            set_expiry(expiry, slot, pool.weight[slot])
        else:
            close_slot(state, out, slot, False)
    if counters.scale < TINY_SCALE:
        factor = counters.scale
        for slot in range(pool.counters.high):
            pool.weight[slot] *= factor
            expiry.key[slot] *= factor
        rescale(state.clusters.bag, factor)
        counters.scale = 1.0


@_scale_after.of(ExponentialTerms)
def _faded_scale_after(decay: ExponentialTerms, state: State, now: float) -> float:
    elapsed = max(now - state.beam.counters.now, 0.0)
    return state.beam.counters.scale * decay_weight(decay, elapsed)


@_add_member.otherwise
def _add_in_full(decay: Any, state: State, slot: int, here: float) -> None:
    gap = state.beam.counters.now - here
    weight = decay_weight(decay, gap) if gap > 0.0 else 1.0
    if weight > 0.0:
        push_member(state.members, slot, here)
        state.pool.weight[slot] += weight


@_take_member.otherwise
def _take_in_full(decay: Any, state: State, slot: int, here: float) -> None:
    if drop_member(state.members, slot, here):
        weight = state.pool.weight[slot] - decay_weight(decay, state.beam.counters.now - here)
        state.pool.weight[slot] = max(weight, 0.0)


@_age.otherwise
def _sum_anew(decay: Any, close_below: float, state: State, out: Output, now: float) -> None:
    pool, members = state.pool, state.members
    for slot in range(pool.counters.high):
        if pool.state[slot] != ALIVE:
            continue
        start = members.queues[slot].start
        total = 0.0
        for i in range(members.queues[slot].head, members.queues[slot].length):
            f = decay_weight(decay, now - members.time[start + i])
            if f == 0.0:
                members.queues[slot].head = i + 1
            total += f
        if total < close_below or total == 0.0:
            if pool.pinned[slot] == 1:
                _begin_anew(decay, state, slot, now)
            else:
                close_slot(state, out, slot, False)
        else:
            change_weight(state, slot, total)
