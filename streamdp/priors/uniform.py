"""The uniform process.

Wallach, Jensen, Dicker and Heller 2010, section 3; their eq. 12 as derived, not as printed.

``docs/papers.md`` compares it with the papers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamdp.priors.base import LIMITS, Retiring, found_weight, join_weight


class UniformTerms(NamedTuple):
    """What kernels read."""

    concentration: float


@dataclass(frozen=True)
class Uniform(Retiring):
    """All clusters are alike: a record joins each with the same weight, whatever its size.

    Parameters
    ----------
    concentration
        Weight of a new cluster against 1 for each there is (theta), > 0: N records make about
        sqrt(2 concentration N) clusters.
    retire_after, max_clusters
        See :class:`~streamdp.priors.base.Retiring`.

    Examples
    --------
    >>> round(Uniform(1.0).log_probability([0, 0, 1]), 4)
    -1.3863

    Notes
    -----
    Wallach, Jensen, Dicker and Heller 2010, section 3. Not exchangeable, but the order of the records
    matters only through the positions of the clusters' first members.
    """

    concentration: float = 1.0

    kind = UniformTerms
    exchangeable = False
    settings = {"concentration": "concentration", **LIMITS}  # noqa: RUF012

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """theta^(K-1) / prod_k (theta + k)^(t_{k+1} - t_k), in nats.

        t_k is the number of the first member of the k-th cluster, and t_{K+1} that of the last record.
        The product of Wallach et al. 2010, eq. 12, whose numerators are misprinted: they are 1 and theta.
        """
        if len(labels) == 0:
            return 0.0
        return self.log_founded(np.sort(np.unique(labels, return_index=True)[1]), len(labels))

    def log_founded(self, first: np.ndarray, n: int) -> float:
        """The same of n records by the numbers of the clusters' first members, ascending, shape (K,)."""
        theta, k = self.concentration, np.arange(1, len(first) + 1)
        norms = np.diff(first, append=n - 1) @ np.log(theta + k)
        return (len(first) - 1) * math.log(theta) - float(norms)


@join_weight.of(UniformTerms)
def _join(prior: UniformTerms, size: float) -> float:
    return 1.0


@found_weight.of(UniformTerms)
def _found(prior: UniformTerms, clusters: float) -> float:
    return prior.concentration
