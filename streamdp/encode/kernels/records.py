"""The records of a batch one after the other: how many tokens each has, when words were seen last."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry


@entry
def tally(offsets: np.ndarray, counts: np.ndarray, sizes: np.ndarray) -> None:
    """Write the tokens of every record; they lie as in a ``Batch``."""
    for i in range(sizes.shape[0]):
        tokens = 0
        for k in range(offsets[i], offsets[i + 1]):
            tokens += counts[k]
        sizes[i] = tokens


@entry
def sight(last_seen: np.ndarray, words: np.ndarray, offsets: np.ndarray, first: int) -> None:
    """Note the words of records from number ``first`` on, which lie as in a ``Batch``."""
    for i in range(offsets.shape[0] - 1):
        for k in range(offsets[i], offsets[i + 1]):
            last_seen[words[k]] = first + i
