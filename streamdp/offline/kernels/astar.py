"""Best-first search through a tree of clusterings of the first records.

The store holds the clustering of one state at a time; another one is reached by taking records out up to
the state that both come from, and putting others in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, inlined, kernel
from streamdp.offline.kernels.clusters import add, remove, score
from streamdp.offline.kernels.completion import LOOK, REPLICA, Outlook, complete, weigh
from streamdp.offline.kernels.heap import ANSWER, ENQUEUED, EXPANDED, NODES, QUEUED, Tree, offer, take
from streamdp.offline.kernels.lookahead import predictive, replica
from streamdp.offline.kernels.store import FIRST_SLOT, Store

FOUND, EMPTY_QUEUE, LIMIT, MORE, NO_SLOT, NO_NODE = range(6)
"""Why a search returned: a complete state; none is left; the limit; the budget; for want of room."""

HERE, CLUSTERS = range(2)


class Desk(NamedTuple):
    """The state that the store holds, and working memory; N records, C slots."""

    order: np.ndarray  # int64[N] records in the order they are placed in
    labels: np.ndarray  # int64[N] clusters of those that are placed
    meta: np.ndarray  # int64[2] HERE: the state, and its CLUSTERS
    slots: np.ndarray  # int64[C - 2] those of clusters
    gains: np.ndarray  # float64[C + 1] log H(x | S), then what each choice adds to g
    steps: np.ndarray  # float64[C + 1] what of it is the prior's
    rests: np.ndarray  # float64[C + 1] what may follow
    weights: np.ndarray  # float64[C + 1] scratch
    values: np.ndarray  # float64[C + 1] scratch
    tally: np.ndarray  # int64[N + 2] zeros


def new_desk(order: np.ndarray, capacity: int) -> Desk:
    """No record is placed."""
    n, scratch = len(order), [np.zeros(capacity + 1) for _ in range(5)]
    meta, slots = np.zeros(2, np.int64), np.arange(FIRST_SLOT, capacity)
    return Desk(*[order, np.zeros(n, np.int64), meta, slots, *scratch, np.zeros(n + 2, np.int64)])


@inlined
def _put(store: Store, desk: Desk, place: int, label: int) -> None:
    """Let the next record join a cluster, or found one."""
    add(store, label + FIRST_SLOT, desk.order[place])
    desk.labels[place] = label
    desk.meta[CLUSTERS] = max(desk.meta[CLUSTERS], label + 1)


@inlined
def _take_back(store: Store, desk: Desk, place: int, label: int) -> None:
    """Take the last record out; the cluster it founded was the last too."""
    slot = label + FIRST_SLOT
    remove(store, slot, desk.order[place])
    if store.size[slot] == 0:
        desk.meta[CLUSTERS] -= 1


@inlined
def _travel(store: Store, desk: Desk, tree: Tree, node: int) -> None:
    """Go from the state that the store holds to another."""
    here, there = desk.meta[HERE], node
    while here != there:
        if tree.depth[there] > tree.depth[here]:
            desk.labels[tree.depth[there] - 1] = tree.label[there]
            there = tree.parent[there]
        else:
            _take_back(store, desk, tree.depth[here] - 1, tree.label[here])
            here = tree.parent[here]
    for place in range(tree.depth[here], tree.depth[node]):
        _put(store, desk, place, desk.labels[place])
    desk.meta[HERE] = node


@kernel
def _why_stop(desk: Desk, tree: Tree, limit: int) -> int:
    """What keeps the best state in the queue from being expanded; MORE: nothing."""
    if tree.meta[QUEUED] == 0:
        return EMPTY_QUEUE
    if tree.depth[tree.heap[0]] == desk.order.shape[0]:
        tree.meta[ANSWER] = take(tree, 0)
        return FOUND
    if tree.meta[ENQUEUED] >= limit:
        return LIMIT
    # a state has at most one child for each slot
    if tree.meta[NODES] + desk.slots.shape[0] > tree.heap.shape[0]:
        return NO_NODE
    return MORE


@inlined
def _weigh_children(store: Store, outlook: Outlook, desk: Desk, tree: Tree) -> None:
    """What each choice for the next record adds to g, and what may follow."""
    clusters, depth = desk.meta[CLUSTERS], tree.depth[desk.meta[HERE]]
    i = desk.order[depth]
    score(store, i, desk.slots, clusters, desk.gains)
    desk.gains[clusters] = store.fresh[i]
    weigh(outlook, store.size, desk.labels, depth, clusters, desk.steps)
    complete(outlook, store.size, depth, clusters, desk.tally, desk.steps, desk.rests)
    for k in range(clusters + 1):
        desk.gains[k] += desk.steps[k]
        desk.rests[k] += outlook.ahead[depth + 1]


@inlined
def _look_ahead(store: Store, outlook: Outlook, desk: Desk, tree: Tree) -> None:
    """What the records after the next are expected to add, by the clusters of each child."""
    clusters, depth = desk.meta[CLUSTERS], tree.depth[desk.meta[HERE]]
    if depth + 1 == desk.order.shape[0]:
        return
    for k in range(clusters + 1):
        if not desk.gains[k] > -math.inf:
            continue
        _put(store, desk, depth, k)
        after = desk.meta[CLUSTERS]
        if outlook.meta[LOOK] == REPLICA:
            ahead = replica(store, desk.order, depth + 1, desk.slots, after, desk.weights, desk.values)
        else:
            weigh(outlook, store.size, desk.labels, depth + 1, after, desk.weights)
            ahead = predictive(store, desk.order, depth + 1, desk.slots, after, desk.weights, desk.values)
        desk.rests[k] += ahead
        _take_back(store, desk, depth, k)


@kernel
def _expand(desk: Desk, tree: Tree, bound: int) -> None:
    """Take the best state out of the queue and put in the children that are possible."""
    node = take(tree, 0)
    tree.meta[EXPANDED] += 1
    for k in range(desk.meta[CLUSTERS] + 1):
        g = tree.g[node] + desk.gains[k]
        if g > -math.inf:
            offer(tree, node, k, g, g + desk.rests[k], bound)


@entry
def search(
    store: Store, outlook: Outlook, desk: Desk, tree: Tree, bound: int, limit: int, budget: int
) -> int:
    """Expand the best states until one is complete: it leaves the queue and is the ANSWER.

    No more than ``budget`` states are expanded, and none once ``limit`` have been enqueued. The store holds
    the state HERE.
    """
    for _ in range(budget):
        ended = _why_stop(desk, tree, limit)
        if ended != MORE:
            return ended
        _travel(store, desk, tree, tree.heap[0])
        if desk.meta[CLUSTERS] == desk.slots.shape[0]:
            return NO_SLOT
        _weigh_children(store, outlook, desk, tree)
        _expand(desk, tree, bound)
    return MORE


@entry
def search_by_clusters(
    store: Store, outlook: Outlook, desk: Desk, tree: Tree, bound: int, limit: int, budget: int
) -> int:
    """The same with a look-ahead that depends on the clusters."""
    for _ in range(budget):
        ended = _why_stop(desk, tree, limit)
        if ended != MORE:
            return ended
        _travel(store, desk, tree, tree.heap[0])
        if desk.meta[CLUSTERS] == desk.slots.shape[0]:
            return NO_SLOT
        _weigh_children(store, outlook, desk, tree)
        _look_ahead(store, outlook, desk, tree)
        _expand(desk, tree, bound)
    return MORE
