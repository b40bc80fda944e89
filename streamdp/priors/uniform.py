"""The uniform process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.beam import model
from streamdp.priors.base import positive
from streamdp.priors.partition import founders
from streamdp.priors.retiring import Retiring


@dataclass(frozen=True)
class Uniform(Retiring):
    """All clusters are alike: a record joins each with the same weight, whatever its size.

    Parameters
    ----------
    concentration
        Weight of a new cluster against 1 for each there is (theta), > 0: N records make about
        sqrt(2 concentration N) clusters.
    retire_after, max_clusters
        See :class:`~streamdp.priors.retiring.Retiring`.

    Notes
    -----
    Wallach, Jensen, Dicker and Heller 2010, section 3. Not exchangeable, but the order of the records
    matters only through the positions of the clusters' first members.
    """

    concentration: float

    exchangeable = False

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("concentration", self.concentration)

    def configure(self, ints: np.ndarray, floats: np.ndarray) -> None:
        """Write the parameters where the kernels read them."""
        super().configure(ints, floats)
        ints[model.PRIOR] = model.UNIFORM
        floats[model.CONCENTRATION] = self.concentration
        floats[model.DISCOUNT] = 0.0

    def weights(
        self, members: Sequence[Sequence[int]], now: int, times: Sequence[float]
    ) -> tuple[list[float], float]:
        """1 to join, the concentration to found."""
        return [1.0] * len(members), self.concentration

    def log_probability(self, labels: Sequence[int], times: Sequence[float] | None = None) -> float:
        """theta^(K-1) / prod_k (theta + k)^(t_{k+1} - t_k), in nats.

        t_k is the number of the first member of the k-th cluster, and t_{K+1} that of the last record.
        The product of Wallach et al. 2010, eq. 12, whose numerators are misprinted: they are 1 and theta.
        """
        if len(labels) == 0:
            return 0.0
        theta = self.concentration
        first = founders(labels)
        ends = [*first[1:], len(labels) - 1]
        norms = (
            (end - start) * math.log(theta + k)
            for k, (start, end) in enumerate(zip(first, ends, strict=True), start=1)
        )
        return (len(first) - 1) * math.log(theta) - math.fsum(norms)
