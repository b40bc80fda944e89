"""Which labels the clusters of a new best hypothesis have.

A cluster whose founder is decided keeps its label for ever. Those of the others are inherited by largest
overlap among the undecided records (ties: the older label, then the older founder); what is left over is
minted.
"""

from __future__ import annotations

from streamdp.beam.data.state import State
from streamdp.beam.data.trellis import Lineages
from streamdp.beam.data.walk import Walk, distinct_pairs, label_of, lineage_of, pack
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
