"""Writing the chosen children's clusters: in place where all holders agree, else as a copy."""

from __future__ import annotations

import numpy as np

from streamdp.beam.choice import BEST_CHILD, CHILDREN, NEW, Choice
from streamdp.beam.dense import add_vector, clear_vector, copy_vector
from streamdp.beam.index import add_words, copy_words
from streamdp.beam.lifecycle import announce_closed, discard_slot, weigh_joined
from streamdp.beam.members import copy_members
from streamdp.beam.model import (
    Model,
)
from streamdp.beam.pool import (
    CLOSED,
    CONTESTED,
    COPIES,
    PLANE,
    Pool,
    take_slot,
)
from streamdp.beam.scores import Scores
from streamdp.beam.sizes import agree, contest, join_class, leave_class
from streamdp.beam.state import (
    Output,
    State,
)
from streamdp.beam.trellis import (
    new_lineage,
)
from streamdp.kernels.jit import kernel


@kernel
def _new_column(pool: Pool, slot: int) -> int:
    """Make a slot contested, held by nobody yet in the table being built."""
    j = pool.meta[CONTESTED]
    pool.meta[CONTESTED] = j + 1
    pool.slot_of[j] = slot
    pool.column[slot] = j
    return j


@kernel
def _join(
    model: Model,
    state: State,
    scores: Scores,
    slot: int,
    seq: int,
    time: float,
    words: np.ndarray,
    counts: np.ndarray,
    x: np.ndarray,
) -> None:
    """Add the record to a slot that stands in no class."""
    pool = state.pool
    pool.size[slot] += 1
    pool.last[slot] = seq
    pool.last_time[slot] = time
    if x.shape[0] > 0:
        add_vector(model, state.dense, slot, x)
    else:
        add_words(state.inverted, pool, slot, words, counts, scores.fresh)
    weigh_joined(model, state, slot, seq, time)
    if x.shape[0] == 0:
        join_class(state.sizes, slot, pool.tokens[slot], pool.types[slot])


@kernel
def _copy(state: State, source: int) -> int:
    """Copy on write: a new contested slot with the same records, in no class yet."""
    pool = state.pool
    state.beam.meta[COPIES] += 1
    target = take_slot(pool)
    pool.lineage[target] = pool.lineage[source]
    state.lineages.refs[pool.lineage[source]] += 1
    pool.founder[target] = pool.founder[source]
    pool.size[target] = pool.size[source]
    pool.weight[target] = pool.weight[source]
    pool.last[target] = pool.last[source]
    pool.first_time[target] = pool.first_time[source]
    pool.last_time[target] = pool.last_time[source]
    pool.types[target] = 0
    pool.tokens[target] = 0
    if state.dense.mean.shape[0] > 0:
        copy_vector(state.dense, source, target)
    else:
        copy_words(state.inverted, pool, source, target)
    copy_members(state.members, source, target)
    return target


@kernel
def _found(model: Model, state: State, lineage: int, seq: int, time: float) -> int:
    """An empty slot for the cluster that this record founds."""
    pool = state.pool
    slot = take_slot(pool)
    pool.lineage[slot] = lineage
    state.lineages.refs[lineage] += 1
    pool.founder[slot] = seq
    pool.size[slot] = 0
    pool.weight[slot] = 0.0
    pool.first_time[slot] = time
    pool.types[slot] = 0
    pool.tokens[slot] = 0
    if state.dense.mean.shape[0] > 0:
        clear_vector(state.dense, slot)
    return slot


@kernel
def _extend_holders(pool: Pool, choice: Choice, children: int) -> None:
    """Each child starts with what its parent held."""
    columns = pool.meta[CONTESTED]
    before = pool.holds[pool.meta[PLANE]]
    pool.meta[PLANE] = 1 - pool.meta[PLANE]
    after = pool.holds[pool.meta[PLANE]]
    for c in range(children):
        source = before[choice.child_parent[c]]
        target = after[c]
        for j in range(columns):
            target[j] = source[j]


@kernel
def write_children(
    model: Model,
    state: State,
    scores: Scores,
    choice: Choice,
    seq: int,
    time: float,
    words: np.ndarray,
    counts: np.ndarray,
    x: np.ndarray,
) -> None:
    """Write the chosen children's clusters: in place where all holders agree, else a copy."""
    pool, sizes = state.pool, state.sizes
    children = choice.meta[CHILDREN]
    head_group = choice.group[choice.meta[BEST_CHILD]]
    _extend_holders(pool, choice, children)
    holds = pool.holds[pool.meta[PLANE]]
    for a in range(children):
        if choice.group[a] != a:
            choice.child_slot[a] = choice.child_slot[choice.group[a]]
            continue
        slot = choice.child_slot[a]
        choosers = choice.group_size[a]
        if slot == NEW:
            target = _found(model, state, new_lineage(state.lineages, seq), seq, time)
            remaining = children - choosers
        else:
            held = children
            column = pool.column[slot]
            if column >= 0:
                held = 0
                for b in range(children):
                    held += holds[b, column]
            remaining = held - choosers
            if remaining == 0:
                target = slot
                leave_class(sizes, slot, pool.weight, pool.founder)
            else:
                target = _copy(state, slot)
                if column < 0:
                    contest(sizes, slot, pool.weight, pool.founder)
                    column = _new_column(pool, slot)
                    for b in range(children):
                        holds[b, column] = 1
                for b in range(a, children):
                    if choice.group[b] == a:
                        holds[b, column] = 0
        if target != slot and remaining > 0:
            fresh_column = _new_column(pool, target)
            for b in range(children):
                holds[b, fresh_column] = choice.group[b] == a
        _join(model, state, scores, target, seq, time, words, counts, x)
        if pool.column[target] < 0:
            agree(sizes, target, pool.weight, pool.founder)
        if a == head_group:
            for i in range(words.shape[0]):
                scores.base_fresh[i] = scores.fresh[i]
        choice.child_slot[a] = target


@kernel
def settle(model: Model, state: State, out: Output, choice: Choice, width: int) -> None:
    """Free the contested slots that nobody holds; promote those that all hold."""
    pool, sizes = state.pool, state.sizes
    holds, held = pool.holds[pool.meta[PLANE]], choice.held
    columns = pool.meta[CONTESTED]
    for j in range(columns):
        held[j] = 0
    for h in range(width):
        row = holds[h]
        for j in range(columns):
            held[j] += row[j]
    j = 0
    while j < pool.meta[CONTESTED]:
        count = held[j]
        if count != 0 and count != width:
            j += 1
            continue
        slot = pool.slot_of[j]
        last = pool.meta[CONTESTED] - 1
        pool.meta[CONTESTED] = last
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
            announce_closed(model, state, out, slot)
        else:
            agree(sizes, slot, pool.weight, pool.founder)
