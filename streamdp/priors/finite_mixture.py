"""A mixture of a known number of components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.priors.base import Prior, positive
from streamdp.priors.partition import cluster_sizes


@dataclass(frozen=True)
class FiniteMixture(Prior):
    """Component weights are Dirichlet(concentration / components); empty components do not count.

    Parameters
    ----------
    components
        K0, most clusters there can be, an integer >= 1.
    concentration
        alpha, prior records in all components together, > 0.

    Notes
    -----
    Green and Richardson 2001; the Chinese restaurant process is the limit of many components. Offline
    only: the stream's beam does not serve it.
    """

    components: int
    concentration: float = 1.0

    exchangeable = True

    def __post_init__(self) -> None:
        size = self.components
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"components must be an integer of at least 1, not {size!r}")
        positive("concentration", self.concentration)

    @property
    def share(self) -> float:
        """alpha / K0."""
        return self.concentration / self.components

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> None:
        """``ValueError``: a stream's clusters are not numbered in advance."""
        raise ValueError("the stream's beam does not serve FiniteMixture: use `streamdp fit`")

    def weights(
        self, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
    ) -> tuple[list[float], float]:
        """n_k + alpha / K0 to join, alpha / K0 for each empty component to found."""
        joins = [len(cluster) + self.share for cluster in members]
        return joins, (self.components - len(members)) * self.share

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """K0! / (K0 - K)! prod_k (alpha / K0)_{n_k} / alpha^(N), in nats; (x)_m is the rising factorial."""
        sizes = cluster_sizes(labels)
        if len(sizes) > self.components:
            return -math.inf
        a, alpha = self.share, self.concentration
        named = math.lgamma(self.components + 1) - math.lgamma(self.components - len(sizes) + 1)
        rising = math.lgamma(alpha + len(labels)) - math.lgamma(alpha)
        return named + math.fsum(math.lgamma(a + n) - math.lgamma(a) for n in sizes) - rising
