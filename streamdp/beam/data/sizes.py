"""Clusters grouped by what their score depends on when a record shares no word with them.

Under the sparse families that is the number of tokens n and the number of distinct words T alone, and the
number of records where these have fields, so one evaluation serves all clusters of a *size class*. A class
knows the summed prior weight of those of its clusters that every hypothesis holds, and keeps them in a
max-heap by weight (older founder first among equals), so that neither the evidence nor the best candidates
need a visit to every cluster.

Class 0 is the empty cluster (n = T = 0): what founding a new one scores. Vectors alone have no other.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.beam.data.pool import Pool
from streamdp.kernels.blocks import HEADER, append_room, drop_list
from streamdp.kernels.hashing import hash_of, put, take
from streamdp.kernels.heap import before, sift, swap
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import Counters, grown, ints, made, one, reals, row_type, rows

SIZE_CLASS = row_type("refs next start block")
"""Pool slots of the class, contested ones too; next free one; offset of the heap in the arena, and its
block's size index, -1 for none."""


class Sizes(NamedTuple):
    """Size classes, dense enough for vector loops over ``0 .. counters.high - 1``.

    ``counters``: the first free class, one past the highest in use, classes in use.
    """

    counters: Annotated[Counters, one("free high used")]
    classes: Annotated[np.ndarray, rows(SIZE_CLASS, "classes", chain="next", block=-1)]
    tokens: Annotated[np.ndarray, reals("classes")]  # n
    types: Annotated[np.ndarray, reals("classes")]  # T
    records: Annotated[np.ndarray, reals("classes")]  # n_k where records have fields, else 0
    weight: Annotated[np.ndarray, reals("classes")]  # summed stored weight of the agreed clusters
    top: Annotated[np.ndarray, reals("classes")]  # weight at the head of the heap
    agreed: Annotated[np.ndarray, ints("classes")]  # clusters that all hypotheses hold
    table: Annotated[np.ndarray, ints("table", fill=-1)]  # open addressing by (n, T, n_k)
    header: Annotated[np.ndarray, HEADER]  # of the arena of the heaps
    heap: Annotated[np.ndarray, ints("heap")]
    of: Annotated[np.ndarray, ints("slots", fill=-1)]  # class of a slot, -1 for none
    place: Annotated[np.ndarray, ints("slots", fill=-1)]  # index in the heap of its class, -1 when contested


def new_sizes(classes: int, slots: int, heap: int) -> Sizes:
    """Only class 0."""
    sizes = made(Sizes, {"classes": classes, "slots": slots, "heap": heap, "table": 4 * classes})
    sizes.counters.free = sizes.counters.high = sizes.counters.used = 1
    sizes.classes["refs"][0], sizes.classes["next"][0] = 1, -1
    return sizes


def more_classes(sizes: Sizes, size: int) -> Sizes:
    """Room for more classes: their table is made anew."""
    larger = grown(sizes, "classes", size)._replace(table=np.full(4 * size, -1, np.int64))
    rehash(larger)
    return larger


@kernel
def _code(tokens: int, types: int, records: int) -> np.int64:
    mixed = np.int64(tokens) * 1000003 + np.int64(types) * 7919 + np.int64(records) * 104729
    return mixed ^ (mixed >> 15)


@hash_of.of(Sizes)
def _hash_of(sizes: Sizes, c: int) -> np.int64:
    return _code(sizes.tokens[c], sizes.types[c], sizes.records[c])


@kernel
def _class_of(sizes: Sizes, tokens: int, types: int, records: int) -> int:
    """Find or make the class (tokens, types, records)."""
    mask = sizes.table.shape[0] - 1
    i = _code(tokens, types, records) & mask
    while sizes.table[i] >= 0:
        c = int(sizes.table[i])
        if sizes.tokens[c] == tokens and sizes.types[c] == types and sizes.records[c] == records:
            return c
        i = (i + 1) & mask
    c = sizes.counters.free
    sizes.counters.free = sizes.classes[c].next
    sizes.counters.used += 1
    if c >= sizes.counters.high:
        sizes.counters.high = c + 1
    sizes.table[i] = c
    sizes.tokens[c] = tokens
    sizes.types[c] = types
    sizes.records[c] = records
    sizes.classes[c].refs = 0
    sizes.weight[c] = 0.0
    sizes.top[c] = 0.0
    sizes.agreed[c] = 0
    return c


@kernel
def _free_class(sizes: Sizes, c: int) -> None:
    take(sizes, c)
    drop_list(sizes.header, sizes.heap, sizes.classes, c)
    sizes.weight[c] = 0.0
    sizes.top[c] = 0.0
    sizes.classes[c].next = sizes.counters.free
    sizes.counters.free = c
    sizes.counters.used -= 1
    high = sizes.counters.high
    while high > 1 and sizes.classes[high - 1].refs == 0:
        high -= 1
    sizes.counters.high = high


class ClassHeap(NamedTuple):
    """The agreed clusters of one size class, the heaviest first, the older of two as heavy."""

    slots: np.ndarray
    place: np.ndarray
    weight: np.ndarray
    founder: np.ndarray


@before.of(ClassHeap)
def _heavier(heap: ClassHeap, a: int, b: int) -> bool:
    x, y = heap.slots[a], heap.slots[b]
    if heap.weight[x] != heap.weight[y]:
        return heap.weight[x] > heap.weight[y]
    return heap.founder[x] < heap.founder[y]


@swap.of(ClassHeap)
def _swap(heap: ClassHeap, a: int, b: int) -> None:
    x, y = heap.slots[a], heap.slots[b]
    heap.slots[a], heap.slots[b] = y, x
    heap.place[x], heap.place[y] = b, a


@kernel
def _sift(sizes: Sizes, pool: Pool, c: int, i: int) -> None:
    """Put what is at a place of a class's heap where it belongs."""
    start, n = sizes.classes[c].start, sizes.agreed[c]
    heap = ClassHeap(sizes.heap[start : start + n], sizes.place, pool.weight, pool.founder)
    sift(heap, i, n)
    sizes.top[c] = pool.weight[sizes.heap[start]]


@kernel
def agree(sizes: Sizes, pool: Pool, slot: int) -> None:
    """Every hypothesis holds the slot from now on: count it in its class."""
    c = sizes.of[slot]
    if c < 0:
        return
    n = sizes.agreed[c]
    sizes.heap[append_room(sizes.header, (sizes.heap,), sizes.classes, c, n)] = slot
    sizes.agreed[c] = n + 1
    sizes.weight[c] += pool.weight[slot]
    sizes.place[slot] = n
    _sift(sizes, pool, c, n)


@kernel
def contest(sizes: Sizes, pool: Pool, slot: int) -> None:
    """Not every hypothesis holds the slot any more: take it out of its class's sums."""
    c = sizes.of[slot]
    if c < 0 or sizes.place[slot] < 0:
        return
    i = sizes.place[slot]
    sizes.place[slot] = -1
    last = sizes.agreed[c] - 1
    sizes.agreed[c] = last
    base = sizes.classes[c].start
    moved = sizes.heap[base + last]
    if last == 0:
        sizes.weight[c] = 0.0
        sizes.top[c] = 0.0
        return
    sizes.weight[c] -= pool.weight[slot]
    if i != last:
        sizes.heap[base + i] = moved
        sizes.place[moved] = i
        _sift(sizes, pool, c, i)
    sizes.top[c] = pool.weight[sizes.heap[base]]


@kernel
def leave_class(sizes: Sizes, pool: Pool, slot: int) -> None:
    """Take a slot out of its class altogether."""
    c = sizes.of[slot]
    if c < 0:
        return
    contest(sizes, pool, slot)
    sizes.of[slot] = -1
    sizes.classes[c].refs -= 1
    if sizes.classes[c].refs == 0:
        _free_class(sizes, c)


@kernel
def join_class(sizes: Sizes, slot: int, tokens: int, types: int, records: int = 0) -> None:
    """Put a (contested) slot into the class of its size."""
    c = _class_of(sizes, tokens, types, records)
    sizes.of[slot] = c
    sizes.classes[c].refs += 1
    sizes.place[slot] = -1


@kernel
def reweigh(sizes: Sizes, pool: Pool, slot: int, change: float) -> None:
    """An agreed slot's stored weight has grown by ``change`` (which is in ``pool.weight`` already)."""
    c = sizes.of[slot]
    if c < 0 or sizes.place[slot] < 0:
        return
    sizes.weight[c] += change
    _sift(sizes, pool, c, sizes.place[slot])


@kernel
def rescale(sizes: Sizes, factor: float) -> None:
    """All stored weights are multiplied."""
    for c in range(sizes.weight.shape[0]):
        sizes.weight[c] *= factor
        sizes.top[c] *= factor


@entry
def rehash(sizes: Sizes) -> None:
    """Enter all classes into an empty table, in order."""
    for c in range(sizes.counters.high):
        if c == 0 or sizes.classes[c].refs > 0:
            put(sizes, c)
