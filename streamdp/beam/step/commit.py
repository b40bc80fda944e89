"""Writing the chosen children's clusters: in place where all holders agree, else as a copy."""

from __future__ import annotations

from streamdp.beam.data.choice import NEW, Choice, Scores
from streamdp.beam.data.members import copy_members
from streamdp.beam.data.pool import CLOSED, Pool, take_slot
from streamdp.beam.data.sizes import agree, contest, leave_class
from streamdp.beam.data.state import Incoming, Model, Output, State
from streamdp.beam.step.aging import has_limits, position_of, weigh_joined
from streamdp.beam.step.closing import announce_closed, discard_slot, found_slot
from streamdp.beam.step.clusters import copy_slot, enter_class, join_slot, learn_record
from streamdp.kernels.jit import kernel


@kernel
def _new_column(pool: Pool, slot: int) -> int:
    """Make a slot contested, held by nobody yet in the table being built."""
    j = pool.counters.contested
    pool.counters.contested = j + 1
    pool.slot_of[j] = slot
    pool.column[slot] = j
    return j


@kernel
def _join(model: Model, state: State, scores: Scores, slot: int, record: Incoming) -> None:
    """Add the record to a slot that stands in no class."""
    row = state.pool.slots[slot]
    row.size += 1
    row.last = record.seq
    row.last_time = record.time
    join_slot(state.clusters, model, scores, slot, record)
    weigh_joined(model.prior, model, state, slot, position_of(model, record))
    enter_class(state.clusters.bag, state.sizes, slot)


@kernel
def _copy(state: State, source: int) -> int:
    """Copy on write: a new contested slot with the same records, in no class yet."""
    pool = state.pool
    state.beam.counters.copies += 1
    target = take_slot(pool)
    old, new = pool.slots[source], pool.slots[target]
    new.lineage, new.size, new.last = old.lineage, old.size, old.last
    new.first_time, new.last_time = old.first_time, old.last_time
    pool.founder[target] = pool.founder[source]
    pool.weight[target] = pool.weight[source]
    pool.pinned[target] = pool.pinned[source]
    state.lineages.rows[new.lineage].refs += 1
    copy_slot(state.clusters, source, target)
    copy_members(state.members, source, target)
    return target


@kernel
def _extend_holders(pool: Pool, choice: Choice, children: int) -> None:
    """Each child starts with what its parent held."""
    columns = pool.counters.contested
    before = pool.holds[pool.counters.half]
    pool.counters.half = 1 - pool.counters.half
    after = pool.holds[pool.counters.half]
    for c in range(children):
        source = before[choice.children[c].parent]
        target = after[c]
        for j in range(columns):
            target[j] = source[j]


@kernel
def _part(state: State, choice: Choice, a: int, slot: int, children: int) -> tuple[int, int]:
    """Where the first child ``a`` of its group, and all that join the same slot, are to be written.

    In place where they are all that hold the slot, else in a copy, which the others do not hold. Returns the
    slot, and how many hypotheses do not hold it.
    """
    pool = state.pool
    holds = pool.holds[pool.counters.half]
    held, column = children, pool.column[slot]
    if column >= 0:
        held = 0
        for b in range(children):
            held += holds[b, column]
    remaining = held - choice.children[a].group_size
    if remaining == 0:
        leave_class(state.sizes, pool, slot)
        return slot, 0
    target = _copy(state, slot)
    if column < 0:
        contest(state.sizes, pool, slot)
        column = _new_column(pool, slot)
        for b in range(children):
            holds[b, column] = 1
    for b in range(a, children):
        if choice.children[b].group == a:
            holds[b, column] = 0
    return target, remaining


@kernel
def commit_children(
    model: Model, state: State, scores: Scores, choice: Choice, record: Incoming, new_probability: float
) -> None:
    """Write the chosen children's clusters: in place where all holders agree, else a copy.

    ``new_probability``: that the record founds a cluster.
    """
    pool = state.pool
    children = choice.counters.children
    head_group = choice.children[choice.counters.best_child].group
    _extend_holders(pool, choice, children)
    holds = pool.holds[pool.counters.half]
    for a in range(children):
        child = choice.children[a]
        if child.group != a:
            child.slot = choice.children[child.group].slot
            continue
        slot = child.slot
        if slot == NEW:
            target = found_slot(model, state, record.seq, record.time)
            others = children - child.group_size
        else:
            target, others = _part(state, choice, a, slot, children)
        if target != slot and others > 0:
            fresh_column = _new_column(pool, target)
            for b in range(children):
                holds[b, fresh_column] = choice.children[b].group == a
        _join(model, state, scores, target, record)
        if pool.column[target] < 0:
            agree(state.sizes, pool, target)
        if a == head_group:
            learn_record(state.clusters.bag, model.family.bag, scores, record, new_probability)
        child.slot = target


@kernel
def settle(model: Model, state: State, out: Output, choice: Choice, width: int) -> None:
    """Free the contested slots that nobody holds; promote those that all hold."""
    pool = state.pool
    holds, held = pool.holds[pool.counters.half], choice.held
    columns = pool.counters.contested
    for j in range(columns):
        held[j] = 0
    for h in range(width):
        row = holds[h]
        for j in range(columns):
            held[j] += row[j]
    j = 0
    while j < pool.counters.contested:
        count = held[j]
        if count != 0 and count != width:
            j += 1
            continue
        slot = pool.slot_of[j]
        last = pool.counters.contested - 1
        pool.counters.contested = last
        if j != last:
            moved = pool.slot_of[last]
            pool.slot_of[j] = moved
            pool.column[moved] = j
            held[j] = held[last]
            for h in range(width):
                holds[h, j] = holds[h, last]
        pool.column[slot] = -1
        if count == 0:
            discard_slot(state, slot)
        elif pool.state[slot] == CLOSED:
            announce_closed(state, out, slot, has_limits(model))
        else:
            agree(state.sizes, pool, slot)
