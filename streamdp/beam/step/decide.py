"""From the chosen children to the hypotheses of the next record, and what they have decided."""

from __future__ import annotations

from streamdp.beam.data.choice import Choice
from streamdp.beam.data.model import Model
from streamdp.beam.data.pool import add_joint
from streamdp.beam.data.state import State
from streamdp.beam.data.trellis import add_node, advance_root, branch_of, mark_leaves, prune
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
    top_select = choice.children[0].select
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
        beam.select[c] = choice.children[c].select - top_select
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
            beam.select[to] = beam.select[h]
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
    """Let the best hypothesis decide everything; what it does not hold is still to be freed."""
    beam = state.beam
    for h in range(beam.counters.width):
        choice.dropped[h] = h != beam.counters.head
    _drop(state, choice)
    beam.counters.leads = 0
    beam.counters.lead = 0.0
    beam.counters.decided = advance_root(state.trellis, state.lineages)
