"""Best-first search through a tree of clusterings of the first records.

The store holds the clustering of one state at a time; another one is reached by taking records out up to
the state that both come from, and putting others in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.offline.kernels.clusters import add, remove, score
from streamdp.offline.kernels.completion import LOOK, REPLICA, Heuristic, complete, weigh
from streamdp.offline.kernels.heap import ANSWER, ENQUEUED, EXPANDED, NODES, QUEUED, Tree, offer, take
from streamdp.offline.kernels.lookahead import predictive, replica
from streamdp.offline.kernels.store import FIRST_SLOT, Store

FOUND, EMPTY_QUEUE, LIMIT, MORE, NO_SLOT, NO_NODE = range(6)
"""Why a search returned: a complete state; none is left; the limit; the budget; for want of room."""

HERE, CLUSTERS = range(2)


class Workspace(NamedTuple):
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


def new_workspace(order: np.ndarray, capacity: int) -> Workspace:
    """No record is placed."""
    n, scratch = len(order), [np.zeros(capacity + 1) for _ in range(5)]
    meta, slots = np.zeros(2, np.int64), np.arange(FIRST_SLOT, capacity)
    return Workspace(*[order, np.zeros(n, np.int64), meta, slots, *scratch, np.zeros(n + 2, np.int64)])


@kernel
def _put(store: Store, workspace: Workspace, place: int, label: int) -> None:
    """Let the next record join a cluster, or found one."""
    add(store, label + FIRST_SLOT, workspace.order[place])
    workspace.labels[place] = label
    workspace.meta[CLUSTERS] = max(workspace.meta[CLUSTERS], label + 1)


@kernel
def _take_back(store: Store, workspace: Workspace, place: int, label: int) -> None:
    """Take the last record out; the cluster it founded was the last too."""
    slot = label + FIRST_SLOT
    remove(store, slot, workspace.order[place])
    if store.size[slot] == 0:
        workspace.meta[CLUSTERS] -= 1


@kernel
def _travel(store: Store, workspace: Workspace, tree: Tree, node: int) -> None:
    """Go from the state that the store holds to another."""
    here, there = workspace.meta[HERE], node
    while here != there:
        if tree.depth[there] > tree.depth[here]:
            workspace.labels[tree.depth[there] - 1] = tree.label[there]
            there = tree.parent[there]
        else:
            _take_back(store, workspace, tree.depth[here] - 1, tree.label[here])
            here = tree.parent[here]
    for place in range(tree.depth[here], tree.depth[node]):
        _put(store, workspace, place, workspace.labels[place])
    workspace.meta[HERE] = node


@kernel
def _why_stop(workspace: Workspace, tree: Tree, limit: int) -> int:
    """What keeps the best state in the queue from being expanded; MORE: nothing."""
    if tree.meta[QUEUED] == 0:
        return EMPTY_QUEUE
    if tree.depth[tree.heap[0]] == workspace.order.shape[0]:
        tree.meta[ANSWER] = take(tree, 0)
        return FOUND
    if tree.meta[ENQUEUED] >= limit:
        return LIMIT
    # a state has at most one child for each slot
    if tree.meta[NODES] + workspace.slots.shape[0] > tree.heap.shape[0]:
        return NO_NODE
    return MORE


@kernel
def _weigh_children(store: Store, heuristic: Heuristic, workspace: Workspace, tree: Tree) -> None:
    """What each choice for the next record adds to g, and what may follow."""
    clusters, depth = workspace.meta[CLUSTERS], tree.depth[workspace.meta[HERE]]
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
    clusters, depth = workspace.meta[CLUSTERS], tree.depth[workspace.meta[HERE]]
    if depth + 1 == workspace.order.shape[0]:
        return
    for k in range(clusters + 1):
        if not workspace.gains[k] > -math.inf:
            continue
        _put(store, workspace, depth, k)
        after = workspace.meta[CLUSTERS]
        if heuristic.meta[LOOK] == REPLICA:
            ahead = replica(
                store, workspace.order, depth + 1, workspace.slots, after, workspace.weights, workspace.values
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
    tree.meta[EXPANDED] += 1
    for k in range(workspace.meta[CLUSTERS] + 1):
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
        if workspace.meta[CLUSTERS] == workspace.slots.shape[0]:
            return NO_SLOT
        _weigh_children(store, heuristic, workspace, tree)
        _expand(workspace, tree, bound)
    return MORE


@entry
def search_by_clusters(
    store: Store, heuristic: Heuristic, workspace: Workspace, tree: Tree, bound: int, limit: int, budget: int
) -> int:
    """The same with a look-ahead that depends on the clusters."""
    for _ in range(budget):
        ended = _why_stop(workspace, tree, limit)
        if ended != MORE:
            return ended
        _travel(store, workspace, tree, tree.heap[0])
        if workspace.meta[CLUSTERS] == workspace.slots.shape[0]:
            return NO_SLOT
        _weigh_children(store, heuristic, workspace, tree)
        _look_ahead(store, heuristic, workspace, tree)
        _expand(workspace, tree, bound)
    return MORE
