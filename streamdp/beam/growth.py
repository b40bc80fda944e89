"""Making the arrays of a state larger: always by a rule of the state alone, so that two runs that saw
the same records hold the same arrays, however the records came in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamdp.beam.expiry import Expiry
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import SEQ, SLOT_FREE, Pool
from streamdp.beam.sizes import FREE, Sizes, rehash
from streamdp.beam.state import (
    NEED_ANNOUNCED,
    NEED_CLASSES,
    NEED_COLUMNS,
    NEED_ENTRIES,
    NEED_HEAP,
    NEED_LINEAGES,
    NEED_NODES,
    NEED_POSTINGS,
    NEED_SLOTS,
    NEED_TIMES,
    State,
)
from streamdp.beam.trellis import LINEAGE_BITS, LINEAGES_FREE, NODE_FREE, Lineages, Trellis
from streamdp.beam.vectors import VectorClusters
from streamdp.beam.words import WordClusters
from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.rows import longer, longer_chain, longer_rows, power_of_two, taller
from streamdp.likelihoods.categorical import UNKNOWN, FieldsLearned

MOST_LINEAGES = 1 << LINEAGE_BITS
"""Clusters of all hypotheses and of the undecided records, as far as founders differ, that can be named."""


def _pool_slots(pool: Pool, size: int) -> Pool:
    old = pool.slots.shape[0]
    slots = longer_rows(pool.slots, size, lineage=-1, last=-1)
    pool.meta[SLOT_FREE] = longer_chain(slots["next"], old, int(pool.meta[SLOT_FREE]))
    return pool._replace(
        slots=slots,
        state=longer(pool.state, size),
        founder=longer(pool.founder, size, -1),
        weight=longer(pool.weight, size),
        column=longer(pool.column, size, -1),
    )


def _word_slots(clusters: WordClusters, size: int) -> WordClusters:
    index, sizes = clusters.inverted, clusters.sizes
    return clusters._replace(
        sizes=sizes._replace(of=longer(sizes.of, size, -1), place=longer(sizes.place, size, -1)),
        inverted=index._replace(
            own=longer_rows(index.own, size, block=-1),
            tokens=longer(index.tokens, size),
            types=longer(index.types, size),
        ),
    )


def _slots(state: State, size: int) -> State:
    expiry, clusters = state.expiry, state.clusters
    if isinstance(clusters, VectorClusters):
        block, coarse = taller(clusters.block, size), taller(clusters.coarse, size)
        clusters = clusters._replace(block=block, coarse=coarse)
    else:
        clusters = _word_slots(clusters, size)
    return state._replace(
        pool=_pool_slots(state.pool, size),
        clusters=clusters,
        expiry=Expiry(
            expiry.length,
            longer(expiry.heap, size, -1),
            longer(expiry.place, size, -1),
            longer(expiry.key, size),
        ),
        members=state.members._replace(queues=longer_rows(state.members.queues, size, block=-1)),
    )


def _columns(state: State, size: int) -> State:
    pool = state.pool
    slot_of, holds = longer(pool.slot_of, size, -1), longer(pool.holds, size)
    return state._replace(pool=pool._replace(slot_of=slot_of, holds=holds))


def _nodes(state: State, size: int) -> State:
    meta, old = state.trellis.meta, state.trellis.nodes
    parent, lineage = longer(state.trellis.parent, size), longer(state.trellis.lineage, size, -1)
    meta[NODE_FREE] = longer_chain(parent, old.shape[0], int(meta[NODE_FREE]))
    nodes = longer_rows(old, size, child=-1, right=-1, left=-1, seq=-1, link=-1)
    return state._replace(trellis=Trellis(meta, parent, lineage, nodes))


def _lineages(state: State, size: int) -> State:
    if size > MOST_LINEAGES:
        raise StreamdpError(
            f"more than {MOST_LINEAGES:,} clusters at a time: bound them with retire_after or max_clusters",
            Exit.OUT_OF_MEMORY,
        )
    meta, old = state.lineages.meta, state.lineages.rows
    rows = longer_rows(old, size, founder=-1, label=-1)
    meta[LINEAGES_FREE] = longer_chain(rows["next"], old.shape[0], int(meta[LINEAGES_FREE]))
    return state._replace(lineages=Lineages(meta, rows))


def _announced(state: State, size: int) -> State:
    old = state.announced.shape[0]
    seqs = np.arange(state.beam.meta[SEQ] - old, state.beam.meta[SEQ])
    seqs = seqs[seqs >= 0]
    label, founder = np.zeros(size, np.int64), np.zeros(size, np.int64)
    label[seqs & (size - 1)] = state.announced[seqs & (old - 1)]
    founder[seqs & (size - 1)] = state.announced_founder[seqs & (old - 1)]
    return state._replace(announced=label, announced_founder=founder)


def _times(state: State, size: int) -> State:
    members: Members = state.members
    return state._replace(members=members._replace(time=longer(members.time, size)))


def _classes(sizes: Sizes, size: int) -> Sizes:
    old = sizes.classes.shape[0]
    classes = longer_rows(sizes.classes, size, block=-1)
    sizes.meta[FREE] = longer_chain(classes["next"], old, int(sizes.meta[FREE]))
    larger = sizes._replace(
        classes=classes,
        tokens=longer(sizes.tokens, size),
        types=longer(sizes.types, size),
        weight=longer(sizes.weight, size),
        top=longer(sizes.top, size),
        agreed=longer(sizes.agreed, size),
        table=np.full(power_of_two(4 * size), -1, np.int64),
    )
    rehash(larger)
    return larger


def _heap(sizes: Sizes, size: int) -> Sizes:
    return sizes._replace(heap=longer(sizes.heap, size))


def _postings(index: Index, size: int) -> Index:
    payload = {name: longer(getattr(index, name), size) for name in ("slot", "occurrences", "back")}
    return index._replace(**payload)


def _entries(index: Index, size: int) -> Index:
    return index._replace(word=longer(index.word, size), where=longer(index.where, size))


def more_words(clusters: WordClusters, size: int) -> WordClusters:
    """Room for word ids below ``size``."""
    learned: Any = clusters.learned
    more = {"counts": longer(learned.counts, size)}
    if isinstance(learned, FieldsLearned):
        more["field"] = longer(learned.field, size, UNKNOWN)
        more["values"] = longer(learned.values, size)
    return clusters._replace(
        inverted=clusters.inverted._replace(lists=longer_rows(clusters.inverted.lists, size, block=-1)),
        learned=learned._replace(**more),
    )


_OF_STATE: dict[int, Callable[[State, int], State]] = {
    NEED_SLOTS: _slots,
    NEED_COLUMNS: _columns,
    NEED_NODES: _nodes,
    NEED_LINEAGES: _lineages,
    NEED_ANNOUNCED: _announced,
    NEED_TIMES: _times,
}
_OF_WORDS: dict[int, tuple[str, Callable[[Any, int], Any]]] = {
    NEED_CLASSES: ("sizes", _classes),
    NEED_HEAP: ("sizes", _heap),
    NEED_POSTINGS: ("inverted", _postings),
    NEED_ENTRIES: ("inverted", _entries),
}


def make_room(state: State, meta: np.ndarray) -> State:
    """Enlarge what ``meta`` (of an output with status GROW) says is too small, by powers of two."""
    for need, grow in _OF_STATE.items():
        if meta[need]:
            state = grow(state, power_of_two(int(meta[need])))
    for need, (part, grow_part) in _OF_WORDS.items():
        if meta[need]:
            clusters: WordClusters = state.clusters
            larger = grow_part(getattr(clusters, part), power_of_two(int(meta[need])))
            state = state._replace(clusters=clusters._replace(**{part: larger}))
    return state
