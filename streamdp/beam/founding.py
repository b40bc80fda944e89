"""The beginning of a cluster: an empty slot and a lineage."""

from __future__ import annotations

from streamdp.beam.clusters import clear_slot
from streamdp.beam.model import Model
from streamdp.beam.pool import take_slot
from streamdp.beam.state import State
from streamdp.beam.trellis import new_lineage
from streamdp.kernels.jit import kernel


@kernel
def found_slot(model: Model, state: State, founder: int, time: float) -> int:
    """An empty slot for the cluster of a founder, which came at that time."""
    pool = state.pool
    lineage = new_lineage(state.lineages, founder)
    slot = take_slot(pool)
    pool.slots[slot].lineage = lineage
    state.lineages.rows[lineage].refs += 1
    pool.founder[slot] = founder
    pool.slots[slot].size = 0
    pool.weight[slot] = 0.0
    pool.slots[slot].last = -1
    pool.slots[slot].first_time = pool.slots[slot].last_time = time
    clear_slot(state.clusters, model, slot)
    return slot
