"""Where a record or a cluster that is looked at again may go."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.clusters import value_of
from streamdp.beam.pool import ALIVE, SLOT_HIGH
from streamdp.beam.scores import Scores
from streamdp.beam.state import State
from streamdp.kernels.jit import kernel

PLACES = 8
"""Clusters, those with the best predictive, whose prior is worked out."""
WORTH = 1e-7
"""Of the best predictive; what is less is no place."""


class Places(NamedTuple):
    """Where a record or a cluster may go, the best predictive first."""

    found: np.ndarray  # int64[1] how many
    slot: np.ndarray  # int64[PLACES]
    value: np.ndarray  # float64[PLACES] predictive, as of the scores
    score: np.ndarray  # float64[PLACES] nats


def new_places() -> Places:
    """Scratch space."""
    return Places(np.zeros(1, np.int64), np.zeros(PLACES, np.int64), np.zeros(PLACES), np.zeros(PLACES))


@kernel
def find_places(state: State, scores: Scores, places: Places, but: int, least: int) -> None:
    """The agreed open clusters of at least so many records with the best predictive."""
    pool, n = state.pool, 0
    for slot in range(pool.meta[SLOT_HIGH]):
        if (
            pool.state[slot] != ALIVE
            or pool.column[slot] >= 0
            or slot == but
            or pool.slots[slot].size < least
        ):
            continue
        value = value_of(state.clusters, scores, slot)
        if value <= 0.0 or (n == PLACES and value <= places.value[n - 1]):
            continue
        n = min(n + 1, PLACES)
        at = n - 1
        while at > 0 and places.value[at - 1] < value:
            places.slot[at], places.value[at] = places.slot[at - 1], places.value[at - 1]
            at -= 1
        places.slot[at], places.value[at] = slot, value
    while n > 0 and places.value[n - 1] < WORTH * places.value[0]:
        n -= 1
    places.found[0] = n


@kernel
def best_place(places: Places, own: float) -> tuple[int, float]:
    """The place with the highest score, and its share of all of them and ``own``."""
    best = 0
    for p in range(1, places.found[0]):
        if places.score[p] > places.score[best]:
            best = p
    total = math.exp(min(own - places.score[best], 700.0))
    for p in range(places.found[0]):
        total += math.exp(places.score[p] - places.score[best])
    return best, 1.0 / total
