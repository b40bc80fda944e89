"""All live clusters at a glance: figures alone, in arrays, so that ten thousand cost next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdp.beam.search import BeamSearch
from streamdp.records import ClusterSummary


class Census(NamedTuple):
    """Live clusters side by side, each of shape (K,).

    Times are in seconds, NaN where there are none.
    """

    label: np.ndarray
    size: np.ndarray
    first_time: np.ndarray
    last_time: np.ndarray
    first_seq: np.ndarray
    last_seq: np.ndarray


def census_of(search: BeamSearch) -> Census:
    """The live clusters of the best hypothesis, in no order."""
    slots = search.head_slots()
    rows, lineages = search.state.pool.slots[slots], search.state.lineages.rows
    own = lineages[rows["lineage"]]
    return Census(
        own["label"].copy(),
        rows["size"].copy(),
        rows["first_time"].copy(),
        rows["last_time"].copy(),
        own["founder"].copy(),
        rows["last"].copy(),
    )


def census_of_all(clusters: Sequence[ClusterSummary]) -> Census:
    """The same of clusters that were described already."""

    def times(values: list[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], float)

    return Census(
        np.array([c.cluster for c in clusters], np.int64),
        np.array([c.size for c in clusters], np.int64),
        times([c.first_time for c in clusters]),
        times([c.last_time for c in clusters]),
        np.array([c.first_seq for c in clusters], np.int64),
        np.array([c.last_seq for c in clusters], np.int64),
    )
