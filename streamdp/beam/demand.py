"""Whether the arrays suffice for the next record, whatever it does; if not, what is needed."""

from __future__ import annotations

import numpy as np

from streamdp.beam.choice import CHILDREN, NEW, Choice
from streamdp.beam.index import POSTED, Index
from streamdp.beam.model import (
    BEAM,
    Model,
)
from streamdp.beam.pool import (
    CONTESTED,
    DECIDED,
    SEQ,
    SLOT_USED,
)
from streamdp.beam.scores import Scores
from streamdp.beam.sizes import USED as CLASSES_USED
from streamdp.beam.state import (
    COMPLETE,
    EVENTS,
    FLUSH,
    GROW,
    NEED_ANNOUNCED,
    NEED_CLASSES,
    NEED_COLUMNS,
    NEED_ENTRIES,
    NEED_EVENTS,
    NEED_HEAP,
    NEED_LINEAGES,
    NEED_NODES,
    NEED_POSTINGS,
    NEED_REVISIONS,
    NEED_SLOTS,
    NEED_TIMES,
    REVISIONS,
    STATUS,
    Output,
    State,
)
from streamdp.beam.trellis import (
    FAMILY_USED,
    NODE_USED,
)
from streamdp.kernels.jit import kernel


@kernel
def _demand(out: Output, index: int, needed: int, available: int) -> None:
    """Note that an array is too small."""
    if needed > available:
        out.meta[index] = needed
        out.meta[STATUS] = GROW


@kernel
def room_before(model: Model, state: State, out: Output) -> bool:
    """Whether buffers and fixed-size tables suffice for whatever the next record does."""
    pool, beam = state.pool, state.beam
    limit = model.ints[BEAM]
    undecided = beam.meta[SEQ] - beam.meta[DECIDED] + 2
    events = pool.meta[SLOT_USED] + 2 * undecided + 4
    out.meta[STATUS] = COMPLETE
    for i in range(NEED_SLOTS, NEED_LINEAGES + 1):
        out.meta[i] = 0
    _demand(out, NEED_REVISIONS, undecided, out.revision_seq.shape[0])
    _demand(out, NEED_EVENTS, events, out.event_by.shape[0])
    _demand(out, NEED_ANNOUNCED, undecided, state.announced.shape[0])
    _demand(out, NEED_SLOTS, pool.meta[SLOT_USED] + limit + 2, pool.next.shape[0])
    _demand(out, NEED_COLUMNS, pool.meta[CONTESTED] + 2 * limit + 2, pool.slot_of.shape[0])
    _demand(out, NEED_NODES, state.trellis.meta[NODE_USED] + limit + 1, state.trellis.parent.shape[0])
    _demand(out, NEED_LINEAGES, state.lineages.meta[FAMILY_USED] + 2, state.lineages.next.shape[0])
    _demand(out, NEED_CLASSES, state.sizes.meta[CLASSES_USED] + limit + 2, state.sizes.next.shape[0])
    _demand(
        out,
        NEED_HEAP,
        state.sizes.header[0] + 8 * (pool.meta[SLOT_USED] + limit + 8),
        state.sizes.heap.shape[0],
    )
    if out.meta[STATUS] == COMPLETE and (
        out.meta[REVISIONS] + undecided > out.revision_seq.shape[0]
        or out.meta[EVENTS] + events > out.event_by.shape[0]
    ):
        out.meta[STATUS] = FLUSH
    return out.meta[STATUS] == COMPLETE


@kernel
def group_children(scores: Scores, choice: Choice) -> None:
    """Which children join the same slot."""
    fresh = -1
    for a in range(choice.meta[CHILDREN]):
        slot = choice.child_slot[a]
        if slot == NEW:
            first = fresh if fresh >= 0 else a
            fresh = first
        else:
            first = scores.owner[slot]
            if first >= a or choice.child_slot[first] != slot:
                first = a
                scores.owner[slot] = a
        if first == a:
            choice.group_size[a] = 0
        choice.group[a] = first
        choice.group_size[first] += 1


@kernel
def _posting_need(index: Index, word: int, children: int) -> int:
    n = index.length[word] + children + 2
    block = index.block[word]
    return 4 * n if block < 0 or n > (4 << block) else 0


@kernel
def room_for_choice(model: Model, state: State, out: Output, choice: Choice, words: np.ndarray) -> bool:
    """Whether the arenas can take the copies that the chosen children may need.

    A posting list that moves takes a block of at most four times its new length in all, so four times
    all postings, old and new, is enough; only where there is not that much is the need worked out.
    """
    index, pool = state.inverted, state.pool
    children = choice.meta[CHILDREN]
    fresh = words.shape[0]
    entries, times, new = 4 * (fresh + 2), 0, fresh
    for a in range(children):
        slot = choice.child_slot[a]
        if slot == NEW or choice.group[a] != a:
            continue
        times += 4 * (state.members.length[slot] + 4)
        entries += 4 * (pool.types[slot] + fresh + 2)
        new += pool.types[slot] + fresh
    enough = index.postings[0] + 4 * (index.totals[POSTED] + new)
    if fresh > 0 and enough > index.slot.shape[0]:
        postings = 0
        for i in range(fresh):
            postings += _posting_need(index, words[i], children)
        for a in range(children):
            slot = choice.child_slot[a]
            if slot != NEW and choice.group[a] == a and children > 1:
                begin = index.own_start[slot]
                for i in range(begin, begin + pool.types[slot]):
                    postings += _posting_need(index, index.word[i], children)
        if index.postings[0] + postings > index.slot.shape[0]:
            _demand(out, NEED_POSTINGS, enough, index.slot.shape[0])
    _demand(out, NEED_ENTRIES, index.entries[0] + entries, index.word.shape[0])
    _demand(out, NEED_TIMES, state.members.header[0] + times, state.members.time.shape[0])
    return out.meta[STATUS] == COMPLETE
