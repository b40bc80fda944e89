"""Labels: what the outside calls a cluster, and what was told before and no longer holds.

A cluster whose founder is decided keeps its label for ever. When the best hypothesis changes to one
that does not extend the last, the labels of the other clusters are inherited by largest overlap among
the undecided records (ties: the older label, then the older founder); what is left over is minted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.beam.closing import emit_event
from streamdp.beam.pool import (
    DECIDED,
    HEAD,
    LEADS,
    NEXT_LABEL,
    SEQ,
    SLOT_HIGH,
    SWITCHES,
    VACANT,
    WIDTH,
    holds_slot,
)
from streamdp.beam.state import BORN, MERGED, REVISIONS, SPLIT, Output, State
from streamdp.beam.trellis import Lineages
from streamdp.kernels.heap import sort_ascending
from streamdp.kernels.jit import kernel

LINEAGE_BITS = 24
"""A label and a lineage's index share an integer; lineages are far fewer than 2^24."""
LINEAGE_MASK = (1 << LINEAGE_BITS) - 1


class Walk(NamedTuple):
    """Scratch space for a walk over the undecided records, newest first."""

    node: np.ndarray  # int64[U] the head's node of a record
    pair: np.ndarray  # int64[U] announced label and lineage of a record, packed; then the distinct ones
    overlap: np.ndarray  # int64[U] records of each distinct pair
    affected: np.ndarray  # int64[U] by founder: whether its cluster differs from that of the last head
    level_node: np.ndarray  # int64[B]
    level_mass: np.ndarray  # float64[B]


def new_walk(undecided: int, width: int) -> Walk:
    """Scratch space for so many undecided records."""
    node, pair, overlap, affected = (np.zeros(undecided, np.int64) for _ in range(4))
    return Walk(node, pair, overlap, affected, np.zeros(width, np.int64), np.zeros(width))


@kernel
def mint(state: State, lineage: int) -> int:
    """Give a lineage a label that was never used."""
    label = state.beam.meta[NEXT_LABEL]
    state.beam.meta[NEXT_LABEL] = label + 1
    state.lineages.rows[lineage].label = label
    return label


@kernel
def slot_of_head(state: State, lineage: int) -> int:
    """The slot in which the best hypothesis holds a lineage, or -1 (closed and freed)."""
    pool, head = state.pool, state.beam.meta[HEAD]
    for slot in range(pool.meta[SLOT_HIGH]):
        if (
            pool.state[slot] != VACANT
            and pool.slots[slot].lineage == lineage
            and holds_slot(pool, head, slot)
        ):
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
        if beam.meta[LEADS]:
            walk.level_mass[h] = 1.0 if h == beam.meta[HEAD] else 0.0
        else:
            walk.level_mass[h] = np.exp(beam.joint[h] - peak)
        total += walk.level_mass[h]
    node = beam.leaf[beam.meta[HEAD]]
    seq = beam.meta[SEQ]
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


@kernel
def _label_of(pair: int) -> int:
    return pair >> LINEAGE_BITS


@kernel
def _lineage_of(pair: int) -> int:
    return pair & LINEAGE_MASK


@kernel
def _collect_pairs(state: State, walk: Walk, count: int) -> int:
    """The distinct pairs of a label announced and an undecided lineage now, with their overlaps.

    Takes the labels of those lineages away. Returns how many pairs there are.
    """
    beam, trellis, lineages = state.beam, state.trellis, state.lineages
    seq, decided = beam.meta[SEQ], beam.meta[DECIDED]
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
        walk.pair[records] = (state.announced[(seq - back) & mask] << LINEAGE_BITS) | lineage
        records += 1
    sort_ascending(walk.pair, records)
    pairs, i = 0, 0
    while i < records:
        pair, j = walk.pair[i], i
        while j < records and walk.pair[j] == pair:
            j += 1
        walk.pair[pairs] = pair
        walk.overlap[pairs] = j - i
        pairs += 1
        i = j
    return pairs


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
        heir = state.lineages.rows[_lineage_of(walk.pair[a])]
        if heir.label < 0 and not _labelled(state, walk, a, _label_of(walk.pair[a])):
            heir.label = _label_of(walk.pair[a])


@kernel
def _mint_rest(state: State, out: Output, walk: Walk, count: int, pairs: int) -> None:
    """Mint labels for the lineages left without one, in order of founder: they have split off."""
    for back in range(count, 0, -1):  # the walk is newest first
        lineage = state.trellis.lineage[walk.node[back]]
        if state.lineages.rows[lineage].label >= 0:
            continue
        label = mint(state, lineage)
        other, overlap = -1, 0
        for a in range(pairs):
            if _lineage_of(walk.pair[a]) == lineage and walk.overlap[a] > overlap:
                other, overlap = _label_of(walk.pair[a]), walk.overlap[a]
        slot = slot_of_head(state, lineage)
        size = overlap if slot < 0 else state.pool.slots[slot].size
        emit_event(state, out, SPLIT, slot, label, other, size)


@kernel
def _tell_merged(state: State, out: Output, walk: Walk, pairs: int) -> None:
    """Tell of the labels that no lineage has any more."""
    for a in range(pairs):
        label = _label_of(walk.pair[a])
        first = True
        for b in range(a):
            first = first and _label_of(walk.pair[b]) != label
        if first and not _labelled(state, walk, pairs, label):
            heir = state.lineages.rows[_lineage_of(walk.pair[a])].label
            emit_event(state, out, MERGED, -1, label, heir, walk.overlap[a])


@kernel
def _inherit(state: State, out: Output, walk: Walk, count: int) -> None:
    """Relabel the undecided lineages of a new head; ``count`` undecided earlier records."""
    pairs = _collect_pairs(state, walk, count)
    _hand_on(state, walk, pairs)
    _mint_rest(state, out, walk, count, pairs)
    _tell_merged(state, out, walk, pairs)


@kernel
def _older_pair(lineages: Lineages, a: int, b: int) -> bool:
    if _label_of(a) != _label_of(b):
        return _label_of(a) < _label_of(b)
    return lineages.rows[_lineage_of(a)].founder < lineages.rows[_lineage_of(b)].founder


@kernel
def _labelled(state: State, walk: Walk, upto: int, label: int) -> bool:
    """Whether the lineage of one of the first ``upto`` pairs has the label."""
    for a in range(upto):
        if state.lineages.rows[_lineage_of(walk.pair[a])].label == label:
            return True
    return False


@kernel
def _find_affected(state: State, walk: Walk, count: int) -> None:
    """Walk along the new head's history; mark the clusters that are not what the last head's were."""
    seq, decided = state.beam.meta[SEQ], state.beam.meta[DECIDED]
    mask = state.announced.shape[0] - 1
    node = state.beam.leaf[state.beam.meta[HEAD]]
    for back in range(count + 1):
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
    """Tell of the undecided records whose label is another one now, oldest first."""
    seq = state.beam.meta[SEQ]
    mask = state.announced.shape[0] - 1
    for back in range(count, 0, -1):
        node = walk.node[back]
        lineage = state.lineages.rows[state.trellis.lineage[node]]
        state.announced_founder[(seq - back) & mask] = lineage.founder
        if state.announced[(seq - back) & mask] == lineage.label:
            continue
        state.announced[(seq - back) & mask] = lineage.label
        r = out.meta[REVISIONS]
        out.meta[REVISIONS] = r + 1
        out.revisions[r].by = seq
        out.revisions[r].seq = seq - back
        out.revisions[r].label = lineage.label
        out.revisions[r].link = state.trellis.nodes[node].link
        out.revisions[r].founded = lineage.founder == seq - back


@kernel
def announce(state: State, out: Output, walk: Walk, extends: bool, slot: int, founded: bool) -> int:
    """Label the newest record, and revise older ones if the best hypothesis has changed."""
    beam = state.beam
    seq = beam.meta[SEQ]
    mask = state.announced.shape[0] - 1
    if not extends:
        beam.meta[SWITCHES] += 1
        count = seq - beam.meta[DECIDED] - 1
        _find_affected(state, walk, count)
        _inherit(state, out, walk, count)
        _revise(state, out, walk, count)
    lineage = state.pool.slots[slot].lineage
    if founded:
        mint(state, lineage)
        emit_event(state, out, BORN, slot, state.lineages.rows[lineage].label, -1, 1)
    state.announced[seq & mask] = state.lineages.rows[lineage].label
    state.announced_founder[seq & mask] = state.lineages.rows[lineage].founder
    return state.lineages.rows[lineage].label
