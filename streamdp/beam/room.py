"""Making the arrays of a state larger: always by a rule of the state alone, so that two runs that saw
the same records hold the same arrays, however the records came in batches."""

from __future__ import annotations

import numpy as np

from streamdp.beam.due import Due
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import Pool
from streamdp.beam.sizes import Sizes, rehash
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
    Dense,
    State,
)
from streamdp.beam.trellis import Lineages, Trellis


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << max(int(n) - 1, 0).bit_length()


def padded(array: np.ndarray, size: int, fill: float = 0) -> np.ndarray:
    """A copy whose last axis is ``size`` long."""
    larger = np.full((*array.shape[:-1], size), fill, array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger


def _chained(chain: np.ndarray, size: int, free: int) -> tuple[np.ndarray, int]:
    """A free list lengthened: the new places come before the old free ones, in order."""
    old = chain.shape[0]
    larger = padded(chain, size, -1)
    larger[old:] = np.arange(old + 1, size + 1)
    larger[-1] = free
    return larger, old


def _more_slots(state: State, size: int) -> State:
    pool, sizes, due, members, index, dense = (
        state.pool,
        state.sizes,
        state.due,
        state.members,
        state.inverted,
        state.dense,
    )
    chain, free = _chained(pool.next, size, int(pool.meta[0]))
    pool.meta[0] = free
    pool = pool._replace(
        next=chain,
        state=padded(pool.state, size),
        lineage=padded(pool.lineage, size, -1),
        founder=padded(pool.founder, size, -1),
        size=padded(pool.size, size),
        tokens=padded(pool.tokens, size),
        types=padded(pool.types, size),
        weight=padded(pool.weight, size),
        last=padded(pool.last, size, -1),
        first_time=padded(pool.first_time, size),
        last_time=padded(pool.last_time, size),
        column=padded(pool.column, size, -1),
    )
    return state._replace(
        pool=pool,
        sizes=sizes._replace(of=padded(sizes.of, size, -1), place=padded(sizes.place, size, -1)),
        due=Due(due.length, padded(due.heap, size, -1), padded(due.place, size, -1), padded(due.key, size)),
        members=members._replace(
            start=padded(members.start, size),
            head=padded(members.head, size),
            length=padded(members.length, size),
            block=padded(members.block, size, -1),
        ),
        inverted=index._replace(
            own_start=padded(index.own_start, size), own_block=padded(index.own_block, size, -1)
        ),
        dense=Dense(*(padded(array, size) for array in dense)),
    )


def _more_columns(pool: Pool, size: int) -> Pool:
    return pool._replace(slot_of=padded(pool.slot_of, size, -1), holds=padded(pool.holds, size))


def _more_nodes(trellis: Trellis, size: int) -> Trellis:
    chain, free = _chained(trellis.parent, size, int(trellis.meta[1]))
    trellis.meta[1] = free
    child, right, left, lineage = (
        padded(array, size, -1) for array in (trellis.child, trellis.right, trellis.left, trellis.lineage)
    )
    return Trellis(
        trellis.meta,
        chain,
        child,
        right,
        left,
        lineage,
        padded(trellis.seq, size, -1),
        padded(trellis.link, size, -1),
    )


def _more_lineages(lineages: Lineages, size: int) -> Lineages:
    chain, free = _chained(lineages.next, size, int(lineages.meta[0]))
    lineages.meta[0] = free
    return Lineages(
        lineages.meta,
        padded(lineages.founder, size, -1),
        padded(lineages.label, size, -1),
        padded(lineages.refs, size),
        chain,
    )


def _more_classes(sizes: Sizes, size: int) -> Sizes:
    chain, free = _chained(sizes.next, size, int(sizes.meta[0]))
    sizes.meta[0] = free
    larger = sizes._replace(
        tokens=padded(sizes.tokens, size),
        types=padded(sizes.types, size),
        refs=padded(sizes.refs, size),
        next=chain,
        weight=padded(sizes.weight, size),
        top=padded(sizes.top, size),
        agreed=padded(sizes.agreed, size),
        start=padded(sizes.start, size),
        block=padded(sizes.block, size, -1),
        table=np.full(power_of_two(4 * size), -1, np.int32),
    )
    rehash(larger)
    return larger


def _more_announced(state: State, size: int) -> State:
    old = state.announced.shape[0]
    seqs = np.arange(state.beam.meta[0] - old, state.beam.meta[0])
    seqs = seqs[seqs >= 0]
    label, founder = np.zeros(size, np.int64), np.zeros(size, np.int64)
    label[seqs & (size - 1)] = state.announced[seqs & (old - 1)]
    founder[seqs & (size - 1)] = state.announced_founder[seqs & (old - 1)]
    return state._replace(announced=label, announced_founder=founder)


def more_words(index: Index, size: int) -> Index:
    """Room for word ids below ``size``."""
    return index._replace(
        start=padded(index.start, size),
        length=padded(index.length, size),
        block=padded(index.block, size, -1),
        base=padded(index.base, size),
        most=padded(index.most, size),
    )


def make_room(state: State, meta: np.ndarray) -> State:
    """Enlarge what ``meta`` (of an output with status GROW) says is too small, by powers of two."""
    size = {need: power_of_two(int(meta[need])) for need in range(NEED_SLOTS, NEED_LINEAGES + 1)}
    if meta[NEED_SLOTS]:
        state = _more_slots(state, size[NEED_SLOTS])
    if meta[NEED_COLUMNS]:
        state = state._replace(pool=_more_columns(state.pool, size[NEED_COLUMNS]))
    if meta[NEED_NODES]:
        state = state._replace(trellis=_more_nodes(state.trellis, size[NEED_NODES]))
    if meta[NEED_LINEAGES]:
        state = state._replace(lineages=_more_lineages(state.lineages, size[NEED_LINEAGES]))
    if meta[NEED_CLASSES]:
        state = state._replace(sizes=_more_classes(state.sizes, size[NEED_CLASSES]))
    if meta[NEED_HEAP]:
        state = state._replace(sizes=state.sizes._replace(heap=padded(state.sizes.heap, size[NEED_HEAP])))
    if meta[NEED_ANNOUNCED]:
        state = _more_announced(state, size[NEED_ANNOUNCED])
    index = state.inverted
    if meta[NEED_POSTINGS]:
        n = size[NEED_POSTINGS]
        index = index._replace(
            slot=padded(index.slot, n), occurrences=padded(index.occurrences, n), back=padded(index.back, n)
        )
    if meta[NEED_ENTRIES]:
        n = size[NEED_ENTRIES]
        index = index._replace(word=padded(index.word, n), where=padded(index.where, n))
    members: Members = state.members
    if meta[NEED_TIMES]:
        members = members._replace(time=padded(members.time, size[NEED_TIMES]))
    return state._replace(inverted=index, members=members)
