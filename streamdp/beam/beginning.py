"""A beam before the first record."""

from __future__ import annotations

import numpy as np

from streamdp.beam.clusters.categories import CategoryClusters
from streamdp.beam.clusters.index import Index
from streamdp.beam.clusters.sizes import new_sizes
from streamdp.beam.clusters.vectors import VectorClusters
from streamdp.beam.clusters.words import WordClusters
from streamdp.beam.data.clock import ROWS, new_clock
from streamdp.beam.data.model import Model
from streamdp.beam.data.state import State
from streamdp.beam.data.trellis import new_trellis
from streamdp.kernels.rows import made
from streamdp.likelihoods import Categorical, Likelihood, VectorFamily
from streamdp.likelihoods.categorical import FieldsLearned
from streamdp.likelihoods.words import Learned

SLOTS = 64
"""Clusters that there is room for."""

SIZES = {
    **dict.fromkeys(("slots", "columns", "lineages", "times", "announced", "words"), SLOTS),
    **dict.fromkeys(("postings", "entries"), 16 * SLOTS),
}


def new_clusters(likelihood: Likelihood) -> WordClusters | VectorClusters:
    """No cluster's statistics."""
    if isinstance(likelihood, VectorFamily):
        empty = likelihood.empty_row()
        sizes = {**SIZES, "width": len(empty), "coarse": likelihood.coarse}
        return made(VectorClusters, sizes, empty=empty, block=np.tile(empty, (SLOTS, 1)))
    index, by_size = made(Index, SIZES), new_sizes(SLOTS, SLOTS, 16 * SLOTS)
    if isinstance(likelihood, Categorical):
        return CategoryClusters(index, by_size, made(FieldsLearned, SIZES))
    return WordClusters(index, by_size, made(Learned, SIZES))


def new_state(model: Model, likelihood: Likelihood) -> State:
    """The state of a beam before the first record."""
    return made(
        State,
        {**SIZES, "beam": model.beam, "clock": ROWS},
        clusters=new_clusters(likelihood),
        trellis=new_trellis(16 * SLOTS),
        clock=new_clock(getattr(model.prior, "concentration", 0.0)),
    )
