"""Links of the sequential distance-dependent CRP (Blei and Frazier 2011), and what they weigh.

A record links to an earlier one or to itself; the clusters are the trees.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import ints, reals
from streamdp.priors.decays import decay_weight


class Held(NamedTuple):
    """Where the frozen records of A clusters lie."""

    start: np.ndarray  # int64[A + 1] first of a cluster in the other two
    place: np.ndarray  # float64[M] in the unit of distance
    share: np.ndarray  # float64[M] by how much each counts


class Links(NamedTuple):
    """The forest, and what the prior says of it. Children of a record are a doubly linked list."""

    to: Annotated[np.ndarray, ints("records")]  # the target linked to; itself for a founder
    child: Annotated[np.ndarray, ints("targets")]  # one that links here, -1 for none
    next: Annotated[np.ndarray, ints("records")]  # the next that links to the same record
    before: Annotated[np.ndarray, ints("records")]  # the one before
    position: np.ndarray  # float64[N] in the unit of distance
    reach: np.ndarray  # int64[N] first record that is near enough for a link
    weight: np.ndarray  # float64[N, N] weight of a link where distances are given, or empty
    decay: Any  # terms of the decay
    concentration: float
    fixed: np.ndarray  # int64[N] 1: to stay together or apart as they are; or empty
    lost: Annotated[np.ndarray, ints("records")]  # 1: no earlier record of its cluster reaches it
    held: Held
    group: Annotated[np.ndarray, ints("records")]  # scratch: the subtree on the move
    total: Annotated[np.ndarray, reals("slots")]  # scratch: weight of the links into a slot
    slots: Annotated[np.ndarray, ints("slots")]  # scratch: slots in reach
    barred: Annotated[np.ndarray, ints("slots")]  # scratch: slots with fixed records


@kernel
def link_weight(links: Links, i: int, j: int) -> float:
    """Weight of a link from record i to an earlier one."""
    if links.weight.shape[0] > 0:
        return links.weight[i, j]
    return decay_weight(links.decay, links.position[i] - links.position[j])


@kernel
def held_weight(held: Held, decay: Any, here: float, k: int) -> float:
    """Weight of the links from a position to the frozen records of a cluster."""
    total = 0.0
    for m in range(held.start[k], held.start[k + 1]):
        total += held.share[m] * decay_weight(decay, here - held.place[m])
    return total


@entry
def weigh_held(held: Held, decay: Any, position: np.ndarray, out: np.ndarray) -> None:
    """Weight of the links from each position to the frozen records of each cluster, shape (A, N)."""
    for k in range(out.shape[0]):
        for i in range(position.shape[0]):
            out[k, i] = held_weight(held, decay, position[i], k)
