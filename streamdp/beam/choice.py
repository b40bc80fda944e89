"""Scratch space in which the children of a step are chosen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel

UNIT_NATS = 1e9
GUARD = 1e-6
"""Nats by which early tests are laxer than the rounded comparison that decides."""
CANDIDATES, CHILDREN, BEST_CHILD, HOPEFUL = range(4)
NEW = -1


class Choice(NamedTuple):
    """Scratch space of a choice, and the children chosen, best first."""

    meta: np.ndarray  # int64[4]
    slot: np.ndarray  # int32[B] agreed candidates
    score: np.ndarray  # float64[B] their weight and predictive, in nats
    rank: np.ndarray  # int64[B] the score rounded
    hopeful: np.ndarray  # int32[M] contested columns that may come into the beam, best first
    offer: np.ndarray  # float64[M] their weight and predictive, in nats
    mass: np.ndarray  # float64[M] true weight x value of all contested columns
    weight: np.ndarray  # float64[M] their stored weights
    contested_sum: np.ndarray  # float64[B] per hypothesis
    contested_weight: np.ndarray  # float64[B]
    new_weight: np.ndarray  # float64[B]
    log_total: np.ndarray  # float64[B] log normaliser
    expect: np.ndarray  # float64[B] exp(log joint) / normaliser
    child_rank: np.ndarray  # int64[B] rounded score of a child
    child_parent: np.ndarray  # int32[B]
    child_slot: np.ndarray  # int32[B] slot joined or NEW
    child_founder: np.ndarray  # int64[B]
    child_select: np.ndarray  # float64[B]
    child_joint: np.ndarray  # float64[B]
    base: np.ndarray  # float64[B] what a hypothesis brings to its children's scores, in nats
    order: np.ndarray  # int32[B] hypotheses by it, best first
    group: np.ndarray  # int32[B] the first child that joins the same slot
    group_size: np.ndarray  # int32[B] of a first child: how many join its slot
    held: np.ndarray  # int32[M] hypotheses that hold a column
    old_leaf: np.ndarray  # int32[B] of the parents
    old_founded: np.ndarray  # int64[B] of the parents
    dropped: np.ndarray  # uint8[B]
    stack: np.ndarray  # int64[128] heap positions still to be looked at


def new_choice(width: int, columns: int) -> Choice:
    """Scratch space for a beam of this width."""
    f, i, k = (
        [np.zeros(width) for _ in range(8)],
        [np.zeros(width, np.int32) for _ in range(3)],
        [np.zeros(width, np.int64) for _ in range(3)],
    )
    return Choice(
        np.zeros(4, np.int64),
        i[0],
        f[0],
        k[0],
        np.zeros(columns, np.int32),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(columns),
        f[1],
        f[2],
        f[3],
        f[4],
        f[5],
        k[1],
        i[1],
        i[2],
        k[2],
        f[6],
        f[7],
        np.zeros(width),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(columns, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int64),
        np.zeros(width, np.uint8),
        np.zeros(128, np.int64),
    )


@kernel
def rounded(nats: float) -> int:
    """A score in units of 1e-9 nats; what is hopelessly far below stays comparable."""
    return math.floor(max(nats, -1e9) * UNIT_NATS + 0.5)
