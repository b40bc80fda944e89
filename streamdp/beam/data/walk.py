"""Scratch space for a change of the best hypothesis: which records went from where to where.

Undecided records are gone through one by one, and what is of interest are the distinct pairs of the label
that was announced of a record and the lineage that it belongs to now, with the number of records of each.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from streamdp.beam.data.trellis import LINEAGE_BITS
from streamdp.kernels.heap import sort_ascending
from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import ints, reals

LINEAGE_MASK = (1 << LINEAGE_BITS) - 1


class Walk(NamedTuple):
    """Scratch space for a walk over the undecided records, newest first."""

    node: Annotated[np.ndarray, ints("undecided")]  # the new head's node of a record, by how far it is back
    pair: Annotated[
        np.ndarray, ints("undecided")
    ]  # announced label and lineage of a record, packed; then the distinct ones
    overlap: Annotated[np.ndarray, ints("undecided")]  # records of each distinct pair
    affected: Annotated[np.ndarray, ints("undecided")]  # by founder: whether its cluster is another now
    kept: Annotated[
        np.ndarray, ints("undecided")
    ]  # by founder: whether a record of its former cluster keeps the label
    level_node: Annotated[np.ndarray, ints("beam")]
    level_mass: Annotated[np.ndarray, reals("beam")]


@kernel
def pack(label: int, lineage: int) -> int:
    """Both in one integer, that sorts by label; see ``LINEAGE_BITS``."""
    return (label << LINEAGE_BITS) | lineage


@kernel
def label_of(pair: int) -> int:
    """The label of a pair."""
    return pair >> LINEAGE_BITS


@kernel
def lineage_of(pair: int) -> int:
    """The lineage of a pair."""
    return pair & LINEAGE_MASK


@kernel
def distinct_pairs(walk: Walk, records: int) -> int:
    """Of the pairs of so many records, leave the distinct ones, in order of label, and count each.

    Returns how many there are.
    """
    sort_ascending(walk.pair, records)
    pairs, i = 0, 0
    while i < records:
        pair, j = walk.pair[i], i
        while j < records and walk.pair[j] == pair:
            j += 1
        walk.pair[pairs] = pair
        walk.overlap[pairs] = j - i
        pairs += 1
        i = j
    return pairs
