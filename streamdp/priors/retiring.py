"""What the priors that never close a cluster by themselves have in common."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.checks import whole_or_none
from streamdp.priors.base import SizedPrior

LIMITS = {"retire_after": "retire_after", "max_clusters": "max_clusters"}


@dataclass(frozen=True, kw_only=True)
class Retiring(SizedPrior):
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
        whole_or_none("retire_after", self.retire_after)
        whole_or_none("max_clusters", self.max_clusters)
