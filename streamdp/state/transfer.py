"""The beam's arrays to plain values and back, in the order of their definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.categories import CategoryClusters
from streamdp.beam.expiry import Expiry
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import Beam, Pool
from streamdp.beam.sizes import Sizes
from streamdp.beam.state import State
from streamdp.beam.trellis import Lineages, Trellis
from streamdp.beam.vectors import VectorClusters
from streamdp.beam.words import WordClusters
from streamdp.likelihoods.categorical import FieldsLearned
from streamdp.likelihoods.words import Learned
from streamdp.state.arrays import pack, unpack

PARTS: dict[str, Any] = {
    "beam": Beam,
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


def _load(name: str, stored: Any) -> Any:
    if not isinstance(stored, dict):
        return unpack(stored)
    parts = {field: _load(field, value) for field, value in stored.items()}
    if name == "clusters":
        if "block" in parts:
            return VectorClusters(**parts)
        named = isinstance(parts["learned"], FieldsLearned)
        return (CategoryClusters if named else WordClusters)(**parts)
    if name == "learned" and "field" in parts:
        return FieldsLearned(**parts)
    return PARTS[name](**parts)


def load_state(stored: dict[str, Any]) -> State:
    """The inverse of :func:`dump_state`."""
    return State(**{name: _load(name, part) for name, part in stored.items()})
