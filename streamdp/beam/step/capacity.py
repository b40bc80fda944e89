"""Whether the arrays suffice for the next record, whatever it does; if not, what is needed."""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import NEW, Choice
from streamdp.beam.data.state import COMPLETE, FLUSH, GROW, Model, Output, State
from streamdp.beam.step.clusters import room_for_classes, room_for_words
from streamdp.kernels.jit import kernel


@kernel
def need(out: Output, wanted: int, available: int) -> int:
    """How long an array is to be; 0 where it is long enough. Else the kernel stops."""
    if wanted <= available:
        return 0
    out.counters.status = GROW
    return wanted


@kernel
def need_nothing(out: Output) -> None:
    """All arrays are long enough, as far as is known."""
    needs = out.needs
    out.counters.status = COMPLETE
    needs.slots = needs.columns = needs.nodes = needs.lineages = needs.announced = needs.times = 0
    needs.postings = needs.entries = needs.heap = needs.classes = needs.revisions = needs.events = 0


@kernel
def room_before(model: Model, state: State, out: Output) -> bool:
    """Whether buffers and fixed-size tables suffice for whatever the next record does."""
    pool, beam, needs = state.pool, state.beam, out.needs
    limit = model.beam
    undecided = beam.counters.seq - beam.counters.decided + 2
    events = pool.counters.used + 2 * undecided + 4 if out.counters.with_events else 0  # and no more moves
    need_nothing(out)
    needs.revisions = need(out, undecided, out.revisions.shape[0])
    needs.events = need(out, events, out.events.shape[0])
    needs.announced = need(out, undecided, state.announced.shape[0])
    needs.slots = need(out, pool.counters.used + limit + 2, pool.slots.shape[0])
    needs.columns = need(out, pool.counters.contested + 2 * limit + 2, pool.slot_of.shape[0])
    needs.nodes = need(out, state.trellis.counters.used + limit + 1, state.trellis.nodes.shape[0])
    needs.lineages = need(out, state.lineages.counters.used + 2, state.lineages.rows.shape[0])
    room_for_classes(state.clusters.bag, state, out, limit)
    if out.counters.status == COMPLETE and (
        out.counters.revisions + undecided > out.revisions.shape[0]
        or max(out.counters.events, out.counters.moves) + events > out.events.shape[0]
    ):
        out.counters.status = FLUSH
    return out.counters.status == COMPLETE


@kernel
def room_for_choice(state: State, out: Output, choice: Choice, words: np.ndarray) -> bool:
    """Whether the arenas can take the copies that the chosen children may need."""
    times = 0
    for a in range(choice.counters.children):
        child = choice.children[a]
        if child.slot != NEW and child.group == a:
            times += 4 * (state.members.queues[child.slot].length + 4)
    room_for_words(state.clusters.bag, out, choice, words)
    out.needs.times = need(out, state.members.header[0] + times, state.members.time.shape[0])
    return out.counters.status == COMPLETE
