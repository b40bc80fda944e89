"""The back-pointers from which any hypothesis' history is read.

A node is one record's assignment in one or more hypotheses; the root is the last assignment that
all of them share. Nodes with children are linked in both directions, so that the root can advance,
and dissenters can be dropped, without walking the paths of all hypotheses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel

NODE_ROOT, NODE_FREE, NODE_USED = 0, 1, 2
FAMILY_FREE, FAMILY_USED = 0, 1


class Trellis(NamedTuple):
    """``meta`` holds the root, the head of the free list and the count of nodes in use."""

    meta: np.ndarray  # int64[3]
    parent: np.ndarray  # int32[N]; of a free node: the next free one
    child: np.ndarray  # int32[N] first child or -1
    right: np.ndarray  # int32[N] next sibling or -1
    left: np.ndarray  # int32[N] previous sibling or -1
    lineage: np.ndarray  # int32[N]
    seq: np.ndarray  # int64[N]
    link: np.ndarray  # int64[N] latest earlier member of the same cluster, or -1


class Lineages(NamedTuple):
    """What clusters with one founder share: the founder, the announced label and who refers to them."""

    meta: np.ndarray  # int64[2]
    founder: np.ndarray  # int64[L]
    label: np.ndarray  # int64[L] -1 while never announced
    refs: np.ndarray  # int32[L]
    next: np.ndarray  # int32[L]


def free_chain(start: int, stop: int) -> np.ndarray:
    """Next-pointers that chain ``start .. stop - 1`` into a free list."""
    chain = np.arange(start + 1, stop + 1, dtype=np.int32)
    chain[-1] = -1
    return chain


def new_trellis(nodes: int) -> Trellis:
    """A trellis that holds nothing but its root, which stands for the time before the first record."""
    minus = np.full(nodes, -1, np.int32)
    parent = np.concatenate([np.full(1, -1, np.int32), free_chain(1, nodes)])
    seq = np.full(nodes, -1, np.int64)
    return Trellis(
        np.array([0, 1, 1], np.int64),
        parent,
        minus.copy(),
        minus.copy(),
        minus.copy(),
        minus.copy(),
        seq,
        seq.copy(),
    )


def new_lineages(count: int) -> Lineages:
    """No lineage yet."""
    return Lineages(
        np.zeros(2, np.int64),
        np.full(count, -1, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int32),
        free_chain(0, count),
    )


@kernel
def new_lineage(lineages: Lineages, founder: int) -> int:
    """A lineage for the cluster that record ``founder`` founds; nobody refers to it yet."""
    i = lineages.meta[FAMILY_FREE]
    lineages.meta[FAMILY_FREE] = lineages.next[i]
    lineages.meta[FAMILY_USED] += 1
    lineages.founder[i] = founder
    lineages.label[i] = -1
    lineages.refs[i] = 0
    return i


@kernel
def drop_lineage(lineages: Lineages, i: int) -> None:
    """One referrer less; the last one frees the lineage."""
    lineages.refs[i] -= 1
    if lineages.refs[i] == 0:
        lineages.next[i] = lineages.meta[FAMILY_FREE]
        lineages.meta[FAMILY_FREE] = i
        lineages.meta[FAMILY_USED] -= 1


@kernel
def add_node(trellis: Trellis, lineages: Lineages, parent: int, lineage: int, seq: int, link: int) -> int:
    """A new first child of ``parent``."""
    node = trellis.meta[NODE_FREE]
    trellis.meta[NODE_FREE] = trellis.parent[node]
    trellis.meta[NODE_USED] += 1
    first = trellis.child[parent]
    trellis.parent[node] = parent
    trellis.child[node] = -1
    trellis.right[node] = first
    trellis.left[node] = -1
    if first >= 0:
        trellis.left[first] = node
    trellis.child[parent] = node
    trellis.lineage[node] = lineage
    trellis.seq[node] = seq
    trellis.link[node] = link
    lineages.refs[lineage] += 1
    return node


@kernel
def _free_node(trellis: Trellis, lineages: Lineages, node: int) -> None:
    if trellis.lineage[node] >= 0:
        drop_lineage(lineages, trellis.lineage[node])
    trellis.lineage[node] = -1
    trellis.parent[node] = trellis.meta[NODE_FREE]
    trellis.meta[NODE_FREE] = node
    trellis.meta[NODE_USED] -= 1


@kernel
def prune(trellis: Trellis, lineages: Lineages, node: int) -> None:
    """Free a childless node, and every ancestor that it leaves childless."""
    root = trellis.meta[NODE_ROOT]
    while node != root and trellis.child[node] < 0:
        parent = trellis.parent[node]
        before, after = trellis.left[node], trellis.right[node]
        if before >= 0:
            trellis.right[before] = after
        else:
            trellis.child[parent] = after
        if after >= 0:
            trellis.left[after] = before
        _free_node(trellis, lineages, node)
        node = parent


@kernel
def advance_root(trellis: Trellis, lineages: Lineages) -> int:
    """Move the root down while it has one child; return the record it stands at."""
    root = trellis.meta[NODE_ROOT]
    while True:
        child = trellis.child[root]
        if child < 0 or trellis.right[child] >= 0:
            break
        _free_node(trellis, lineages, root)
        trellis.parent[child] = -1
        root = child
    trellis.meta[NODE_ROOT] = root
    return trellis.seq[root]


@kernel
def branch_of(trellis: Trellis, node: int) -> int:
    """The child of the root that ``node`` descends from."""
    root = trellis.meta[NODE_ROOT]
    while trellis.parent[node] != root:
        node = trellis.parent[node]
    return node


@kernel
def mark_leaves(trellis: Trellis, top: int, leaf: np.ndarray, width: int, marked: np.ndarray) -> None:
    """Set ``marked[h]`` for every hypothesis whose ``leaf[h]`` is ``top`` or lies below it."""
    node = top
    while True:
        if trellis.child[node] >= 0:
            node = trellis.child[node]
            continue
        for h in range(width):
            if leaf[h] == node:
                marked[h] = 1
                break
        while node != top and trellis.right[node] < 0:
            node = trellis.parent[node]
        if node == top:
            return
        node = trellis.right[node]
