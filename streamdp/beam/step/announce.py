"""What is reported of records: the label of the newest, and corrected labels of earlier ones.

Where the best hypothesis changes, a label that was minted has *split* off from others. One that no record has
any more has *merged* into the one cluster that has all of them now, or has *vanished* into several. Both are
reported before the record that caused the change joins a cluster: all hypotheses hold what they held, so
that every cluster concerned, of the last head and of its heir, has its slot and its statistics.

A cluster whose founder is decided keeps its label for ever. Those of the others are inherited by largest
overlap among the undecided records (ties: the older label, then the older founder); what is left over is
minted.
"""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import Walk, distinct_pairs, label_of, lineage_of, pack
from streamdp.beam.data.pool import VACANT, Pool, holds_slot
from streamdp.beam.data.state import BORN, MERGED, SPLIT, VANISHED, Output, State
from streamdp.beam.data.trellis import Lineages
from streamdp.beam.step.closing import emit_event
from streamdp.kernels.jit import kernel


@kernel
def mint(state: State, lineage: int) -> int:
    """Give a lineage a label that was never used."""
    label = state.beam.counters.next_label
    state.beam.counters.next_label = label + 1
    state.lineages.rows[lineage].label = label
    return label


@kernel
def _collect_pairs(state: State, walk: Walk, count: int) -> int:
    """The distinct pairs of a label announced and an undecided lineage now, with their overlaps.

    Takes the labels of those lineages away. Returns how many pairs there are.
    """
    beam, trellis, lineages = state.beam, state.trellis, state.lineages
    seq, decided = beam.counters.seq, beam.counters.decided
    mask = state.announced.shape[0] - 1
    records = 0
    for back in range(1, count + 1):
        lineage = trellis.lineage[walk.node[back]]
        founder = lineages.rows[lineage].founder
        if founder <= decided or not walk.affected[founder & mask]:
            continue
        lineages.rows[lineage].label = -1
        if state.announced_founder[(seq - back) & mask] <= decided:
            continue  # that label stays with its decided cluster
        walk.pair[records] = pack(state.announced[(seq - back) & mask], lineage)
        records += 1
    return distinct_pairs(walk, records)


@kernel
def _hand_on(state: State, walk: Walk, pairs: int) -> None:
    """Give labels to lineages, the largest overlap first, each once; leaves the pairs in that order."""
    for a in range(pairs):
        best = a
        for b in range(a + 1, pairs):
            if walk.overlap[b] > walk.overlap[best] or (
                walk.overlap[b] == walk.overlap[best]
                and _older_pair(state.lineages, walk.pair[b], walk.pair[best])
            ):
                best = b
        walk.pair[a], walk.pair[best] = walk.pair[best], walk.pair[a]
        walk.overlap[a], walk.overlap[best] = walk.overlap[best], walk.overlap[a]
        heir = state.lineages.rows[lineage_of(walk.pair[a])]
        if heir.label < 0 and not _labelled(state, walk, a, label_of(walk.pair[a])):
            heir.label = label_of(walk.pair[a])


@kernel
def _mint_rest(state: State, walk: Walk, count: int) -> None:
    """Mint labels for the lineages left without one, in order of founder: they have split off."""
    for back in range(count, 0, -1):  # the walk is newest first
        lineage = state.trellis.lineage[walk.node[back]]
        if state.lineages.rows[lineage].label < 0:
            mint(state, lineage)


@kernel
def inherit(state: State, walk: Walk, count: int) -> None:
    """Relabel the undecided lineages of a new head; ``count`` undecided earlier records."""
    pairs = _collect_pairs(state, walk, count)
    _hand_on(state, walk, pairs)
    _mint_rest(state, walk, count)


@kernel
def _older_pair(lineages: Lineages, a: int, b: int) -> bool:
    if label_of(a) != label_of(b):
        return label_of(a) < label_of(b)
    return lineages.rows[lineage_of(a)].founder < lineages.rows[lineage_of(b)].founder


@kernel
def _labelled(state: State, walk: Walk, upto: int, label: int) -> bool:
    """Whether the lineage of one of the first ``upto`` pairs has the label."""
    for a in range(upto):
        if state.lineages.rows[lineage_of(walk.pair[a])].label == label:
            return True
    return False


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
def _find_affected(state: State, walk: Walk, count: int, heir: int) -> None:
    """Walk along the new head's history; mark the clusters that are not what the last head's were."""
    seq, decided = state.beam.counters.seq, state.beam.counters.decided
    mask = state.announced.shape[0] - 1
    node = state.beam.leaf[heir]
    for back in range(1, count + 1):
        walk.node[back] = node
        walk.affected[(seq - back) & mask] = 0
        node = state.trellis.parent[node]
    for back in range(1, count + 1):
        now = state.lineages.rows[state.trellis.lineage[walk.node[back]]].founder
        before = state.announced_founder[(seq - back) & mask]
        if now != before:
            if now > decided:
                walk.affected[now & mask] = 1
            if before > decided:
                walk.affected[before & mask] = 1


@kernel
def _revise(state: State, out: Output, walk: Walk, count: int) -> None:
    """Report the undecided records whose label has changed, oldest first."""
    seq = state.beam.counters.seq
    mask = state.announced.shape[0] - 1
    for back in range(count, 0, -1):
        node = walk.node[back]
        lineage = state.lineages.rows[state.trellis.lineage[node]]
        state.announced_founder[(seq - back) & mask] = lineage.founder
        if state.announced[(seq - back) & mask] == lineage.label:
            continue
        state.announced[(seq - back) & mask] = lineage.label
        r = out.counters.revisions
        out.counters.revisions = r + 1
        out.revisions[r].by = seq
        out.revisions[r].seq = seq - back
        out.revisions[r].label = lineage.label
        out.revisions[r].link = state.trellis.nodes[node].link
        out.revisions[r].founded = lineage.founder == seq - back


@kernel
def change_head(state: State, out: Output, walk: Walk, heir: int) -> None:
    """The newest record makes another hypothesis the best: revise what was reported of earlier records.

    Called before the record joins a cluster; ``HEAD`` is still the last one.
    """
    beam = state.beam
    beam.counters.switches += 1
    count = beam.counters.seq - beam.counters.decided - 1
    minted = beam.counters.next_label
    _find_affected(state, walk, count, heir)
    inherit(state, walk, count)
    if out.counters.with_events:  # lineages have their new labels, and what was announced stands yet
        pairs = _moved_pairs(state, walk, count)
        _report_splits(state, out, walk, count, pairs, heir, minted)
        _report_ends(state, out, walk, count, pairs)
    _revise(state, out, walk, count)


@kernel
def label_if_asked(state: State, walk: Walk, heir: int, slot: int) -> int:
    """What a cluster would be called if hypothesis ``heir``, which holds it, became the head; -1: a new name.

    Lineages that the head does not hold have no label, or one from a time when they were held: what the new
    head would inherit is worked out, and put back.
    """
    beam, trellis, rows = state.beam, state.trellis, state.lineages.rows
    lineage, minted = state.pool.slots[slot].lineage, beam.counters.next_label
    if heir == beam.counters.head:
        return rows[lineage].label
    count = beam.counters.seq - beam.counters.decided - 1
    _find_affected(state, walk, count, heir)
    before = walk.kept  # by how far a record is back
    for back in range(1, count + 1):
        before[back] = rows[trellis.lineage[walk.node[back]]].label
    inherit(state, walk, count)
    label = rows[lineage].label
    for back in range(1, count + 1):
        rows[trellis.lineage[walk.node[back]]].label = before[back]
    beam.counters.next_label = minted
    return label if label < minted else -1


@kernel
def announce(state: State, out: Output, slot: int, founded: bool) -> int:
    """Label the newest record, which has joined a slot of the best hypothesis."""
    seq, mask = state.beam.counters.seq, state.announced.shape[0] - 1
    lineage = state.pool.slots[slot].lineage
    if founded:
        mint(state, lineage)
        emit_event(state, out, BORN, slot, state.lineages.rows[lineage].label)
    state.announced[seq & mask] = state.lineages.rows[lineage].label
    state.announced_founder[seq & mask] = state.lineages.rows[lineage].founder
    return state.lineages.rows[lineage].label


@kernel
def weigh_revisions(state: State, out: Output, walk: Walk, first: int, decided: int) -> None:
    """Write the probability of the newest record's revisions, from ``first`` on (oldest record first).

    It is the mass of the surviving hypotheses that share the head's cluster. The distinct ancestors of
    all of them are followed record by record, newest first, merging where paths meet.
    """
    beam, trellis = state.beam, state.trellis
    last = out.counters.revisions - 1
    if last < first:
        return
    width = beam.counters.width
    total = 0.0
    peak = beam.joint[beam.counters.head]
    for h in range(width):
        walk.level_node[h] = beam.leaf[h]
        if beam.counters.leads:
            walk.level_mass[h] = 1.0 if h == beam.counters.head else 0.0
        else:
            walk.level_mass[h] = np.exp(beam.joint[h] - peak)
        total += walk.level_mass[h]
    node = beam.leaf[beam.counters.head]
    seq = beam.counters.seq
    while last >= first:
        if out.revisions[last].seq <= decided:
            out.revisions[last].probability = 1.0
            last -= 1
            continue
        if out.revisions[last].seq == seq:
            same = 0.0
            for i in range(width):
                if trellis.lineage[walk.level_node[i]] == trellis.lineage[node]:
                    same += walk.level_mass[i]
            out.revisions[last].probability = same / total
            last -= 1
            continue
        merged = 0
        for i in range(width):
            parent = trellis.parent[walk.level_node[i]]
            mass = walk.level_mass[i]
            at = 0
            while at < merged and walk.level_node[at] != parent:
                at += 1
            if at == merged:
                walk.level_node[at] = parent
                walk.level_mass[at] = mass
                merged += 1
            else:
                walk.level_mass[at] += mass
        width = merged
        node = trellis.parent[node]
        seq -= 1
