"""A beam before the first record."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.categories import CategoryClusters
from streamdp.beam.expiry import new_expiry
from streamdp.beam.index import new_index
from streamdp.beam.members import new_members
from streamdp.beam.model import Model
from streamdp.beam.pace import new_pace
from streamdp.beam.pool import new_beam, new_pool
from streamdp.beam.sizes import new_sizes
from streamdp.beam.state import State
from streamdp.beam.trellis import new_lineages, new_trellis
from streamdp.beam.vectors import VectorClusters
from streamdp.beam.words import WordClusters
from streamdp.likelihoods import Categorical, Likelihood, VectorFamily
from streamdp.likelihoods.categorical import fields_learned
from streamdp.likelihoods.words import Learned

SLOTS = 64
"""Clusters that there is room for."""


def new_clusters(likelihood: Likelihood[Any, Any]) -> WordClusters | VectorClusters:
    """No cluster's statistics."""
    if isinstance(likelihood, VectorFamily):
        empty = likelihood.empty().row
        coarse = np.zeros((SLOTS, likelihood.coarse), np.float32)
        return VectorClusters(np.tile(empty, (SLOTS, 1)), empty, coarse)
    index, sizes = new_index(SLOTS, SLOTS, 16 * SLOTS, 16 * SLOTS), new_sizes(SLOTS, SLOTS, 16 * SLOTS)
    if isinstance(likelihood, Categorical):
        return CategoryClusters(index, sizes, fields_learned(SLOTS))
    return WordClusters(index, sizes, Learned(np.zeros(SLOTS, np.int64), np.zeros(2, np.int64)))


def new_state(model: Model, likelihood: Likelihood[Any, Any]) -> State:
    """The state of a beam before the first record."""
    width = model.beam
    return State(
        new_beam(width),
        new_pool(SLOTS, width, SLOTS),
        new_clusters(likelihood),
        new_expiry(SLOTS),
        new_members(SLOTS, SLOTS),
        new_trellis(16 * SLOTS),
        new_lineages(SLOTS),
        new_pace(getattr(model.prior, "concentration", 0.0)),
        np.zeros(SLOTS, np.int64),
        np.zeros(SLOTS, np.int64),
    )
