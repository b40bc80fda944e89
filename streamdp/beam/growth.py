"""Making the arrays of a state larger: always by a rule of the state alone, so that two runs that saw
the same records hold the same arrays, however the records came in batches."""

from __future__ import annotations

import numpy as np

from streamdp.beam.clusters.sizes import more_classes
from streamdp.beam.data.state import State
from streamdp.beam.data.trellis import LINEAGE_BITS
from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.rows import Counters, grown, power_of_two

MOST_LINEAGES = 1 << LINEAGE_BITS
"""Clusters of all hypotheses and of the undecided records, as far as founders differ, that can be named."""


def _announced(state: State, size: int) -> State:
    """A longer ring: what is announced stands by seq, modulo its length."""
    old = state.announced.shape[0]
    seqs = np.arange(state.beam.counters.seq - old, state.beam.counters.seq)
    seqs = seqs[seqs >= 0]
    larger = grown(state, "announced", size)
    for made, before in (
        (larger.announced, state.announced),
        (larger.announced_founder, state.announced_founder),
    ):
        made[:] = 0
        made[seqs & (size - 1)] = before[seqs & (old - 1)]
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
        sizes = more_classes(state.clusters.sizes, size)
        return state._replace(clusters=state.clusters._replace(sizes=sizes))
    if name == "lineages" and size > MOST_LINEAGES:
        raise StreamdpError(
            f"more than {MOST_LINEAGES:,} clusters at a time: bound them with retire_after or max_clusters",
            Exit.OUT_OF_MEMORY,
        )
    return grown(state, name, size)
