"""Scratch space in which the children of a step are chosen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import new_rows, row_type

UNIT_NATS = 1e9
GUARD = 1e-6
"""Nats by which early tests are laxer than the rounded comparison that decides."""
CANDIDATES, CHILDREN, BEST_CHILD, CONTENDERS, PARENTS, ALONE, LOST, RESERVED, LEADING, LANE_CHILD = range(10)
TOP_PARENT, TOP_SLOT, LEADERS = 10, 11, 12
"""Of the child with the best score: its parent, -1 while it is not known, and what it joins; how many
hypotheses do not follow it (see ``branching``)."""
BEST, ANCHOR, FLOOR, BAR, REACH, CEILING, LEAD_NOW = range(7)
"""Nats: the best child's score; what candidates are rounded against; below what none survives, as a score and
as a linear threshold; how far the worst parent of a full beam is behind the best."""
NEW = -1


class Choice(NamedTuple):
    """Scratch space of a choice, and the children chosen, best first."""

    meta: np.ndarray  # int64[13]
    candidates: np.ndarray  # CANDIDATE[B] agreed clusters
    contender: np.ndarray  # int64[M] contested columns that may come into the beam, best first
    offer: np.ndarray  # float64[M] their weight and predictive, in nats
    mass: np.ndarray  # float64[M] true weight x value of all contested columns
    weight: np.ndarray  # float64[M] their stored weights
    contested_sum: np.ndarray  # float64[B] per hypothesis
    contested_weight: np.ndarray  # float64[B]
    new_weight: np.ndarray  # float64[B]
    log_total: np.ndarray  # float64[B] log normaliser
    expect: np.ndarray  # float64[B] exp(log joint) / normaliser
    children: np.ndarray  # CHILD[B]
    base: np.ndarray  # float64[B] what a hypothesis brings to its children's scores, in nats
    founding: (
        np.ndarray
    )  # float64[B] score of the child that founds a cluster, in nats; -inf where none may be
    order: np.ndarray  # int64[B] hypotheses by base, best first
    follows: np.ndarray  # int64[B] whether what else a hypothesis may do comes last (see ``branching``)
    leaders: np.ndarray  # int64[B] those of which it does not, in the same order
    held: np.ndarray  # int64[M] hypotheses that hold a column
    old_leaf: np.ndarray  # int64[B] of the parents
    old_founded: np.ndarray  # int64[B] of the parents
    dropped: np.ndarray  # int64[B]
    stack: np.ndarray  # int64[128] heap positions still to be looked at
    bounds: np.ndarray  # float64[7] what can survive so far, read by the indices above


CANDIDATE = row_type("slot rank", "score")
"""Slot; its weight and predictive in nats, rounded and not."""

CHILD = row_type("rank parent slot founder group group_size", "select joint")
"""Rounded score, lowered for what comes last; parent; slot joined or NEW; its founder (later: its latest
member); the first child that joins the same slot, and of that how many do; scores under the tempered and the
true prior."""


def new_choice(width: int, columns: int) -> Choice:
    """Scratch space for a beam of this width."""
    return Choice(
        meta=np.zeros(13, np.int64),
        candidates=new_rows(width, CANDIDATE),
        contender=np.zeros(columns, np.int64),
        offer=np.zeros(columns),
        mass=np.zeros(columns),
        weight=np.zeros(columns),
        contested_sum=np.zeros(width),
        contested_weight=np.zeros(width),
        new_weight=np.zeros(width),
        log_total=np.zeros(width),
        expect=np.zeros(width),
        children=new_rows(width, CHILD),
        base=np.zeros(width),
        founding=np.zeros(width),
        order=np.zeros(width, np.int64),
        follows=np.zeros(width, np.int64),
        leaders=np.zeros(width, np.int64),
        held=np.zeros(columns, np.int64),
        old_leaf=np.zeros(width, np.int64),
        old_founded=np.zeros(width, np.int64),
        dropped=np.zeros(width, np.int64),
        stack=np.zeros(128, np.int64),
        bounds=np.zeros(7),
    )


@kernel
def rounded(nats: float) -> int:
    """A score in units of 1e-9 nats; what is hopelessly far below stays comparable."""
    return math.floor(max(nats, -1e9) * UNIT_NATS + 0.5)
