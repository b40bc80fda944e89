"""The Chinese restaurant process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamdp.priors.base import LIMITS, Retiring, cluster_sizes
from streamdp.priors.pitman_yor import PitmanYorTerms


@dataclass(frozen=True)
class CRP(Retiring):
    """The rich get richer: join a cluster by its size, found one by the concentration.

    Parameters
    ----------
    concentration
        Weight of a new cluster, > 0: N records make about concentration * log N clusters.
    retire_after, max_clusters
        See :class:`~streamdp.priors.base.Retiring`.

    Examples
    --------
    >>> round(CRP(1.0).log_probability([0, 0, 1]), 4)
    -1.7918

    Notes
    -----
    The partition of a Dirichlet process (Aldous 1985; Pitman 2002, section 3.1).
    """

    concentration: float = 1.0

    kind = PitmanYorTerms
    discount = 0.0
    """That of the Pitman-Yor process, which it is without one."""
    exchangeable = True
    ewens = True
    all_or_none = True
    settings = {"concentration": "concentration", **LIMITS}  # noqa: RUF012

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """concentration^K prod_k (n_k - 1)! / concentration^(N), in nats (Pitman 2002, section 3.1)."""
        sizes = cluster_sizes(labels)
        alpha = self.concentration
        rising = math.lgamma(alpha + len(labels)) - math.lgamma(alpha)
        return len(sizes) * math.log(alpha) + math.fsum(math.lgamma(n) for n in sizes) - rising
