"""The beam's arrays to plain values and back, in the order of their definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.beam.due import Due
from streamdp.beam.index import Index
from streamdp.beam.members import Members
from streamdp.beam.pool import Beam, Pool
from streamdp.beam.sizes import Sizes
from streamdp.beam.state import Dense, State
from streamdp.beam.trellis import Lineages, Trellis
from streamdp.state.arrays import pack, unpack

PARTS = {
    "beam": Beam,
    "pool": Pool,
    "sizes": Sizes,
    "due": Due,
    "members": Members,
    "inverted": Index,
    "dense": Dense,
    "trellis": Trellis,
    "lineages": Lineages,
}


def dump_state(state: State) -> dict[str, Any]:
    """Arrays by part and name."""
    stored: dict[str, Any] = {}
    for name in state._fields:
        value = getattr(state, name)
        if isinstance(value, np.ndarray):
            stored[name] = pack(value)
        else:
            stored[name] = {field: pack(getattr(value, field)) for field in value._fields}
    return stored


def load_state(stored: dict[str, Any]) -> State:
    """The inverse of :func:`dump_state`."""
    parts: dict[str, Any] = {}
    for name in State._fields:
        if name in PARTS:
            arrays = {field: unpack(value) for field, value in stored[name].items()}
            parts[name] = PARTS[name](**arrays)
        else:
            parts[name] = unpack(stored[name])
    return State(**parts)
