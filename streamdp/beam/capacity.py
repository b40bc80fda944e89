"""Whether the arrays suffice for the next record, whatever it does; if not, what is needed."""

from __future__ import annotations

import numpy as np

from streamdp.beam.choice import CHILDREN, NEW, Choice
from streamdp.beam.clusters import room_for_classes, room_for_words
from streamdp.beam.model import Model
from streamdp.beam.pool import CONTESTED, DECIDED, SEQ, SLOT_USED
from streamdp.beam.state import (
    COMPLETE,
    EVENTS,
    FLUSH,
    GROW,
    MOVES,
    NEED_ANNOUNCED,
    NEED_COLUMNS,
    NEED_EVENTS,
    NEED_LINEAGES,
    NEED_NODES,
    NEED_REVISIONS,
    NEED_SLOTS,
    NEED_TIMES,
    REVISIONS,
    STATUS,
    TELL,
    Output,
    State,
)
from streamdp.beam.trellis import LINEAGES_USED, NODE_USED
from streamdp.kernels.jit import kernel


@kernel
def need(out: Output, index: int, needed: int, available: int) -> None:
    """Note that an array is too small."""
    if needed > available:
        out.meta[index] = needed
        out.meta[STATUS] = GROW


@kernel
def room_before(model: Model, state: State, out: Output) -> bool:
    """Whether buffers and fixed-size tables suffice for whatever the next record does."""
    pool, beam = state.pool, state.beam
    limit = model.beam
    undecided = beam.meta[SEQ] - beam.meta[DECIDED] + 2
    events = pool.meta[SLOT_USED] + 2 * undecided + 4 if out.meta[TELL] else 0  # and no more moves
    out.meta[STATUS] = COMPLETE
    for i in range(NEED_SLOTS, NEED_LINEAGES + 1):
        out.meta[i] = 0
    need(out, NEED_REVISIONS, undecided, out.revisions.shape[0])
    need(out, NEED_EVENTS, events, out.events.shape[0])
    need(out, NEED_ANNOUNCED, undecided, state.announced.shape[0])
    need(out, NEED_SLOTS, pool.meta[SLOT_USED] + limit + 2, pool.slots.shape[0])
    need(out, NEED_COLUMNS, pool.meta[CONTESTED] + 2 * limit + 2, pool.slot_of.shape[0])
    need(out, NEED_NODES, state.trellis.meta[NODE_USED] + limit + 1, state.trellis.nodes.shape[0])
    need(out, NEED_LINEAGES, state.lineages.meta[LINEAGES_USED] + 2, state.lineages.rows.shape[0])
    room_for_classes(state.clusters, pool, out, limit)
    if out.meta[STATUS] == COMPLETE and (
        out.meta[REVISIONS] + undecided > out.revisions.shape[0]
        or max(out.meta[EVENTS], out.meta[MOVES]) + events > out.events.shape[0]
    ):
        out.meta[STATUS] = FLUSH
    return out.meta[STATUS] == COMPLETE


@kernel
def room_for_choice(state: State, out: Output, choice: Choice, words: np.ndarray) -> bool:
    """Whether the arenas can take the copies that the chosen children may need."""
    times = 0
    for a in range(choice.meta[CHILDREN]):
        child = choice.children[a]
        if child.slot != NEW and child.group == a:
            times += 4 * (state.members.queues[child.slot].length + 4)
    room_for_words(state.clusters, out, choice, words)
    need(out, NEED_TIMES, state.members.header[0] + times, state.members.time.shape[0])
    return out.meta[STATUS] == COMPLETE
