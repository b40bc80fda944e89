"""Of vectors it is known what they are like as directions, where one cosine was."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.state.retained import pack, unpack


def convert(stored: dict[str, Any]) -> dict[str, Any]:
    """The cosine, and what leaves the likelihood as it was."""
    if stored.get("moments") is None:
        return stored
    *others, common = stored["moments"]
    return stored | {"moments": [*others, pack(np.array([float(unpack(common)), 0.0, 1.0, 1.0]))]}
