"""Best-first search through a tree of clusterings of the first records.

The store holds the clustering of one state at a time; another one is reached by taking records out up to
the state that both come from, and putting others in.

States that still have to be expanded are in a queue, which gives its best and its worst state alike: in a
min-max heap (Atkinson, Sack, Santoro and Strothotte 1986) nothing below a place of an even level is better
than what it holds, and nothing below one of an odd level is worse.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import Counters, ints, made, of, one, reals
from streamdp.offline.kernels.completion import REPLICA, SUMS, Heuristic, complete, predictive, replica, weigh
from streamdp.offline.kernels.store import FIRST_SLOT, Store, add, remove, score


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


FOUND, EMPTY_QUEUE, LIMIT, MORE, NO_SLOT, NO_NODE = range(6)
"""Why a search returned: a complete state; none is left; the limit; the budget; for want of room."""


class Workspace(NamedTuple):
    """The state that the store holds, and working memory; N records, C slots."""

    order: np.ndarray  # int64[N] records in the order they are placed in
    slots: np.ndarray  # int64[C - 2] those of clusters
    labels: Annotated[np.ndarray, ints("records")]  # clusters of those that are placed
    counters: Annotated[Counters, one("here clusters")]  # the state, and its clusters
    gains: Annotated[np.ndarray, reals("choices")]  # log H(x | S), then what each choice adds to g
    steps: Annotated[np.ndarray, reals("choices")]  # what of it is the prior's
    rests: Annotated[np.ndarray, reals("choices")]  # what may follow
    weights: Annotated[np.ndarray, reals("choices")]  # scratch
    values: Annotated[np.ndarray, reals("choices")]  # scratch
    tally: Annotated[np.ndarray, ints("tally")]  # N + 2 zeros


def new_workspace(order: np.ndarray, capacity: int) -> Workspace:
    """No record is placed."""
    sizes = {"records": len(order), "choices": capacity + 1, "tally": len(order) + 2}
    return made(Workspace, sizes, order=order, slots=np.arange(FIRST_SLOT, capacity))


@kernel
def _put(store: Store, workspace: Workspace, place: int, label: int) -> None:
    """Let the next record join a cluster, or found one."""
    add(store, label + FIRST_SLOT, workspace.order[place])
    workspace.labels[place] = label
    workspace.counters.clusters = max(workspace.counters.clusters, label + 1)


@kernel
def _take_back(store: Store, workspace: Workspace, place: int, label: int) -> None:
    """Take the last record out; the cluster it founded was the last too."""
    slot = label + FIRST_SLOT
    remove(store, slot, workspace.order[place])
    if store.size[slot] == 0:
        workspace.counters.clusters -= 1


@kernel
def _travel(store: Store, workspace: Workspace, tree: Tree, node: int) -> None:
    """Go from the state that the store holds to another."""
    here, there = workspace.counters.here, node
    while here != there:
        if tree.depth[there] > tree.depth[here]:
            workspace.labels[tree.depth[there] - 1] = tree.label[there]
            there = tree.parent[there]
        else:
            _take_back(store, workspace, tree.depth[here] - 1, tree.label[here])
            here = tree.parent[here]
    for place in range(tree.depth[here], tree.depth[node]):
        _put(store, workspace, place, workspace.labels[place])
    workspace.counters.here = node


@kernel
def _why_stop(workspace: Workspace, tree: Tree, limit: int) -> int:
    """What keeps the best state in the queue from being expanded; MORE: nothing."""
    if tree.counters.queued == 0:
        return EMPTY_QUEUE
    if tree.depth[tree.heap[0]] == workspace.order.shape[0]:
        tree.counters.answer = take(tree, 0)
        return FOUND
    if tree.counters.enqueued >= limit:
        return LIMIT
    # a state has at most one child for each slot
    if tree.counters.nodes + workspace.slots.shape[0] > tree.heap.shape[0]:
        return NO_NODE
    return MORE


@kernel
def _weigh_children(store: Store, heuristic: Heuristic, workspace: Workspace, tree: Tree) -> None:
    """What each choice for the next record adds to g, and what may follow."""
    clusters, depth = workspace.counters.clusters, tree.depth[workspace.counters.here]
    i = workspace.order[depth]
    score(store, i, workspace.slots, clusters, workspace.gains)
    workspace.gains[clusters] = store.fresh[i]
    weigh(heuristic, store.size, workspace.labels, depth, clusters, workspace.steps)
    complete(heuristic, store.size, depth, clusters, workspace.tally, workspace.steps, workspace.rests)
    for k in range(clusters + 1):
        workspace.gains[k] += workspace.steps[k]
        workspace.rests[k] += heuristic.ahead[depth + 1]


@kernel
def _look_ahead(store: Store, heuristic: Heuristic, workspace: Workspace, tree: Tree) -> None:
    """What the records after the next are expected to add, by the clusters of each child."""
    clusters, depth = workspace.counters.clusters, tree.depth[workspace.counters.here]
    if depth + 1 == workspace.order.shape[0]:
        return
    for k in range(clusters + 1):
        if not workspace.gains[k] > -math.inf:
            continue
        _put(store, workspace, depth, k)
        after = workspace.counters.clusters
        if heuristic.look == REPLICA:
            ahead = replica(
                store, workspace.order, depth + 1, workspace.slots, after, heuristic.length, workspace.values
            )
        else:
            weigh(heuristic, store.size, workspace.labels, depth + 1, after, workspace.weights)
            ahead = predictive(
                store, workspace.order, depth + 1, workspace.slots, after, workspace.weights, workspace.values
            )
        workspace.rests[k] += ahead
        _take_back(store, workspace, depth, k)


@kernel
def _expand(workspace: Workspace, tree: Tree, bound: int) -> None:
    """Take the best state out of the queue and put in the children that are possible."""
    node = take(tree, 0)
    tree.counters.expanded += 1
    for k in range(workspace.counters.clusters + 1):
        g = tree.g[node] + workspace.gains[k]
        if g > -math.inf:
            offer(tree, node, k, g, g + workspace.rests[k], bound)


@entry
def search(
    store: Store, heuristic: Heuristic, workspace: Workspace, tree: Tree, bound: int, limit: int, budget: int
) -> int:
    """Expand the best states until one is complete: it leaves the queue and is the ANSWER.

    No more than ``budget`` states are expanded, and none once ``limit`` have been enqueued. The store holds
    the state HERE.
    """
    for _ in range(budget):
        ended = _why_stop(workspace, tree, limit)
        if ended != MORE:
            return ended
        _travel(store, workspace, tree, tree.heap[0])
        if workspace.counters.clusters == workspace.slots.shape[0]:
            return NO_SLOT
        _weigh_children(store, heuristic, workspace, tree)
        if heuristic.look != SUMS:
            _look_ahead(store, heuristic, workspace, tree)
        _expand(workspace, tree, bound)
    return MORE
