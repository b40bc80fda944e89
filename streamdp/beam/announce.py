"""Labels: what the outside calls a cluster, and what was told before and no longer holds.

A cluster whose founder is decided keeps its label for ever. When the best hypothesis changes to one
that does not extend the last, the labels of the other clusters are inherited by largest overlap among
the undecided records (ties: the older label, then the older founder); what is left over is minted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.beam.lifecycle import emit_event
from streamdp.beam.pool import DECIDED, HEAD, NEXT_LABEL, PLANE, SEQ, SLOT_HIGH, SWITCHES, VACANT, WIDTH
from streamdp.beam.state import BORN, MERGED, REVISIONS, SPLIT, Output, State
from streamdp.beam.trellis import Lineages
from streamdp.kernels.jit import kernel


class Walk(NamedTuple):
    """Scratch space for a walk over the undecided records, newest first."""

    node: np.ndarray  # int32[U] the head's node of a record
    key: np.ndarray  # int64[U] label and lineage of a record, packed
    order: np.ndarray  # int64[U]
    affected: np.ndarray  # uint8[U] by founder: whether its cluster differs from that of the last head
    level_node: np.ndarray  # int32[B]
    level_mass: np.ndarray  # float64[B]


def new_walk(undecided: int, width: int) -> Walk:
    """Scratch space for so many undecided records."""
    return Walk(
        np.zeros(undecided, np.int32),
        np.zeros(undecided, np.int64),
        np.zeros(undecided, np.int64),
        np.zeros(undecided, np.uint8),
        np.zeros(width, np.int32),
        np.zeros(width),
    )


@kernel
def mint(state: State, lineage: int) -> int:
    """Give a lineage a label that was never used."""
    label = state.beam.meta[NEXT_LABEL]
    state.beam.meta[NEXT_LABEL] = label + 1
    state.lineages.label[lineage] = label
    return label


@kernel
def slot_of_head(state: State, lineage: int) -> int:
    """The slot in which the best hypothesis holds a lineage, or -1 (closed and freed)."""
    pool, head = state.pool, state.beam.meta[HEAD]
    for slot in range(pool.meta[SLOT_HIGH]):
        if pool.state[slot] != VACANT and pool.lineage[slot] == lineage:
            column = pool.column[slot]
            if column < 0 or pool.holds[pool.meta[PLANE]][head, column] == 1:
                return slot
    return -1


@kernel
def weigh_revisions(state: State, out: Output, walk: Walk, first: int, decided: int) -> None:
    """Write the probability of the newest record's revisions, from ``first`` on (oldest record first).

    It is the mass of the surviving hypotheses that share the head's cluster. The distinct ancestors of
    all of them are followed record by record, newest first, merging where paths meet.
    """
    beam, trellis = state.beam, state.trellis
    last = out.meta[REVISIONS] - 1
    if last < first:
        return
    width = beam.meta[WIDTH]
    total = 0.0
    peak = beam.joint[beam.meta[HEAD]]
    for h in range(width):
        walk.level_node[h] = beam.leaf[h]
        walk.level_mass[h] = np.exp(beam.joint[h] - peak)
        total += walk.level_mass[h]
    node = beam.leaf[beam.meta[HEAD]]
    seq = beam.meta[SEQ]
    while last >= first:
        if out.revision_seq[last] <= decided:
            out.revision_probability[last] = 1.0
            last -= 1
            continue
        if out.revision_seq[last] == seq:
            same = 0.0
            for i in range(width):
                if trellis.lineage[walk.level_node[i]] == trellis.lineage[node]:
                    same += walk.level_mass[i]
            out.revision_probability[last] = same / total
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


@kernel
def sort_ascending(values: np.ndarray, n: int) -> None:
    """Heap sort in place: kernels allocate nothing."""
    for start in range(n // 2 - 1, -1, -1):
        _sift(values, start, n)
    for last in range(n - 1, 0, -1):
        values[0], values[last] = values[last], values[0]
        _sift(values, 0, last)


@kernel
def _sift(values: np.ndarray, i: int, n: int) -> None:
    while True:
        c = 2 * i + 1
        if c >= n:
            return
        if c + 1 < n and values[c + 1] > values[c]:
            c += 1
        if values[i] >= values[c]:
            return
        values[i], values[c] = values[c], values[i]
        i = c


@kernel
def _inherit(state: State, out: Output, walk: Walk, count: int) -> None:
    """Relabel the undecided lineages of a new head; ``count`` undecided earlier records."""
    beam, trellis, lineages = state.beam, state.trellis, state.lineages
    seq, decided = beam.meta[SEQ], beam.meta[DECIDED]
    mask = state.announced.shape[0] - 1
    # a lineage index and a label fit one integer; equal pairs become neighbours by sorting
    pairs = 0
    for back in range(1, count + 1):
        lineage = trellis.lineage[walk.node[back]]
        if lineages.founder[lineage] <= decided or not walk.affected[lineages.founder[lineage] & mask]:
            continue
        lineages.label[lineage] = -1
        if state.announced_founder[(seq - back) & mask] <= decided:
            continue  # that label stays with its decided cluster
        walk.key[pairs] = (state.announced[(seq - back) & mask] << 24) | lineage
        pairs += 1
    sort_ascending(walk.key, pairs)
    distinct = 0
    i = 0
    while i < pairs:
        key = walk.key[i]
        j = i
        while j < pairs and walk.key[j] == key:
            j += 1
        walk.key[distinct] = key
        walk.order[distinct] = -(j - i)
        distinct += 1
        i = j
    taken = 0
    for a in range(distinct):
        best = a
        for b in range(a + 1, distinct):
            if walk.order[b] < walk.order[best] or (
                walk.order[b] == walk.order[best] and _older_pair(lineages, walk.key[b], walk.key[best])
            ):
                best = b
        walk.key[a], walk.key[best] = walk.key[best], walk.key[a]
        walk.order[a], walk.order[best] = walk.order[best], walk.order[a]
        label, lineage = walk.key[a] >> 24, walk.key[a] & 0xFFFFFF
        if lineages.label[lineage] >= 0 or _labelled(state, walk, a, label):
            continue
        lineages.label[lineage] = label
        taken += 1
    # lineages left without a label, in order of founder: the walk is newest first
    for back in range(count, 0, -1):
        lineage = trellis.lineage[walk.node[back]]
        if lineages.label[lineage] < 0:
            label = mint(state, lineage)
            other, overlap = -1, 0
            for a in range(distinct):
                if walk.key[a] & 0xFFFFFF == lineage and -walk.order[a] > overlap:
                    other, overlap = walk.key[a] >> 24, -walk.order[a]
            slot = slot_of_head(state, lineage)
            size = overlap if slot < 0 else state.pool.size[slot]
            emit_event(state, out, SPLIT, slot, label, other, size)
    for a in range(distinct):
        label = walk.key[a] >> 24
        first = True
        for b in range(a):
            first = first and walk.key[b] >> 24 != label
        if first and not _labelled(state, walk, distinct, label):
            heir = lineages.label[walk.key[a] & 0xFFFFFF]
            emit_event(state, out, MERGED, -1, label, heir, -walk.order[a])


@kernel
def _older_pair(lineages: Lineages, a: int, b: int) -> bool:
    if a >> 24 != b >> 24:
        return a >> 24 < b >> 24
    return lineages.founder[a & 0xFFFFFF] < lineages.founder[b & 0xFFFFFF]


@kernel
def _labelled(state: State, walk: Walk, upto: int, label: int) -> bool:
    """Whether the lineage of one of the first ``upto`` pairs has the label."""
    for a in range(upto):
        if state.lineages.label[walk.key[a] & 0xFFFFFF] == label:
            return True
    return False


@kernel
def announce(state: State, out: Output, walk: Walk, extends: bool, slot: int, founded: bool) -> int:
    """Label the newest record, and revise older ones if the best hypothesis has changed."""
    beam, trellis, lineages = state.beam, state.trellis, state.lineages
    seq, decided = beam.meta[SEQ], beam.meta[DECIDED]
    mask = state.announced.shape[0] - 1
    lineage = state.pool.lineage[slot]
    if not extends:
        beam.meta[SWITCHES] += 1
        count = seq - decided - 1
        node = beam.leaf[beam.meta[HEAD]]
        for back in range(count + 1):
            walk.node[back] = node
            walk.affected[(seq - back) & mask] = 0
            node = trellis.parent[node]
        for back in range(1, count + 1):
            now = lineages.founder[trellis.lineage[walk.node[back]]]
            before = state.announced_founder[(seq - back) & mask]
            if now != before:
                if now > decided:
                    walk.affected[now & mask] = 1
                if before > decided:
                    walk.affected[before & mask] = 1
        _inherit(state, out, walk, count)
        for back in range(count, 0, -1):
            lineage_then = trellis.lineage[walk.node[back]]
            label = lineages.label[lineage_then]
            state.announced_founder[(seq - back) & mask] = lineages.founder[lineage_then]
            if state.announced[(seq - back) & mask] == label:
                continue
            state.announced[(seq - back) & mask] = label
            r = out.meta[REVISIONS]
            out.meta[REVISIONS] = r + 1
            out.revision_by[r] = seq
            out.revision_seq[r] = seq - back
            out.revision_label[r] = label
            out.revision_link[r] = trellis.link[walk.node[back]]
            out.revision_founded[r] = lineages.founder[lineage_then] == seq - back
    if founded:
        mint(state, lineage)
        emit_event(state, out, BORN, slot, lineages.label[lineage], -1, 1)
    state.announced[seq & mask] = lineages.label[lineage]
    state.announced_founder[seq & mask] = lineages.founder[lineage]
    return lineages.label[lineage]
