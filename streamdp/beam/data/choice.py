"""Scratch space in which the children of a step are chosen."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, one, reals, row_type, rows

UNIT_NATS = 1e9
GUARD = 1e-6
"""Nats by which early tests are laxer than the rounded comparison that decides."""
NEW = -1

CANDIDATE = row_type("slot rank", "score")
"""Slot; its weight and predictive in nats, rounded and not."""

CHILD = row_type("rank parent slot founder group group_size", "select joint")
"""Rounded score, lowered for what comes last; parent; slot joined or NEW; its founder (later: its latest
member); the first child that joins the same slot, and of that how many do; scores under the tempered and the
true prior."""


class Choice(NamedTuple):
    """Scratch space of a choice, and the children chosen, best first.

    Of ``counters``: ``top_parent`` and ``top_slot`` are of the child with the best score (-1 while it is not
    known), ``leaders`` how many hypotheses do not follow it (see ``branching``). In nats: the best child's
    score; what candidates are rounded against; below what none survives, as a score (``floor``) and as a
    linear threshold (``bar``); how far the worst parent of a full beam is behind the best (``reach``).
    """

    counters: Annotated[
        Counters,
        one(
            "candidates children best_child contenders parents alone lost reserved leading greedy_child "
            "top_parent top_slot leaders",
            "best anchor floor bar reach ceiling lead_now",
        ),
    ]
    candidates: Annotated[np.ndarray, rows(CANDIDATE, "beam")]  # agreed clusters
    contender: Annotated[np.ndarray, ints("columns")]  # columns that may come into the beam, best first
    offer: Annotated[np.ndarray, reals("columns")]  # their weight and predictive, in nats
    mass: Annotated[np.ndarray, reals("columns")]  # true weight x value of all contested columns
    weight: Annotated[np.ndarray, reals("columns")]  # their stored weights
    contested_sum: Annotated[np.ndarray, reals("beam")]  # per hypothesis
    contested_weight: Annotated[np.ndarray, reals("beam")]
    new_weight: Annotated[np.ndarray, reals("beam")]
    log_total: Annotated[np.ndarray, reals("beam")]  # log normaliser
    expect: Annotated[np.ndarray, reals("beam")]  # exp(log joint) / normaliser
    children: Annotated[np.ndarray, rows(CHILD, "beam")]
    base: Annotated[np.ndarray, reals("beam")]  # what a hypothesis brings to its children's scores, in nats
    founding: Annotated[
        np.ndarray, reals("beam")
    ]  # score of the child that founds a cluster; -inf: none may be
    order: Annotated[np.ndarray, ints("beam")]  # hypotheses by base, best first
    follows: Annotated[
        np.ndarray, ints("beam")
    ]  # whether what else one may do comes last (see ``branching``)
    leaders: Annotated[np.ndarray, ints("beam")]  # those of which it does not, in the same order
    held: Annotated[np.ndarray, ints("columns")]  # hypotheses that hold a column
    old_leaf: Annotated[np.ndarray, ints("beam")]  # of the parents
    old_founded: Annotated[np.ndarray, ints("beam")]  # of the parents
    dropped: Annotated[np.ndarray, ints("beam")]
    stack: Annotated[np.ndarray, ints(128)]  # heap positions still to be looked at


@kernel
def rounded(nats: float) -> int:
    """A score in units of 1e-9 nats; what is hopelessly far below stays comparable."""
    return math.floor(max(nats, -1e9) * UNIT_NATS + 0.5)
