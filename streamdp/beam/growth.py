"""The arrays of a beam: as they begin, and made larger, always by a rule of the state alone.

So two runs that saw the same records hold the same arrays, however the records came in batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.clusters.categories import CategoryClusters
from streamdp.beam.clusters.index import Index, WordClusters
from streamdp.beam.clusters.vectors import VectorClusters
from streamdp.beam.data.sizes import more_classes, new_sizes
from streamdp.beam.data.state import Clusters, Model, State
from streamdp.beam.data.trellis import LINEAGE_BITS, new_trellis
from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.rows import Counters, grown, made, power_of_two
from streamdp.likelihoods import Categorical, Likelihood
from streamdp.likelihoods.base import ABSENT
from streamdp.likelihoods.categorical import FieldsLearned
from streamdp.likelihoods.words import Learned

SLOTS = 64
"""Clusters that there is room for."""

SIZES = {
    **dict.fromkeys(("slots", "columns", "lineages", "times", "announced", "words"), SLOTS),
    **dict.fromkeys(("postings", "entries"), 16 * SLOTS),
}


def new_clusters(likelihood: Likelihood) -> Clusters:
    """No cluster's statistics."""
    bag: Any = ABSENT
    rows: Any = ABSENT
    if likelihood.bag is not None:
        named = isinstance(likelihood.bag, Categorical)
        kind, learned = (CategoryClusters, FieldsLearned) if named else (WordClusters, Learned)
        bag = kind(made(Index, SIZES), made(learned, SIZES))
    if likelihood.vector is not None:
        empty, coarse = likelihood.vector.empty_row(), 0 if likelihood.sparse else likelihood.vector.coarse
        sizes = {**SIZES, "width": len(empty), "coarse": coarse}
        dimension = np.array([likelihood.vector.dimension])
        rows = made(VectorClusters, sizes, empty=empty, block=np.tile(empty, (SLOTS, 1)), dimension=dimension)
    return Clusters(bag, rows)


def new_state(model: Model, likelihood: Likelihood) -> State:
    """The state of a beam before the first record."""
    return made(
        State,
        {**SIZES, "beam": model.beam},
        clusters=new_clusters(likelihood),
        sizes=new_sizes(SLOTS, SLOTS, 16 * SLOTS),
        trellis=new_trellis(16 * SLOTS),
    )


MOST_LINEAGES = 1 << LINEAGE_BITS
"""Clusters of all hypotheses and of the undecided records, as far as founders differ, that can be named."""


def _announced(state: State, size: int) -> State:
    """A longer ring: what is announced stands by seq, modulo its length."""
    old = state.announced.shape[0]
    seqs = np.arange(state.beam.counters.seq - old, state.beam.counters.seq)
    seqs = seqs[seqs >= 0]
    larger = grown(state, "announced", size)
    for name in ("announced", "announced_founder"):
        longer = getattr(larger, name)
        longer[:] = 0
        longer[seqs & (size - 1)] = getattr(state, name)[seqs & (old - 1)]
    return larger


def make_room(state: State, needs: Counters) -> State:
    """Enlarge what the needs of an output with status GROW say is too small, by powers of two."""
    for name in needs.dtype.names or ():
        wanted = int(getattr(needs, name))
        if wanted and name not in ("revisions", "events"):  # buffers of the output
            state = _with_room(state, name, power_of_two(wanted))
    return state


def _with_room(state: State, name: str, size: int) -> State:
    if name == "announced":
        return _announced(state, size)
    if name == "classes":
        return state._replace(sizes=more_classes(state.sizes, size))
    if name == "lineages" and size > MOST_LINEAGES:
        raise StreamdpError(
            f"more than {MOST_LINEAGES:,} clusters at a time: bound them with retire_after or max_clusters",
            Exit.OUT_OF_MEMORY,
        )
    return grown(state, name, size)
