"""The back-pointers from which any hypothesis' history is read.

A node is one record's assignment in one or more hypotheses; the root is the last assignment that
all of them share. Nodes with children are linked in both directions, so that the root can advance,
and dissenters can be dropped, without walking the paths of all hypotheses.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, made, one, row_type, rows

LINEAGE_BITS = 24
"""A label and the index of a lineage share an integer (``walk.pack``).

Of 63 bits the lineage has so many: ``make_room`` refuses to hold more. The other 39 are the label's: it
would overflow at the 5.5 * 10^11th cluster ever told of, after ten months of 20,000 *new* clusters a second.
"""

NODE = row_type("child right left seq link")
"""First child, next and previous sibling, record, the latest earlier member of the record's cluster; -1 for
none. Parents and lineages, by which whole histories are walked, stand apart."""


class Trellis(NamedTuple):
    """``counters`` holds the root, the first free node and the number of nodes in use."""

    counters: Annotated[Counters, one("root free used")]
    parent: Annotated[np.ndarray, ints("nodes", chain="")]
    lineage: Annotated[np.ndarray, ints("nodes", fill=-1)]  # -1 of the root before the first record
    nodes: Annotated[np.ndarray, rows(NODE, "nodes", child=-1, right=-1, left=-1, seq=-1, link=-1)]


LINEAGE = row_type("founder label refs next")
"""Founder, label (-1 while never announced), how many refer to it, the next free one."""


class Lineages(NamedTuple):
    """What clusters with one founder share: the founder, the announced label and who refers to them."""

    counters: Annotated[Counters, one("free used")]
    rows: Annotated[np.ndarray, rows(LINEAGE, "lineages", chain="next", founder=-1, label=-1)]


def new_trellis(nodes: int) -> Trellis:
    """A trellis that holds nothing but its root, which stands for the time before the first record."""
    trellis = made(Trellis, {"nodes": nodes})
    trellis.counters.free, trellis.counters.used = 1, 1
    trellis.parent[0] = -1
    return trellis


def in_preorder(trellis: Trellis) -> np.ndarray:
    """The nodes in use: each before its children, siblings in their order."""
    child, right = trellis.nodes["child"].tolist(), trellis.nodes["right"].tolist()
    root = int(trellis.counters.root)
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if right[node] >= 0 and node != root:
            waiting.append(right[node])
        if child[node] >= 0:
            waiting.append(child[node])
    return np.array(found)


@kernel
def new_lineage(lineages: Lineages, founder: int) -> int:
    """A lineage for the cluster that record ``founder`` founds; nobody refers to it yet."""
    i = lineages.counters.free
    lineages.counters.free = lineages.rows[i].next
    lineages.counters.used += 1
    lineages.rows[i].founder = founder
    lineages.rows[i].label = -1
    lineages.rows[i].refs = 0
    return i


@kernel
def drop_lineage(lineages: Lineages, i: int) -> None:
    """One referrer less; the last one frees the lineage."""
    lineages.rows[i].refs -= 1
    if lineages.rows[i].refs == 0:
        lineages.rows[i].next = lineages.counters.free
        lineages.counters.free = i
        lineages.counters.used -= 1


@kernel
def add_node(trellis: Trellis, lineages: Lineages, parent: int, lineage: int, seq: int, link: int) -> int:
    """A new first child of ``parent``."""
    node = trellis.counters.free
    trellis.counters.free = trellis.parent[node]
    trellis.counters.used += 1
    first = trellis.nodes[parent].child
    trellis.parent[node] = parent
    trellis.nodes[node].child = -1
    trellis.nodes[node].right = first
    trellis.nodes[node].left = -1
    if first >= 0:
        trellis.nodes[first].left = node
    trellis.nodes[parent].child = node
    trellis.lineage[node] = lineage
    trellis.nodes[node].seq = seq
    trellis.nodes[node].link = link
    lineages.rows[lineage].refs += 1
    return node


@kernel
def _free_node(trellis: Trellis, lineages: Lineages, node: int) -> None:
    if trellis.lineage[node] >= 0:
        drop_lineage(lineages, trellis.lineage[node])
    trellis.lineage[node] = -1
    trellis.parent[node] = trellis.counters.free
    trellis.counters.free = node
    trellis.counters.used -= 1


@kernel
def prune(trellis: Trellis, lineages: Lineages, node: int) -> None:
    """Free a childless node, and every ancestor that it leaves childless."""
    root = trellis.counters.root
    while node != root and trellis.nodes[node].child < 0:
        parent = trellis.parent[node]
        before, after = trellis.nodes[node].left, trellis.nodes[node].right
        if before >= 0:
            trellis.nodes[before].right = after
        else:
            trellis.nodes[parent].child = after
        if after >= 0:
            trellis.nodes[after].left = before
        _free_node(trellis, lineages, node)
        node = parent


@kernel
def advance_root(trellis: Trellis, lineages: Lineages) -> int:
    """Move the root down while it has one child; return the record it stands at."""
    root = trellis.counters.root
    while True:
        child = trellis.nodes[root].child
        if child < 0 or trellis.nodes[child].right >= 0:
            break
        _free_node(trellis, lineages, root)
        trellis.parent[child] = -1
        root = child
    trellis.counters.root = root
    return trellis.nodes[root].seq


@kernel
def branch_of(trellis: Trellis, node: int) -> int:
    """The child of the root that ``node`` descends from."""
    root = trellis.counters.root
    while trellis.parent[node] != root:
        node = trellis.parent[node]
    return node


@kernel
def mark_leaves(trellis: Trellis, top: int, leaf: np.ndarray, width: int, marked: np.ndarray) -> None:
    """Set ``marked[h]`` for every hypothesis whose ``leaf[h]`` is ``top`` or lies below it."""
    node = top
    while True:
        if trellis.nodes[node].child >= 0:
            node = trellis.nodes[node].child
            continue
        for h in range(width):
            if leaf[h] == node:
                marked[h] = 1
                break
        while node != top and trellis.nodes[node].right < 0:
            node = trellis.parent[node]
        if node == top:
            return
        node = trellis.nodes[node].right
