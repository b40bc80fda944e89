"""What is reported of records: the label of the newest, and corrected labels of earlier ones."""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.state import BORN, Output, State
from streamdp.beam.data.walk import Walk
from streamdp.beam.step.changes import report_changes
from streamdp.beam.step.closing import emit_event
from streamdp.beam.step.inherit import inherit, mint
from streamdp.kernels.jit import kernel


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
    if out.counters.with_events:
        report_changes(state, out, walk, count, heir, minted)
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
