"""The beam's arrays to plain values and back, in the order of their definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.expiry import Expiry
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import HEAD, LANE, Beam, Pool, new_beam
from streamdp.beam.sizes import Sizes
from streamdp.beam.state import State
from streamdp.beam.trellis import Lineages, Trellis
from streamdp.beam.vectors import VectorClusters
from streamdp.beam.words import WordClusters
from streamdp.kernels.rows import longer
from streamdp.likelihoods.words import Learned
from streamdp.state.arrays import pack, unpack

PARTS: dict[str, Any] = {
    "pool": Pool,
    "expiry": Expiry,
    "members": Members,
    "trellis": Trellis,
    "lineages": Lineages,
    "inverted": Index,
    "sizes": Sizes,
    "learned": Learned,
}


def dump_state(state: Any) -> dict[str, Any]:
    """Arrays by part and name."""
    return {
        name: pack(part) if isinstance(part, np.ndarray) else dump_state(part)
        for name, part in state._asdict().items()
    }


def _with_lane(beam: Beam) -> Beam:
    """Of a snapshot made before there was a greedy lane: it starts from the best hypothesis."""
    if len(beam.meta) > LANE:
        return beam
    fresh = new_beam(1)
    meta, sums = longer(beam.meta, len(fresh.meta)), longer(beam.sums, len(fresh.sums))
    meta[LANE] = meta[HEAD]
    return beam._replace(meta=meta, sums=sums)


def _load(name: str, stored: Any) -> Any:
    if not isinstance(stored, dict):
        return unpack(stored)
    parts = {field: _load(field, value) for field, value in stored.items()}
    if name == "clusters":
        return (VectorClusters if "block" in parts else WordClusters)(**parts)
    return _with_lane(Beam(**parts)) if name == "beam" else PARTS[name](**parts)


def load_state(stored: dict[str, Any]) -> State:
    """The inverse of :func:`dump_state`."""
    return State(**{name: _load(name, part) for name, part in stored.items()})
