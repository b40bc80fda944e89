"""The statistics of stories, from which themes are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamdp.story.words import Bag

MOST = 3_000
"""Stories of a tree, the largest; others have no theme. The gains of all pairs take 72 MB."""


class Statistics(NamedTuple):
    """The statistics of K stories: labels, numbers of records, and bags of words, rows, or both.

    ``base`` is p_w by word as a stream has learned it; None: learned from the stories. ``family`` is that of
    the clusters, ``concentration`` the weight of a new one.
    """

    labels: Sequence[int]
    sizes: Sequence[int]
    family: Any
    concentration: float
    bags: Sequence[Bag] = ()
    rows: np.ndarray | None = None
    base: np.ndarray | None = None

    def largest(self) -> Statistics:
        """The same of at most ``MOST`` stories."""
        if len(self.labels) <= MOST:
            return self
        kept = sorted(range(len(self.labels)), key=lambda k: (-self.sizes[k], self.labels[k]))[:MOST]
        return self._replace(
            labels=[self.labels[k] for k in kept],
            sizes=[self.sizes[k] for k in kept],
            bags=[self.bags[k] for k in kept] if self.bags else (),
            rows=None if self.rows is None else self.rows[kept],
        )
