"""Reading a clustering given as one label per record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cluster_sizes(labels: Sequence[int]) -> list[int]:
    """Sizes of the clusters, by first member."""
    return list(Counter(labels).values())


def founders(labels: Sequence[int]) -> list[int]:
    """Record numbers of the first members of all clusters, ascending."""
    first: dict[int, int] = {}
    for i, label in enumerate(labels):
        first.setdefault(label, i)
    return list(first.values())
