"""What a change of the best hypothesis did to the clusters that were reported.

A label that was minted has *split* off from others. One that no record has any more has *merged* into the
one cluster that has all of them now, or has *vanished* into several. Both are reported before the record that
caused the change joins a cluster: all hypotheses still hold what they held, so that every cluster concerned,
of the last head and of its heir, has its slot and its statistics.
"""

from __future__ import annotations

from streamdp.beam.data.pool import VACANT, Pool, holds_slot
from streamdp.beam.data.state import MERGED, SPLIT, VANISHED, Output, State
from streamdp.beam.data.walk import Walk, distinct_pairs, label_of, lineage_of, pack
from streamdp.beam.step.closing import emit_event
from streamdp.kernels.jit import kernel


@kernel
def _slot_of(pool: Pool, h: int, founder: int) -> int:
    """The slot in which a hypothesis holds the cluster of a founder.

    There is one: a cluster whose slot has been freed is closed in all hypotheses, and nothing changes in it.
    """
    for slot in range(pool.counters.high):
        if pool.state[slot] != VACANT and pool.founder[slot] == founder and holds_slot(pool, h, slot):
            return slot
    return -1


@kernel
def _moved_pairs(state: State, walk: Walk, count: int) -> int:
    """The distinct pairs of the records whose label changes; marks the former clusters that keep theirs."""
    seq, decided = state.beam.counters.seq, state.beam.counters.decided
    mask = state.announced.shape[0] - 1
    records = 0
    for back in range(count, 0, -1):  # a founder before its members
        at = (seq - back) & mask
        walk.kept[at] = 0
        lineage = state.trellis.lineage[walk.node[back]]
        label = state.announced[at]
        if state.lineages.rows[lineage].label != label:
            walk.pair[records] = pack(label, lineage)
            records += 1
        elif state.announced_founder[at] > decided:
            walk.kept[state.announced_founder[at] & mask] = 1
    return distinct_pairs(walk, records)


@kernel
def add_move(out: Output, label: int, records: int) -> None:
    """Add to the moves of the newest event: the most records first, the older label among equals."""
    m, event = out.counters.moves, out.events[out.counters.events - 1]
    first = m - event.moves
    while m > first and (
        out.moves[m - 1].records < records
        or (out.moves[m - 1].records == records and out.moves[m - 1].label > label)
    ):
        out.moves[m].label = out.moves[m - 1].label
        out.moves[m].records = out.moves[m - 1].records
        m -= 1
    out.moves[m].label = label
    out.moves[m].records = records
    event.moves += 1
    out.counters.moves += 1


@kernel
def _report_splits(
    state: State, out: Output, walk: Walk, count: int, pairs: int, heir: int, minted: int
) -> None:
    """Tell of the labels from ``minted`` on, and which labels their records had."""
    for back in range(count, 0, -1):
        lineage = state.trellis.lineage[walk.node[back]]
        row = state.lineages.rows[lineage]
        if row.founder != state.beam.counters.seq - back or row.label < minted:
            continue
        emit_event(state, out, SPLIT, _slot_of(state.pool, heir, row.founder), row.label)
        for a in range(pairs):
            if lineage_of(walk.pair[a]) == lineage:
                add_move(out, label_of(walk.pair[a]), walk.overlap[a])


@kernel
def _report_ends(state: State, out: Output, walk: Walk, count: int, pairs: int) -> None:
    """Tell of the labels that no record has any more, and which labels theirs have now."""
    beam, mask = state.beam, state.announced.shape[0] - 1
    for back in range(count, 0, -1):
        founder = beam.counters.seq - back
        if state.announced_founder[founder & mask] != founder or walk.kept[founder & mask]:
            continue
        label = state.announced[founder & mask]
        emit_event(state, out, MERGED, _slot_of(state.pool, beam.counters.head, founder), label)
        for a in range(pairs):
            if label_of(walk.pair[a]) == label:
                add_move(out, state.lineages.rows[lineage_of(walk.pair[a])].label, walk.overlap[a])
        if out.events[out.counters.events - 1].moves > 1:
            out.events[out.counters.events - 1].kind = VANISHED


@kernel
def report_changes(state: State, out: Output, walk: Walk, count: int, heir: int, minted: int) -> None:
    """Report what it means that hypothesis ``heir`` becomes the head: ``count`` undecided earlier records.

    Their lineages are labelled already, with new labels from ``minted`` on; the labels announced stand yet.
    """
    pairs = _moved_pairs(state, walk, count)
    _report_splits(state, out, walk, count, pairs, heir, minted)
    _report_ends(state, out, walk, count, pairs)
