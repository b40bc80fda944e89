"""The Chinese restaurant process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.beam import model
from streamdp.priors.base import positive
from streamdp.priors.partition import cluster_sizes
from streamdp.priors.retiring import Retiring


@dataclass(frozen=True)
class CRP(Retiring):
    """The rich get richer: join a cluster by its size, found one by the concentration.

    Parameters
    ----------
    concentration
        Weight of a new cluster, > 0: N records make about concentration * log N clusters.
    retire_after, max_clusters
        See :class:`~streamdp.priors.retiring.Retiring`.

    Notes
    -----
    The partition of a Dirichlet process (Aldous 1985; Pitman 2002, section 3.1).
    """

    concentration: float = 1.0

    exchangeable = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("concentration", self.concentration)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> None:
        """Write the parameters where the kernels read them."""
        super().configure(ints, floats)
        ints[model.PRIOR] = model.CRP
        floats[model.CONCENTRATION] = self.concentration
        floats[model.DISCOUNT] = 0.0

    def weights(
        self, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
    ) -> tuple[list[float], float]:
        """n_k to join, the concentration to found."""
        return [float(len(cluster)) for cluster in members], self.concentration

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """concentration^K prod_k (n_k - 1)! / concentration^(N), in nats (Pitman 2002, section 3.1)."""
        sizes = cluster_sizes(labels)
        alpha = self.concentration
        rising = math.lgamma(alpha + len(labels)) - math.lgamma(alpha)
        return len(sizes) * math.log(alpha) + math.fsum(math.lgamma(n) for n in sizes) - rising
