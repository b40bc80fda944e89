"""What the likelihood says of making two clusters one."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.offline.kernels.allocation import Allocation
from streamdp.offline.kernels.clusters import group_of_slot, score_group
from streamdp.offline.kernels.store import Store


@entry
def weigh_unions(store: Store, allocation: Allocation, slot: int, slots: np.ndarray, out: np.ndarray) -> None:
    """log H(S + T) - log H(S) - log H(T) of a slot S and each slot T of others."""
    group_of_slot(store, slot, allocation.labels)
    score_group(store, slots, slots.shape[0], out)
    for j in range(slots.shape[0]):
        out[j] -= store.log_h[slot]
