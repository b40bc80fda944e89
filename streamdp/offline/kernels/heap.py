"""A tree of states, and a queue of those among them that still have to be expanded.

The queue gives its best and its worst state alike: in a min-max heap (Atkinson, Sack, Santoro and
Strothotte 1986) nothing below a place of an even level is better than what it holds, and nothing below
one of an odd level is worse.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, grown, ints, made, of, one, reals


class Tree(NamedTuple):
    """States by number, and the heap of their numbers.

    ``counters``: states in use, queued, ever enqueued and expanded, the last answer.
    """

    counters: Annotated[Counters, one("nodes queued enqueued expanded answer", nodes=1, queued=1, enqueued=1)]
    parent: Annotated[np.ndarray, of(np.int32, "nodes")]
    label: Annotated[np.ndarray, of(np.int32, "nodes")]  # cluster of the last record, by founding order
    depth: Annotated[np.ndarray, of(np.int32, "nodes")]  # records that are placed
    born: Annotated[np.ndarray, ints("nodes")]  # how many states had been enqueued before
    g: Annotated[np.ndarray, reals("nodes")]  # score of the records that are placed
    f: Annotated[np.ndarray, reals("nodes")]  # the same with what is expected of the others
    heap: Annotated[np.ndarray, of(np.int32, "nodes")]


def new_tree(g: float, capacity: int) -> Tree:
    """The root alone, enqueued."""
    tree = made(Tree, {"nodes": capacity})
    tree.g[0] = tree.f[0] = g
    return tree


def grown_tree(tree: Tree) -> Tree:
    """The same with twice the room."""
    return grown(tree, "nodes", 2 * len(tree.heap))


@kernel
def _before(tree: Tree, a: int, b: int, best: bool) -> bool:
    """Whether the node at place a is better than that at b; not ``best``: worse.

    The deeper is better where f is equal, and then the older.
    """
    x, y = tree.heap[a], tree.heap[b]
    if tree.f[x] != tree.f[y]:
        return (tree.f[x] > tree.f[y]) == best
    if tree.depth[x] != tree.depth[y]:
        return (tree.depth[x] > tree.depth[y]) == best
    return (tree.born[x] < tree.born[y]) == best


@kernel
def _swap(tree: Tree, a: int, b: int) -> None:
    tree.heap[a], tree.heap[b] = tree.heap[b], tree.heap[a]


@kernel
def _is_even(place: int) -> bool:
    """Whether a place is of an even level."""
    even, above = True, place + 1
    while above > 1:
        above >>= 1
        even = not even
    return even


@kernel
def _rise(tree: Tree, place: int) -> None:
    best = _is_even(place)
    above = (place - 1) // 2
    if place > 0 and _before(tree, above, place, best):
        _swap(tree, above, place)
        place, best = above, not best
    while place > 2 and _before(tree, place, (place - 3) // 4, best):
        _swap(tree, place, (place - 3) // 4)
        place = (place - 3) // 4


@kernel
def _extreme_below(tree: Tree, place: int, best: bool) -> int:
    """The place of the best (or worst) child or grandchild; -1 where there is none."""
    size = tree.counters.queued
    found = -1
    for first, last in ((2 * place + 1, 2 * place + 3), (4 * place + 3, 4 * place + 7)):
        for below in range(first, min(last, size)):
            if found < 0 or _before(tree, below, found, best):
                found = below
    return found


@kernel
def _sink(tree: Tree, place: int) -> None:
    best = _is_even(place)
    while True:
        below = _extreme_below(tree, place, best)
        if below < 0 or not _before(tree, below, place, best):
            return
        _swap(tree, below, place)
        if below < 4 * place + 3:
            return
        between = (below - 1) // 2
        if _before(tree, between, below, best):
            _swap(tree, between, below)
        place = below


@kernel
def take(tree: Tree, place: int) -> int:
    """Remove the node at a place of the queue: 0, the best, or ``worst``."""
    node = tree.heap[place]
    tree.counters.queued -= 1
    last = tree.counters.queued
    tree.heap[place] = tree.heap[last]
    if place < last:
        _sink(tree, place)
    return node


@kernel
def _worst(tree: Tree) -> int:
    """The place of the worst node in a queue that is not empty."""
    size = tree.counters.queued
    if size < 3:
        return size - 1
    return 1 if _before(tree, 1, 2, False) else 2


@kernel
def offer(tree: Tree, parent: int, label: int, g: float, f: float, bound: int) -> None:
    """Enqueue a new state; a queue of ``bound`` states (0: no bound) drops its worst, or refuses it."""
    depth = tree.depth[parent] + 1
    if bound > 0 and tree.counters.queued >= bound:
        place = _worst(tree)
        worst = tree.heap[place]
        if f < tree.f[worst] or (f == tree.f[worst] and depth <= tree.depth[worst]):
            return
        node = take(tree, place)
    else:
        node = tree.counters.nodes
        tree.counters.nodes += 1
    tree.parent[node], tree.label[node], tree.depth[node] = parent, label, depth
    tree.born[node], tree.g[node], tree.f[node] = tree.counters.enqueued, g, f
    tree.counters.enqueued += 1
    place = tree.counters.queued
    tree.heap[place] = node
    tree.counters.queued += 1
    _rise(tree, place)
