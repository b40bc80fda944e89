"""What the priors that never close a cluster by themselves have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.beam.model import MAX_CLUSTERS, RETIRE_AFTER
from streamdp.priors.base import Prior


@dataclass(frozen=True, kw_only=True)
class Retiring(Prior):
    """Limits that keep a stream's memory bounded under a prior that forgets nothing.

    Both are approximations made by the stream alone: neither enters :meth:`weights` nor
    :meth:`log_probability`, which speak of the prior itself.

    Parameters
    ----------
    retire_after
        Retire a cluster once this many records and one more have come since its last member:
        an integer >= 1; None: never.
    max_clusters
        Most open clusters of the best hypothesis, the least recently joined retire first: an
        integer >= 1; None: no limit.
    """

    retire_after: int | None = None
    max_clusters: int | None = None

    def __post_init__(self) -> None:
        limit_or_none("retire_after", self.retire_after)
        limit_or_none("max_clusters", self.max_clusters)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> None:
        """Write the limits where the kernels read them; 0 is off."""
        ints[RETIRE_AFTER] = self.retire_after or 0
        ints[MAX_CLUSTERS] = self.max_clusters or 0


def limit_or_none(name: str, value: int | None) -> None:
    """Check a limit: an integer of at least 1, or None."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, or None, not {value!r}")
