"""Where a record or a cluster that is looked at again may go."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from streamdp.beam.data.choice import Scores
from streamdp.beam.data.pool import ALIVE, Pool
from streamdp.beam.data.state import State
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, one, reals

PLACES = 8
"""Clusters, those with the best predictive, whose prior is worked out."""
WORTH = 1e-7
"""Of the best predictive; what is less is no place."""


class Places(NamedTuple):
    """Where a record or a cluster may go, the best predictive first."""

    counters: Annotated[Counters, one("found")]
    slot: Annotated[np.ndarray, ints(PLACES)]
    value: Annotated[np.ndarray, reals(PLACES)]  # predictive, as of the scores
    score: Annotated[np.ndarray, reals(PLACES)]  # nats


@kernel
def _offer_place(state: State, places: Places, slot: int, value: float, but: int, least: int) -> None:
    """Take an agreed open cluster of so many records in, if it is among the best; of equals the heaviest.

    What is pinned weighs more than its records do, and is left alone.
    """
    n, pool = places.counters.found, state.pool
    if value <= 0.0 or slot == but or pool.slots[slot].size < least or pool.pinned[slot] == 1:
        return
    if n == PLACES and not _before(pool, places, slot, value, n - 1):
        return
    places.counters.found = n = min(n + 1, PLACES)
    at = n - 1
    while at > 0 and _before(pool, places, slot, value, at - 1):
        places.slot[at], places.value[at] = places.slot[at - 1], places.value[at - 1]
        at -= 1
    places.slot[at], places.value[at] = slot, value


@kernel
def _least_value(places: Places) -> float:
    """What is worth less is no place."""
    n = places.counters.found
    if n == 0:
        return 0.0
    worth = WORTH * places.value[0]
    return float(max(worth, places.value[n - 1]) if n == PLACES else worth)


@kernel
def _before(pool: Pool, places: Places, slot: int, value: float, at: int) -> bool:
    """Whether a cluster is better than the one at a place; as good, and heavier; or as heavy, and older."""
    other = places.slot[at]
    if value != places.value[at]:
        return bool(value > places.value[at])
    if pool.weight[slot] != pool.weight[other]:
        return bool(pool.weight[slot] > pool.weight[other])
    return bool(pool.founder[slot] < pool.founder[other])


@kernel
def find_places(state: State, scores: Scores, places: Places, but: int, least: int) -> None:
    """The agreed open clusters of at least so many records with the best predictive."""
    pool, words, bar = state.pool, scores.words, 0.0
    places.counters.found = 0
    for i in range(words.counters.touched):
        slot = words.touched[i]
        value = scores.value[slot]
        shares = words.cells[slot].gain > 0.0  # touched is any cluster where all are scored
        if shares and value >= bar and pool.column[slot] < 0 and pool.state[slot] == ALIVE:
            _offer_place(state, places, slot, value, but, least)
            bar = _least_value(places)
    while places.counters.found > 0 and places.value[places.counters.found - 1] < WORTH * places.value[0]:
        places.counters.found -= 1


@kernel
def best_place(places: Places, own: float) -> tuple[int, float]:
    """The place with the highest score, and its share of all of them and ``own``."""
    best = 0
    for p in range(1, places.counters.found):
        if places.score[p] > places.score[best]:
            best = p
    total = math.exp(min(own - places.score[best], 700.0))
    for p in range(places.counters.found):
        total += math.exp(places.score[p] - places.score[best])
    return best, 1.0 / total
